"""The random tables of `nasty` in Spark, and as the reference engine takes them."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import nasty

from dalenius.tables.engines.spark import SparkEngine, open_spark
from dalenius.tables.language.dialects import dialect_of
from dalenius.tables.rows import Rows

TYPES = {
    "HUGEINT": "DECIMAL(38, 0)",
    "UBIGINT": "DECIMAL(20, 0)",
    "INTEGER": "INT",
    "VARCHAR": "STRING",
    "TIMESTAMP": "TIMESTAMP_NTZ",
}
"""Spark's names of types, where they are not DuckDB's."""
KINDS = {
    "VARCHAR": "text",
    "DOUBLE": "real",
    "DATE": "date",
    "TIMESTAMP": "moment",
    "BOOLEAN": "boolean",
    "DECIMAL(9,2)": "real",
}


def opened(spark: Any, table: nasty.Table) -> tuple[SparkEngine, Rows]:
    """The table in Spark, and its rows as a question reads them: all but units in canonical form."""
    kinds = {name: TYPES.get(kind, kind) for name, kind in table.types.items()}
    schema = ", ".join([*(f"{name} {kind}" for name, kind in kinds.items()), "other INT"])
    data = [
        (*(_wide(value, kinds[name]) for name, value in row.items()), number)
        for number, row in enumerate(table.data)
    ]
    engine = open_spark(spark.createDataFrame(data, schema), "data")
    spelled, dialect = [], dialect_of("spark")
    for name, kind in table.types.items():
        unit = name.startswith("unit") and kind != "VARCHAR"
        spelled.append(f"{name if unit else dialect.read(name, KINDS.get(kind, 'integer'))} AS {name}")
    shape = table.rows
    sql = f"SELECT {', '.join(spelled) or '1 AS present'} FROM data"
    return engine, Rows(sql, shape.units, shape.keys, shape.values, shape.distincts)


def seen(table: nasty.Table) -> list[dict[str, Any]]:
    """The rows as the reference takes them: all but units in canonical form."""
    return [
        {name: value if name.startswith("unit") else canonical(value) for name, value in row.items()}
        for row in table.seen()
    ]


def canonical(value: Any) -> Any:
    """NaN is NULL, −0 is 0, and so is a whole number that 64 bits do not hold."""
    if isinstance(value, float):
        return None if math.isnan(value) else value + 0.0
    large = isinstance(value, int) and not -(2**63) <= value < 2**63
    return None if large else value


def _wide(value: Any, kind: str) -> Any:
    if isinstance(value, int) and kind.startswith("DECIMAL"):
        return Decimal(value)
    return value


def keys_of(table: nasty.Table) -> list[Any]:
    """Every key there is, once."""
    found = {}
    for row in seen(table):
        key = tuple(row[f"key_{i}"] for i in range(table.rows.keys))
        found[tuple((type(part), part) for part in key)] = key
    return list(found.values())
