"""The kinds of sources: each makes its tables visible to a connection, under their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from dalenius.errors import Argument, InvalidArgument, Message
from dalenius.tables.schema import folded
from dalenius.tables.sources.foreign_connection import check_functions, settle
from dalenius.tables.sources.identity import Origin, file_names

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def quoted(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def valid(text: str) -> str:
    """A text that may be no UTF-8 as a text that is, or NULL.

    Scans of Parquet and CSV files and tables of DuckDB let nothing else through; frames and what somebody's
    connection sees are not looked at. Functions of texts fail on it, and the database with them.
    """
    return f"TRY(DECODE(ENCODE({text})))"


def version(what: object, paths: Sequence[str]) -> str:
    """A source's version: what is read, from which files, of which sizes and times.

    The same files under other names, or another table of one file, are other data to a question.
    """
    return repr((what, [(os.path.abspath(path), _stamp(path)) for path in paths]))


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


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
        """Its name, and its files."""
        return version((self.name, "parquet"), self.paths)

    def origin(self, cursor: DuckDBPyConnection, table: str) -> Origin:
        """See `Source`: its files."""
        return Origin(self.files(cursor)) if folded(table) == folded(self.name) else Origin()

    def files(self, cursor: DuckDBPyConnection) -> frozenset[object]:
        """See `Source`."""
        return file_names(self.paths)


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
        check_tables(tables)
        return Database(path, tables, choose(tables, name, table), schema)

    def bind(self, cursor: DuckDBPyConnection) -> None:
        """Make the tables visible."""
        named = {table: table for table in self.tables} | dict([self.alias] if self.alias else [])
        _show(cursor, named, self.schema, "main")

    def version(self) -> str:
        """Its tables by name, and the file, with what DuckDB has yet to write into it."""
        return version((self.tables, self.alias), [self.path, f"{self.path}.wal"])

    def origin(self, cursor: DuckDBPyConnection, table: str) -> Origin:
        """See `Source`: a table of its file."""
        return _origin(self.files(cursor), table, self.tables, self.alias)

    def files(self, cursor: DuckDBPyConnection) -> frozenset[object]:
        """See `Source`."""
        return file_names([self.path])


def choose(tables: Sequence[str], name: str | None, table: str | None) -> tuple[str, str] | None:
    """The name that is wanted for one of the tables, where it is not that table's own."""
    wanted = table or (name if name in tables else tables[0] if len(tables) == 1 else None)
    if wanted is None or wanted not in tables:
        raise InvalidArgument(
            f"Which table is meant is not clear among {', '.join(tables) or 'none'}.",
            remedy=Message("Pass ", Argument.of("table", tables[0]), ".")
            if tables
            else "Put a table into the file.",
        )
    return None if name in (None, wanted) else (str(name), wanted)


@dataclass(frozen=True)
class Shared:
    """A connection that somebody else has, with the tables that are in its database."""

    name: str | None
    table: str | None
    database: str
    schema: str
    rescans: bool = True

    @staticmethod
    def open(cursor: DuckDBPyConnection, name: str | None, table: str | None) -> Shared:
        """Find where the connection works, and refuse functions that would be taken for DuckDB's own."""
        check_functions(cursor)
        ((database, schema),) = cursor.execute(
            "SELECT system.main.current_database(), system.main.current_schema()"
        ).fetchall()
        return Shared(name, table, str(database), str(schema))

    def bind(self, cursor: DuckDBPyConnection) -> None:
        """Make the tables visible, and give one its name."""
        settle(cursor)
        tables = self._tables(cursor)
        alias = choose(tables, self.name, self.table)
        named = {table: table for table in tables} | dict([alias] if alias else [])
        _show(cursor, named, self.database, self.schema, read=valid)

    def origin(self, cursor: DuckDBPyConnection, table: str) -> Origin:
        """See `Source`: a table of its database."""
        tables, known = self._tables(cursor), self.files(cursor) or frozenset([self.database])
        return _origin(known, table, tables, choose(tables, self.name, self.table), self.schema)

    def files(self, cursor: DuckDBPyConnection) -> frozenset[object]:
        """See `Source`: the file of the database that the connection works in, if it has one."""
        listed = cursor.execute(
            "SELECT path FROM duckdb_databases() WHERE database_name = ?", [self.database]
        ).fetchall()
        return file_names(str(path) for (path,) in listed if path)

    def _tables(self, cursor: DuckDBPyConnection) -> list[str]:
        """The tables in the schema that the connection works in."""
        listed = cursor.execute(
            "SELECT table_name FROM system.information_schema.tables "
            "WHERE table_catalog = ? AND table_schema = ?",
            [self.database, self.schema],
        ).fetchall()
        tables = [str(row[0]) for row in listed]
        check_tables(tables)
        return tables

    def version(self) -> str:
        """Never the same, as nobody tells when a table of the connection changes."""
        return uuid4().hex


def _origin(
    files: frozenset[object],
    table: str,
    tables: Sequence[str],
    alias: tuple[str, str] | None,
    schema: str = "main",
) -> Origin:
    """A table of a database by the name that questions have for it."""
    named = {folded(name): name for name in tables}
    if alias is not None:
        named[folded(alias[0])] = alias[1]
    own = named.get(folded(table))
    return Origin() if own is None else Origin(frozenset((file, schema, folded(own)) for file in files))


RESERVED = "dalenius_"
"""What names begin with that the engine gives to tables and columns of its own."""


def check_tables(tables: Sequence[str]) -> None:
    """Refuse names that the engine gives itself."""
    _check_names(tables, "table")


def check_columns(columns: Sequence[str]) -> None:
    """Refuse names that the engine gives itself: such a column might be taken for one of its own."""
    _check_names(columns, "column")


def _check_names(names: Sequence[str], what: str) -> None:
    taken = [name for name in names if name.lower().startswith(RESERVED)]
    if taken:
        raise InvalidArgument(
            f"The name of the {what} {taken[0]} is reserved; a stored copy of a prepared table is no source.",
            remedy=f"Open the table itself, or give the {what} a name that does not begin with {RESERVED}.",
        )


def _show(
    cursor: DuckDBPyConnection,
    named: Mapping[str, str],
    database: str,
    schema: str,
    read: Callable[[str], str] = str,
) -> None:
    """Views of the tables in a database, by name, in which texts are the same where their letters are.

    A collation makes one of several spellings, and which one is shown depends on everyone's rows. Enumerated
    types have none; what is nested keeps its own, and the engine compares it as text. A view that is broken
    is left out, as nobody can ask for it.
    """
    from duckdb import BinderException, CatalogException

    listed = cursor.execute(
        "SELECT table_name, column_name FROM duckdb_columns() "
        "WHERE database_name = ? AND schema_name = ? AND data_type = 'VARCHAR'",
        [database, schema],
    ).fetchall()
    for name, table in named.items():
        texts = [quoted(str(column)) for owner, column in listed if owner == table]
        plain = ", ".join(f'{read(text)} COLLATE "binary" AS {text}' for text in texts)
        shown = f"* REPLACE ({plain})" if texts else "*"
        whole = f"SELECT {shown} FROM {quoted(database)}.{quoted(schema)}.{quoted(table)}"
        with suppress(BinderException, CatalogException):
            cursor.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS {whole}")
