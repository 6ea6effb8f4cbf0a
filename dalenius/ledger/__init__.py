"""The ledger: one durable account of everything released about the same people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.ledger.account import Account, Left, Spent
    from dalenius.ledger.anchor import Anchor
    from dalenius.ledger.budget import Budget
    from dalenius.ledger.entry import Entry
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.reservation import Reservation
    from dalenius.ledger.signing import is_signed, new_key
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Account": "dalenius.ledger.account",
            "Anchor": "dalenius.ledger.anchor",
            "Budget": "dalenius.ledger.budget",
            "Entry": "dalenius.ledger.entry",
            "Ledger": "dalenius.ledger.ledger",
            "Left": "dalenius.ledger.account",
            "Reservation": "dalenius.ledger.reservation",
            "Spent": "dalenius.ledger.account",
            "is_signed": "dalenius.ledger.signing",
            "new_key": "dalenius.ledger.signing",
        },
    )

__all__ = [
    "Account",
    "Anchor",
    "Budget",
    "Entry",
    "Ledger",
    "Left",
    "Reservation",
    "Spent",
    "is_signed",
    "new_key",
]
