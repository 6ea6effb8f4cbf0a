"""`Database`: blocks of reading and writing, the same for every store; `Pooled`: over many connections.

One thread of a process writes at a time; the database keeps the other processes out. A block inside a write
block of the same thread could only wait for itself, so it is refused at once.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from dalenius.errors import LedgerError, LedgerLocked, LedgerUnreachable
from dalenius.ledger.pool import Pool, abandon
from dalenius.ledger.rows import STEPS, Channel, Known, Reading, Writing
from dalenius.ledger.store import OnStep

C = TypeVar("C")


class Lock(Protocol):
    """One of the threads of a process, or any other."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Wait for it."""

    def release(self) -> None:
        """Let it go."""


_PROCESS = object()
"""Stands for this process: a child that is forked has another, at less than the price of `os.getpid`."""


def _forked() -> None:
    global _PROCESS
    _PROCESS = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Database(ABC, Generic[C]):
    """A store, but for how its transactions begin and who waits for whom."""

    steps: tuple[str, ...] = STEPS
    """The names of the places inside a write where a crash could fall."""
    writing: type[Writing] = Writing
    """What a write block gives."""

    def __init__(self, timeout: float, on_step: OnStep | None) -> None:
        self.timeout = timeout
        self.on_step = on_step
        self.known: Known | None = None

    @abstractmethod
    def take_turn(self) -> Lock:
        """Wait until no other thread of this process writes."""

    @abstractmethod
    def leave_turn(self, turn: Lock) -> None:
        """Let the next thread write."""

    @abstractmethod
    def begin(self, durable: bool | None) -> tuple[C, Channel]:
        """A connection inside a transaction; one that only reads where `durable` is None."""

    @abstractmethod
    def end(self, connection: C, *, ours: bool) -> None:
        """Take a connection back after its transaction; it is not `ours` in a child of that process."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database; what was written stays."""

    def write(self, durable: bool) -> Block[C]:
        """A block that may change the store: exclusive, all or nothing."""
        return Block(self, durable)

    @contextmanager
    def read(self) -> Iterator[Reading]:
        """A block that sees the store as it is now."""
        with self.transaction(None) as channel:
            yield Reading(channel)

    @contextmanager
    def transaction(self, durable: bool | None) -> Iterator[Channel]:
        """A transaction, committed at the end of the block; one that only reads where `durable` is None."""
        connection, channel = self.begin(durable)
        process = _PROCESS
        try:
            yield channel
            channel.commit()
        except BaseException:
            channel.rollback()
            raise
        finally:
            self.end(connection, ours=_PROCESS is process)

    def step(self, name: str) -> None:
        """Say that a write has come so far."""
        if self.on_step is not None:
            self.on_step(name)


class Block(Generic[C]):
    """A write block. Written out where `contextmanager` would do, as every charge passes through it."""

    def __init__(self, database: Database[C], durable: bool) -> None:
        self._database, self._durable = database, durable
        self._turn: Lock | None = None

    def __enter__(self) -> Writing:
        database = self._database
        turn = database.take_turn()
        try:
            self._known, database.known = database.known or Known(), None
            self._connection, self._channel = database.begin(self._durable)
        except BaseException:
            database.leave_turn(turn)
            raise
        self._turn, self._process = turn, _PROCESS
        try:
            database.step("begin")
            return database.writing(self._channel, database.step, self._known)
        except BaseException:
            self._leave(False)
            raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._leave(kind is None)

    def __del__(self) -> None:
        # An interrupt at the very beginning of `__exit__` keeps it from running.
        if self._turn is not None:
            self._leave(False)

    def _leave(self, well: bool) -> None:
        database = self._database
        try:
            self._end(well)
            if well:
                # Only what was committed is known.
                database.known = self._known
                database.step("after commit")
        finally:
            turn, self._turn = self._turn, None
            if turn is not None:
                database.leave_turn(turn)

    def _end(self, well: bool) -> None:
        try:
            if well:
                self._database.step("before commit")
                self._channel.commit()
            else:
                self._channel.rollback()
        except BaseException:
            self._channel.rollback()
            raise
        finally:
            self._database.end(self._connection, ours=_PROCESS is self._process)


class Pooled(Database[C]):
    """A database with a connection for each block that is open."""

    def __init__(self, pool: Pool[C], timeout: float, on_step: OnStep | None) -> None:
        super().__init__(timeout, on_step)
        self._pool = pool

    @abstractmethod
    def _begin(self, connection: C, durable: bool | None) -> Channel:
        """Begin a transaction on a connection; one that only reads where `durable` is None."""

    def close(self) -> None:
        """Let go of the database; what was written stays."""
        self._pool.close()

    def take_turn(self) -> Lock:
        """Wait until no other thread of this process writes."""
        pool = self._pool
        refuse_nesting(pool.writer)
        turn = pool.turn
        if not turn.acquire(timeout=self.timeout):
            raise locked(self.timeout)
        pool.writer = threading.get_ident()
        return turn

    def leave_turn(self, turn: Lock) -> None:
        """Let the next thread write; a child process that was forked meanwhile has a turn of its own."""
        if self._pool.turn is turn:
            self._pool.writer = None
        turn.release()

    def begin(self, durable: bool | None) -> tuple[C, Channel]:
        """A connection and its transaction; an idle one whose server was started again is replaced."""
        if durable is None:
            refuse_nesting(self._pool.writer)
        while True:
            connection, used = self._pool.take()
            try:
                return connection, self._begin(connection, durable)
            except LedgerUnreachable:
                self._pool.give(connection)
                if not used:
                    raise
                self._pool.close(for_good=False)
            except BaseException:
                self._pool.give(connection)
                raise

    def end(self, connection: C, *, ours: bool) -> None:
        """Take a connection back after its transaction; it is not `ours` in a child of that process."""
        if ours:
            self._pool.give(connection)
        else:
            abandon(connection)


class Lasting:
    """How long a channel may be used: inside its block, in the process that began it."""

    failed = False

    def __init__(self) -> None:
        self._process: object = _PROCESS

    def check(self) -> None:
        """Refuse once the block is left, and in a child process."""
        if self._process is not _PROCESS:
            raise LedgerError(
                "A block of the ledger is used after its end, or in a child of the process that began it.",
                remedy="Use what a block gives inside that block only.",
            )

    def check_whole(self) -> None:
        """Refuse to commit after a statement failed, even if its error was caught."""
        self.check()
        if self.failed:
            raise LedgerError(
                "A part of this block could not be written, so none of it was.", remedy="Try the whole again."
            )

    def end(self) -> bool:
        """Mark the end; whether it is this process's to end."""
        ours, self._process = self._process is _PROCESS, None
        return ours


def refuse_nesting(writer: int | None) -> None:
    """Refuse a block inside a write block of the same thread."""
    if writer == threading.get_ident():
        raise LedgerError(
            "This thread is writing to the ledger already.",
            remedy="Read and write through that block's transaction, or leave the block first.",
        )


def locked(timeout: float) -> LedgerLocked:
    """What is raised when another writer does not finish."""
    return LedgerLocked(
        f"Another writer kept the ledger for more than {timeout:g} seconds.",
        remedy="Try again; if it lasts, look for a process that has stopped in the middle of a write.",
    )
