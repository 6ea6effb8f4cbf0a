"""Bounding in SQL gives the integers of the reference engine, bit for bit; here as DuckDB runs it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import duckdb
import nasty
import numpy as np
import pytest
from engines.conformance.integers import check
from engines.conformance.on_duckdb import created
from engines.conformance.sites import filled
from reference import ReferenceEngine

from dalenius.errors import InvalidArgument
from dalenius.privacy.quantized import Grid
from dalenius.tables.engines.bounding.bounded import BoundedRows
from dalenius.tables.engines.bounding.duckdb import DuckdbWords
from dalenius.tables.engines.engine import Bounding, Measure
from dalenius.tables.engines.types import kind_of
from dalenius.tables.language.dialects import dialect_of
from dalenius.tables.rows import Range, Rows

WORDS = DuckdbWords(dialect_of("duckdb"))


class Runner:
    """SQL on a connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, stores: bool) -> None:
        self.connection, self.stores, self.tables = connection, stores, 0

    def fetch(self, sql: str) -> Sequence[Sequence[Any]]:
        return self.connection.execute(sql).fetchall()

    def store(self, sql: str) -> str:
        if not self.stores:
            return f"({sql})"
        self.tables += 1
        self.connection.execute(f"CREATE TEMP TABLE stored_{self.tables} AS {sql}")
        return f"stored_{self.tables}"


def loaded(connection: duckdb.DuckDBPyConnection, table: nasty.Table, *, stores: bool = False) -> BoundedRows:
    kinds = {column: kind_of(kind) for column, kind in table.types.items()}
    source = f"({table.rows.sql})"
    return BoundedRows(WORDS, Runner(connection, stores=stores), source, table.rows, kinds)


@pytest.mark.parametrize("seed", range(120))
def test_equal_to_the_reference(seed: int) -> None:
    random = Random(seed)
    table = nasty.table(random, nasty.PRINTED, tuple(nasty.UNITS))
    with created(filled(table)) as connection, ReferenceEngine(table.seen()).load(table.rows) as truth:
        check(random, table, loaded(connection, table, stores=seed % 3 == 0), truth)


def test_the_largest_numbers_are_units_like_others() -> None:
    far = [2**63 - 1, -(2**63), 2**61, 2**61 - 1, -(2**61), -(2**61) - 1, 0]
    data = [{"unit_0": unit, "key_0": key} for unit in far for key in ("a", "b", "a")]
    rows = Rows("SELECT unit_0, key_0 FROM data", 1, 1)
    table = nasty.Table({"unit_0": "BIGINT", "key_0": "VARCHAR"}, data, rows)
    with created(filled(table)) as connection, ReferenceEngine(data).load(rows) as truth:
        found, keys = loaded(connection, table, stores=True), [("a",), ("b",)]
        bounding = Bounding("l2", limit=Fraction(2))
        measures = [Measure("rows"), Measure("units")]
        assert (found.totals(keys, measures, bounding) == truth.totals(keys, measures, bounding)).all()
        assert found.shapes(keys, norm="l2", presence=False).sum() == len(far)


def test_a_unit_beyond_all_bounds_has_no_weight_and_is_the_largest() -> None:
    """Its cells say how many rows it has: no table here has as many."""
    shapes = "(VALUES (1, CAST(NULL AS BIGINT), CAST(9 AS BIGINT), CAST(1 AS BIGINT)), (2, 4, 2, 1)) AS s"
    table = nasty.Table({"unit_0": "BIGINT", "key_0": "VARCHAR"}, [], Rows("SELECT 1 WHERE FALSE", 1, 1))
    rows = loaded(duckdb.connect(), table)
    rows._units = lambda asked: (
        f"(SELECT * FROM {shapes.replace(' AS s', ' AS s(u0, squares, held, groups)')})"
    )  # type: ignore[method-assign]
    for norm in ("l1", "l2"):
        found = rows.shapes([("a",)], norm=norm, presence=False)
        assert found.sum() == 2 and found[63].sum() == 1
    clipped = rows._clipped(rows._asked([("a",)]), Fraction(10**9), "l2", presence=False)
    assert [(int(unit), int(weight)) for unit, weight in rows._runner.fetch(clipped)] == [(1, 0)]


def test_a_range_with_too_many_steps_is_refused() -> None:
    table = nasty.Table({"value_0": "DOUBLE"}, [], Rows("SELECT 1.0 AS value_0", 0, 0, 1))
    rows = loaded(duckdb.connect(), table)
    wide = Range(Fraction(0), Fraction(2) ** 60, Grid(0))
    with pytest.raises(InvalidArgument, match="coarser"):
        rows.totals([()], [Measure("sum", 0, wide)], Bounding("l2"))


def test_keys_that_python_takes_for_one_are_not_mixed_up() -> None:
    """1, 1.0 and True are equal and hash alike; of a column of numbers, True is no value."""
    data = [{"unit_0": 7, "key_0": key} for key in (1, 1, 1, 2)]
    table = nasty.Table({"unit_0": "BIGINT", "key_0": "BIGINT"}, data, Rows("SELECT * FROM data", 1, 1))
    bounding = Bounding("l2")
    with created(filled(table)) as connection:
        rows = loaded(connection, table)
        assert rows.shapes([(True,), (2,)], norm="l2", presence=False).sum() == 1
        totals = rows.totals([(1,), (2,)], [Measure("rows")], bounding)
    assert [int(one) for one in totals[:, 0]] == [3 * 5181, 5181]


@pytest.mark.parametrize("key", ["\ud800", 10**400, 2**53 + 1, 1e300, math.inf])
@pytest.mark.parametrize("kind", ["BIGINT", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP", "BOOLEAN"])
def test_keys_that_a_column_cannot_hold_are_nobodys(key: Any, kind: str) -> None:
    data = [{"key_0": 2.0**53 if kind == "DOUBLE" else None}]
    table = nasty.Table({"key_0": kind}, data, Rows("SELECT key_0 FROM data", 0, 1))
    with created(filled(table)) as connection:
        totals = loaded(connection, table).totals([(key,)], [Measure("rows")], Bounding("l2"))
    assert totals.tolist() == [[0]]


def test_units_of_a_type_that_cannot_be_compared_are_refused() -> None:
    table = nasty.Table({"unit_0": "INTERVAL", "key_0": "BIGINT"}, [], Rows("SELECT * FROM data", 1, 1))
    with pytest.raises(InvalidArgument, match="type"):
        loaded(duckdb.connect(), table)


@pytest.mark.parametrize(("bits", "shift"), [(52, 0), (30, 61), (45, 1)])
def test_squares_that_sums_might_not_hold_are_refused(bits: int, shift: int) -> None:
    table = nasty.Table({"value_0": "DOUBLE"}, [], Rows("SELECT 1.0 AS value_0", 0, 0, 1))
    wide = Range(Fraction(0), Fraction(2) ** bits, Grid(0))
    with pytest.raises(InvalidArgument, match="coarser"):
        loaded(duckdb.connect(), table).totals(
            [()], [Measure("squares", 0, wide, shift=shift)], Bounding("l2")
        )


def test_nothing_is_asked_where_no_key_is() -> None:
    table = nasty.Table({"unit_0": "BIGINT", "key_0": "VARCHAR"}, [], Rows("no SQL", 1, 1))
    rows = loaded(duckdb.connect(), table)
    assert rows.totals([], [Measure("rows")], Bounding("l2")).shape == (0, 1)
    assert not np.any(rows.shapes([], norm="l2", presence=False))
