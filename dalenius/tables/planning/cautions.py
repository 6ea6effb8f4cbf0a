"""Where an answer should be read with care: warnings, from released values only.

Bars are of the bounded statistic. What bounds take from it is estimated from noisy histograms, from below by
what stands out of the noise, and from above by what noise may hide (`hidden`, `spanning.Cut`). An answer that
one of them moves by more than its bar is warned about, in words that tell which of the two it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalenius.tables.bounds import names_of
from dalenius.tables.planning.bars import Floats
from dalenius.tables.planning.choosing import Chosen
from dalenius.tables.planning.measures import ORDERED, Family
from dalenius.tables.planning.searching import Found
from dalenius.tables.planning.selecting import shown_from
from dalenius.tables.planning.spanning import Cut
from dalenius.tables.question import Aggregate

if TYPE_CHECKING:
    from dalenius.tables.planning.answers import Sheet
    from dalenius.tables.planning.plan import Plan

WORTH = 0.001
"""Shares below are not worth telling apart from none."""
FAMILIES: dict[str, Family] = {"count": "rows", "count_of": "rows", "sum": "rows", "units": "units"}
GIVE = {
    "rows": "Declare how many rows each has at most, or give a bound on rows.",
    "units": "Give a bound on groups, or allow a larger epsilon.",
}


def warnings(plan: Plan, found: Found, sheet: Sheet) -> tuple[str, ...]:
    """All of them, each once."""
    said = [*_no_groups(plan, sheet), *_nothing_seen(plan, found)]
    for index, aggregate in enumerate(plan.question.aggregates if sheet.keys else ()):
        said += _rows(plan, found, sheet, index, aggregate)
        cut = found.cuts.get(-1 if aggregate.column is None else aggregate.column)
        if cut is not None and aggregate.kind not in ("count_of", "distinct"):
            said += _values(plan, cut, sheet, index, aggregate)
    return tuple(dict.fromkeys(said))


def _no_groups(plan: Plan, sheet: Sheet) -> list[str]:
    selection = plan.parts.selection
    if selection is None or sheet.keys:
        return []
    return [
        f"No group is shown: {shown_from(selection, plan.unit.entity)}. "
        "List the groups, or allow a larger epsilon."
    ]


def _nothing_seen(plan: Plan, found: Found) -> list[str]:
    names, who = names_of(plan.question), plan.unit.entity
    said = [
        f"Bounds could not be found: too few {who}s stood out of the noise, and a small bound was used. "
        "Give a bound on rows, or allow a larger epsilon."
        for chosen in found.chosen.values()
        if not chosen.sighted
    ]
    return said + [
        f"No range of {names[column]} could be found, so nothing is said of its values: too few stood out of "
        f"the noise. Give the range of {names[column]}."
        for column in found.unseen
    ]


def _rows(plan: Plan, found: Found, sheet: Sheet, index: int, aggregate: Aggregate) -> list[str]:
    """Where rows that a bound takes away count for more than the error bar."""
    family = FAMILIES.get(aggregate.kind)
    chosen = None if family is None else found.chosen.get(family)
    if chosen is None or family is None or not chosen.sighted or sheet.totals.unknown(aggregate):
        return []
    value = np.abs(sheet.bars(index).value)
    for lost, sure in ((chosen.lost, True), (chosen.most_lost, False)):
        groups = 0 if lost < WORTH / 10 else _beyond(sheet, index, value * lost / max(1 - lost, 1e-9))
        if groups:
            where = _where(groups, sheet)
            return [_taken(plan, family, chosen, where) if sure else _hidden(plan, family, chosen, where)]
    return []


def _taken(plan: Plan, family: Family, chosen: Chosen, where: str) -> str:
    most = f", and may have taken {100 * chosen.most_lost:.2g} %" if _apart(chosen) else ""
    return (
        f"Bounding took about {100 * chosen.lost:.2g} % of all {family}{where}, likely more than the error "
        f"bar{most}: these results are too small by about that much, or by more if a few "
        f"{plan.unit.entity}s have very many."
    )


def _apart(chosen: Chosen) -> bool:
    return chosen.most_lost > 1.5 * chosen.lost + 0.01


def _hidden(plan: Plan, family: Family, chosen: Chosen, where: str) -> str:
    return (
        f"Bounding may have taken up to about {100 * chosen.most_lost:.2g} % of all {family}{where}, which "
        f"is more than the error bar: there are too few {plan.unit.entity}s to see more closely. "
        f"{GIVE[family]}"
    )


def _values(plan: Plan, cut: Cut, sheet: Sheet, index: int, aggregate: Aggregate) -> list[str]:
    """Where values that a range cuts off count for more than the error bar."""
    name, kind = names_of(plan.question)[aggregate.column or 0], aggregate.kind
    state = f"Give the range of {name}."
    if kind in ("min", "max"):
        return [
            f"{kind.upper()} of {name} cannot leave the range that was found, whatever lies beyond. {state}"
        ]
    for sure in (True, False):
        groups = _beyond(sheet, index, _moved(cut, sheet, index, aggregate, 0 if sure else 1))
        if groups:
            share = 100 * cut.outside[0 if sure else 1]
            moved, many = ("moves", "about") if sure else ("may move", "up to about")
            return [
                f"Holding {name} within the range that was found {moved} its {_word(kind)}"
                f"{_where(groups, sheet)} by more than the error bar: "
                f"{many} {share:.2g} % of its values lie outside. {state}"
            ]
    return []


def _word(kind: str) -> str:
    words = {"avg": "average", "sum": "sum", "quantile": "quantile", "var": "variance"}
    return words.get(kind.partition("_")[0], "deviation")


def _moved(cut: Cut, sheet: Sheet, index: int, aggregate: Aggregate, which: int) -> Floats:
    """How far an aggregate is moved by its range, in each group."""
    value, kind = np.abs(sheet.bars(index).value), aggregate.kind
    if kind == "sum":
        return np.asarray(value * cut.lost[which] / max(1 - cut.lost[which], 1e-9))
    if kind in ORDERED:
        part = 0.5 if aggregate.fraction is None else float(aggregate.fraction)
        return np.full_like(value, np.inf if cut.outside[which] > min(part, 1 - part) else 0.0)
    if kind == "avg":
        return np.full_like(value, cut.shift[which])
    squares = np.full_like(value, cut.squares[which])
    return squares if kind.startswith("var") else np.asarray(np.sqrt(value**2 + squares) - value)


def _beyond(sheet: Sheet, index: int, moved: Floats) -> int:
    """In how many groups a move is more than half the bar."""
    bars = sheet.bars(index)
    return int(np.sum(moved > (bars.high - bars.low) / 2))


def _where(groups: int, sheet: Sheet) -> str:
    return "" if len(sheet.keys) == 1 else f" in {groups} of {len(sheet.keys)} groups"
