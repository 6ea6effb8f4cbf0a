"""`PostgresStore`: a ledger in a schema of a PostgreSQL database, shared by all machines that reach it.

Writers take turns by an advisory lock, one for each schema, held until the transaction is over and visible.
Every statement after it sees what the last writer left. A durable write waits until the server's log is on
its disk (`synchronous_commit`), another one does not; a later durable write brings it there too, as the log
is in order. The settings are those of each transaction, so a pool between this process and the server does
no harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC
from functools import cache
from hashlib import sha256
from types import ModuleType
from typing import TYPE_CHECKING

from dalenius.errors import InvalidArgument, LedgerReadOnly, MissingExtra
from dalenius.ledger.database import Lasting, Pooled
from dalenius.ledger.entry import Entry
from dalenius.ledger.pool import Pool
from dalenius.ledger.postgres_functions import statements
from dalenius.ledger.postgres_trouble import Trouble
from dalenius.ledger.proof_tree import FEW
from dalenius.ledger.rows import STEPS, Channel, Row, Writing
from dalenius.ledger.store import TIMEOUT, OnStep, Witness

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

VERSION = 2

TABLES = """
CREATE TABLE ledger (version integer PRIMARY KEY);
CREATE TABLE entries (number bigint PRIMARY KEY, account text COLLATE "C" NOT NULL, hash text NOT NULL,
    body text NOT NULL);
CREATE INDEX entries_of_account ON entries (account, number);
CREATE TABLE accounts (name text COLLATE "C" PRIMARY KEY, text text NOT NULL);
CREATE TABLE balances (account text COLLATE "C", scope text COLLATE "C", text text NOT NULL,
    PRIMARY KEY (account, scope));
CREATE TABLE reservations (number bigint PRIMARY KEY, account text COLLATE "C" NOT NULL, owner text NOT NULL,
    text text NOT NULL);
CREATE FUNCTION entries_in_order() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.number IS DISTINCT FROM (SELECT coalesce(max(number), 0) + 1 FROM SCHEMA.entries) THEN
        RAISE EXCEPTION 'entries are added in order';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION entries_never_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'entries are never changed or removed';
END $$;
CREATE TRIGGER entries_in_order BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION entries_in_order();
CREATE TRIGGER entries_never_change BEFORE UPDATE OR DELETE ON entries
    FOR EACH ROW EXECUTE FUNCTION entries_never_change();
CREATE TRIGGER entries_never_go BEFORE TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION entries_never_change();
"""
_AT_A_TIME = 100
"""Rows of a long answer held at a time."""
_APPENDS_ONLY = """
SELECT has_function_privilege(p.oid, 'EXECUTE') AND NOT has_table_privilege(t.oid, 'INSERT')
FROM pg_proc AS p, pg_class AS t
WHERE p.proname = 'append_entry' AND p.pronamespace = to_regnamespace(?) AND t.oid = to_regclass(?)
"""
_SCHEMA = re.compile(r"search_path\s*=\s*(\S+)")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)


class PostgresChannel(Lasting):
    """A connection inside a transaction that `begin` begins."""

    def __init__(self, connection: Connection[Row], trouble: Trouble, begin: str) -> None:
        super().__init__()
        self._connection, self._trouble = connection, trouble
        self._streams = 0
        self._execute(begin)

    def run(self, sql: str, *values: object) -> int:
        """Carry out a change; how many rows it touched."""
        return self._execute(sql, values).rowcount

    def rows(self, sql: str, *values: object) -> list[Row]:
        """All rows of a short answer."""
        return self._execute(sql, values).fetchall()

    def stream(self, sql: str, *values: object) -> Iterator[Row]:
        """The rows of a long answer, few at a time, from a cursor that ends with the transaction."""
        self._streams += 1
        name = f"stream_{self._streams}"
        self._execute(f"DECLARE {name} NO SCROLL CURSOR FOR {sql}", values)
        fetch = f"FETCH {_AT_A_TIME} FROM {name}"
        return (row for rows in iter(lambda: self.rows(fetch), []) for row in rows)

    def witness(self) -> Witness:
        """Return the time of the server, and the user who connected to it."""
        ((now, user),) = self.rows("SELECT clock_timestamp(), session_user::text")
        return Witness(now.astimezone(UTC), user)

    def commit(self) -> None:
        """Make it so; nothing can be asked afterwards."""
        self.check_whole()
        try:
            answer = self._connection.execute("COMMIT").statusmessage
        except _psycopg().Error as error:
            raise self._trouble.explain(error, committing=True) from None
        self.end()
        if answer != "COMMIT":
            raise self._trouble.undone()

    def rollback(self) -> None:
        """Undo everything, quietly; nothing can be asked afterwards."""
        psycopg = _psycopg()
        if self.end() and self._connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                self._connection.execute("ROLLBACK")

    def _execute(self, sql: str, values: tuple[object, ...] = ()) -> Cursor[Row]:
        self.check()
        try:
            return self._connection.execute(_percent(sql), values or None)
        except _psycopg().Error as error:
            self.failed = True
            raise self._trouble.explain(error) from None


class Appending(Writing):
    """A transaction of a role that may only append entries, by a function that makes all other changes.

    What the function will have made is remembered, not written.
    """

    def append(self, entry: Entry) -> None:
        """Hand an entry to the function; refused where it is not a true one, or is the owner's to write."""
        if entry.event not in ("reserve", "record", "commit", "forfeit"):
            raise LedgerReadOnly(
                "This user may charge accounts of the ledger; all else is for its owner.",
                remedy="Ask the owner of the ledger.",
            )
        self._channel.rows("SELECT append_entry(?, ?)", entry.body, entry.hash)
        self.appended(entry)

    def set_balance(self, account: str, scope: str, text: str) -> None:
        """Remember a balance that the function sets."""
        self.remember_balance(account, scope, text)

    def add_reservation(self, number: int, account: str, owner: str, text: str) -> None:
        """Leave it to the function, which did so with the entry."""

    def drop_reservation(self, number: int) -> bool:
        """Return whether a reservation is open; the function ends it with the entry."""
        return self.reservation(number) is not None


