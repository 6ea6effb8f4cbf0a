"""The one owner of a file: a lock that is held, and that remembers which step was given last.

What may not be gone on from twice, such as the noise of a counter or the responses of a device, is kept in a
file with another beside it, `.lock`, which one process holds. The name is resolved first, so that links to a
file have its lock, and a file with a second name (a hard link) is refused: renaming would part the two. A
lock file that was removed or replaced locks nothing. So before and after each write the one that is held must
be the one that is there, or the owner stops.

The lock file says whose it is, by a digest of the key, and the last step that may have been given. It is
written after the state and before the value is given. A state of another key, or of an earlier step, is not
gone on from, and neither is one whose lock file is gone. A lock that was given up writes nothing, also where
the next one has the number of its descriptor. Files that other users can read or write, and folders in which
they can replace files, are refused (`secret_files`).

Both files restored from one backup are a state that is whole: nothing in them tells that it went on. Where an
account paid, its ledger does (`ledger.uses`).
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from dalenius.errors import NotSound
from dalenius.secret_files import check_secret_file

LINE = re.compile(rb"([0-9a-f]{64}) ([0-9]{20})\n")
"""What a lock file holds: whose it is, and the step. One line of one length, so that it is never half new."""
GIVEN_UP = -1
"""In place of a descriptor, whose number is used again."""


@dataclass(frozen=True)
class Owner:
    """What is kept in a file, in the words of refusals, and how to begin another instead."""

    name: str
    anew: str


class Lock:
    """The right to go on from a file."""

    def __init__(self, path: Path, held: int, owner: Owner) -> None:
        self.path, self._held, self._owner = path, held, owner

    @classmethod
    def taken(cls, path: str | os.PathLike[str], owner: Owner, *, new: bool) -> Lock:
        """Lock a file: of an owner that is new, or one that was kept there."""
        import fcntl

        kept = Path(path).resolve()
        if not new:
            kept.stat()
        if os.path.islink(_beside(kept)):
            raise NotSound("The lock file is a link.", remedy="Choose another file.")
        for path in (kept, Path(_beside(kept))):
            check_secret_file(path, owner.name)
        making = os.O_CREAT if new else 0
        try:
            held = os.open(_beside(kept), os.O_RDWR | making | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:
            if new:
                raise
            raise NotSound(
                f"The lock file of this {owner.name} is gone, which says what step was given last.",
                remedy=f"Put it back, if it is the newest. {owner.anew} otherwise.",
            ) from None
        found = cls(kept, held, owner)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found._still()
            found._single()
            found._clean()
        except BlockingIOError:
            found.close()
            raise NotSound(
                f"Another {owner.name} keeps its state in this file.",
                remedy="End that process first, or choose another file.",
            ) from None
        except BaseException:
            found.close()
            raise
        return found

    def note(self, key: bytes, steps: int) -> None:
        """Remember that values up to a step may be given from now on."""
        self._still()
        os.pwrite(self._held, f"{_whose(key)} {steps:020d}\n".encode(), 0)
        os.fsync(self._held)

    def check(self, key: bytes, steps: int) -> None:
        """Refuse a state that is not the newest."""
        found = self._noted()
        if found is None or found[1].decode() != _whose(key):
            raise NotSound(
                f"The lock file beside this file is not that of its {self._owner.name}.",
                remedy=f"Put back the one that belongs to it, if it is the newest. {self._owner.anew} "
                "otherwise.",
            )
        if steps < int(found[2]):
            raise NotSound(
                "This state is older than the last value that was given, so it must not be gone on from.",
                remedy=f"Put back the newest state. {self._owner.anew} if it is lost.",
            )

    @property
    def unused(self) -> bool:
        """Whether the lock file knows of no step."""
        found = self._noted()
        return not os.fstat(self._held).st_size if found is None else not int(found[2])

    def replace(self, text: str) -> None:
        """Write the file, all or nothing, and on disk."""
        self._still()
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.", suffix=".part")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def close(self) -> None:
        """Give up the lock, for good; not while it writes."""
        held, self._held = self._held, GIVEN_UP
        if held != GIVEN_UP:
            os.close(held)

    def _still(self) -> None:
        """The lock that is held must be the one that others find."""
        if self._held == GIVEN_UP:
            raise NotSound(
                f"The lock of this {self._owner.name} was given up: another one may live.",
                remedy="Open it again from its file.",
            )
        held = os.fstat(self._held)
        try:
            there = os.lstat(_beside(self.path))
        except FileNotFoundError:
            there = None
        if there is None or not os.path.samestat(held, there) or held.st_nlink != 1:
            raise NotSound(
                f"The lock file of this {self._owner.name} was removed, replaced or linked: another one may "
                "live.",
                remedy=f"{self._owner.anew}, in another file, and leave its lock file alone.",
            )

    def _noted(self) -> re.Match[bytes] | None:
        return LINE.fullmatch(os.pread(self._held, 200, 0))

    def _single(self) -> None:
        if self.path.exists() and self.path.stat().st_nlink != 1:
            raise NotSound(
                "This file has a second name, under which it could be gone on from as well.",
                remedy="Remove the other hard links first, or choose another file.",
            )

    def _clean(self) -> None:
        """Remove what a write left behind that was killed: it holds the key too."""
        left = re.compile(rf"\.{re.escape(self.path.name)}\.[^.]+\.part")
        for each in self.path.parent.iterdir():
            if left.fullmatch(each.name):
                each.unlink(missing_ok=True)


def _beside(path: Path) -> str:
    return f"{path}.lock"


def _whose(key: bytes) -> str:
    return sha256(b"the counter of " + key).hexdigest()
