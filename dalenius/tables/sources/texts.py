"""Columns of texts: which type each has, told by its first cells, and how its cells are read as that type.

A column has the first of these types that nine in ten of its first cells can be read as: boolean, integer,
real, date, time stamp (both ISO 8601), else text. A cell that cannot be read as its column's type is NULL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dalenius.errors import InvalidArgument
from dalenius.tables.sources.kinds import quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

CELLS = 10_000
"""Cells by which the type of a column is told."""
_TYPES = {
    "BOOLEAN": "regexp_full_match(lower(trim({0})), 'true|false')",
    "BIGINT": "regexp_full_match(trim({0}), '[+-]?[0-9]{{1,18}}')",
    "DOUBLE": "TRY_CAST(trim({0}) AS DOUBLE) IS NOT NULL",
    "DATE": "regexp_full_match(trim({0}), '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}')",
    "TIMESTAMP": "TRY_CAST(trim({0}) AS TIMESTAMP) IS NOT NULL",
}


def guess(connection: DuckDBPyConnection, source: str, columns: Sequence[str]) -> dict[str, str]:
    """The type of each of the columns of what goes behind FROM; text where they cannot be read."""
    from duckdb import Error

    if not columns:
        return {}
    tests = [test.format(quoted(column)) for column in columns for test in _TYPES.values()]
    counts = [f"count(*) FILTER (WHERE {test})" for test in tests] + [f"count({quoted(c)})" for c in columns]
    first = f"(SELECT * FROM {source} LIMIT {CELLS})"
    try:
        (row,) = connection.execute(f"SELECT {', '.join(counts)} FROM {first}").fetchall()
    except Error:
        row = (0,) * len(counts)
    fits, there = row[: len(tests)], row[len(tests) :]
    step = len(_TYPES)
    return {
        column: _first_that_fits(fits[step * i : step * (i + 1)], there[i])
        for i, column in enumerate(columns)
    }


def cell(column: str, kind: str) -> str:
    """SQL for a column of texts as its type, under the same name; an empty text is NULL."""
    # A cast alone would be done by a scan of CSV, here or by a query, and that leaves out lines it does not
    # fit.
    text = f"nullif(concat({column}), '')"
    return f"{text} AS {column}" if kind == "VARCHAR" else f"TRY_CAST(trim({text}) AS {kind}) AS {column}"


def check_types(name: str, names: Sequence[str], types: Mapping[str, str]) -> None:
    """Refuse types of columns that are not there, and what is no type."""
    unknown = sorted(set(types) - set(names))
    if unknown:
        raise InvalidArgument(
            f"There is no column {unknown[0]} in {name}.", remedy=f"Columns are {', '.join(names)}."
        )
    for column, kind in types.items():
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*(\(\d+(,\s*\d+)?\))?", kind):
            raise InvalidArgument(
                f"{kind} is no type for {column}.", remedy="Use a type of DuckDB, such as BIGINT or VARCHAR."
            )


def _first_that_fits(fits: Sequence[int], there: int) -> str:
    kinds = (kind for kind, count in zip(_TYPES, fits, strict=True) if there and 10 * count >= 9 * there)
    return next(kinds, "VARCHAR")
