"""`Memo`: what a device drew once and answers with ever after. Secret, and never sent.

A response that is drawn anew for every report can be averaged away. A memo draws one response for each key,
keeps it, and gives the same again. With a path it is written, whole or not at all, before it is given for the
first time: after a crash no second response exists for a key of which one was sent. One process at a time has
the file (`locking`), by its lock; a memo that is older than the last response that was given, that has a
second name, or whose lock file is gone is refused, since its keys would be answered twice.

The file is readable by its owner alone (mode 0600), and refused where it is not. Keys are in it as digests
under a random key of its own, so that no value is read off it at a glance. They hide no more than that: who
has the file has that key too, can try values one by one, and sees the responses. Nothing is written while
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
from dalenius.noise.source import KEY
from dalenius.noise.stream import StreamKey

FORMAT, VERSION = "dalenius-memo", 2
OWNER = Owner("memo", "Begin another memo, whose reports cost anew")
Kept = dict[str, list[int]]


class Memo:
    """Responses by key, for one randomizer and survey, in memory or in a file. See the module."""

    def __init__(
        self, fingerprint: bytes, path: str | os.PathLike[str] | None = None, *, survey: str = ""
    ) -> None:
        if not isinstance(survey, str):
            raise InvalidArgument("survey must be a text.", remedy='Pass its name, such as survey="usage".')
        self._whose = sha256(fingerprint + survey.encode("utf-8", "surrogatepass")).hexdigest()
        self._turn, self._process = RLock(), os.getpid()
        self._answering = self._closed = False
        self._key, self._kept, self._seeded = b"", Kept(), False
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
        name = blake2b(key.encode(), key=self._key, digest_size=16).hexdigest()
        there = name in self._kept
        found = self._kept[name] if there else [int(number) for number in draw()]
        self._alive()
        if len(found) != size or not all(0 <= number < below for number in found):
            raise _unknown()
        if not there:
            kept = {**self._kept, name: found}
            if self._lock is not None:
                self._write(self._lock, kept)
            self._kept = kept
        return found

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
        if noise.tainted() and self._lock is not None:
            raise NotSound(
                "A memo in a file is not for noise from a seed: its responses would outlive the seed's mark.",
                remedy="Use one in memory, without a path, or draw outside noise.seeded.",
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

    def _write(self, lock: Lock, kept: Kept) -> None:
        if not self._kept:
            lock.note(self._key, 0)
        content = {"format": FORMAT, "version": VERSION, "whose": self._whose}
        content |= {"key": self._key.hex(), "kept": kept}
        lock.replace(json.dumps(content, separators=(",", ":")))
        lock.note(self._key, len(kept))

    def _read(self, path: Path) -> tuple[bytes, Kept]:
        if path.stat().st_mode & 0o077:
            raise NotSound(
                f"{path.name} can be read by others than its owner, who then know what its reports say.",
                remedy="If nobody did, allow its owner alone (mode 0600). Begin another memo otherwise.",
            )
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
