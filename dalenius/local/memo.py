"""`Memo`: the one response of a device to each value, derived from a secret. Never sent.

A response that is drawn anew for every report can be averaged away. A memo gives one response for each key of
a value: the response is drawn from bits that a pseudorandom function of the memo's secret and that key fixes,

    seed = BLAKE2b(key = secret, "response" ‖ randomizer and survey ‖ key of the value),

and the noise of that seed (`noise.source.derived`: AES-256 in counter mode).

Theorem (responses without state). Let the function be pseudorandom. Then the responses of different keys are
independent draws of the randomizer, but for what breaks the function or the cipher; and the response of a key
is the same whenever, wherever and in whatever order it is asked for. So a memo that is copied, or restored
from a backup, also together with its lock file, gives no second response of any value: it costs what one
device costs. Known answers in the tests fix which response a secret has, so that versions agree.

What does begin anew is a device whose secret is lost: one that lost it k times has given k + 1 independent
responses to a value, and costs k + 1 times as much. A secret that is kept apart
(`Client(..., secret=...)`, from the key store of the operating system) survives the loss of files, and needs
none. A file has a secret from the moment it exists, so every backup of it has the secret, too.

With a path each response is also written, whole or not at all, before it is given for the first time. One
process at a time has the file (`locking`). A memo that is older than the last response that was given, that
has a second name, or whose lock file is gone is refused: that is a sign of a file that was tampered with.

The file is readable by its owner alone (mode 0600), and refused where it is not, or where others can replace
it. Keys are in it as digests, so that no value is read off it at a glance. They hide no more than that: who
has the file has the secret too, can try values one by one, and sees the responses. Nothing is written while
noise comes from a seed, which anybody may know.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from hashlib import blake2b, sha256
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn
from weakref import finalize

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.locking import Lock, Owner
from dalenius.noise.source import KEY, derived
from dalenius.noise.stream import StreamKey

FORMAT, VERSION = "dalenius-memo", 3
OWNER = Owner("memo", "Begin another memo, whose reports cost anew")
PERSON = b"dalenius memo"
"""Keeps digests apart from those of other uses of the same secret."""
Kept = dict[str, list[int]]


class Memo:
    """Responses by key, for one randomizer and survey. See the module.

    Args:
        fingerprint: That of the randomizer's parameters.
        path: The file to keep the secret and the responses in; None keeps them in memory.
        survey: The name of the survey. Different surveys have independent responses.
        secret: 32 bytes or more that the responses are derived from, in place of a file.
    """

    def __init__(
        self,
        fingerprint: bytes,
        path: str | os.PathLike[str] | None = None,
        *,
        survey: str = "",
        secret: bytes | None = None,
    ) -> None:
        if not isinstance(survey, str):
            raise InvalidArgument("survey must be a text.", remedy='Pass its name, such as survey="usage".')
        self._whose = sha256(fingerprint + survey.encode("utf-8", "surrogatepass")).hexdigest()
        self._turn, self._process = RLock(), os.getpid()
        self._answering = self._closed = False
        self._key, self._kept, self._seeded = _read_secret(secret, path), Kept(), False
        self._durable = path is not None or secret is not None
        self._lock = None if path is None else _locked(Path(path))
        self._end = finalize(self, _nothing if self._lock is None else self._lock.close)
        # At exit a thread may still answer; the file is given up as the process ends.
        self._end.atexit = False
        try:
            if self._lock is not None:
                self._open(self._lock)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return "<Memo, secret>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise NotSound(
            "A memo cannot be copied: each copy would draw responses of its own.",
            remedy="Open it again from its file, by one process at a time.",
        )

    def close(self) -> None:
        """Give the file up, so that it can be opened again; nothing is answered from then on.

        Not before an answer that is being drawn is whole, or refused: two memos would answer for one value.
        """
        if self._process != os.getpid():
            self._end()
            return
        with self._turn:
            self._closed = True
            if not self._answering:
                self._end()

    def recall(self, key: str, draw: Callable[[], list[int]], *, size: int, below: int) -> list[int]:
        """The response of a key, `size` numbers `below` some: drawn once, and kept before it is given."""
        if self._process != os.getpid():
            self.__reduce_ex__(0)
        with self._turn:
            self._check()
            try:
                self._answering = True
                return list(self._answer(key, draw, size, below))
            finally:
                self._answering = False
                if self._closed:
                    self._end()

    def _answer(self, key: str, draw: Callable[[], list[int]], size: int, below: int) -> list[int]:
        self._key = self._key or StreamKey.fresh().secret
        name = self._digest("name", key, 16).hex()
        there = name in self._kept
        found = self._kept[name] if there else self._drawn(key, draw)
        self._alive()
        if len(found) != size or not all(0 <= number < below for number in found):
            raise _unknown()
        if not there:
            kept = {**self._kept, name: found}
            if self._lock is not None:
                self._write(self._lock, kept)
            self._kept = kept
        return found

    def _drawn(self, key: str, draw: Callable[[], list[int]]) -> list[int]:
        """Draw the response of a key, from bits that follow from the secret and the key."""
        with derived(self._digest("response", key, 64)):
            return [int(number) for number in draw()]

    def _digest(self, use: str, key: str, size: int) -> bytes:
        said = f"{use} {self._whose} {key}".encode()
        return blake2b(said, key=self._key, digest_size=size, person=PERSON).digest()

    def _alive(self) -> None:
        if self._closed or not self._end.alive:
            raise InvalidArgument("This memo is closed.", remedy="Open it again from its file.")

    def _check(self) -> None:
        """Refuse what is closed, an answer within another, and responses whose seed anybody may know."""
        self._alive()
        if self._answering:
            raise NotSound(
                "This memo is in the middle of an answer, in the same thread.",
                remedy="Ask again after it, and not from a signal's handler.",
            )
        if noise.tainted() and self._durable:
            raise NotSound(
                "A memo with a file or a secret is not for noise from a seed: its responses would outlive "
                "the seed's mark.",
                remedy="Use one in memory, without a path or a secret, or draw outside noise.seeded.",
            )
        if self._seeded and not noise.tainted():
            raise NotSound(
                "This memo has responses from a seed, which hide nothing.",
                remedy="Use another one outside noise.seeded.",
            )
        self._seeded |= noise.tainted()

    # The file.

    def _open(self, lock: Lock) -> None:
        if lock.path.exists():
            self._key, self._kept = self._read(lock.path)
            lock.check(self._key, len(self._kept))
        elif not lock.unused:
            raise NotSound(
                "This memo is gone, and its lock file tells of responses that were given.",
                remedy="Put it back. If it is lost, remove the lock file too: reports then cost anew.",
            )
        elif not noise.tainted():
            # The secret exists from now on, so that no backup of the file is without it.
            self._key = StreamKey.fresh().secret
            self._write(lock, Kept())

    def _write(self, lock: Lock, kept: Kept) -> None:
        if not self._kept:
            lock.note(self._key, 0)
        content = {"format": FORMAT, "version": VERSION, "whose": self._whose}
        content |= {"key": self._key.hex(), "kept": kept}
        lock.replace(json.dumps(content, separators=(",", ":")))
        lock.note(self._key, len(kept))

    def _read(self, path: Path) -> tuple[bytes, Kept]:
        try:
            content = json.loads(path.read_bytes())
            head = tuple(content.pop(name) for name in ("format", "version", "whose"))
            key, kept = bytes.fromhex(content["key"]), {**content["kept"]}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise _unknown() from None
        if head[:2] != (FORMAT, VERSION) or len(key) != KEY or not _whole(kept):
            raise _unknown()
        if head[2] != self._whose:
            raise InvalidArgument(
                "This memo is of another survey, or of a randomizer with other parameters.",
                remedy="Use those it was begun with, or a new file, whose reports cost anew.",
            )
        return key, kept


def _locked(path: Path) -> Lock:
    """The lock of a file, or of one that is to be."""
    if not path.resolve().parent.is_dir():
        raise InvalidArgument("There is no such folder for a memo.", remedy="Make the folder first.")
    if path.exists() and not path.is_file():
        raise InvalidArgument("A memo is kept in a file, and this is none.", remedy="Pass a file's name.")
    return Lock.taken(path, OWNER, new=not path.exists())


def _read_secret(secret: bytes | None, path: object) -> bytes:
    """Return the key of a memo whose secret is given; none yet where it is not."""
    if secret is None:
        return b""
    if not isinstance(secret, bytes) or len(secret) < KEY:
        raise InvalidArgument(
            f"secret must be {KEY} bytes or more, drawn at random for this device.",
            remedy="Draw it once, as noise.stream.StreamKey.fresh().secret, and keep it in a key store.",
        )
    if path is not None:
        raise InvalidArgument(
            "A memo has a file of its own or a secret that is kept elsewhere.",
            remedy="Pass path, or secret, which needs no file.",
        )
    return sha256(b"dalenius memo " + secret).digest()


def _whole(kept: dict[Any, Any]) -> bool:
    """Whether these are rows of whole numbers."""
    return all(isinstance(row, list) and all(type(one) is int for one in row) for row in kept.values())


def _unknown() -> InvalidArgument:
    return InvalidArgument(
        "This is not a memo that this version reads, or it is damaged.",
        remedy="Pass the file of a memo; a new one costs the person as a new device does.",
    )


def _nothing() -> None:
    """A memo in memory has no file to give up."""
