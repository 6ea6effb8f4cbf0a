"""What must be measured for the aggregates of a question, each thing once, and how far one unit moves it.

Theorem. Let all rows of a unit have the weight W ≤ WEIGHT with √Σ(W n(g))² ≤ C·WEIGHT over its groups g
(`Bounding`; Σ W n(g) ≤ C·WEIGHT with norm l1). A measure that adds at most m to a group for a row of weight 1
adds at most m·W·n(g) for all rows of the unit in g, so the unit's whole vector has norm at most m·C·WEIGHT.
A tree of L levels adds to L nodes of a group; on each level the counts of the nodes below a group add up to
n(g) with no negative one, so their norm is at most n(g): all levels together √L·C·WEIGHT in L2, L·C·WEIGHT in
L1. `units` is the same with n(g) = 1 and C = presence. `distinct` counts values that somebody holds: one unit
adds at most `pairs` to it in all, all of them perhaps in one group, hence `pairs` in either norm.

Under add_remove and zero_out one such vector u is added or taken away (a null record has no rows). Under
replace it is u − v, by `Sensitivity.of_sum`; for `distinct` too, as u and v are then what each of the two
units adds to the values of all others, and neither has a negative entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dalenius.privacy.sensitivity import sqrt_up
from dalenius.tables.engines.engine import WEIGHT, Bounding, Measure
from dalenius.tables.question import Aggregate, Question
from dalenius.tables.rows import Range

Kind = Literal["rows", "present", "sum", "squares", "tree", "units", "distinct"]
Family = Literal["rows", "units", "distinct"]
"""What bounds a measure: the weights of rows, those of presence, or a number of pairs."""
Place = tuple[Kind, int | None]
"""What a measure is found by."""

SPREAD = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")
ORDERED = ("quantile", "min", "max")
HELPING = Fraction(1, 2)
"""The share of a count that serves an average only: its noise enters by the part of the range at which the
average stands off the centre."""


@dataclass(frozen=True)
class Need:
    """A measure to be made, before its range is known; `weight` is its share of the cost, against others."""

    kind: Kind
    column: int | None = None
    weight: Fraction = Fraction(1)

    @property
    def family(self) -> Family:
        """What bounds it."""
        return self.kind if self.kind in ("units", "distinct") else "rows"

    @property
    def place(self) -> tuple[Kind, int | None]:
        """What it is found by."""
        return self.kind, self.column


def needs(question: Question) -> tuple[Need, ...]:
    """Every measure that some aggregate needs, once."""
    found: dict[tuple[Kind, int | None], Need] = {}
    for aggregate in question.aggregates:
        for need in _of(aggregate, question):
            known = found.get(need.place)
            if known is None or known.weight < need.weight:
                found[need.place] = need
    return tuple(found.values())


def main_need(aggregate: Aggregate, question: Question) -> Need:
    """The measure whose noise an aggregate mostly has."""
    return _of(aggregate, question)[-1]


def counted(column: int, question: Question) -> tuple[Kind, int | None]:
    """The measure that counts the values of a column."""
    complete = column < len(question.never_null) and question.never_null[column]
    return ("rows", None) if complete else ("present", column)


def _of(aggregate: Aggregate, question: Question) -> list[Need]:
    kind, column = aggregate.kind, aggregate.column
    if kind == "count":
        return [Need("rows")]
    if kind == "units":
        return [Need("units")]
    assert column is not None, "every other aggregate is of a column"
    if kind == "distinct":
        return [Need("distinct", column)]
    if kind in ORDERED:
        return [Need("tree", column)]
    if kind == "sum":
        return [Need("sum", column)]
    count = counted(column, question)
    if kind == "count_of":
        return [Need(*count)]
    moments = [Need(*count, weight=HELPING), Need("sum", column)]
    return [moments[0], Need("squares", column), moments[1]] if kind in SPREAD else moments


def ranged(needs: Sequence[Need]) -> list[int]:
    """The columns whose values are clamped."""
    columns = {need.column for need in needs if need.kind in ("sum", "squares", "tree")}
    return sorted(column for column in columns if column is not None)


def ends(range_: Range) -> tuple[int, int]:
    """The least and the most steps of a value in its range, before the offset."""
    step = range_.grid.step
    return -int(-range_.lower // step), int(range_.upper // step)


def largest(measure: Measure) -> int:
    """The most, in size, that a row of weight 1 adds to a group: m of the theorem."""
    if measure.kind not in ("sum", "squares"):
        return 1
    assert measure.range is not None
    least, most = ends(measure.range)
    far = max(abs(least - measure.range.offset), abs(most - measure.range.offset))
    return max(1, far if measure.kind == "sum" else far * far >> measure.shift)


def nonnegative(measure: Measure) -> bool:
    """Whether no row ever adds less than nothing."""
    if measure.kind != "sum":
        return True
    assert measure.range is not None
    return ends(measure.range)[0] >= measure.range.offset


def norm(measure: Measure, bounding: Bounding) -> Fraction:
    """The norm of what one unit adds to a measure, over all groups, at most."""
    if measure.kind == "distinct":
        return Fraction(bounding.pairs)
    if measure.kind == "units":
        return bounding.presence * WEIGHT
    levels = Fraction(measure.levels or 1)
    factor = sqrt_up(levels) if bounding.norm == "l2" else levels
    return largest(measure) * factor * bounding.limit * WEIGHT
