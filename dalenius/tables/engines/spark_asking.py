"""How Spark is asked: whatever fails says nothing about data, and an interrupt is heeded at once.

Work is done in a thread of its own, which has a thread of its own in Java as well: the jobs that it starts
are one group, which an interrupt cancels together with all that is yet to come of it, and neither the session
nor the job group that somebody else's thread works in is changed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar
from uuid import uuid4

from dalenius.errors import DaleniusError, QueryFailed

T = TypeVar("T")
_PREFIX = "dalenius-"


def asked(context: Any, work: Callable[[], T]) -> T:
    """What `work` gives; a `QueryFailed` without a word of Spark's own where it fails."""
    found: list[T] = []
    refused: list[DaleniusError] = []
    done, group = threading.Event(), _PREFIX + uuid4().hex

    def attempt() -> None:
        try:
            context.setJobGroup(group, "Dalenius", interruptOnCancel=True)
            found.append(work())
        except DaleniusError as error:
            refused.append(error)
        except BaseException:
            refused.append(QueryFailed())
        finally:
            done.set()

    _quiet()
    threading.Thread(target=attempt, name=group, daemon=True).start()
    try:
        done.wait()
    except BaseException:
        _cancel(context, group)
        done.wait()
        raise
    if refused:
        # Raised outside of any handler, so that no error of Spark's is attached to it.
        raise refused[0]
    return found[0]


def _cancel(context: Any, group: str) -> None:
    try:
        context._jsc.sc().cancelJobGroupAndFutureJobs(group)
    except Exception:
        # A context that has stopped has no jobs.
        return


@cache
def _quiet() -> None:
    """PySpark writes what Spark says of each error into a log of its own: not from our threads."""
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").addFilter(_not_ours)


def _not_ours(record: logging.LogRecord) -> bool:
    return not str(record.threadName).startswith(_PREFIX)
