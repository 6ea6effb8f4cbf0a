"""`Folder`: where an engine writes what does not fit in memory, for this user only, and removed.

A process that is killed leaves its folder behind. So each holds a locked file: whoever makes a folder removes
those of the same user that nobody has locked any more.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir, mkdtemp

PREFIX, LOCK = "dalenius-", "in-use"
MINUTE = 60.0
"""Younger folders are left alone: their maker may not have locked them yet."""


@dataclass(frozen=True)
class Folder:
    """A folder of one engine."""

    path: str
    lock: int
    """The open file that is locked."""

    @staticmethod
    def make() -> Folder:
        """A new folder, with mode 0700."""
        _sweep(Path(gettempdir()))
        path = mkdtemp(prefix=PREFIX)
        lock = os.open(os.path.join(path, LOCK), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        _locked(lock)
        return Folder(path, lock)

    def remove(self) -> None:
        """Let go of the folder, with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):
            os.close(self.lock)


def _sweep(place: Path) -> None:
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if _own(folder) and _abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _own(folder: Path) -> bool:
    found = folder.lstat()
    private = stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o700
    return private and hasattr(os, "getuid") and found.st_uid == os.getuid()


def _abandoned(folder: Path) -> bool:
    """Whether nobody has it locked; where there is no lock, it is not one of these folders."""
    handle = os.open(folder / LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        return time.time() - os.fstat(handle).st_mtime > MINUTE and _locked(handle)
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    """Whether the file is now locked by this process, which the end of the process undoes."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
