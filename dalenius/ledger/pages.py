"""How accounts and ledgers look in a notebook; None where the ledger cannot be read, as when it is closed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dalenius.display import facts, grid, part_left
from dalenius.errors import DaleniusError
from dalenius.ledger.overview import Overview, overview
from dalenius.release.digits import at_least, at_most

if TYPE_CHECKING:
    from dalenius.ledger.account import Account
    from dalenius.ledger.ledger import Ledger


def account_page(account: Account) -> str | None:
    """Return what is left of an account, as a bar, with what was spent and what comes next at most."""
    with suppress(DaleniusError, OSError):
        seen = overview(account, newest=0, brief=True)
        return facts(f"Account {seen.account}", account_facts(seen), share=seen.left)
    return None


def ledger_page(ledger: Ledger) -> str | None:
    """Return the accounts of a ledger with what is left of each."""
    rows = []
    with suppress(DaleniusError, OSError):
        for account in ledger.accounts():
            seen = overview(account, newest=0, brief=True)
            left = f"{part_left(seen.left):g} %"
            rows.append([seen.account, *(text for _, text in account_facts(seen)), left])
        head = ["account", "protects", "budget", "spent", "largest next release", "left"]
        return grid(repr(ledger)[1:-1], head, rows)
    return None


def account_facts(seen: Overview) -> list[tuple[str, str]]:
    """Return an account in short."""
    following = "nothing" if seen.next_loss is None else f"epsilon {at_least(seen.next)}"
    return [
        ("protects", seen.unit),
        ("budget", seen.budget),
        ("spent", f"epsilon {at_most(seen.spent)}" if seen.spent else "nothing"),
        ("largest next release", following),
    ]
