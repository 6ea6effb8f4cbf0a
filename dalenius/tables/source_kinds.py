"""The kinds of sources: each makes its tables visible to a connection, under their names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

from dalenius.errors import InvalidArgument

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def quoted(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def stamps(paths: Sequence[str]) -> str:
    """Sizes and times of files, for a source's version."""
    return " ".join(_stamp(path) for path in paths)


def _stamp(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return "gone"
    return f"{found.st_size}:{found.st_mtime_ns}:{found.st_ino}"


@dataclass(frozen=True)
class Parquet:
    """One or more files of one table."""

    name: str
    paths: tuple[str, ...]
    rescans: bool = True

    def bind(self, cursor: DuckDBPyConnection) -> None:
        """Make the table visible."""
        listed = ", ".join(literal(path) for path in self.paths)
        cursor.execute(f"CREATE TEMP VIEW {quoted(self.name)} AS SELECT * FROM read_parquet([{listed}])")

    def version(self) -> str:
        """Sizes and times of the files."""
        return stamps(self.paths)


@dataclass(frozen=True)
class Database:
    """The tables of a DuckDB file, and one of them by another name."""

    path: str
    tables: tuple[str, ...]
    alias: tuple[str, str] | None
    """A name, and the table that it is for."""
    schema: str
    rescans: bool = True

    @staticmethod
    def open(connection: DuckDBPyConnection, path: str, name: str | None, table: str | None) -> Database:
        """Attach the file, read only."""
        schema = f"file_{uuid4().hex}"
        connection.execute(f"ATTACH {literal(path)} AS {schema} (READ_ONLY)")
        listed = connection.execute(
            "SELECT table_name FROM information_schema.tables "
            "WHERE table_catalog = ? AND table_schema = 'main' ORDER BY table_name",
            [schema],
        ).fetchall()
        tables = tuple(str(row[0]) for row in listed)
        return Database(path, tables, choose(tables, name, table), schema)

    def bind(self, cursor: DuckDBPyConnection) -> None:
        """Make the tables visible."""
        named = {table: table for table in self.tables} | dict([self.alias] if self.alias else [])
        for name, table in named.items():
            whole = f"SELECT * FROM {self.schema}.main.{quoted(table)}"
            cursor.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS {whole}")

    def version(self) -> str:
        """Size and time of the file."""
        return stamps([self.path])


def choose(tables: Sequence[str], name: str | None, table: str | None) -> tuple[str, str] | None:
    """The name that is wanted for one of the tables, where it is not that table's own."""
    wanted = table or (name if name in tables else tables[0] if len(tables) == 1 else None)
    if wanted is None or wanted not in tables:
        raise InvalidArgument(
            f"Which table is meant is not clear among {', '.join(tables) or 'none'}.",
            remedy=f'Pass table="{tables[0]}".' if tables else "Put a table into the file.",
        )
    return None if name in (None, wanted) else (str(name), wanted)


@dataclass(frozen=True)
class Shared:
    """A connection that somebody else has, with the tables that are in its database."""

    name: str | None
    table: str | None
    rescans: bool = True

    def bind(self, cursor: DuckDBPyConnection) -> None:
        """Give the table its name."""
        listed = cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        ).fetchall()
        alias = choose([str(row[0]) for row in listed], self.name, self.table)
        if alias:
            cursor.execute(f"CREATE TEMP VIEW {quoted(alias[0])} AS SELECT * FROM {quoted(alias[1])}")

    def version(self) -> str:
        """Never the same, as nobody tells when a table of the connection changes."""
        return uuid4().hex


@dataclass(frozen=True)
class Frame:
    """A frame of pandas or polars, or an Arrow table."""

    name: str
    frame: object = field(repr=False)
    token: str = field(default_factory=lambda: uuid4().hex)

    @property
    def rescans(self) -> bool:
        """Arrow tables are read where they are; the others are converted each time."""
        return type(self.frame).__module__.startswith("pyarrow")

    def bind(self, cursor: DuckDBPyConnection) -> None:
        """Make the table visible."""
        cursor.register(self.name, self.frame)

    def version(self) -> str:
        """One for each frame that cannot change; frames of pandas can, and have another each time."""
        return uuid4().hex if type(self.frame).__module__.startswith("pandas") else self.token
