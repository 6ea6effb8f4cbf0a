"""`DuckdbEngine`: tables that DuckDB reads, wherever they are.

Each query has a connection of its own, with its own temporary tables: queries do not disturb each other, and
nothing of them stays. Queries see the tables they are given and no file beside them. SQL that joins, groups
or numbers rows is evaluated once, into a temporary table; a plain scan is read again for each step instead,
as scanning Parquet twice costs less than keeping it.
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from dalenius.tables.engines.loaded import DuckdbLoaded
from dalenius.tables.engines.reading import read
from dalenius.tables.engines.types import kind_of
from dalenius.tables.rows import Rows
from dalenius.tables.sources.folder import Folder
from dalenius.tables.sources.identity import Origin

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ROOM = 3 << 29
"""The bytes of rows that are kept at a time. DuckDB's own memory comes on top."""
READER = 400 << 20
"""The bytes of DuckDB's memory that one reader may need: the buffers of a CSV file are 100 MiB of them."""
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50}
_HEAVY = re.compile(r"\b(JOIN|GROUP\s+BY|OVER|DISTINCT|UNION|WITH|UNNEST)\b", re.IGNORECASE)


class Source(Protocol):
    """Tables that a connection can be shown."""

    @property
    def rescans(self) -> bool:
        """Whether reading it twice is cheap."""

    def bind(self, cursor: DuckDBPyConnection) -> None:
        """Make its tables visible under their names."""

    def version(self) -> str:
        """What changes when the data may have."""

    def origin(self, cursor: DuckDBPyConnection, table: str) -> Origin:
        """Where the rows of one of its tables are; of a table that is not its own, nowhere."""

    def files(self, cursor: DuckDBPyConnection) -> frozenset[object]:
        """What tells the files apart that its tables are in, as far as that is known."""


class DuckdbEngine:
    """Tables in DuckDB, or that DuckDB reads; made by `sources.open_source`."""

    dialect = "duckdb"

    def __init__(
        self,
        connection: DuckDBPyConnection,
        sources: Sequence[Source],
        *,
        folder: Folder | None = None,
        room: int = ROOM,
    ) -> None:
        self.sources, self.room, self.folder = tuple(sources), room, folder
        self._connection = connection
        self._turns = threading.Semaphore(max(1, min(_memory(connection) // READER, os.cpu_count() or 1)))
        # Also where nobody closes the engine, the folder goes, at the latest when Python ends.
        self._let_go = weakref.finalize(self, _let_go, connection, folder)

    def columns(self, table: str) -> Mapping[str, str]:
        """See `Engine`."""
        with self.cursor() as cursor:
            quoted = '"' + table.replace('"', '""') + '"'
            described = read(cursor, lambda: cursor.execute(f"DESCRIBE {quoted}").fetchall())
        return {str(row[0]): kind_of(str(row[1])) for row in described}

    def tables(self) -> dict[str, list[str]]:
        """The names of all tables that queries see, each with those of its columns."""
        with self.cursor() as cursor:
            listed = read(
                cursor,
                lambda: cursor.execute(
                    "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = 'temp'"
                ).fetchall(),
            )
        found: dict[str, list[str]] = {}
        for table, column in listed:
            found.setdefault(str(table), []).append(str(column))
        return found

    def version(self) -> str:
        """See `Engine`: that of every source, with the names of its tables."""
        return repr([source.version() for source in self.sources])

    def turn(self) -> AbstractContextManager[object]:
        """See `Engine`: there are as many turns as readers that fit into DuckDB's memory."""
        return self._turns

    @contextmanager
    def load(self, rows: Rows) -> Iterator[DuckdbLoaded]:
        """See `Engine`."""
        with self.cursor() as cursor:
            yield read(cursor, partial(self._load, cursor, rows))

    def public(self, sql: str) -> list[dict[str, Any]]:
        """See `Engine`."""
        with self.cursor() as cursor:
            rows = read(cursor, lambda: cursor.execute(sql).fetchall())
            names = [str(column[0]) for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in rows]

    def same(self, table: str, other: str) -> bool:
        """See `Engine`: by files, by tables of one database, or by memory."""
        with self.cursor() as cursor:
            return read(cursor, lambda: self._origin(cursor, table).meets(self._origin(cursor, other)))

    def files(self) -> frozenset[object]:
        """What tells the files apart that the first source is in, as far as that is known."""
        with self.cursor() as cursor:
            return read(cursor, lambda: self.sources[0].files(cursor))

    def _origin(self, cursor: DuckDBPyConnection, table: str) -> Origin:
        found = [source.origin(cursor, table) for source in self.sources]
        names = frozenset[object]().union(*(one.names for one in found))
        return Origin(names, tuple(stretch for one in found for stretch in one.memory))

    def close(self) -> None:
        """Let go of the source, and remove what was written on the way."""
        self._let_go()

    def _load(self, cursor: DuckDBPyConnection, rows: Rows) -> DuckdbLoaded:
        source = f"({rows.sql})"
        if _HEAVY.search(rows.sql) or not all(one.rescans for one in self.sources):
            cursor.execute(f"CREATE TEMP TABLE dalenius_rows AS {rows.sql}")
            source = "dalenius_rows"
        return DuckdbLoaded(cursor, rows, source, room=self.room)

    @contextmanager
    def cursor(self) -> Iterator[DuckDBPyConnection]:
        """A connection that sees the tables, for one query."""
        cursor = self._connection.cursor()
        try:
            read(cursor, lambda: self._bind(cursor))
            yield cursor
        finally:
            cursor.close()

    def _bind(self, cursor: DuckDBPyConnection) -> None:
        for source in self.sources:
            source.bind(cursor)


def _memory(connection: DuckDBPyConnection) -> int:
    """Return the bytes of memory that DuckDB may take."""
    row = (
        connection.cursor()
        .execute("SELECT value FROM system.main.duckdb_settings() WHERE name = 'memory_limit'")
        .fetchone()
    )
    amount, unit = str(row[0] if row else "").split()
    return int(float(amount) * _UNITS[unit])


def _let_go(connection: DuckDBPyConnection, folder: Folder | None) -> None:
    connection.close()
    if folder is not None:
        folder.remove()
