"""The column of time by which the windows of an account's units are cut: one for each account, for ever.

A unit with a window is a patient in a week, say. Which week a row is in is told by a column of time, so the
column is part of who is protected: what is charged once holds for weeks by one column, and weeks by another
would cost as many times more as a unit of the one has units of the other.

An account that a table opens has the column in its terms, behind the name of the data. One that was opened
otherwise takes the first column that something is charged by: an entry of loss 0, whose note says it, is
written before that charge, and the first such entry counts.
"""

from __future__ import annotations

from dalenius.errors import Argument, InvalidArgument, Message
from dalenius.ledger import Account
from dalenius.losses.pure import Pure
from dalenius.tables.schema import folded

BY = ", time "
"""Between the name of the data and the column of time, in the source of an account."""
_NOTE = "Windows of time are cut by the column "


def time_of(account: Account) -> str | None:
    """Return the column of time of an account; None where units have no windows, or no column counts yet."""
    if account.unit.window is None:
        return None
    return (account.terms.source or "").rpartition(BY)[2] if _states(account) else _noted(account)


def check_time(account: Account, time: str | None) -> None:
    """Refuse another column of time than the account has; no column agrees with all."""
    known = time_of(account)
    if known is not None and time is not None and folded(time) != folded(known):
        raise InvalidArgument(
            f"The account {account.name} belongs to windows of time by {known}, not by {time}: by another "
            "column another unit is protected.",
            remedy=Message(
                "Pass ",
                Argument.of("time", known),
                ", or open another account on a budget of its own for other data.",
            ),
        )


def settle_time(account: Account, time: str | None) -> None:
    """Make sure, before something is charged, that the account's windows are cut by this column for ever."""
    if account.unit.window is None or time is None:
        return
    if time_of(account) is None:
        # The whole account, where this one is a cell of it.
        whole = account.ledger.account(account.name)
        whole.record(Pure(0, relation=whole.unit.relation), note=_NOTE + time)
    check_time(account, time)


def _states(account: Account) -> bool:
    return BY in (account.terms.source or "")


def _noted(account: Account) -> str | None:
    for entry in account.stream():
        note = str(entry.fields.get("note", ""))
        if entry.event == "record" and note.startswith(_NOTE):
            return note.removeprefix(_NOTE)
    return None
