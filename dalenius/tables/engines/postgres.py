"""`PostgresEngine`: tables in PostgreSQL, asked by a role that needs no right but SELECT.

All steps of a question are in one transaction that reads one snapshot, so that they see the same data, and
that is rolled back. Nothing but integers by group leaves the server. Where the role may make temporary
tables, the transaction has one, for what is asked of units twice; it is made first, and then the transaction
is set to read only. With the transaction it is gone, whatever happens.

A question sees each table by a name of its own, as `postgres_types` shows it. Where a table is not as it was
when it was opened, the question is refused, before it is charged where that is seen in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from dalenius.errors import InvalidArgument, QueryFailed
from dalenius.tables.engines.bounding.bounded import BoundedRows
from dalenius.tables.engines.postgres_finding import check_reading, check_server, named, relation
from dalenius.tables.engines.postgres_runner import PostgresRunner
from dalenius.tables.engines.postgres_server import Server, read
from dalenius.tables.engines.postgres_types import Relation, kinds_of, quoted
from dalenius.tables.engines.postgres_words import PostgresWords
from dalenius.tables.rows import Rows

if TYPE_CHECKING:
    from psycopg import Cursor

T = TypeVar("T")
_STATE = """
SELECT pg_current_snapshot()::text, pg_postmaster_start_time()::text, current_database(), current_user,
       (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
       pg_is_in_recovery(), pg_last_wal_replay_lsn()::text
"""
"""On a replica a snapshot does not name all that it leaves out, so how far it is tells it from others."""

_KIN = """
WITH RECURSIVE
  below(oid) AS (SELECT {0}::oid UNION SELECT inhrelid FROM pg_inherits JOIN below ON inhparent = oid),
  above(oid) AS (SELECT {0}::oid UNION SELECT inhparent FROM pg_inherits JOIN above ON inhrelid = oid)
SELECT oid::bigint FROM below UNION SELECT oid::bigint FROM above
"""


class PostgresEngine:
    """Tables of one database, by the names that questions have for them; made by `sources.open_source`."""

    dialect = "postgres"

    def __init__(self, server: Server, tables: Mapping[str, str]) -> None:
        self._server, self._words = server, PostgresWords()
        self._tables = self._uncharged(lambda: self._found(tables))
        self._same: dict[str, str] = {}
        """The last snapshot that differs from another by temporary tables of ours only."""

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
        with _quietly() as open_now:
            state = self._uncharged(lambda: self._state(open_now.enter_context(self._server.transaction())))
        lasting = all(found.lasting for found in self._tables.values())
        return repr((self._tables, state if lasting else uuid4().hex))

    def turn(self) -> AbstractContextManager[object]:
        """See `Engine`: the server has memory of its own for each connection."""
        return nullcontext()

    @contextmanager
    def load(self, rows: Rows) -> Iterator[BoundedRows]:
        """See `Engine`."""
        with self._transaction(rows.sql, writes=rows.units > 0) as (cursor, source):
            types = read(lambda: self._types(cursor, source))
            runner = PostgresRunner(cursor)
            if rows.units:
                read(lambda: runner.prepare(source, rows.units))
                if runner.after:
                    self._same = {runner.after: self._same.get(runner.before, runner.before)}
            yield BoundedRows(self._words, runner, source, rows, kinds_of(types))

    def public(self, sql: str) -> list[dict[str, Any]]:
        """See `Engine`."""
        with self._transaction(sql) as (cursor, source):
            rows = read(lambda: cursor.execute(f"SELECT * FROM {source} AS r", prepare=False).fetchall())
            names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in rows]

    def same(self, table: str, other: str) -> bool:
        """See `Engine`: one relation, or one that is a partition or a child of the other."""
        one, two = self._tables[table], self._tables[other]
        with _quietly() as open_now:
            kin = self._uncharged(lambda: _kin(open_now.enter_context(self._server.transaction()), one.oid))
        return two.oid in kin

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
        """Each table is locked against changes of its form, and has the form it had.

        The catalogue is read as of the snapshot, which a change may have come after; what the server says of
        the columns that it would give is as of now.
        """
        for found in used.values():
            names = ", ".join(quoted(column.name) for column in found.columns)
            given = cursor.execute(f"SELECT {names} FROM {found.sql} LIMIT 0", prepare=False).description
            types = [column.type_code for column in given or ()]
            if types != [column.oid for column in found.columns] or relation(cursor, found.sql) != found:
                raise QueryFailed

    def _state(self, cursor: Cursor[Any]) -> tuple[Any, ...]:
        for name, found in self._tables.items():
            if relation(cursor, found.sql) != found:
                raise InvalidArgument(
                    f"The table {name} is not as it was when it was opened; nothing was charged.",
                    remedy="Open it again.",
                )
            check_reading(cursor, name, found)
        ((snapshot, *where),) = cursor.execute(_STATE, prepare=False).fetchall()
        return self._same.get(snapshot, snapshot), *where

    def _types(self, cursor: Cursor[Any], source: str) -> Mapping[str, int]:
        described = cursor.execute(f"SELECT * FROM {source} AS r LIMIT 0", prepare=False).description
        return {column.name: column.type_code for column in described or ()}

    def _found(self, tables: Mapping[str, str]) -> dict[str, Relation]:
        with self._server.transaction(own_path=True) as cursor:
            check_server(cursor)
            return {name: named(cursor, table) for name, table in tables.items()}

    def _uncharged(self, work: Callable[[], T]) -> T:
        """What `work` gives before anything is charged; where the server fails, a refusal with what to do."""
        with suppress(QueryFailed):
            return read(work)
        raise self._server.refusal()


def _kin(cursor: Cursor[Any], oid: int) -> set[int]:
    """A relation with all that are below and above it: rows of a partition are those of the whole."""
    return {int(row[0]) for row in cursor.execute(_KIN.format(oid), prepare=False).fetchall()}


@contextmanager
def _quietly() -> Iterator[ExitStack]:
    """What is entered is left whatever happens, and what leaving says is not passed on: all has been read."""
    open_now = ExitStack()
    try:
        yield open_now
    finally:
        with suppress(Exception):
            open_now.close()
