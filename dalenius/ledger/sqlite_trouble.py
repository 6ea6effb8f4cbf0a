"""`Trouble`: what SQLite and the file system say, as errors of ours with a remedy.

Nothing of their own texts is passed on: those may hold SQL, and with it names that are not for every eye.
"""

from __future__ import annotations

import errno
import sqlite3
from dataclasses import dataclass

from dalenius.errors import LedgerCorrupt, LedgerError, LedgerFull, LedgerReadOnly, UnknownLedger
from dalenius.ledger.database import locked

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True)
class Trouble:
    """With the ledger of a name that the caller passed, whose writers wait so many seconds."""

    name: str
    timeout: float

    def explain(self, error: sqlite3.Error) -> LedgerError:
        """An error of SQLite, by its code: the primary one is in front of its name."""
        code = getattr(error, "sqlite_errorname", "")
        kind = "_".join(code.split("_")[:2])
        if kind in ("SQLITE_BUSY", "SQLITE_LOCKED"):
            return locked(self.timeout)
        if kind == "SQLITE_FULL" or code == "SQLITE_IOERR_SHMSIZE":
            return self.full()
        if kind in ("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH"):
            return self.read_only()
        if kind == "SQLITE_NOTADB":
            return self.foreign()
        if kind == "SQLITE_CANTOPEN":
            return self.unopened()
        if kind == "SQLITE_CORRUPT" or not code:
            return LedgerCorrupt(
                f"The file of the ledger {self.name} is damaged.",
                remedy="Restore the ledger from a backup and compare it with an anchor.",
            )
        return LedgerError(
            f"The ledger {self.name} could not be used ({code}).",
            remedy="Check its disk, then run verify.",
        )

    def unmade(self, error: OSError) -> LedgerError:
        """The file cannot be made."""
        if error.errno in _FULL:
            return self.full()
        return self.read_only() if error.errno in _FORBIDDEN else self.unopened()

    def full(self) -> LedgerFull:
        """There is no room for another entry."""
        return LedgerFull(
            f"The disk of the ledger {self.name} is full; nothing was written.",
            remedy="Make room on it and try again.",
        )

    def read_only(self) -> LedgerReadOnly:
        """The file, its folder or its disk may not be written to."""
        return LedgerReadOnly(
            f"The ledger {self.name} may only be read.",
            remedy="Give this user the right to write to the file and its folder.",
        )

    def unopened(self) -> LedgerError:
        """There is no such file, or SQLite may not make its log beside it."""
        return LedgerError(
            f"The ledger {self.name} cannot be opened.",
            remedy="Check that its folder exists, and that this user may read and write in it.",
        )

    def foreign(self) -> UnknownLedger:
        """The file is of something else."""
        return UnknownLedger(
            f"The file {self.name} is not a ledger.",
            remedy="Pass the path of a ledger, or of no file yet.",
        )

    def later(self) -> UnknownLedger:
        """The file is of a version that is not known here."""
        return UnknownLedger(
            f"The ledger {self.name} was written by another version of Dalenius.",
            remedy="Open it with the version that wrote it.",
        )

    def outdated(self, oldest: tuple[int, int]) -> LedgerError:
        """The SQLite that Python was built with lacks what is needed."""
        return LedgerError(
            f"The SQLite of this Python is {sqlite3.sqlite_version}; a ledger needs {oldest[0]}.{oldest[1]}.",
            remedy="Use a Python built with a later SQLite, or keep the ledger in PostgreSQL.",
        )

    def remote(self) -> LedgerError:
        """Processes cannot share the log's index there."""
        return LedgerError(
            f"The file system of {self.name} does not let processes share memory.",
            remedy="Keep the ledger on a local disk, or in PostgreSQL.",
        )

    def replaced(self) -> LedgerError:
        """The path leads to another file than the one that is open."""
        return LedgerError(
            f"The file {self.name} was moved or replaced while it was open as a ledger.",
            remedy="Make sure that the right file is there, and open the ledger again.",
        )
