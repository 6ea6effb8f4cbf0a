"""CSV: cells are read as text first, and then as their column's type, or NULL where that cannot be.

The first line names the columns, and the mark that is most frequent in it (comma, semicolon, tab or bar) is
what separates cells. A column has the first of these types that nine in ten of its cells in the first lines
can be read as: boolean, integer, real, date, time stamp (both ISO 8601), else text. That looks at data once,
when a file is opened, and what it finds counts as public, as the names of the columns do; `types=` says it
beforehand instead. One odd cell, or one person's, does not change a type that holds by a margin.

A line with too few cells has NULL for the rest; one with too many, or that is no UTF-8, is left out. A quoted
cell may hold line breaks: what the table is, is what quotes say.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping, Sequence
from csv import reader
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalenius.errors import InvalidArgument
from dalenius.tables.source_kinds import literal, quoted, stamps

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LINES = 10_000
"""Lines by which the types of columns are told."""
_TYPES = {
    "BOOLEAN": "regexp_full_match(lower(trim({0})), 'true|false')",
    "BIGINT": "regexp_full_match(trim({0}), '[+-]?[0-9]{{1,18}}')",
    "DOUBLE": "TRY_CAST(trim({0}) AS DOUBLE) IS NOT NULL",
    "DATE": "regexp_full_match(trim({0}), '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}')",
    "TIMESTAMP": "TRY_CAST(trim({0}) AS TIMESTAMP) IS NOT NULL",
}
_LENIENT = (
    "auto_detect = false, header = true, quote = '\"', escape = '\"', null_padding = true, parallel = false, "
    "ignore_errors = true, strict_mode = false, max_line_size = 16777216"
)


@dataclass(frozen=True)
class Csv:
    """One or more files of text that are one table."""

    name: str
    paths: tuple[str, ...]
    delimiter: str
    columns: tuple[tuple[str, str], ...]
    """Names and types."""
    rescans: bool = False

    @staticmethod
    def open(
        connection: DuckDBPyConnection, name: str, paths: tuple[str, ...], types: Mapping[str, str]
    ) -> Csv:
        """Look at the first lines of the first file."""
        delimiter, names = _header(paths[0])
        _check(name, names, types)
        plain = Csv(name, paths, delimiter, tuple((column, "VARCHAR") for column in names))
        missing = [column for column in names if column not in types]
        found = dict(types) | (plain.guess(connection, missing) if missing else {})
        return Csv(name, paths, delimiter, tuple((column, found[column]) for column in names))

    def guess(self, connection: DuckDBPyConnection, columns: Sequence[str]) -> dict[str, str]:
        """The type of each of the columns."""
        from duckdb import Error

        tests = [test.format(quoted(column)) for column in columns for test in _TYPES.values()]
        counts = [f"count(*) FILTER (WHERE {test})" for test in tests] + [
            f"count({quoted(c)})" for c in columns
        ]
        first = f"(SELECT * FROM {self._scan()} LIMIT {LINES})"
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

    def bind(self, cursor: DuckDBPyConnection) -> None:
        """Make the table visible."""
        cells = ", ".join(_cell(quoted(name), kind) for name, kind in self.columns)
        cursor.execute(f"CREATE TEMP VIEW {quoted(self.name)} AS SELECT {cells} FROM {self._scan()}")

    def version(self) -> str:
        """Sizes and times of the files."""
        return stamps(self.paths)

    def _scan(self) -> str:
        listed = ", ".join(literal(path) for path in self.paths)
        texts = ", ".join(f"{literal(name)}: 'VARCHAR'" for name, _ in self.columns)
        return f"read_csv([{listed}], columns = {{{texts}}}, delim = {literal(self.delimiter)}, {_LENIENT})"


def _cell(column: str, kind: str) -> str:
    # A cast alone would be done by the scan, here or by a query, and that leaves out lines it does not fit.
    text = f"nullif(concat({column}), '')"
    return f"{text} AS {column}" if kind == "VARCHAR" else f"TRY_CAST(trim({text}) AS {kind}) AS {column}"


def _first_that_fits(fits: Sequence[int], there: int) -> str:
    kinds = (kind for kind, count in zip(_TYPES, fits, strict=True) if there and 10 * count >= 9 * there)
    return next(kinds, "VARCHAR")


def _header(path: str) -> tuple[str, tuple[str, ...]]:
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        line = file.readline(1 << 20).decode("utf-8-sig", "replace").rstrip("\r\n")
    delimiter = max(",;\t|", key=line.count)
    names = tuple(name.strip() for name in next(reader([line], delimiter=delimiter), []))
    if not names or not all(names) or len({name.lower() for name in names}) < len(names):
        raise InvalidArgument(
            "The first line does not name every column, each by a name of its own.",
            remedy="Let the file begin with a line of the columns' names.",
        )
    return delimiter, names


def _check(name: str, names: Sequence[str], types: Mapping[str, str]) -> None:
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
