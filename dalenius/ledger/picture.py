"""The burn-down of accounts: how much of each budget was left after its charges.

What is left is the ε of the largest next release as a share of the budget's ε, as in receipts and
`Account.left`. It only falls. Of an account with more than `PLACES` entries it is looked up at so many
places, evenly spaced, so a picture of a long ledger takes no longer than one of a short ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal

from dalenius.errors import InvalidArgument
from dalenius.figures import Figure, Series
from dalenius.ledger.account import Account
from dalenius.ledger.entry import Entry, Head
from dalenius.losses.cost import Cost
from dalenius.losses.filters import Filter

Against = Literal["time", "entries"]
FINEST = 1e-3
"""Steps smaller than this share of the budget are drawn together, so that a picture stays small."""
PLACES = 100
"""Entries of an account up to which all are drawn, and places of a longer one that are."""
NEAR = 10
"""Entries before a place among which a charge is looked for."""
UNITS = (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))

Point = tuple[Head, float]


def burn_down(accounts: Sequence[Account], *, against: Against = "time") -> Figure:
    """What is left of each account, in hundredths of its budget, against time or the number of entries."""
    if not accounts:
        raise InvalidArgument("There is no account to draw.", remedy="Open one first.")
    burned = {account.name: _points(account) for account in accounts}
    heads = sorted(head for points in burned.values() for head, _ in points)
    label, place = _axis(heads[0], heads[-1], against)
    ends = place(heads[0]), place(heads[-1])
    first, last = (head.at[:16].replace("T", " ") for head in (heads[0], heads[-1]))
    return Figure(
        title="What is left" if len(burned) > 1 else f"What is left of {next(iter(burned))}",
        x_label=label,
        y_label="left of the budget, %",
        series=[
            *(_series(name, points, place, ends[1]) for name, points in burned.items()),
            Series("nothing left", ends, (0, 0), style="dashed"),
        ],
        notes=[f"From {first} to {last} UTC. What is left is the largest next release."],
    )


def _points(account: Account) -> list[Point]:
    """Return the opening, the charges that show, and the newest entry, each with what was left."""
    points: list[Point] = []
    left, newest = 1.0, None
    for entry in _places(account):
        left, newest = _left(account.terms.limit, entry, left), entry.head
        if not points or left <= points[-1][1] - FINEST:
            points.append((newest, left))
    return points if newest is None else [*points, (newest, left)]


def _places(account: Account) -> list[Entry]:
    """Return all entries of an account, or charges at so many places with the first and the newest entry."""
    name = account.name
    with account.ledger.store.read() as snapshot:
        if snapshot.count(name, PLACES + 1) <= PLACES:
            return list(snapshot.entries(account=name))
        first, (last,) = next(snapshot.entries(account=name)), snapshot.entries(account=name, newest=1)
        found = {first.number: first}
        for place in range(1, PLACES + 1):
            number = first.number + (last.number - first.number) * place // PLACES
            near = list(snapshot.entries(account=name, newest=NEAR, before=number + 1))
            charge = next((entry for entry in reversed(near) if "total" in entry.fields), None)
            if charge is not None:
                found[charge.number] = charge
    return [*(found[number] for number in sorted(found)), last]


def _left(limit: Filter, entry: Entry, before: float) -> float:
    total = entry.fields.get("total")
    return before if total is None else limit.left_share(Cost.from_json(total))


def _series(name: str, points: list[Point], place: Callable[[Head], float], end: float) -> Series:
    left = 100 * points[-1][1]
    x = [*(place(head) for head, _ in points), end]
    return Series(
        f"{name}, {math.floor(10 * left) / 10:g} % left",
        x,
        [*(100 * share for _, share in points), left],
        style="steps",
    )


def _axis(first: Head, last: Head, against: Against) -> tuple[str, Callable[[Head], float]]:
    """The label of the axis, and where on it an entry is."""
    if against == "entries":
        return "entry", lambda head: head.number
    start = datetime.fromisoformat(first.at)
    span = (datetime.fromisoformat(last.at) - start).total_seconds()
    name, unit = next(((name, unit) for name, unit in UNITS if span >= 2 * unit), UNITS[-1])
    return (
        f"{name} since the first entry",
        lambda head: (datetime.fromisoformat(head.at) - start).total_seconds() / unit,
    )
