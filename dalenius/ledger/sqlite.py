"""`SqliteStore`: a ledger in one file, shared by the processes of one machine.

Writers take turns by `BEGIN IMMEDIATE`; the write-ahead log lets readers go on meanwhile. A durable write
ends with the log on the disk (`synchronous=FULL`), another one with the log in the operating system's hands
(`NORMAL`): the log is read in order up to its first gap, so a power cut takes the newest writes, each
whole, and none before a durable one. The file is its owner's alone (mode 0600).

Locks of files belong to the process, and closing a file drops all that the process holds on it: so nothing
here, or in a program that has a ledger open, may open that file by other means.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from dalenius.ledger import store
from dalenius.ledger.database import Lasting, Pooled
from dalenius.ledger.pool import Pool
from dalenius.ledger.rows import STEPS, Row
from dalenius.ledger.sqlite_trouble import Trouble
from dalenius.ledger.store import TIMEOUT, OnStep, Witness

APPLICATION = 0x44504C47
"""What marks an SQLite file as a ledger: "DPLG"."""
VERSION = 2
OLDEST = (3, 37)
"""The first SQLite that has strict tables."""

TABLES = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, account TEXT NOT NULL, hash TEXT NOT NULL,"
    " body TEXT NOT NULL) STRICT",
    "CREATE INDEX entries_of_account ON entries (account)",
    "CREATE TABLE accounts (name TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE balances (account TEXT, scope TEXT, text TEXT NOT NULL, PRIMARY KEY (account, scope))"
    " STRICT, WITHOUT ROWID",
    "CREATE TABLE reservations (number INTEGER PRIMARY KEY, account TEXT NOT NULL, owner TEXT NOT NULL,"
    " text TEXT NOT NULL) STRICT",
    "CREATE TRIGGER entries_in_order BEFORE INSERT ON entries"
    " WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM entries)"
    " BEGIN SELECT raise(ABORT, 'entries are added in order'); END",
    "CREATE TRIGGER entries_never_change BEFORE UPDATE ON entries"
    " BEGIN SELECT raise(ABORT, 'entries are never changed'); END",
    "CREATE TRIGGER entries_never_go BEFORE DELETE ON entries"
    " BEGIN SELECT raise(ABORT, 'entries are never removed'); END",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
_AT_A_TIME = 100
"""Rows of a long answer held at a time."""


class Connection(sqlite3.Connection):
    """A connection that knows how durable its next commit is."""

    durable: bool | None = None


class SqliteChannel(Lasting):
    """A connection inside a transaction that `begin` begins; without one, each statement stands alone."""

    def __init__(self, connection: Connection, trouble: Trouble, begin: str | None) -> None:
        super().__init__()
        self._connection, self._trouble = connection, trouble
        self._streams: tuple[sqlite3.Cursor, ...] = ()
        self._begun = begin is not None
        if begin is not None:
            self.run(begin)

    def run(self, sql: str, *values: object) -> int:
        """Carry out a change; how many rows it touched."""
        return self._execute(sql, values).rowcount

    def rows(self, sql: str, *values: object) -> list[Row]:
        """All rows of a short answer."""
        return self._fetched(self._execute(sql, values), -1)

    def stream(self, sql: str, *values: object) -> Iterator[Row]:
        """The rows of a long answer, few at a time."""
        cursor = self._execute(sql, values)
        self._streams += (cursor,)
        return (row for rows in iter(lambda: self._fetched(cursor, _AT_A_TIME), []) for row in rows)

    def witness(self) -> Witness:
        """Return the time of this machine; SQLite knows no users."""
        return Witness(store.local_clock(), None)

    def commit(self) -> None:
        """Make it so; nothing can be asked afterwards."""
        self.check_whole()
        if self._begun:
            self.run("COMMIT")
        self._close()

    def rollback(self) -> None:
        """Undo everything, quietly; nothing can be asked afterwards."""
        if self._close() and self._begun and self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def _execute(self, sql: str, values: tuple[object, ...]) -> sqlite3.Cursor:
        self.check()
        try:
            return self._connection.execute(sql, values)
        except sqlite3.Error as error:
            self.failed = True
            raise self._trouble.explain(error) from None

    def _fetched(self, cursor: sqlite3.Cursor, most: int) -> list[Row]:
        self.check()
        try:
            return cursor.fetchmany(most) if most > 0 else cursor.fetchall()
        except sqlite3.Error as error:
            self.failed = True
            raise self._trouble.explain(error) from None

    def _close(self) -> bool:
        ours = self.end()
        for cursor in self._streams if ours else ():
            cursor.close()
        return ours


class SqliteStore(Pooled[Connection]):
    """A ledger in an SQLite file, made where there is none."""

    steps = ("create file", "create tables", *STEPS)

    def __init__(
        self, path: str | os.PathLike[str], *, timeout: float = TIMEOUT, on_step: OnStep | None = None
    ) -> None:
        self._path = Path(path).absolute()
        self._where = str(self._path)
        self._inode: tuple[int, int] | None = None
        self._trouble = Trouble(os.fspath(path), timeout)
        pool = Pool(self._connect, Connection.close, _usable, os.path.realpath(self._path))
        super().__init__(pool, timeout, on_step)
        self._create_file()
        with self.read():
            self._inode = _inode(self._where)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._path

    def _begin(self, connection: Connection, durable: bool | None) -> SqliteChannel:
        if self._inode is not None and self._inode != _inode(self._where):
            raise self._trouble.replaced()
        if durable is None:
            return SqliteChannel(connection, self._trouble, "BEGIN")
        if connection.durable is not durable:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.durable = durable
        return SqliteChannel(connection, self._trouble, "BEGIN IMMEDIATE")

    def _create_file(self) -> None:
        """An empty file that only its owner may read; SQLite gives its log the same mode."""
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return
        except OSError as error:
            raise self._trouble.unmade(error) from None
        self.step("create file")

    def _connect(self) -> Connection:
        where = f"file:{quote(str(self._path))}?mode=rw"
        try:
            connection = sqlite3.connect(
                where, self.timeout, 0, None, check_same_thread=False, factory=Connection, uri=True
            )
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            raise self._trouble.explain(error) from None
        return connection

    def _prepare(self, connection: Connection) -> None:
        if sqlite3.sqlite_version_info < OLDEST:
            raise self._trouble.outdated(OLDEST)
        # What it is, at one moment: another process may be making it.
        connection.execute("BEGIN")
        made = self._is_ledger(connection)
        connection.execute("COMMIT")
        if not made:
            self._create_tables(connection)
        if _logging(connection, self.timeout) != "wal":
            raise self._trouble.remote()
        # A disk's own cache is flushed too, on the systems that ask for it separately.
        connection.execute("PRAGMA fullfsync = 1")
        connection.execute("PRAGMA checkpoint_fullfsync = 1")

    def _create_tables(self, connection: Connection) -> None:
        connection.execute("BEGIN EXCLUSIVE")
        if not self._is_ledger(connection):
            for statement in TABLES:
                connection.execute(statement)
            self.step("create tables")
        connection.execute("COMMIT")

    def _is_ledger(self, connection: Connection) -> bool:
        """Whether it is one of this version; False where it is empty; anything else is refused."""
        ((application,),) = connection.execute("PRAGMA application_id")
        ((version,),) = connection.execute("PRAGMA user_version")
        ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_master")
        if (application, version, tables) == (0, 0, 0):
            return False
        if application != APPLICATION:
            raise self._trouble.foreign()
        if version != VERSION:
            raise self._trouble.later()
        return True


def _logging(connection: Connection, timeout: float) -> str:
    """Turn the write-ahead log on, if it is not; SQLite itself does not wait for another that does so."""
    until = time.monotonic() + timeout
    while True:
        try:
            ((mode,),) = connection.execute("PRAGMA journal_mode = WAL")
            return str(mode)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _usable(connection: Connection) -> bool:
    return not connection.in_transaction


def _inode(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)
