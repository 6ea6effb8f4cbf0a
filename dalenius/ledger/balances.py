"""The balances of an account, and what a charge does to them.

The total of the account, divisions included, is what its newest charge states. Beside the entries are kept:

    "allowance 3 2026-11" the total of an allowance, in one window if it has one
    "cell wards A"        the total of the releases about one cell of a division
    "top wards"           the largest totals among the cells: what the division adds to the account
    "use 3f9a…"           what the noise of a session was last used for (`uses`); no balance

Only the largest cell counts (docs/proofs/filter.md, Section 4), and totals only grow, so the largest is kept
without the rest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Protocol

from dalenius.ledger.rules import Allowance
from dalenius.ledger.store import Transaction
from dalenius.losses.cost import Cost
from dalenius.losses.filters import Filter

RULE = "rule "
USE = "use "


@dataclass(frozen=True)
class Cell:
    """One cell of a division of the units."""

    division: str
    name: str

    @property
    def scope(self) -> str:
        """Where its total is kept."""
        return f"cell {json.dumps([self.division, self.name])}"

    @property
    def top(self) -> str:
        """Where the largest totals of the division are kept."""
        return f"top {self.division}"


class Balances(Protocol):
    """Where balances are looked up."""

    def total(self, account: str) -> str | None:
        """The total of the account; None before any charge."""

    def balance(self, account: str, scope: str) -> str | None:
        """That of one scope; None where none was set."""

    def balances(self, account: str, prefix: str = "") -> dict[str, str]:
        """Those of all scopes that begin with a prefix."""


class Noted:
    """The balances that one charge at a time looks at, taken down: the ledger need not be held meanwhile."""

    def __init__(self, kept: Balances, account: str, cell: Cell | None, at: str) -> None:
        self._total = kept.total(account)
        scopes = [] if cell is None else [cell.scope, cell.top]
        rules = kept.balances(account, f"{RULE}allowance ")
        scopes += [Allowance.from_json(text).scope(at) for text in rules.values()]
        found = {scope: kept.balance(account, scope) for scope in scopes}
        self._texts = {scope: text for scope, text in found.items() if text is not None} | rules

    def total(self, account: str) -> str | None:
        """The total of the account; None before any charge."""
        return self._total

    def balance(self, account: str, scope: str) -> str | None:
        """That of one scope; None where none was set."""
        return self._texts.get(scope)

    def balances(self, account: str, prefix: str = "") -> dict[str, str]:
        """Those of all scopes that begin with a prefix."""
        return {scope: text for scope, text in self._texts.items() if scope.startswith(prefix)}


def allowances(snapshot: Balances, account: str) -> list[Allowance]:
    """Those of an account."""
    kept = snapshot.balances(account, f"{RULE}allowance ")
    return [Allowance.from_json(text) for text in kept.values()] if kept else []


def total(snapshot: Balances, account: str, limit: Filter) -> Cost:
    """The total of the account; nothing before any charge."""
    return _read(snapshot.total(account), limit)


def part(snapshot: Balances, account: str, scope: str, limit: Filter) -> Cost:
    """The total of one scope; nothing where none was set."""
    return _read(snapshot.balance(account, scope), limit)


def raised(
    kept: Balances, account: str, cost: Cost, cell: Cell | None, limit: Filter
) -> tuple[Cost, dict[str, str]]:
    """The new total of the account, and the balances of a cell where the charge is about one, by scope."""
    whole = total(kept, account, limit)
    if cell is None:
        return whole + cost, {}
    own = part(kept, account, cell.scope, limit) + cost
    known = _top(kept, account, cell)
    top = own if known is None else Cost.largest((known, own))
    whole = _replaced(whole, known or limit.nothing, top)
    return whole, {cell.scope: own.to_json(), cell.top: top.to_json()}


def before(kept: Balances, account: str, cell: Cell | None, limit: Filter) -> Cost:
    """What a charge adds up with: the total, or for a cell the total as if it were the largest."""
    whole = total(kept, account, limit)
    if cell is None:
        return whole
    own = part(kept, account, cell.scope, limit)
    return _replaced(whole, _top(kept, account, cell) or limit.nothing, own)


def carried(kept: Balances, account: str, at: str) -> dict[str, str]:
    """Return the balances of allowances in the windows of a corrected time, by scope.

    Each is its total there and in all later windows, whose charges may have been made in this one (`clock`).
    """
    fresh = {}
    for rule in allowances(kept, account):
        scope, all_of_it = rule.scope(at), kept.balances(account, f"allowance {rule.number} ")
        later = [Cost.from_json(text) for other, text in all_of_it.items() if rule.window and other > scope]
        if later:
            fresh[scope] = sum(later, part(kept, account, scope, rule.limit)).to_json()
    return fresh


def write(transaction: Transaction, account: str, balances: dict[str, str]) -> None:
    """Set them."""
    for scope, text in balances.items():
        transaction.set_balance(account, scope, text)


def _read(text: str | None, limit: Filter) -> Cost:
    return limit.nothing if text is None else Cost.from_json(text)


def _top(kept: Balances, account: str, cell: Cell) -> Cost | None:
    """The largest totals of its division on the gauges that no cell has left; None before any charge."""
    text = kept.balance(account, cell.top)
    return None if text is None else Cost.from_json(text)


def _replaced(whole: Cost, before: Cost, after: Cost) -> Cost:
    """The total with one share of it replaced; a gauge that any part has left is out for good."""
    names = whole.amounts.keys() & before.amounts.keys() & after.amounts.keys()
    return Cost(
        {
            name: (
                whole.amounts[name][0] - before.amounts[name][0] + after.amounts[name][0],
                whole.amounts[name][1] - before.amounts[name][1] + after.amounts[name][1],
            )
            for name in sorted(names)
        }
    )
