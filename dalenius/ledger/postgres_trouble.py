"""`Trouble`: what PostgreSQL and its driver say, as errors of ours with a remedy.

Nothing of their own texts is passed on: those may hold SQL, addresses and passwords. An error is known by its
SQLSTATE (PostgreSQL manual, appendix A); one without was raised by the driver, whose connection is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalenius.errors import (
    LedgerCorrupt,
    LedgerError,
    LedgerFull,
    LedgerReadOnly,
    LedgerTampered,
    LedgerUnreachable,
    UnknownLedger,
)
from dalenius.ledger.database import locked
from dalenius.ledger.postgres_functions import REFUSED

if TYPE_CHECKING:
    from psycopg import Error

_LOCKED = ("55P03", "57014", "40P01")
_READ_ONLY = ("25006", "42501")
_MISSING = ("42P01", "3F000")
_DAMAGED = ("XX001", "XX002")
_UNREACHABLE = ("08", "28", "3D", "53300", "57P", "25P03", "58")


def _disconnected(error: Error) -> bool:
    from psycopg import InterfaceError, OperationalError

    return isinstance(error, InterfaceError | OperationalError)


@dataclass(frozen=True)
class Trouble:
    """With the ledger of a schema, whose writers wait so many seconds."""

    schema: str
    timeout: float

    def explain(self, error: Error, *, committing: bool = False) -> LedgerError:
        """An error of the driver or the server."""
        state = error.sqlstate or ("08" if _disconnected(error) else "of the driver")
        if state in _LOCKED:
            return locked(self.timeout)
        if state == REFUSED:
            return LedgerTampered(
                f"The database refused the entry: {error.diag.message_primary}. The ledger is not as this "
                "process read it."
            )
        if state == "53100":
            return LedgerFull(
                "The disk of the database server is full; nothing was written.",
                remedy="Make room on it and try again.",
            )
        if state in _READ_ONLY:
            return LedgerReadOnly(
                f"The ledger in schema {self.schema} may only be read.",
                remedy="Connect to the main server, as a user who may write to the schema.",
            )
        if state in _MISSING:
            return UnknownLedger(
                f"The ledger in schema {self.schema} is gone.", remedy="Restore it, or open a new one."
            )
        if state in _DAMAGED:
            return LedgerCorrupt(
                f"The ledger in schema {self.schema} is damaged.",
                remedy="Restore the ledger from a backup and compare it with an anchor.",
            )
        if state.startswith(_UNREACHABLE):
            return self.unreachable(committing)
        return LedgerError(
            f"The database server refused (SQLSTATE {state}).",
            remedy="Look that code up in the manual of PostgreSQL, appendix A.",
        )

    def unreachable(self, committing: bool) -> LedgerUnreachable:
        """There is no connection, or no longer."""
        what = (
            "went away at the end of a write, which may have been made or not"
            if committing
            else "does not answer"
        )
        return LedgerUnreachable(
            f"The database server of the ledger {what}.",
            remedy="Check that it runs, that the address is right and that this user may connect.",
        )

    def undone(self) -> LedgerError:
        """The server answered a commit by undoing everything."""
        return LedgerError("The database server undid the write.", remedy="Try the whole again.")

    def not_unicode(self) -> LedgerError:
        """Names could not be stored."""
        return LedgerError(
            "The database does not store Unicode.", remedy="Create one with encoding UTF8 for the ledger."
        )

    def foreign(self) -> UnknownLedger:
        """The schema holds something else."""
        return UnknownLedger(
            f"The schema {self.schema} holds other tables than a ledger's.",
            remedy="Name an empty schema in the address: options=-csearch_path=name.",
        )

    def later(self) -> UnknownLedger:
        """The schema is of a version that is not known here."""
        return UnknownLedger(
            f"The ledger in schema {self.schema} was written by another version of Dalenius.",
            remedy="Open it with the version that wrote it.",
        )
