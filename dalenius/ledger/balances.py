"""The balances of an account, and what a charge does to them.

    ""                    the total of the account, divisions included
    "allowance 3 2026-11" the total of an allowance, in one window if it has one
    "cell wards A"        the total of the releases about one cell of a division
    "tops wards"          the largest totals among the cells: what the division adds to the account

Under add_remove and zero_out one cell counts, the largest; under replace two, as a unit may move between
them (docs/proofs/filter.md, Section 4). Totals only grow, so the largest are kept without the rest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Protocol

from dalenius.ledger.rules import Allowance
from dalenius.ledger.store import Transaction
from dalenius.losses.cost import Cost
from dalenius.losses.filters import Filter

TOTAL = ""
RULE = "rule "
Row = tuple[int, str]
Tops = dict[str, list[list[Row]]]
"""For each gauge, the largest measures and the largest slacks, each with its cell."""


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
    def tops(self) -> str:
        """Where the largest totals of the division are kept."""
        return f"tops {self.division}"


class Balances(Protocol):
    """Where balances are looked up."""

    def balance(self, account: str, scope: str) -> str | None:
        """That of one scope; None where none was set."""

    def balances(self, account: str, prefix: str = "") -> dict[str, str]:
        """Those of all scopes that begin with a prefix."""


def allowances(snapshot: Balances, account: str) -> list[Allowance]:
    """Those of an account."""
    return [Allowance.from_json(text) for text in snapshot.balances(account, f"{RULE}allowance ").values()]


def total(snapshot: Balances, account: str, scope: str, limit: Filter) -> Cost:
    """A balance; nothing where none was set."""
    text = snapshot.balance(account, scope)
    return limit.nothing if text is None else Cost.from_json(text)


def changed(
    kept: Balances, account: str, cost: Cost, cell: Cell | None, limit: Filter, how_many: int
) -> dict[str, str]:
    """The new balances of the account, and of a cell where the charge is about one, by scope."""
    return raised(kept, account, cost, cell, limit, how_many)[1]


def raised(
    kept: Balances, account: str, cost: Cost, cell: Cell | None, limit: Filter, how_many: int
) -> tuple[Cost, dict[str, str]]:
    """The new total as well."""
    whole = total(kept, account, TOTAL, limit)
    if cell is None:
        whole = whole + cost
        return whole, {TOTAL: whole.to_json()}
    own = total(kept, account, cell.scope, limit) + cost
    known = _tops(kept, account, cell)
    tops = _ranked(known, own, cell.name, how_many, limit)
    whole = _replaced(whole, _added_up(known, limit), _added_up(tops, limit))
    return whole, {
        TOTAL: whole.to_json(),
        cell.scope: own.to_json(),
        cell.tops: json.dumps(tops, sort_keys=True),
    }


def before(kept: Balances, account: str, cell: Cell | None, limit: Filter, how_many: int) -> Cost:
    """What a charge adds up with: the total, or for a cell the total as if it counted among the largest."""
    whole = total(kept, account, TOTAL, limit)
    if cell is None:
        return whole
    own = total(kept, account, cell.scope, limit)
    known = _tops(kept, account, cell)
    others = known and {
        gauge: [[row for row in side if row[1] != cell.name][: how_many - 1] for side in sides]
        for gauge, sides in known.items()
    }
    return _replaced(whole, _added_up(known, limit), _added_up(others, limit) + own)


def write(transaction: Transaction, account: str, balances: dict[str, str]) -> None:
    """Set them."""
    for scope, text in balances.items():
        transaction.set_balance(account, scope, text)


def _tops(kept: Balances, account: str, cell: Cell) -> Tops | None:
    """The largest totals of its division on the gauges that no cell has left; None before any charge."""
    text = kept.balance(account, cell.tops)
    if text is None:
        return None
    tops: Tops = json.loads(text)
    return tops


def _ranked(known: Tops | None, own: Cost, cell: str, how_many: int, limit: Filter) -> Tops:
    """The largest with one cell's new total among them; a gauge that a cell has left is out for good."""
    ranked: Tops = {}
    for gauge in limit.nothing.amounts:
        sides = [[], []] if known is None else known.get(gauge)
        if sides is None or gauge not in own.amounts:
            continue
        ranked[gauge] = [
            _first([*(row for row in side if row[1] != cell), (amount, cell)], how_many)
            for side, amount in zip(sides, own.amounts[gauge], strict=True)
        ]
    return ranked


def _first(rows: list[Row], how_many: int) -> list[Row]:
    return sorted(rows, key=lambda row: (-row[0], row[1]))[:how_many]


def _added_up(tops: Tops | None, limit: Filter) -> Cost:
    """What a division adds to the account; nothing where it has no charge yet."""
    if tops is None:
        return limit.nothing
    sums = {gauge: [sum(row[0] for row in side) for side in sides] for gauge, sides in tops.items()}
    return Cost({gauge: (measure, slack) for gauge, (measure, slack) in sums.items()})


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
