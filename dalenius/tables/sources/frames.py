"""Frames of pandas and polars, and Arrow tables.

A column of pandas that holds objects has no type: each of its values may be anything. Values are read as
their texts, and these as the cells of a CSV file are: the type of the column is told by the first of them or
given by `types=`, and what does not fit is NULL. No value, however odd, makes a frame fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dalenius.errors import InvalidArgument
from dalenius.tables.schema import folded
from dalenius.tables.sources.forms import Form
from dalenius.tables.sources.identity import Origin, memory_of
from dalenius.tables.sources.kinds import quoted, valid
from dalenius.tables.sources.texts import cell, check_types, guess

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class Frame:
    """A frame of pandas or polars, or an Arrow table."""

    name: str
    frame: Any = field(repr=False)
    form: Form = field(default_factory=Form)
    """How the columns that hold objects are read; its types are theirs."""
    found: Form = field(default_factory=Form)
    """What of the form was found by looking at the data."""
    token: str = field(default_factory=lambda: uuid4().hex)

    @staticmethod
    def open(connection: DuckDBPyConnection, name: str, frame: object, form: Form) -> Frame:
        """Look at the first values of columns that hold objects."""
        plain = Frame(name, frame)
        columns = plain.objects()
        check_types(name, columns, form.types)
        if not columns:
            return plain
        cursor = connection.cursor()
        try:
            cursor.register("dalenius_first", plain.texts(most=100_000))
            telling = [column for column in columns if form.types.get(column, "").upper() != "VARCHAR"]
            whole = guess(cursor, "dalenius_first", telling, form)
        finally:
            cursor.close()
        return Frame(name, frame, whole, replace(whole.less(form), encoding=None))

    def under(self, form: Form) -> Frame:
        """Return the same frame read in a form that is kept, as far as it says."""
        types = {name: kind for name, kind in form.types.items() if name in self.form.types}
        whole = replace(form, types=types).over(self.form)
        return replace(self, form=whole, found=self.found.less(form))

    @property
    def kinds(self) -> Mapping[str, str]:
        """Types of the columns that hold objects."""
        return self.form.types

    @property
    def rescans(self) -> bool:
        """Arrow tables are read where they are; the others are converted each time."""
        return type(self.frame).__module__.startswith("pyarrow")

    def objects(self) -> list[str]:
        """The columns that hold objects; those of other libraries have types."""
        if not type(self.frame).__module__.startswith("pandas"):
            return []
        pairs = zip(self.frame.columns, self.frame.dtypes, strict=True)
        return [str(column) for column, kind in pairs if kind == "object"]

    def bind(self, cursor: DuckDBPyConnection) -> None:
        """Make the table visible."""
        hidden = f"dalenius_frame_{self.token}"
        cursor.register(hidden, self.texts() if self.kinds else self.frame)
        described = cursor.execute(f"DESCRIBE {quoted(hidden)}").fetchall()
        names = [str(row[0]) for row in described if row[1] == "VARCHAR" and row[0] not in self.kinds]
        cells = [cell(quoted(column), kind, self.form) for column, kind in self.kinds.items()]
        cells += [f"{valid(quoted(name))} AS {quoted(name)}" for name in names]
        shown = f"* REPLACE ({', '.join(cells)})" if cells else "*"
        cursor.execute(f"CREATE TEMP VIEW {quoted(self.name)} AS SELECT {shown} FROM {quoted(hidden)}")

    def origin(self, cursor: DuckDBPyConnection, table: str) -> Origin:
        """See `Source`: the frame itself, and the memory that it shares with others."""
        if folded(table) != folded(self.name):
            return Origin()
        return Origin(frozenset([("frame", id(self.frame))]), memory_of(self.frame))

    def files(self, cursor: DuckDBPyConnection) -> frozenset[object]:
        """See `Source`."""
        return frozenset()

    def texts(self, most: int | None = None) -> Any:
        """The frame, or its first rows, with texts in place of objects."""
        import pandas

        found = self.frame.iloc[:most].copy(deep=False)
        for place, kind in enumerate(found.dtypes):
            if kind == "object":
                values = [_text(value, pandas.isna) for value in found.iloc[:, place]]
                found.isetitem(place, pandas.array(values, dtype=pandas.StringDtype("python")))
        return found

    def version(self) -> str:
        """One for each Arrow table; frames of pandas and polars can change, and have another each time."""
        return repr((self.name, self.token if self.rescans else uuid4().hex))


def frame_of(connection: DuckDBPyConnection, source: object, name: str | None, form: Form) -> Frame:
    """What is neither a path nor a connection, as a table."""
    library = type(source).__module__.partition(".")[0]
    if library not in ("pandas", "polars", "pyarrow"):
        raise InvalidArgument(
            f"A source of type {type(source).__name__} cannot be read.",
            remedy="Pass a path, a frame of pandas or polars, an Arrow table, a connection of DuckDB or of "
            "psycopg 3, or the address of a PostgreSQL server.",
        )
    return Frame.open(connection, name or "data", source, form)


def _text(value: Any, missing: Any) -> str | None:
    """What DuckDB can hold of an object: NULL where that has no text, or one that is no UTF-8."""
    try:
        text = value if type(value) is str else None if missing(value) is True else str(value)
        if text is not None and not text.isascii():
            text.encode()
    except Exception:
        return None
    return text