class PostgresStore(Pooled["Connection[Row]"]):
    """A ledger in a PostgreSQL database, made where there is none.

    Its schema is `dalenius`, or the one that the address sets:
    `postgresql://host/base?options=-csearch_path=team`.
    """

    steps = ("create tables", *STEPS)

    def __init__(self, url: str, *, timeout: float = TIMEOUT, on_step: OnStep | None = None) -> None:
        self._url = url
        self._schema = _schema(url)
        self._trouble = Trouble(self._schema, timeout)
        pool = Pool(self._connect, lambda connection: connection.close(), _usable)
        super().__init__(pool, timeout, on_step)
        self._begins = _begins(self._schema, timeout)
        try:
            self._create_tables()
            with self.transaction(None) as channel:
                if channel.rows(_APPENDS_ONLY, self._schema, f"{self._schema}.entries") == [(True,)]:
                    self.writing = Appending
        except BaseException:
            self.close()
            raise

    def grant(self, role: str) -> None:
        """Let a role read the ledger and charge it by a function that checks each entry, and nothing else."""
        with self.transaction(True) as channel:
            if not channel.rows("SELECT 1 FROM pg_roles WHERE rolname = ?", role):
                raise InvalidArgument(
                    f"The database has no role {role!r}.", remedy="Create it first: CREATE ROLE … LOGIN."
                )
            channel.run(statements(self._schema, _key(self._schema), FEW, role))

    def _begin(self, connection: Connection[Row], durable: bool | None) -> PostgresChannel:
        return PostgresChannel(connection, self._trouble, self._begins[durable])

    def _connect(self) -> Connection[Row]:
        psycopg = _psycopg()
        seconds = max(2, round(self.timeout))
        try:
            connection: Connection[Row] = psycopg.connect(
                self._url, autocommit=True, connect_timeout=seconds, client_encoding="utf8"
            )
        except psycopg.Error as error:
            raise self._trouble.explain(error) from None
        return connection

    def _create_tables(self) -> None:
        with self.transaction(None) as channel:
            there = self._is_ledger(channel)
        if there:
            return
        with self.transaction(True) as channel:
            if not self._is_ledger(channel):
                channel.run(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
                channel.run(TABLES.replace("SCHEMA.", f"{self._schema}."))
                channel.run("INSERT INTO ledger (version) VALUES (?)", VERSION)
                self.step("create tables")

    def _is_ledger(self, channel: Channel) -> bool:
        """Whether it is one of this version; False where it is empty; anything else is refused."""
        ((encoding,),) = channel.rows("SHOW server_encoding")
        if encoding != "UTF8":
            raise self._trouble.not_unicode()
        named = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(?)"
        tables = {name for (name,) in channel.rows(named, self._schema)}
        if not tables:
            return False
        if not tables >= {"ledger", "entries", "accounts", "balances", "reservations"}:
            raise self._trouble.foreign()
        if channel.rows("SELECT version FROM ledger") != [(VERSION,)]:
            raise self._trouble.later()
        return True


@cache
def _psycopg() -> ModuleType:
    try:
        import psycopg
    except ImportError:
        raise MissingExtra(
            "A ledger in PostgreSQL needs psycopg.", remedy="Install it: pip install 'dalenius[postgres]'"
        ) from None
    return psycopg


@cache
def _percent(sql: str) -> str:
    return sql.replace("?", "%s")


def _begins(schema: str, timeout: float) -> dict[bool | None, str]:
    """How transactions begin that read, and that write durably or not; one that stops halfway is undone."""
    common = f"SET LOCAL search_path = {schema}, pg_temp; SET LOCAL lock_timeout = {_ms(timeout)}"
    writing = (
        f"BEGIN ISOLATION LEVEL READ COMMITTED; {common};"
        f" SET LOCAL idle_in_transaction_session_timeout = {_ms(max(60.0, 2 * timeout))};"
        f" SELECT pg_advisory_xact_lock({_key(schema)}); SET LOCAL synchronous_commit ="
    )
    reading = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {common}"
    return {None: reading, True: f"{writing} on", False: f"{writing} off"}


def _usable(connection: Connection[Row]) -> bool:
    return not connection.closed and connection.info.transaction_status == 0


def _schema(url: str) -> str:
    psycopg = _psycopg()
    try:
        options = psycopg.conninfo.conninfo_to_dict(url).get("options") or ""
    except psycopg.Error:
        raise InvalidArgument(
            "The address of the ledger cannot be read.", remedy="Write postgresql://user@host/database."
        ) from None
    named = _SCHEMA.search(str(options))
    schema = named[1] if named else "dalenius"
    if not _NAME.fullmatch(schema):
        raise InvalidArgument(
            "The address of the ledger names no plain schema.",
            remedy="Write options=-csearch_path=name, with small letters, digits and underscores.",
        )
    return schema


def _key(schema: str) -> int:
    """The number of the advisory lock of a schema's writers, in the range of a bigint."""
    return int.from_bytes(sha256(f"dalenius ledger {schema}".encode()).digest()[:8], signed=True)


def _ms(seconds: float) -> int:
    return max(1, round(1000 * seconds))
