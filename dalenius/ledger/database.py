"""`Database`: blocks of reading and writing, the same for every store; `Pooled`: over many connections.

One thread of a process writes at a time; the database keeps the other processes out. A block inside a write
block of the same thread could only wait for itself, so it is refused at once.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Generic, TypeVar

from dalenius.errors import LedgerError, LedgerLocked, LedgerUnreachable
from dalenius.ledger.pool import Pool, abandon
from dalenius.ledger.rows import STEPS, Channel, Known, Reading, Writing
from dalenius.ledger.store import OnStep

C = TypeVar("C")
_PROCESS = object()
"""Stands for this process: a child that is forked has another, at less than the price of `os.getpid`."""


def _forked() -> None:
    global _PROCESS
    _PROCESS = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Database(ABC):
    """A store, but for how its transactions begin and who waits for whom."""

    steps: tuple[str, ...] = STEPS
    """The names of the places inside a write where a crash could fall."""

    def __init__(self, timeout: float, on_step: OnStep | None) -> None:
        self.timeout = timeout
        self.on_step = on_step
        self._known = Known()

    @abstractmethod
    def _turn(self) -> AbstractContextManager[None]:
        """Wait until no other thread of this process writes."""

    @abstractmethod
    def _block(self, durable: bool | None) -> AbstractContextManager[Channel]:
        """A transaction, committed at the end of the block; one that only reads where `durable` is None."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database; what was written stays."""

    @contextmanager
    def write(self, durable: bool) -> Iterator[Writing]:
        """A block that may change the store: exclusive, all or nothing."""
        with self._turn():
            known, self._known = self._known, Known()
            with self._block(durable) as channel:
                self._step("begin")
                yield Writing(channel, self._step, known)
                self._step("before commit")
            # Only what was committed is known.
            self._known = known
            self._step("after commit")

    @contextmanager
    def read(self) -> Iterator[Reading]:
        """A block that sees the store as it is now."""
        with self._block(None) as channel:
            yield Reading(channel)

    def _step(self, name: str) -> None:
        if self.on_step is not None:
            self.on_step(name)


class Pooled(Database, Generic[C]):
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

    def _turn(self) -> Turn[C]:
        return Turn(self._pool, self.timeout)

    @contextmanager
    def _block(self, durable: bool | None) -> Iterator[Channel]:
        if durable is None:
            refuse_nesting(self._pool.writer)
        connection, channel = self._begun(durable)
        process = _PROCESS
        try:
            yield channel
            channel.commit()
        except BaseException:
            channel.rollback()
            raise
        finally:
            if _PROCESS is process:
                self._pool.give(connection)
            else:
                abandon(connection)

    def _begun(self, durable: bool | None) -> tuple[C, Channel]:
        """A connection and its transaction; an idle one whose server was started again is replaced."""
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


class Turn(Generic[C]):
    """The right of one thread of this process to write, for as long as it is entered."""

    def __init__(self, pool: Pool[C], timeout: float) -> None:
        self._pool, self._turn, self._timeout = pool, pool.turn, timeout

    def __enter__(self) -> None:
        refuse_nesting(self._pool.writer)
        if not self._turn.acquire(timeout=self._timeout):
            raise locked(self._timeout)
        self._pool.writer = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        # A child process that was forked meanwhile has a turn of its own.
        if self._pool.turn is self._turn:
            self._pool.writer = None
        self._turn.release()


class Lasting:
    """How long a channel may be used: inside its block, in the process that began it."""

    def __init__(self) -> None:
        self._process: object = _PROCESS
        self.failed = False

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
