"""CSV: cells are read as text first, and then as their column's type, or NULL where that cannot be.

The first line names the columns, and the mark that is most frequent in it (comma, semicolon, tab or bar) is
what separates cells. Several files that are one table begin with the same line, and a file that begins with
another one than when it was opened is not read. Encoding, decimal mark, dates and types are told by what is
in the file, as `forms` and `texts` say. That looks at data once, when a file is opened first, and what it
finds counts as public, as the names of the columns do; it can be said beforehand instead. One odd cell, or
one person's, does not change a type that holds by a margin. A sheet of an Excel file is read as the CSV file
that it would be saved as.

A line with too few cells has NULL for the rest, of one with too many the rest is left away. In a file of
UTF-8 a line that is no UTF-8 is left out; in any other encoding every byte gives a letter. A quoted cell may
hold line breaks: what the rows are, is what quotes say, so that one line with an odd quote changes how those
behind it are read. Neighbouring tables are tables of rows, not of bytes: who can write raw bytes into the
file is outside of what is promised.
"""

from __future__ import annotations

import re
from collections import Counter
from csv import Error, reader
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dalenius.errors import Argument, InvalidArgument, Message, QueryFailed
from dalenius.tables.schema import folded
from dalenius.tables.sources.forms import WIDE, Form, find_encoding, opened
from dalenius.tables.sources.identity import Origin, file_names
from dalenius.tables.sources.kinds import literal, quoted, version
from dalenius.tables.sources.readable import EXCEL, Copies, sheets
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
    form: Form
    """How cells are read, all of it said or found."""
    found: Form
    """What of the form was found by looking at the data."""
    copies: Copies = field(repr=False, compare=False)
    sheet: str | None = None
    rescans: bool = False

    @staticmethod
    def open(
        connection: DuckDBPyConnection,
        name: str,
        paths: tuple[str, ...],
        form: Form,
        *,
        folder: str,
        sheet: str | None = None,
    ) -> Csv:
        """Look at the first lines.

        Args:
            connection: Where it is read.
            name: What the table is called.
            paths: The files.
            form: What is declared of how they are read.
            folder: Where copies of what DuckDB cannot read are put.
            sheet: Which sheet of an Excel file.
        """
        copies = Copies(folder)
        excel = paths[0].lower().endswith(EXCEL)
        known = form.over(Form(encoding="utf-8" if excel else form.encoding or _encoding(paths)))
        if known.encoding in WIDE and not all(find_encoding(path) in WIDE for path in paths):
            raise InvalidArgument(
                "The file is not in UTF-16.", remedy="Leave encoding out, so that it is found."
            )
        if excel:
            sheet = _sheet(paths[0], sheet)
        readable = tuple(copies.of(path, known.encoding or "utf-8", sheet) for path in paths)
        delimiter, names = _common(readable, "," if excel else None)
        check_types(name, names, form.types)
        texts = tuple((column, "VARCHAR") for column in names)
        plain = Csv(name, paths, delimiter, texts, known, Form(), copies, sheet)
        telling = [column for column in names if form.types.get(column, "").upper() != "VARCHAR"]
        whole = guess(connection, plain._scan(), telling, known)
        columns = tuple((column, whole.types[column]) for column in names)
        return replace(plain, columns=columns, form=whole, found=whole.less(form))

    def under(self, form: Form) -> Csv:
        """Return the same files read in a form that is kept, as far as it says."""
        whole = form.over(self.form)
        columns = tuple((column, whole.types.get(column, kind)) for column, kind in self.columns)
        return replace(self, columns=columns, form=whole, found=self.found.less(form))

    def bind(self, cursor: DuckDBPyConnection) -> None:
        """Make the table visible, where its columns are still where they were."""
        self._check()
        cells = ", ".join(cell(quoted(name), kind, self.form) for name, kind in self.columns)
        cursor.execute(f"CREATE TEMP VIEW {quoted(self.name)} AS SELECT {cells} FROM {self._scan()}")

    def version(self) -> str:
        """Its name, how its cells are read, and its files."""
        form = self.form.encoding, self.form.decimal, self.form.dates, self.form.null, self.sheet
        return version((self.name, self.delimiter, self.columns, form), self.paths)

    def origin(self, cursor: DuckDBPyConnection, table: str) -> Origin:
        """See `Source`: its files."""
        return Origin(self.files(cursor)) if folded(table) == folded(self.name) else Origin()

    def files(self, cursor: DuckDBPyConnection) -> frozenset[object]:
        """See `Source`."""
        return file_names(self.paths)

    def _check(self) -> None:
        wanted = self.delimiter, tuple(name for name, _ in self.columns)
        try:
            same = all(_header(path, self._fixed) == wanted for path in self._readable())
        except (InvalidArgument, OSError):
            same = False
        if not same:
            raise QueryFailed(
                "The columns of the source have changed since it was opened; nothing is released.",
                remedy="Open it again.",
            )

    @property
    def _fixed(self) -> str | None:
        """What separates the cells of a copy that is made here."""
        return "," if self.paths[0].lower().endswith(EXCEL) else None

    def _readable(self) -> list[str]:
        """Paths that DuckDB reads."""
        return [self.copies.of(path, self.form.encoding or "utf-8", self.sheet) for path in self.paths]

    def _scan(self) -> str:
        listed = ", ".join(literal(path) for path in self._readable())
        texts = ", ".join(f"{literal(name)}: 'VARCHAR'" for name, _ in self.columns)
        return f"read_csv([{listed}], columns = {{{texts}}}, delim = {literal(self.delimiter)}, {_LENIENT})"


def _encoding(paths: tuple[str, ...]) -> str:
    """The encoding that most files have."""
    return Counter(map(find_encoding, paths)).most_common(1)[0][0]


def _sheet(path: str, wanted: str | None) -> str:
    names = sheets(path)
    if wanted is None and len(names) > 1:
        raise InvalidArgument(
            f"Which sheet is meant is not clear among {', '.join(names)}.",
            remedy=Message("Pass ", Argument.of("table", names[0]), "."),
        )
    if wanted is not None and wanted not in names:
        raise InvalidArgument(f"There is no sheet {wanted}.", remedy=f"Sheets are {', '.join(names)}.")
    return wanted or names[0]


def _common(paths: tuple[str, ...], delimiter: str | None) -> Header:
    """What all files begin with: their cells are told by place."""
    first, *others = [_header(path, delimiter) for path in paths]
    if any(other != first for other in others):
        raise InvalidArgument(
            "The files do not all begin with the same line, so they do not have the same columns.",
            remedy="Let each begin with the same names in the same order, or open them one by one.",
        )
    return first


def _header(path: str, delimiter: str | None = None) -> Header:
    with opened(path) as file:
        line = file.readline(_LONGEST).decode("utf-8-sig", "replace")
    if not line:
        raise InvalidArgument(
            "The file is empty: it has not even a line of the columns' names.",
            remedy="Check how it was written, or begin it with such a line.",
        )
    plain = line.rstrip("\r\n")
    # What is within quotes separates nothing; a quote that is not closed would go on in the next line.
    bare = re.sub('"[^"]*"', "", plain)
    delimiter = delimiter or max(",;\t|", key=bare.count)
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
