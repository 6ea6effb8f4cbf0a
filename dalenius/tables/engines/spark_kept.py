"""`Kept`: what one question keeps in a session of Spark, until it is answered."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from operator import add
from typing import Any
from uuid import uuid4

from dalenius.errors import QueryFailed
from dalenius.tables.engines.spark_asking import asked
from dalenius.tables.engines.spark_broadcasts import free_broadcasts
from dalenius.tables.engines.spark_python import able, arrived, planned
from dalenius.tables.engines.spark_workers import PART

_SHARE = 25
"""Binary digits of the bytes of a part: 32 MB, as files have them."""


class Kept:
    """Views of one question; see `Runner`."""

    def __init__(self, context: Any, session: Any) -> None:
        self._context, self._session = context, session
        self._frames: dict[str, Any] = {}
        self._collected: list[Any] = []
        """DataFrames whose rows came to the driver, or went to Python workers."""
        self._moved: dict[str, tuple[Any, int]] = {}
        """RDDs of bunches, each with how many partitions were cut."""

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """See `Runner`."""
        return asked(self._context, lambda: [tuple(row) for row in self._asked(sql).collect()])

    def store(self, sql: str) -> str:
        """See `Runner`."""
        return asked(self._context, lambda: self.view(self._session.sql(sql), stored=True))

    def view(self, frame: Any, *, stored: bool) -> str:
        """A DataFrame of the session by a name; where it is stored, it is computed once."""
        from pyspark import StorageLevel

        name = f"dalenius_{uuid4().hex}"
        self._frames[name] = frame
        if stored:
            frame.persist(StorageLevel.MEMORY_AND_DISK)
        frame.createOrReplaceTempView(name)
        return name

    def _asked(self, sql: str) -> Any:
        """Return the DataFrame of a query, which is remembered until the question is answered."""
        frame = self._session.sql(sql)
        self._collected.append(frame)
        return frame

    def parts(self, name: str) -> int:
        """How many parts the rows of a view are cut into: what Spark guesses of their size is all it takes.

        Each part costs a tenth of a second, so that there are no more than shuffles have unless they are
        large, and no fewer than there are cores to work on them.
        """
        return asked(self._context, lambda: self._parts(self._frames[name]))

    def _parts(self, frame: Any) -> int:
        size = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
        most = str(self._session.conf.get("spark.sql.shuffle.partitions"))
        least = int(self._context.defaultParallelism)
        return max(1, min(int(most) if most.isdigit() else 1 << PART, 1 << PART, max(least, size >> _SHARE)))

    def workers(self) -> bool:
        """Whether Python workers on the executors can do what this process can; tried once in a session."""
        return able(self._context, self._session)

    def bunches(self, sql: str, cut: Callable[..., Any], parts: int) -> str:
        """Cut the rows of a query into bunches, move each to where its part is, and return a name for them.

        Args:
            sql: The query.
            cut: What makes bunches, of the number of a partition and its batches.
            parts: How many parts there are.
        """
        from pyspark import StorageLevel

        def move() -> str:
            name, rows = f"dalenius_{uuid4().hex}", arrived(self._asked(sql))
            moved = planned(self._context, lambda: rows.mapPartitionsWithIndex(cut).partitionBy(parts, int))
            kept = moved.persist(StorageLevel.MEMORY_AND_DISK_DESER)
            self._moved[name] = kept, int(rows.getNumPartitions())
            return name

        return asked(self._context, move)

    def worked(self, name: str, work: Callable[..., Any], numbers: int) -> list[Any]:
        """Return the sums, by number, of what workers make of the bunches of each part.

        Args:
            name: That of the bunches.
            work: What is made of the bunches of a part, once it is told how many partitions were cut.
            numbers: How many numbers there are.
        """

        def add_up() -> list[Any]:
            moved, partitions = self._moved[name]
            tasks, there = min(numbers, moved.getNumPartitions()), partial(work, partitions=partitions)
            added = planned(self._context, lambda: moved.mapPartitions(there).reduceByKey(add, tasks, int))
            return list(added.collect())

        return asked(self._context, add_up)

    def let_go(self) -> None:
        """Forget everything; where the session has ended, it is gone already."""
        with suppress(QueryFailed):
            asked(self._context, self._forget)

    def _forget(self) -> None:
        while self._moved:
            with suppress(Exception):
                self._moved.popitem()[1][0].unpersist()
        while self._collected:
            with suppress(Exception):
                free_broadcasts(self._collected.pop())
        while self._frames:
            name, frame = self._frames.popitem()
            with suppress(Exception):
                # One that cannot be let go shall not keep the others.
                free_broadcasts(frame)
                frame.unpersist()
                self._session.catalog.dropTempView(name)
