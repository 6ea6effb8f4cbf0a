"""How engines are asked: whatever fails says nothing about data, and an interrupt is heeded at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from dalenius.errors import DaleniusError, QueryFailed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")


def read(cursor: DuckDBPyConnection, work: Callable[[], T]) -> T:
    """What `work` gives; a `QueryFailed` without a word of the engine's own where it fails.

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

        finally:
            done.set()

    done = threading.Event()
    _stoppable(cursor, attempt, done)
    if refused:
        # Raised outside of any handler, so that no error of the engine's is attached to it.
        raise refused[0]
    return found[0]


def _stoppable(cursor: DuckDBPyConnection, attempt: Callable[[], None], done: threading.Event) -> None:
    if threading.current_thread() is not threading.main_thread():
        attempt()
        return
    threading.Thread(target=attempt, daemon=True).start()
    try:
        # Not `join`, which forgets a thread when it is interrupted.
        done.wait()
    except BaseException:
        cursor.interrupt()
        done.wait()
        raise
