"""Whether Spark's Python workers can work for us, and which Python they are."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
        found = asked(context, lambda: worked(session.range(1), tell, "code STRING").collect())
    except QueryFailed:
        return False
    return [row.code for row in found] == [code()]


def worked(frame: Any, work: Callable[..., Any], schema: str) -> Any:
    """What Python workers make of the rows of a DataFrame, batch by batch, as another with this schema.

    `DataFrame.mapInArrow` does the same, but wants pandas to be there.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    with _our_python(frame.sparkSession.sparkContext):
        made = UserDefinedFunction(work, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
        columns = made(*(frame[name] for name in frame.columns))
    return DataFrame(frame._jdf.mapInArrow(columns._jc, False, None), frame.sparkSession)


@contextmanager
def _our_python(context: Any) -> Iterator[None]:
    """Workers are the Python that runs here, where they are on this machine and nobody has chosen another.

    Spark would take the first `python3` that it finds, which need not be that of the environment.
    """
    if not str(context.master).startswith("local") or "PYSPARK_PYTHON" in os.environ:
        yield
        return
    with _choosing:
        chosen, context.pythonExec = context.pythonExec, sys.executable
        try:
            yield
        finally:
            context.pythonExec = chosen
