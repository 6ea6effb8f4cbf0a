"""Every clause gives in Spark the rows that it gives in DuckDB, on the worst values of every type."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from engines.spark.spark_nasty import nasty
from language.nasty import COLUMNS, connection
from language.test_total import CASES

from dalenius.privacy.unit import Unit
from dalenius.tables.engines.spark import SparkEngine, open_spark
from dalenius.tables.language.parsing import ask
from dalenius.tables.schema import Private, Schema

RANGES = {"x": (0, 1), "i": (-5, 5), "h": (0, 10), "d": (0, 1e20)}
BATCH = 8
MORE = [
    ("SELECT SUM(a), SUM(r) FROM (SELECT MEDIAN({c}) OVER (PARTITION BY i ORDER BY x) AS a, RANK() OVER"
     " (PARTITION BY i) AS r FROM nasty)", "x"),
    ("SELECT SUM(a), SUM(c) FROM (SELECT LEAD({c}, 2) OVER (PARTITION BY i ORDER BY x ROWS BETWEEN 1"
     " PRECEDING AND CURRENT ROW) AS a, NTH_VALUE({c}, 2) OVER (PARTITION BY i ORDER BY t) AS c FROM nasty)",
     "h"),
    ("SELECT SUM(a) FROM (SELECT NTILE(2) OVER (PARTITION BY i ORDER BY {c}) * 1000000000 AS a"
     " FROM nasty)", "x"),
    ("SELECT SUM(a), SUM(c) FROM (SELECT PERCENT_RANK() OVER (PARTITION BY i ORDER BY {c}) AS a,"
     " CUME_DIST() OVER (PARTITION BY i ORDER BY {c}) AS c FROM nasty)", "t"),
]  # fmt: skip


@pytest.fixture(scope="module")
def engine(small: Any) -> Any:
    found = open_spark(nasty(small).drop("number").coalesce(1), "nasty")
    yield found
    found.close()


def settled(rows: Any) -> list[Any]:
    """Rows in an order of their own, with nothing in them that is not equal to itself."""
    plain = [tuple("nan" if value is None or value != value else value for value in row) for row in rows]
    return sorted(plain, key=repr)


def compare(engine: SparkEngine, query: str, column: str, unit: str, ranges: Any) -> None:
    if column == unit:
        return
    query, found = re.sub(r"\bi\b", unit, query), {}
    for dialect in ("duckdb", "spark"):
        tables = (Private("nasty", COLUMNS, Unit(unit, column=unit), ranges=ranges),)
        found[dialect] = ask(query.replace("{c}", column), Schema(tables, dialect=dialect)).rows
    shape = found["spark"]
    named = [f"key_{i}" for i in range(shape.keys)] + [f"value_{i}" for i in range(shape.values)]
    shown = ", ".join([*named, *(f"distinct_{i}" for i in range(shape.distincts)), "1 AS one"])
    wanted = connection().cursor().execute(f"SELECT {shown} FROM ({found['duckdb'].sql})").fetchall()
    got = [tuple(row.values()) for row in engine.public(f"SELECT {shown} FROM ({shape.sql})")]
    assert close(settled(got), settled(wanted)), (query, column, settled(got), settled(wanted))


def close(got: Any, wanted: Any) -> bool:
    if isinstance(got, list | tuple):
        return len(got) == len(wanted) and all(map(close, got, wanted))
    return got == wanted or (isinstance(got, float) and math.isclose(got, wanted, rel_tol=1e-15))


@pytest.mark.parametrize("batch", range(BATCH))
def test_the_rows_are_those_of_duckdb(engine: Any, batch: int) -> None:
    for number, (query, column) in enumerate([*CASES[::8], *MORE]):
        if number % BATCH == batch:
            compare(engine, query, column, "i" if number % 4 == 3 else "b", RANGES if number % 3 else {})


@pytest.mark.slow
@pytest.mark.parametrize("ranges", [{}, RANGES], ids=["", "ranges"])
@pytest.mark.parametrize(("query", "column"), [*CASES, *MORE])
def test_all_rows_are_those_of_duckdb(engine: Any, query: str, column: str, ranges: Any) -> None:
    for unit in "ib":
        compare(engine, query, column, unit, ranges)
