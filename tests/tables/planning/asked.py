"""Questions for tests, without SQL: groups in `key_0`, values in `value_0`, one output for each aggregate."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dalenius.privacy.unit import Relation, Unit
from dalenius.tables.language.formulas import AggregateValue, KeyColumn
from dalenius.tables.question import Aggregate, Interval, Output, Question
from dalenius.tables.rows import Key, Rows

DELTA = Fraction(1, 10**6)
VALUED = (
    "count_of",
    "sum",
    "avg",
    "var_samp",
    "var_pop",
    "stddev_samp",
    "stddev_pop",
    "quantile",
    "min",
    "max",
)
EVERY = ("count", *VALUED, "units", "distinct")


def aggregate(kind: Any) -> Aggregate:
    """One of a kind: of column 0, the median of quantiles."""
    column = None if kind in ("count", "units") else 0
    return Aggregate(kind, column, Fraction(1, 2) if kind == "quantile" else None)


def between(lower: int, upper: int) -> Interval:
    return Interval(Fraction(lower), Fraction(upper))


def asked(
    *kinds: str, keys: tuple[Key, ...] | None = (("a",), ("b",)), within: Interval | None = None, **more: Any
) -> Question:
    """A question for these aggregates in these groups."""
    aggregates = tuple(aggregate(kind) for kind in kinds)
    outputs = [Output("key", KeyColumn(0))] if keys != ((),) else []
    outputs += [Output(kind, AggregateValue(i)) for i, kind in enumerate(kinds)]
    columns = 0 if keys == ((),) else 1
    rows = Rows("", units=more.pop("units", 1), keys=columns, values=1, distincts=1)
    names = ("key",) * columns
    return Question("", rows, names, keys, (within,), aggregates, tuple(outputs), **more)


def patient(relation: Relation = "add_remove") -> Unit:
    return Unit("patient", column="id", relation=relation)
