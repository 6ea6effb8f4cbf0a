"""CSV: cells are read as text first, and then as their column's type, or NULL where that cannot be.

The first line names the columns, and the mark that is most frequent in it (comma, semicolon, tab or bar) is
what separates cells. Several files that are one table begin with the same line, and a file that begins with
another one than when it was opened is not read. Types are told by the first lines, as `source_text` says.
That looks at data once, when a file is opened, and what it finds counts as public, as the names of the
columns do; `types=` says it beforehand instead. One odd cell, or one person's, does not change a type that
holds by a margin.

A line with too few cells has NULL for the rest, of one with too many the rest is left away, and one that is
no UTF-8 is left out. A quoted cell may hold line breaks: what the rows are, is what quotes say, so that one
line with an odd quote changes how those behind it are read. Neighbouring tables are tables of rows, not of
bytes: who can write raw bytes into the file is outside of what is promised.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from csv import Error, reader
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalenius.errors import InvalidArgument, QueryFailed
from dalenius.tables.schema import folded
from dalenius.tables.sources.identity import Origin, file_names
from dalenius.tables.sources.kinds import literal, quoted, version
from dalenius.tables.sources.texts import cell, check_types, guess

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# A buffer is sixteen times the longest line unless it is given, and a reader holds two or three of them.
_LENIENT = (
    "auto_detect = false, header = true, quote = '\"', escape = '\"', null_padding = true, parallel = false, "
    "ignore_errors = true, strict_mode = false, max_line_size = 16777216, "
    "buffer_size = 33554432"
)
_LONGEST = 1 << 20
"""Bytes of the longest first line."""
Header = tuple[str, tuple[str, ...]]
"""What separates cells, and the names of columns."""


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
        """Look at the first lines."""
        delimiter, names = _common(paths)
        check_types(name, names, types)
        plain = Csv(name, paths, delimiter, tuple((column, "VARCHAR") for column in names))
        missing = [column for column in names if column not in types]
        found = dict(types) | guess(connection, plain._scan(), missing)
        return Csv(name, paths, delimiter, tuple((column, found[column]) for column in names))

    def bind(self, cursor: DuckDBPyConnection) -> None:
        """Make the table visible, where its columns are still where they were."""
        self._check()
        cells = ", ".join(cell(quoted(name), kind) for name, kind in self.columns)
        cursor.execute(f"CREATE TEMP VIEW {quoted(self.name)} AS SELECT {cells} FROM {self._scan()}")

    def version(self) -> str:
        """Its name, how its cells are read, and its files."""
        return version((self.name, self.delimiter, self.columns), self.paths)

    def origin(self, cursor: DuckDBPyConnection, table: str) -> Origin:
        """See `Source`: its files."""
        return Origin(self.files(cursor)) if folded(table) == folded(self.name) else Origin()

    def files(self, cursor: DuckDBPyConnection) -> frozenset[object]:
        """See `Source`."""
        return file_names(self.paths)

    def _check(self) -> None:
        wanted = self.delimiter, tuple(name for name, _ in self.columns)
        try:
            same = all(_header(path) == wanted for path in self.paths)
        except InvalidArgument:
            same = False
        if not same:
            raise QueryFailed(
                "The columns of the source have changed since it was opened; nothing is released.",
                remedy="Open it again.",
            )

    def _scan(self) -> str:
        listed = ", ".join(literal(path) for path in self.paths)
        texts = ", ".join(f"{literal(name)}: 'VARCHAR'" for name, _ in self.columns)
        return f"read_csv([{listed}], columns = {{{texts}}}, delim = {literal(self.delimiter)}, {_LENIENT})"


def _common(paths: tuple[str, ...]) -> Header:
    """What all files begin with: their cells are told by place."""
    first, *others = [_header(path) for path in paths]
    if any(other != first for other in others):
        raise InvalidArgument(
            "The files do not all begin with the same line, so they do not have the same columns.",
            remedy="Let each begin with the same names in the same order, or open them one by one.",
        )
    return first


def _header(path: str) -> Header:
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        line = file.readline(_LONGEST).decode("utf-8-sig", "replace")
    if not line:
        raise InvalidArgument(
            "The file is empty: it has not even a line of the columns' names.",
            remedy="Check how it was written, or begin it with such a line.",
        )
    plain = line.rstrip("\r\n")
    # What is within quotes separates nothing; a quote that is not closed would go on in the next line.
    bare = re.sub('"[^"]*"', "", plain)
    delimiter = max(",;\t|", key=bare.count)
    try:
        names = tuple(name.strip() for name in next(reader([plain], delimiter=delimiter), []))
    except Error:
        names = ()
    odd = '"' in bare or len(line) >= _LONGEST or len({name.lower() for name in names}) < len(names)
    if odd or not names or not all(names):
        # Not within the handler, as what that error says may repeat what is in the file.
        raise InvalidArgument(
            "The first line does not name every column, each by a name of its own.",
            remedy="Let the file begin with a line of the columns' names, and lines end as everywhere.",
        )
    return delimiter, names
