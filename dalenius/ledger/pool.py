"""`Pool`: open connections, each used by one thread at a time and never in another process than its own.

A database connection does not survive `fork`. With SQLite it is worse than useless: its locks stay with the
parent while the child's copy of the library believes that it holds them, so that even a new connection of
the child to the same file would be unprotected, and closing the old one in the child could spoil what the
parent is writing. So before a fork all idle connections are closed, and a child that was forked while one
was in use may not touch that database.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar
from weakref import WeakSet, finalize

from dalenius.errors import LedgerError

C = TypeVar("C")


class Pool(Generic[C]):
    """Connections that `connect` opens, `disconnect` closes, and that are kept while `usable`.

    `file` names what connections of one process share and a fork tears apart; it is empty where there is
    nothing.
    """

    def __init__(
        self,
        connect: Callable[[], C],
        disconnect: Callable[[C], None],
        usable: Callable[[C], bool],
        file: str = "",
    ) -> None:
        self._connect, self._disconnect, self._usable, self.file = connect, disconnect, usable, file
        self._closed = False
        self.lock = threading.Lock()
        self.turn = threading.Lock()
        """Held by the one thread of this process that writes."""
        self.writer: int | None = None
        """That thread."""
        self._idle: list[C] = []
        self.busy = 0
        _POOLS.add(self)
        finalize(self, _closed, self._idle, disconnect)

    def take(self) -> tuple[C, bool]:
        """A connection for this thread alone, and whether it was in use before."""
        if self.file in _TORN:
            raise LedgerError(
                "This process was forked while its parent was reading or writing the ledger.",
                remedy='Start processes outside such blocks, or with the "spawn" method.',
            )
        with self.lock:
            if self._closed:
                raise LedgerError("The ledger was closed.", remedy="Open it again.")
            self.busy += 1
            if self._idle:
                return self._idle.pop(), True
        try:
            return self._connect(), False
        except BaseException:
            with self.lock:
                self.busy -= 1
            raise

    def give(self, connection: C) -> None:
        """Take back a connection; one that is not in order any more is closed."""
        usable = self._usable(connection)
        with self.lock:
            self.busy -= 1
            if usable and not self._closed:
                return self._idle.append(connection)
        return self._disconnect(connection)

    def close(self, *, for_good: bool = True) -> None:
        """Close all idle connections; those in use are closed when they come back, if it is for good."""
        with self.lock:
            self._closed = self._closed or for_good
            self.close_idle()

    def close_idle(self) -> None:
        """Close all idle connections; the lock is held."""
        _closed(self._idle, self._disconnect)

    def forked(self) -> None:
        """Begin anew in a child process."""
        if self.busy and self.file:
            _TORN.add(self.file)
        self.busy, self.lock, self.turn, self.writer = 0, threading.Lock(), threading.Lock(), None


def _closed(idle: list[C], disconnect: Callable[[C], None]) -> None:
    while idle:
        with suppress(Exception):
            disconnect(idle.pop())


def abandon(connection: object) -> None:
    """Never close this connection, not even when the process ends: it is another process's."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


_POOLS: WeakSet[Pool[Any]] = WeakSet()
_HELD: list[Pool[Any]] = []
_TORN: set[str] = set()
_FORKING = threading.Lock()


def _before_fork() -> None:
    _FORKING.acquire()
    for pool in list(_POOLS):
        pool.lock.acquire()
        _HELD.append(pool)
        pool.close_idle()


def _after_fork_in_parent() -> None:
    while _HELD:
        _HELD.pop().lock.release()
    _FORKING.release()


def _after_fork_in_child() -> None:
    while _HELD:
        _HELD.pop().forked()
    _FORKING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )
