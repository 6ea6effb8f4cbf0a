"""Whether Spark's Python workers can work for us, and which Python they are."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from dalenius.errors import QueryFailed
from dalenius.tables.engines.spark_asking import asked
from dalenius.tables.engines.spark_workers import code, tell

_choosing = threading.Lock()
_able: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def able(context: Any, session: Any) -> bool:
    """Whether workers have the same Dalenius; tried once for each context of Spark."""
    if context not in _able:
        _able[context] = _tried(context, session)
    return _able[context]


def _tried(context: Any, session: Any) -> bool:
    try:
        found = asked(context, lambda: _told(context, session))
    except QueryFailed:
        return False
    return found == [code()]


def _told(context: Any, session: Any) -> list[str]:
    one = session.range(0, 1, 1, 1)
    return list(planned(context, lambda: arrived(one).mapPartitions(tell)).collect())


def arrived(frame: Any) -> Any:
    """The rows of a DataFrame as an RDD, of which each item is a batch of Arrow.

    `DataFrame.mapInArrow` gives batches to Python as well, but makes a row of its own around each row, which
    costs a quarter to a half more; this is the way that `DataFrame.toArrow` goes.
    """
    from pyspark import RDD
    from pyspark.serializers import NoOpSerializer

    batches = frame._jdf.toArrowBatchRdd().toJavaRDD()
    return RDD(batches, frame.sparkSession.sparkContext, NoOpSerializer())


def planned(context: Any, plan: Callable[[], Any]) -> Any:
    """An RDD that Python workers compute, once they are asked.

    Workers are the Python that runs here, where they are on this machine and nobody has chosen another:
    Spark would take the first `python3` that it finds, which need not be that of the environment.
    """
    if not str(context.master).startswith("local") or "PYSPARK_PYTHON" in os.environ:
        return plan()
    with _choosing:
        chosen, context.pythonExec = context.pythonExec, sys.executable
        try:
            made = plan()
            # An RDD takes the Python of the moment at which it gets its number.
            made.id()
            return made
        finally:
            context.pythonExec = chosen
