"""The table of the worst values on a site, and what DuckDB finds there without any rewriting of the query."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

import duckdb
from engines.conformance.sites import Site
from language import nasty

from dalenius.tables.language.dialects import dialect_of
from dalenius.tables.language.expressions import Call, Expression, parts_of
from dalenius.tables.rows import Rows

LINES = 10
NEARLY = {"ln", "exp", "power", "sin", "cos", "tan", "log2", "log10", "cbrt", "atan", "asin", "acos", "atan2"}
"""Functions whose last digit is a library's own."""
LETTERS = {"lower", "upper", "ilike"}
"""Functions that know letters: those beyond ASCII have no one other case."""


@cache
def plainly() -> duckdb.DuckDBPyConnection:
    """DuckDB's own answers, as the query is written: its optimizer is off."""
    found = nasty.connection().cursor()
    found.execute("PRAGMA disable_optimizer")
    return found


def values_sql(name: str, expressions: Sequence[Expression]) -> str:
    """What the expressions are in every line, in the dialect of a site."""
    dialect = dialect_of(name)
    columns = [f"c{i}" for i in range(len(nasty.COLUMNS))]
    read = [
        f"{dialect.read(dialect.quoted(column), type_)} AS {name}"
        for name, (column, type_) in zip(columns, nasty.COLUMNS.items(), strict=True)
    ]
    shown = [f"{dialect.canonical(each, columns)} AS e{i}" for i, each in enumerate(expressions)]
    source = f"SELECT line, {', '.join(read)} FROM {dialect.quoted('nasty')}"
    return f"SELECT {', '.join(shown)} FROM ({source}) AS t ORDER BY line"


def compare_values(site: Site, several: Sequence[Expression]) -> None:
    """Each expression has in each line the value that DuckDB gives it."""
    several = [each for each in several if each.type != "null"]
    wanted = plainly().execute(values_sql("duckdb", several)).fetchall()
    (found,) = site.answers(site.nasty, [values_sql(site.name, several)])
    assert len(found) == len(wanted) == LINES
    for place, expression in enumerate(several):
        for one, other in zip(found, wanted, strict=True):
            assert same(site.name, expression, one[place], other[place]), (
                expression,
                one[place],
                other[place],
            )


def same(name: str, expression: Expression, one: Any, other: Any) -> bool:
    """Bit for bit, but for functions that are each library's own: DuckDB and PostgreSQL have one library.

    In Spark nothing is asked of those beneath other functions, but that they do not fail.
    """
    calls = [part for part in parts_of(expression) if isinstance(part, Call)]
    nearly = name != "duckdb" and any(call.name in NEARLY for call in calls)
    if name == "spark":
        apart = [call for call in calls if call.name in NEARLY | LETTERS or is_told(call)]
        if len(apart) > 1 or any(call.name in LETTERS or call is not expression for call in apart):
            return True
        if apart and is_told(expression):
            return one == other or (None not in (one, other) and float(one) == float(other))
    if isinstance(one, float) and isinstance(other, float):
        # Where a function is not exact, neither is where it overflows, or one over it underflows.
        ends = min(abs(one), abs(other)) > 1e308 and (one > 0) == (other > 0)
        close = nearly and (ends or math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-307))
        return close or struct.pack("d", one) == struct.pack("d", other)
    return type(one) is type(other) and bool(one == other)


def is_told(call: Expression) -> bool:
    """Whether a real number is made a text, whose last digit is Java's own."""
    return isinstance(call, Call) and call.name == "cast_text" and call.arguments[0].type == "real"


def rows_sql(rows: Rows) -> str:
    """All rows of a question, but for who they are of."""
    parts = (("key", rows.keys), ("value", rows.values), ("distinct", rows.distincts))
    named = [f"{part}_{i}" for part, count in parts for i in range(count)]
    return f"SELECT {', '.join([*named, '1 AS one'])} FROM ({rows.sql}) AS r"


def alike(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether rows are the same, in whatever order; sums of real numbers may differ by their order."""
    return _close(_settled(found), _settled(wanted))


def _settled(rows: Sequence[Any]) -> list[Any]:
    plain = [tuple("nan" if value is None or value != value else value for value in row) for row in rows]
    return sorted(plain, key=repr)


def _close(found: Any, wanted: Any) -> bool:
    if isinstance(found, list | tuple):
        return len(found) == len(wanted) and all(map(_close, found, wanted))
    if isinstance(found, float) and isinstance(wanted, float):
        return math.isclose(found, wanted, rel_tol=1e-15)
    return bool(found == wanted)
