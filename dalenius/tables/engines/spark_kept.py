"""`Kept`: what one question keeps in a session of Spark, until it is answered."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import uuid4

from dalenius.errors import QueryFailed
from dalenius.tables.engines.spark_asking import asked


class Kept:
    """Views of one question; see `Runner`."""

    def __init__(self, context: Any, session: Any) -> None:
        self._context, self._session = context, session
        self._frames: dict[str, Any] = {}

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """See `Runner`."""
        return asked(self._context, lambda: [tuple(row) for row in self._session.sql(sql).collect()])

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

    def let_go(self) -> None:
        """Forget everything; where the session has ended, it is gone already."""
        with suppress(QueryFailed):
            asked(self._context, self._forget)

    def _forget(self) -> None:
        while self._frames:
            name, frame = self._frames.popitem()
            frame.unpersist()
            self._session.catalog.dropTempView(name)
