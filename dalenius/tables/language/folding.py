"""Aggregates and windows within a unit, in SQL.

Sums of real numbers are taken in whole steps, so that they are the same in whatever order the engine
meets the rows: a sum that is rounded may differ in its last digit when another unit comes or goes. For
the same reason, rows that are equal in the order of a window are put in the order of all their columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from dalenius.tables.language.dialects.dialect import Dialect
from dalenius.tables.language.intervals import Span
from dalenius.tables.language.relations import (
    Fold,
    Over,
    Relation,
)
from dalenius.tables.language.spans import span_of

_STEP = -30


_LEAST = -1000
_MOST = 60
"""Steps of 2^−30 between ±2^60 where nothing is known of a column; else 2^60 steps or fewer on each side,
of 2^−1000 at the least, so that the number of steps in 1 is a float."""


_NULLS = {True: "NULLS FIRST", False: "NULLS LAST"}


_TIED = ("row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value")
"""Window functions that tell apart rows which are equal in the order."""


def names_of(relation: Relation) -> list[str]:
    """What the columns of a relation are called in SQL."""
    return [f"c{i}" for i in range(len(relation.facts.fields))]


def units_of(relation: Relation, side: str = "") -> list[str]:
    """What its hidden columns are called."""
    return [f"{side}u{i}" for i in range(relation.facts.units)]


def folded_sql(dialect: Dialect, source: Relation, fold: Fold | Over, over: str) -> str:
    """An aggregate, over a window where one is given."""
    if fold.argument is None:
        return f"COUNT(*){over}"
    sql, type_ = dialect.canonical(fold.argument, names_of(source)), fold.argument.type
    match fold.kind:
        case "count_of":
            return f"COUNT({sql}){over}"
        case "distinct":
            return dialect.distinct(sql, over)
        case "min" | "max":
            return dialect.extreme(fold.kind, sql, type_, over)
        case "median":
            return dialect.settled(dialect.median(dialect.as_real(sql, type_), over))
        case "sum" if type_ == "integer":
            return dialect.whole_sum(sql, over)
    steps, step = _in_steps(dialect, dialect.as_real(sql, type_), span_of(fold.argument, source.facts.fields))
    total = dialect.total(f"SUM({steps}){over}", step)
    return total if fold.kind == "sum" else f"({total} / NULLIF(COUNT({steps}){over}, 0))"


def _in_steps(dialect: Dialect, sql: str, span: Span) -> tuple[str, float]:
    """A real number in whole steps, and the step: a power of two, so that nothing else is rounded."""
    ends, power = span.finite, _STEP
    if ends is None:
        ends = Fraction(-(2**_MOST)), Fraction(2**_MOST)
    else:
        power = max(math.frexp(float(max(abs(ends[0]), abs(ends[1]))) or 1.0)[1] - _MOST, _LEAST)
    steps = dialect.in_steps(sql, (float(ends[0]), float(ends[1])), math.ldexp(1.0, -power))
    return steps, math.ldexp(1.0, power)


def over_steps(dialect: Dialect, source: Relation, function: Over) -> tuple[str, str]:
    """What is taken over a window, and in one more SELECT what is made of it, `{0}`."""
    if function.kind == "median" and function.argument is not None:
        values = dialect.as_real(
            dialect.canonical(function.argument, names_of(source)), function.argument.type
        )
        found = dialect.gathered(values, f" OVER ({_window(dialect, source, function)})")
        if found is not None:
            return found[0], dialect.settled(found[1])
    return over_sql(dialect, source, function), "{0}"


def over_sql(dialect: Dialect, source: Relation, function: Over) -> str:
    """A window function in SQL."""
    names, over = names_of(source), f" OVER ({_window(dialect, source, function)})"
    kind, argument = function.kind, function.argument
    match kind:
        case "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist":
            return f"{kind}(){over}"
        case "ntile":
            return f"ntile({function.offset}){over}"
    if argument is not None and kind in _TIED:
        offset = f", {function.offset}" if kind in ("lag", "lead", "nth_value") else ""
        return f"{kind}({dialect.canonical(argument, names)}{offset}){over}"
    return folded_sql(dialect, source, function, over)


def _window(dialect: Dialect, source: Relation, function: Over) -> str:
    names = names_of(source)
    parts = [dialect.canonical(each, names) for each in function.partition]
    over = _clause("PARTITION BY", [*units_of(source), *parts])
    order, rows = dialect.window(function.kind, _order(dialect, source, function), function.rows)
    over += _clause("ORDER BY", order)
    over += f" ROWS BETWEEN {rows[0]} AND {rows[1]}" if rows else ""
    return over.strip()


def _clause(words: str, items: Sequence[str]) -> str:
    return f" {words} {', '.join(items)}" if items else ""


def _order(dialect: Dialect, source: Relation, function: Over) -> list[str]:
    """The order asked for, and all columns after it where rows equal in it would be told apart."""
    names = names_of(source)
    order = [
        " ".join((dialect.canonical(by, names), "DESC" if down else "ASC", _NULLS[first]))
        for by, down, first in function.order
    ]
    if function.kind in _TIED or function.rows is not None:
        order += [f"{name} NULLS LAST" for name in names]
    return order
