"""How PostgreSQL is asked: in transactions that read one snapshot, write nothing and keep no setting.

    with server.transaction() as cursor: …

A server that is named by its address is connected to for each transaction, so that none stays open, each
thread has its own, and one that was restarted is found again. A connection that somebody hands in is used
between its owner's transactions.

What a session's settings may change is set for the transaction: no answer depends on them, and names mean
what they mean in pg_catalog, whatever else is on the search path. Whatever fails is a `QueryFailed` without a
word of the server's own. Ctrl-C cancels the statement on the server: psycopg sees to that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dalenius.errors import DaleniusError, InvalidArgument, MissingExtra, QueryFailed

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

T = TypeVar("T")
_PATH = "SELECT set_config('search_path', 'pg_catalog, pg_temp', true)"
_SETTINGS = {
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "array_nulls": "on",
    "bytea_output": "hex",
    "row_security": "on",
    "client_encoding": "UTF8",
    "jit": "off",
}
_MEMORY = 64
"""Megabytes that each step may sort and group in before it writes to the disk, where less is allowed."""
_BEGIN = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
READ_ONLY = "SET TRANSACTION READ ONLY"
_SET = "SELECT " + ", ".join(f"set_config('{name}', '{value}', true)" for name, value in _SETTINGS.items())
_ALLOWED = "pg_size_bytes(current_setting('work_mem')) / 1024"
_ROOM = f"SELECT set_config('work_mem', greatest({_ALLOWED}, {{0}}) || 'kB', true)"


class Server(Protocol):
    """A database that can be asked."""

    def transaction(
        self, *, own_path: bool = False, writes: bool = False
    ) -> AbstractContextManager[Cursor[Any]]:
        """A transaction that reads; with `own_path` names are looked for where the session would.

        With `writes` it may make temporary tables, until it is set READ_ONLY as all others are.
        """

    def refusal(self) -> InvalidArgument:
        """Why it could not be asked just now, before anything was charged, and what to do."""


@dataclass(frozen=True)
class Address:
    """A server by its address."""

    url: str = field(repr=False)

    @contextmanager
    def transaction(self, *, own_path: bool = False, writes: bool = False) -> Iterator[Cursor[Any]]:
        """See `Server`."""
        connection = psycopg().connect(
            self.url, autocommit=True, prepare_threshold=None, application_name="dalenius"
        )
        try:
            with _reading(connection, own_path, writes) as cursor:
                yield cursor
        finally:
            connection.close()

    def refusal(self) -> InvalidArgument:
        """See `Server`."""
        from dalenius.tables.engines.postgres_refusals import of_address

        return of_address(self.url)


@dataclass(frozen=True)
class Handed:
    """A connection that somebody else has, and closes."""

    connection: Connection[Any]

    @contextmanager
    def transaction(self, *, own_path: bool = False, writes: bool = False) -> Iterator[Cursor[Any]]:
        """See `Server`."""
        if refused := self._unfit():
            raise refused
        with _reading(self.connection, own_path, writes) as cursor:
            yield cursor

    def refusal(self) -> InvalidArgument:
        """See `Server`."""
        from dalenius.tables.engines.postgres_refusals import unknown

        return self._unfit() or unknown()

    def _unfit(self) -> InvalidArgument | None:
        from dalenius.tables.engines.postgres_refusals import of_connection

        return of_connection(self.connection)


@contextmanager
def _reading(connection: Connection[Any], own_path: bool, writes: bool) -> Iterator[Cursor[Any]]:
    from psycopg.rows import tuple_row

    with connection.transaction(force_rollback=True), connection.cursor(row_factory=tuple_row) as cursor:
        cursor.execute(_BEGIN, prepare=False)
        if not writes:
            cursor.execute(READ_ONLY, prepare=False)
        if not own_path:
            cursor.execute(_PATH, prepare=False)
        cursor.execute(_SET, prepare=False)
        cursor.execute(_ROOM.format(_MEMORY << 10), prepare=False)
        yield cursor


def read(work: Callable[[], T]) -> T:
    """What `work` gives; a `QueryFailed` without a word of the server's own where it fails."""
    failed: DaleniusError
    try:
        return work()
    except DaleniusError as error:
        failed = error
    except Exception:
        failed = QueryFailed()
    # Raised outside of any handler, so that no error of the server's is attached to it.
    failed.__context__ = None
    raise failed


@cache
def psycopg() -> ModuleType:
    """The driver."""
    try:
        import psycopg as found
    except ImportError:
        raise MissingExtra(
            "Tables in PostgreSQL need psycopg.", remedy="Install it: pip install 'dalenius[postgres]'"
        ) from None
    return found
