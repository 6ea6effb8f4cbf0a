"""`MemoryStore`: a ledger in memory, for tests. Threads of one process take turns, block by block."""

from __future__ import annotations

import os
import sqlite3
import threading

from dalenius.errors import LedgerError
from dalenius.ledger.database import Database, Lock, locked, refuse_nesting
from dalenius.ledger.rows import Channel
from dalenius.ledger.sqlite import TABLES, Connection, SqliteChannel
from dalenius.ledger.sqlite_trouble import Trouble
from dalenius.ledger.store import TIMEOUT, OnStep


class MemoryStore(Database[Connection]):
    """A ledger that ends with its process."""

    def __init__(self, *, timeout: float = TIMEOUT, on_step: OnStep | None = None) -> None:
        super().__init__(timeout, on_step)
        self._process = os.getpid()
        self._trouble = Trouble("in memory", timeout)
        self._turns = threading.RLock()
        self._writer: int | None = None
        self._connection: Connection | None = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, factory=Connection
        )
        for statement in TABLES:
            self._connection.execute(statement)

    def close(self) -> None:
        """Forget everything."""
        turn = self.take_turn()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self.leave_turn(turn)

    def take_turn(self) -> Lock:
        """Wait until no other thread reads or writes."""
        if os.getpid() != self._process:
            raise LedgerError(
                "A ledger in memory cannot be shared with another process.", remedy="Use one in a file."
            )
        refuse_nesting(self._writer)
        if not self._turns.acquire(timeout=self.timeout):
            raise locked(self.timeout)
        return self._turns

    def leave_turn(self, turn: Lock) -> None:
        """Let the next thread in."""
        turn.release()

    def begin(self, durable: bool | None) -> tuple[Connection, Channel]:
        """Reading needs no transaction, as no other thread writes meanwhile; this one may."""
        turn = self.take_turn()
        try:
            if self._connection is None:
                raise LedgerError("The ledger was closed.", remedy="Open another.")
            begin, writer = (None, None) if durable is None else ("BEGIN", threading.get_ident())
            channel = SqliteChannel(self._connection, self._trouble, begin)
        except BaseException:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.rollback()
            self.leave_turn(turn)
            raise
        self._writer = writer
        return self._connection, channel

    def end(self, connection: Connection, *, ours: bool) -> None:
        """Let the next thread in; a child of this process cannot get here."""
        self._writer = None
        self.leave_turn(self._turns)
