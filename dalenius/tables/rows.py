"""`Rows`: what an engine is asked to read; `Key` and `Range`: the public facts by which it groups and clamps.

A row belongs to one unit and depends on that unit's records and on public tables only: `relations` sees to
that. Everything else, how many rows a unit has, in how many groups, and how large its values are, is bounded
where rows are added up, whatever is believed about them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction

from dalenius.privacy.quantized import Grid

KeyPart = bool | int | float | str | date | datetime | None
Key = tuple[KeyPart, ...]
"""The values of the grouping columns of one group; () where there is but one group."""


@dataclass(frozen=True)
class Rows:
    """A SELECT, in the dialect of the engine, whose every expression is total.

    Its columns are, in this order: `unit_0`… (all of them together are the unit; a row with a NULL among them
    is nobody's and is left out; none at all where every row is a unit of its own), `key_0`…, `value_0`…
    (DOUBLE; NULL where the row has none; NaN is read as NULL), `distinct_0`… (any type).
    """

    sql: str
    units: int
    keys: int
    values: int = 0
    distincts: int = 0


@dataclass(frozen=True)
class Range:
    """Where a value is clamped, and the steps it is counted in: those of `grid`, less `offset` steps.

    A value becomes trunc(x / step), held between the outermost grid points within [lower, upper], less the
    offset: a function of the one row.
    """

    lower: Fraction
    upper: Fraction
    grid: Grid
    offset: int = 0
