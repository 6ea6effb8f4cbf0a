"""`PostgresEngine`: tables in PostgreSQL, asked by a role that needs no right but SELECT.

All steps of a question are in one transaction that reads one snapshot, so that they see the same data, and
that is rolled back. Nothing but integers by group leaves the server. Where the role may make temporary
tables, the transaction has one, for what is asked of units twice; it is made first, and then the transaction
is set to read only. With the transaction it is gone, whatever happens.

A question sees each table by a name of its own, as `postgres_types` shows it. Where a table is not as it was
when it was opened, the question is refused, before it is charged where that is seen in time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dalenius.errors import InvalidArgument, QueryFailed
from dalenius.tables.engines.bounding.bounded import BoundedRows
from dalenius.tables.engines.postgres_runner import PostgresRunner
from dalenius.tables.engines.postgres_server import Server, read
from dalenius.tables.engines.postgres_types import BIGINT, COLUMNS, Column, Relation, kinds_of, quoted
from dalenius.tables.engines.postgres_words import PostgresWords
from dalenius.tables.rows import Rows

if TYPE_CHECKING:
    from psycopg import Cursor

_FIND = """
SELECT n.nspname::text, c.relname::text, c.oid::bigint,
       c.relkind IN ('r', 'm') AND NOT c.relhassubclass AND NOT c.relrowsecurity AND c.relpersistence <> 't'
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass(%s)
"""
_STATE = """
SELECT pg_current_snapshot()::text, pg_postmaster_start_time()::text, current_database(), current_user,
       (SELECT oid::bigint FROM pg_database WHERE datname = current_database())
"""
_NAME = re.compile(r"[^.]+\.[^.]+")


class PostgresEngine:
    """Tables of one database, by the names that questions have for them; made by `sources.open_source`."""

    dialect = "postgres"

    def __init__(self, server: Server, tables: Mapping[str, str]) -> None:
        self._server, self._words = server, PostgresWords()
        self._tables = read(lambda: self._found(tables))
        self._same: dict[str, str] = {}
        """Snapshots that differ from others by a temporary table of ours only."""

    def columns(self, table: str) -> Mapping[str, str]:
        """See `Engine`."""
        return {column.name: column.kind for column in self._tables[table].columns}

    def tables(self) -> dict[str, list[str]]:
        """The names of all tables that queries see, each with those of its columns."""
        return {name: [each.name for each in found.columns] for name, found in self._tables.items()}

    def version(self) -> str:
        """See `Engine`: the server's snapshot, which is the same only where no transaction has written since.

        It is asked before anything is charged, so what can be seen to be wrong is refused here. Never the
        same where a table is one that not this server's transactions alone change, such as a view.
        """
        self._server.check()
        with _quietly() as open_now:
            state = read(lambda: self._state(open_now.enter_context(self._server.transaction())))
        lasting = all(found.lasting for found in self._tables.values())
        return repr((self._tables, state if lasting else uuid4().hex))

    @contextmanager
    def load(self, rows: Rows) -> Iterator[BoundedRows]:
        """See `Engine`."""
        with self._transaction(rows.sql, writes=rows.units > 0) as (cursor, source):
            types = read(lambda: self._types(cursor, source))
            runner = PostgresRunner(cursor)
            if rows.units:
                read(lambda: runner.prepare(source, rows.units))
                self._same[runner.after] = self._same.get(runner.before, runner.before)
            packed = rows.units == 1 and types["unit_0"] == BIGINT
            yield BoundedRows(self._words, runner, source, rows, kinds_of(types), packed=packed)

    def public(self, sql: str) -> list[dict[str, Any]]:
        """See `Engine`."""
        with self._transaction(sql) as (cursor, source):
            rows = read(lambda: cursor.execute(f"SELECT * FROM {source} AS r", prepare=False).fetchall())
            names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in rows]

    def close(self) -> None:
        """Nothing is held between questions; a connection that was handed in is its owner's to close."""

    @contextmanager
    def _transaction(self, sql: str, *, writes: bool = False) -> Iterator[tuple[Cursor[Any], str]]:
        """A transaction in which all tables of a query are as they were, and what goes behind FROM for it."""
        used = {name: found for name, found in self._tables.items() if quoted(name) in sql}
        shown = ", ".join(
            f"{quoted(name)} AS NOT MATERIALIZED ({found.shown()})" for name, found in used.items()
        )
        with _quietly() as open_now:
            cursor = read(lambda: open_now.enter_context(self._server.transaction(writes=writes)))
            read(lambda: self._check(cursor, used))
            yield cursor, f"(WITH {shown} {sql})" if used else f"({sql})"

    def _check(self, cursor: Cursor[Any], used: Mapping[str, Relation]) -> None:
        """Each table is locked against changes of its form, and has the form it had."""
        for found in used.values():
            cursor.execute(f"SELECT FROM {found.sql} LIMIT 0", prepare=False)
            if _relation(cursor, found.sql) != found:
                raise QueryFailed

    def _state(self, cursor: Cursor[Any]) -> tuple[Any, ...]:
        for name, found in self._tables.items():
            if _relation(cursor, found.sql) != found:
                raise InvalidArgument(
                    f"The table {name} is not as it was when it was opened; nothing was charged.",
                    remedy="Open it again.",
                )
        ((snapshot, *where),) = cursor.execute(_STATE, prepare=False).fetchall()
        return self._same.get(snapshot, snapshot), *where

    def _types(self, cursor: Cursor[Any], source: str) -> Mapping[str, int]:
        described = cursor.execute(f"SELECT * FROM {source} AS r LIMIT 0", prepare=False).description
        return {column.name: column.type_code for column in described or ()}

    def _found(self, tables: Mapping[str, str]) -> dict[str, Relation]:
        with self._server.transaction(own_path=True) as cursor:
            _check_encoding(cursor)
            return {name: _named(cursor, table) for name, table in tables.items()}


@contextmanager
def _quietly() -> Iterator[ExitStack]:
    """What is entered is left whatever happens, and what leaving says is not passed on: all has been read."""
    open_now = ExitStack()
    try:
        yield open_now
    finally:
        with suppress(Exception):
            open_now.close()


def _named(cursor: Cursor[Any], table: str) -> Relation:
    """The relation that a name means on the session's own path: as it is spelled, or in lower case."""
    schema, _, name = table.partition(".") if _NAME.fullmatch(table) else ("", "", "")
    spellings = [f"{quoted(schema)}.{quoted(name)}"] if name else []
    spellings += [quoted(table)]
    for spelling in [*spellings, *(each.lower() for each in spellings)]:
        found = _relation(cursor, spelling)
        if found is not None and found.columns:
            return found
    raise InvalidArgument(
        f"There is no table {table} in the database, or none that may be read.",
        remedy="Check its name; one of another schema is written as ward.visits.",
    )


def _relation(cursor: Cursor[Any], name: str) -> Relation | None:
    row = cursor.execute(_FIND, [name], prepare=False).fetchone()
    if row is None:
        return None
    schema, own, oid, lasting = row
    listed = cursor.execute(COLUMNS, [oid], prepare=False).fetchall()
    return Relation(schema, own, oid, lasting, tuple(Column(*each) for each in listed))


def _check_encoding(cursor: Cursor[Any]) -> None:
    row = cursor.execute("SHOW server_encoding", prepare=False).fetchone()
    if row is None or row[0] != "UTF8":
        raise InvalidArgument(
            "The database does not keep its texts in UTF-8, by which they are told apart here.",
            remedy="Use a database whose encoding is UTF8.",
        )
