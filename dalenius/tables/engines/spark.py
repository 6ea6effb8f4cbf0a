"""`SparkEngine`: tables of a Spark session, whether a DataFrame or a table by its name.

Questions are asked in a session of our own beside the user's, whose settings and views stay as they are. A
DataFrame gets there by a global view of a random name, which is gone again at once. The rows of a question
stay on the executors: what comes to the driver is integers by group.

Rows are put together by unit and kept so until the question is answered, in memory or on the executors'
disks: no later step moves them, as all that is grouped or joined is so by unit. Python workers keep theirs in
bunches (`spark_rows`), and SQL its own, where both are asked. Where every row is a unit of its own, a plain
scan is read again for each step instead.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any
from uuid import uuid4

from dalenius.errors import InvalidArgument, QueryFailed
from dalenius.tables.engines.bounding.bounded import BoundedRows
from dalenius.tables.engines.bounding.cells import Cells
from dalenius.tables.engines.spark_asking import asked
from dalenius.tables.engines.spark_frames import Frame, Named, check_frame, columns_of, kind_of
from dalenius.tables.engines.spark_kept import Kept
from dalenius.tables.engines.spark_rows import SparkRows
from dalenius.tables.engines.spark_settings import own_session, return_session
from dalenius.tables.engines.spark_words import SparkWords
from dalenius.tables.language.dialects import dialect_of
from dalenius.tables.rows import Rows
from dalenius.tables.sources.kinds import check_tables

MARK = "dalenius_mark"
"""A column of every table that we see, so that none is the very plan that the user keeps in memory: Spark
forgets what it keeps of a plan together with a view of it."""
_HEAVY = re.compile(r"\b(JOIN|GROUP\s+BY|OVER|DISTINCT|UNION|WITH)\b", re.IGNORECASE)


def is_spark(source: object) -> bool:
    """Whether a source is Spark's; nothing is imported to know it."""
    return type(source).__module__.startswith("pyspark.sql.")


def open_spark(
    source: Any, name: str, *, table: str | None = None, more: Mapping[str, Any] | None = None
) -> SparkEngine:
    """An engine whose table `name` is a DataFrame, or the `table` of a session; `more` are others by name."""
    _check_classic(source)
    check_tables([name, *(more or {})])
    session = getattr(source, "sparkSession", source)
    sources = {name: _known(session, (table or name) if session is source else source)}
    for label, other in (more or {}).items():
        sources[label] = _known(session, other)
    return SparkEngine(session, sources)


def _check_classic(source: object) -> None:
    if type(source).__module__.startswith("pyspark.sql.connect."):
        raise InvalidArgument(
            "A session of Spark Connect does not tell what a DataFrame computes.",
            remedy="Open the table in a classic session, where the driver is.",
        )


def _known(session: Any, source: Any) -> Frame | Named:
    if isinstance(source, str):
        return Named(session, source)
    _check_classic(source)
    if not is_spark(source) or getattr(source, "sparkSession", None) is None:
        raise InvalidArgument(
            "Tables beside one of Spark must be Spark's as well.",
            remedy="Pass a DataFrame of the same session, or the name of a table.",
        )
    return Frame(source)


class SparkEngine:
    """Tables of a Spark session; made by `open_spark`."""

    dialect = "spark"

    def __init__(self, session: Any, sources: Mapping[str, Frame | Named]) -> None:
        self._session, self._sources = session, dict(sources)
        self._context = session.sparkContext
        self._ours = asked(self._context, lambda: own_session(session))
        self._let_go = weakref.finalize(self, _let_go, self._context, self._ours, self._sources)

    def columns(self, table: str) -> Mapping[str, str]:
        """See `Engine`."""
        source = self._sources.setdefault(table, Named(self._session, table))
        return asked(self._context, lambda: _described(source.read()))

    def version(self) -> str:
        """See `Engine`: never the same, as Spark does not tell when data have changed."""
        return uuid4().hex

    def turn(self) -> AbstractContextManager[object]:
        """See `Engine`: Spark lets its tasks wait by itself."""
        return nullcontext()

    @contextmanager
    def load(self, rows: Rows) -> Iterator[SparkRows]:
        """See `Engine`."""
        words, kept = SparkWords(dialect_of(self.dialect)), Kept(self._context, self._ours)
        try:
            source, plain, types = asked(self._context, partial(self._load, rows, kept))
            kinds = {name: kind_of(type_name) for name, type_name in types.items()}
            bounded = BoundedRows(words, kept, source, rows, kinds)
            yield SparkRows(bounded, Cells(words, plain, rows, kinds), kept, rows, types)
        finally:
            kept.let_go()

    def public(self, sql: str) -> list[dict[str, Any]]:
        """See `Engine`."""
        rows = asked(self._context, lambda: self._bound(sql).collect())
        return [row.asDict() for row in rows]

    def same(self, table: str, other: str) -> bool:
        """See `Engine`: by Spark's own comparison of what two tables are computed from."""
        one, two = (self._sources.setdefault(name, Named(self._session, name)) for name in (table, other))
        return asked(self._context, lambda: bool(one.read().sameSemantics(two.read())))

    def close(self) -> None:
        """Drop our views, and let another table use our session."""
        self._let_go()

    def _load(self, rows: Rows, kept: Kept) -> tuple[str, str, Mapping[str, str]]:
        """Names of the rows by unit, and as they are; and the types of their columns."""
        frame = self._bound(rows.sql)
        types = {field.name: str(field.dataType.simpleString()) for field in frame.schema.fields}
        if not rows.units:
            name = kept.view(frame, stored=_HEAVY.search(rows.sql) is not None)
            return name, name, types
        units = [f"unit_{i}" for i in range(rows.units)]
        owned = frame.where(" AND ".join(f"{unit} IS NOT NULL" for unit in units))
        return kept.view(owned.repartition(*units), stored=True), kept.view(owned, stored=False), types

    def _bound(self, sql: str) -> Any:
        """A query over the tables as they are now."""
        for name, source in self._sources.items():
            self._show(name, source.read())
        return self._ours.sql(sql)

    def _show(self, name: str, data: Any) -> None:
        """Make a DataFrame visible in our session."""
        check_frame(data)
        from pyspark.sql.functions import lit

        view, names = f"dalenius_{uuid4().hex}", list(columns_of(data))
        plain = data.toDF(*(f"c{i}" for i in range(len(names)))).withColumn(MARK, lit(view))
        plain.createGlobalTempView(view)
        try:
            here = self._ours.table(f"global_temp.{view}").toDF(*names, MARK)
            here.createOrReplaceTempView(_quoted(name))
        finally:
            self._session.catalog.dropGlobalTempView(view)


def _described(data: Any) -> Mapping[str, str]:
    check_frame(data)
    return columns_of(data)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _let_go(context: Any, ours: Any, sources: Mapping[str, Any]) -> None:
    """Drop the views of a table's sources; a session in which that fails is not used again."""

    def forget() -> None:
        for name in sources:
            ours.catalog.dropTempView(name)
        return_session(ours)

    with suppress(QueryFailed):
        asked(context, forget)
