"""`Journal`: what the noise of a saved run was used for, on disk before it is used.

A state that was saved can be resumed, and its noise drawn again. So from the first save on, a file beside it
gets one line for each step before its noise is added:

    used <step> <attempt> <seal>     noise of this attempt goes onto the sums that have this seal
    again <step> <attempt>           the step is made anew as this attempt, which has been charged
    paid <steps> <entry>             so many steps have been charged, the last by this line of the account

Lines are only ever appended, each by one write that is on disk (`fdatasync`) before anything follows from it.
Each ends with a keyed check of itself and of its number: lines of another run, lines lost in between and
lines that were changed are refused. A last line without its end was being written when the process or the
machine stopped; its noise had not been added, so it is cut off as if it had never been. A last line that is
whole and does not check is damage, and refused. The file holds no data: seals are keyed (`attempts.sealed`).

Lines that were lost together with the state that counts them, by a backup that was put back, are found by the
ledger of the account that paid: after each line, and before anything follows from it, `ends` is noted there
(`ledger.uses`).

The file is locked while a run writes to it: of two processes that resume one state, the second is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from dalenius.errors import InvalidArgument, NotSound
from dalenius.secret_files import check_secret_file

HEAD = "dalenius-journal 1"
CHECK = 16
"""Hexadecimal digits of a line's check."""
ENDING = ".journal"
"""The journal of run.state is run.state.journal."""


@dataclass(frozen=True)
class Line:
    """Noise that is `used` for sums with a seal, a step that is made `again`, or steps that are `paid`."""

    kind: str
    step: int
    attempt: int
    seal: bytes = b""

    def __str__(self) -> str:
        return f"{self.kind} {self.step} {self.attempt}" + (f" {self.seal.hex()}" if self.seal else "")

    @staticmethod
    def read(text: str) -> Line:
        """From what `str` gave."""
        kind, step, attempt, *seal = text.split(" ")
        return Line(kind, int(step), int(attempt), bytes.fromhex("".join(seal)))


class Journal:
    """An open journal, whose lock this process holds."""

    def __init__(self, path: Path, handle: int, key: bytes) -> None:
        self.path, self._key, self.count = path, key, 0
        self.ends: tuple[str | None, str] = (None, "")
        """What names all lines but the last, and all lines: their number and the last one's keyed check."""
        self._handle: int | None = handle

    @classmethod
    def create(cls, state: Path, key: bytes) -> Journal:
        """Beside a state that is about to be saved for the first time."""
        path = beside(state)
        if state.exists():
            raise _taken(state)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        journal = cls(path, handle, key)
        _lock(handle)
        # A head alone is what a run leaves that stopped before its first state was there.
        if state.exists() or os.fstat(handle).st_size > len(journal._line(HEAD)):
            journal.close()
            raise _taken(state)
        os.fchmod(handle, 0o600)
        os.ftruncate(handle, 0)
        journal._append(HEAD)
        sync_folder(path.parent)
        return journal

    @classmethod
    def open(cls, state: Path, key: bytes, *, least: int) -> tuple[Journal, list[Line]]:
        """That of a saved state, with its lines: `least` of them were there when the state was saved."""
        path = beside(state)
        check_secret_file(path.resolve(), "run")
        try:
            handle = os.open(path, os.O_RDWR | os.O_APPEND)
        except FileNotFoundError:
            raise _unfit(path, "is missing") from None
        journal = cls(path, handle, key)
        _lock(handle)
        try:
            texts = list(journal._texts())
        except NotSound:
            journal.close()
            raise
        if len(texts) < max(least, 1) or texts[0] != HEAD:
            journal.close()
            raise _unfit(path, "lacks lines that it had when the state was saved")
        return journal, [Line.read(text) for text in texts[1:]]

    def write(self, line: Line) -> None:
        """Append a line; it is on disk when this returns."""
        self._append(str(line))

    def close(self) -> None:
        """Let go of the lock. Nothing can be written any more."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def held(self) -> int:
        """Its open file; refused where it was closed: the run may have gone on elsewhere."""
        if self._handle is None:
            raise InvalidArgument("This run was closed.", remedy="Resume it: dp.learn.Private.resume(…).")
        return self._handle

    def _append(self, text: str) -> None:
        handle, line = self.held(), self._line(text)
        try:
            if os.write(handle, line) != len(line):
                raise OSError("the journal could not be written")
            getattr(os, "fdatasync", os.fsync)(handle)
        except BaseException:
            # Whether the line is there is not known: whoever resumes reads what is.
            self.close()
            raise
        self._counted(line)

    def _counted(self, line: bytes) -> None:
        self.count += 1
        self.ends = self.ends[1] or None, f"{self.count} {line[-CHECK - 1 : -1].decode()}"

    def _line(self, text: str) -> bytes:
        body = text.encode()
        check = blake2b(b"%d %s" % (self.count, body), key=self._key, digest_size=CHECK // 2)
        return b"%s %s\n" % (body, check.hexdigest().encode())

    def _texts(self) -> Iterator[str]:
        """The lines, each checked. What is left of one that was never finished is cut off."""
        with open(self.held(), "rb", closefd=False) as file:
            *lines, rest = file.read().split(b"\n")
        for line in lines:
            text = line[: -CHECK - 1].decode("ascii", "replace")
            if line + b"\n" != self._line(text):
                raise _unfit(self.path, "is damaged, or that of another run")
            self._counted(line + b"\n")
            yield text
        if rest:
            os.ftruncate(self.held(), sum(len(line) + 1 for line in lines))
            os.fsync(self.held())


def beside(state: Path) -> Path:
    """Where the journal of a state is."""
    return state.with_name(state.name + ENDING)


def sync_folder(folder: Path) -> None:
    """Bring to disk which files a folder has."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise InvalidArgument(
            "This run goes on elsewhere: another process, or another object of this one, holds its journal.",
            remedy="Wait until that has ended, or call close() on it.",
        ) from None


def _taken(state: Path) -> InvalidArgument:
    return InvalidArgument(
        f"{state.name} is the name of another saved run.",
        remedy="Save under another name, or remove that state together with its journal.",
    )


def _unfit(path: Path, how: str) -> NotSound:
    return NotSound(
        f"{path.name}, which says what noise was used for, {how}: noise could be used twice.",
        remedy="Put the journal as it was last beside the state; if it is lost, begin a new run.",
    )
