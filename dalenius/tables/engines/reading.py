"""How engines are asked: whatever fails says nothing about data, and an interrupt is heeded at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from dalenius.errors import DaleniusError, QueryFailed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")
AGAIN = 0.05
"""Seconds after which a statement that still runs is interrupted again."""


def read(cursor: DuckDBPyConnection, work: Callable[[], T]) -> T:
    """Return what `work` gives; raise `QueryFailed` without a word of the engine's own where it fails.

    DuckDB looks for Ctrl-C between its tasks, which may take minutes. So it works in another thread, while
    this one waits and can stop it.
    """
    found: list[T] = []
    refused: list[DaleniusError] = []

    def attempt() -> None:
        try:
            found.append(work())
        except DaleniusError as error:
            refused.append(error)
        except Exception:
            refused.append(QueryFailed())

    if threading.current_thread() is threading.main_thread():
        _Stoppable(attempt).run(cursor)
    else:
        attempt()
    if refused:
        # Raised outside of any handler, so that no error of the engine's is attached to it.
        raise refused[0]
    return found[0]


class _Stoppable:
    """Work in a thread of its own, which an interrupt of the waiting thread stops."""

    def __init__(self, attempt: Callable[[], None]) -> None:
        self._attempt, self._done, self._turn = attempt, threading.Event(), threading.Lock()
        self._begun = self._stopped = False

    def run(self, cursor: DuckDBPyConnection) -> None:
        """Do the work; where an interrupt comes, return by it once nothing works on the cursor any more."""
        try:
            # An interrupt may come before, while or after the thread is started.
            threading.Thread(target=self._work, daemon=True).start()
            # Not `join`, which forgets a thread when it is interrupted.
            self._done.wait()
        except BaseException:
            with self._turn:
                self._stopped = True
                working = self._begun
            while working and not self._done.is_set():
                # One that comes between two statements stops neither, so it is repeated.
                cursor.interrupt()
                self._done.wait(AGAIN)
            raise

    def _work(self) -> None:
        with self._turn:
            if self._stopped:
                return
            self._begun = True
        try:
            self._attempt()
        finally:
            self._done.set()
