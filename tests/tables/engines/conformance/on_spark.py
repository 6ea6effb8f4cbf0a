"""A session of Spark, whose tables are written in the query itself: they cost no job of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from engines.conformance import worst
from engines.conformance.sites import Filled

from dalenius.tables.engines.engine import Engine
from dalenius.tables.engines.spark import SparkEngine, open_spark
from dalenius.tables.language.dialects import dialect_of

SPARK = dialect_of("spark")
TYPES = {
    "HUGEINT": "DECIMAL(38, 0)", "UBIGINT": "DECIMAL(20, 0)", "INTEGER": "INT", "VARCHAR": "STRING",
    "TIMESTAMP": "TIMESTAMP_NTZ", "TIMESTAMPTZ": "TIMESTAMP",
}  # fmt: skip
"""Spark's names of types, where they are not DuckDB's."""


class SparkSite:
    """See `Site`."""

    name = "spark"

    def __init__(self, session: Any) -> None:
        self._session = session
        session.conf.set("spark.sql.session.timeZone", "UTC")
        self.nasty: Engine = open_spark(frame(session, worst.SPARK_TYPES, worst.SPARK), "nasty")
        session.conf.set("spark.sql.session.timeZone", "Australia/Lord_Howe")

    def close(self) -> None:
        """Let go of the session."""
        self.nasty.close()

    @contextmanager
    def holding(self, tables: Mapping[str, Filled]) -> Iterator[Engine]:
        """See `Site`."""
        frames = {name: frame_of(self._session, table) for name, table in tables.items()}
        (name, first), *more = frames.items()
        with closing(open_spark(first, name, more=dict(more))) as engine:
            yield engine

    def answers(self, engine: Engine, queries: Sequence[str]) -> list[list[tuple[Any, ...]]]:
        """See `Site`. Tables are shown once."""
        assert isinstance(engine, SparkEngine)
        engine._bound("SELECT 1")
        return [[tuple(row) for row in engine._ours.sql(sql).collect()] for sql in queries]


def frame_of(session: Any, table: Filled) -> Any:
    """A DataFrame of a table."""
    types = {name: TYPES.get(kind, kind) for name, kind in table.types.items()}
    return frame(session, types, [[cell(value) for value in row] for row in table.rows])


def frame(session: Any, types: Mapping[str, Any], rows: Sequence[Sequence[str]]) -> Any:
    """A DataFrame of cells in SQL."""
    named = ", ".join(f"CAST(col{i} AS {kind}) AS {name}" for i, (name, kind) in enumerate(types.items(), 1))
    lines = rows or [["NULL"] * len(types)]
    written = ", ".join(f"({', '.join(line)})" for line in lines)
    return session.sql(f"SELECT {named} FROM VALUES {written}{'' if rows else ' WHERE FALSE'}")


def cell(value: Any) -> str:
    """A value in SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime) and value.tzinfo is not None:
        return f"TIMESTAMP '{value.astimezone(UTC).isoformat(' ')}'"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, Decimal) or (isinstance(value, int) and abs(value) >= 2**63):
        return f"{value}BD"
    return SPARK.literal(value, "integer")
