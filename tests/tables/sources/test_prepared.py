"""A prepared table gives what the table gives, or less where it only knows that a unit has no more."""

from __future__ import annotations

import os
import stat
from fractions import Fraction
from pathlib import Path
from random import Random

import nasty
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from reference import ReferenceEngine, name, steps, weight

from dalenius.errors import InvalidArgument
from dalenius.privacy.quantized import Grid
from dalenius.tables.engines.engine import WEIGHT, Bounding, Measure
from dalenius.tables.engines.loaded import DuckdbLoaded
from dalenius.tables.engines.prepared import PreparedLoaded
from dalenius.tables.rows import Range, Rows
from dalenius.tables.sources.opening import open_source
from dalenius.tables.sources.prepared import PreparedEngine, prepare
from dalenius.tables.sources.prepared_select import flatten

HUNDRED = Range(Fraction(-3), Fraction(100), Grid(-1), 5)
GROUPED = Rows('SELECT u AS unit_0, g AS key_0, v AS value_0 FROM "visits"', 1, 1, 1)
MEASURES = [
    Measure("rows"),
    Measure("present", 0),
    Measure("sum", 0, HUNDRED),
    Measure("squares", 0, HUNDRED, shift=3),
]


def write(path: Path, random: Random, size: int = 200) -> list[dict[str, object]]:
    rows = [
        {
            "u": random.choice([None, 1, 1, 1, 2, 2, 3, 4, 5, 6]),
            "g": random.choice(["a", "b", "c", "é", None]),
            "v": random.choice(nasty.VALUES),
            "x": random.randrange(10),
        }
        for _ in range(size)
    ]
    columns = {name: [row[name] for row in rows] for name in ("u", "g", "v", "x")}
    types = {"u": pyarrow.int64(), "g": pyarrow.string(), "v": pyarrow.float64(), "x": pyarrow.int64()}
    table = pyarrow.table({name: pyarrow.array(column, types[name]) for name, column in columns.items()})
    pyarrow.parquet.write_table(table, path)
    return rows


def as_rows(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{"unit_0": row["u"], "key_0": row["g"], "value_0": row["v"]} for row in rows]


@pytest.mark.parametrize("seed", range(15))
def test_equal_to_the_reference_without_a_condition(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    data = as_rows(write(tmp_path / "visits.parquet", random, random.choice([0, 3, 200])))
    engine = prepare(open_source(tmp_path / "visits.parquet"), GROUPED)
    keys = [("a",), ("b",), ("c",), ("é",), (None,)]
    with engine.load(GROUPED) as loaded, ReferenceEngine(data).load(GROUPED) as truth:
        assert isinstance(loaded, PreparedLoaded)
        for norm in ("l2", "l1"):
            bounding = Bounding(norm, Fraction(random.choice([1, 7, 50]), 3), salt=bytes(32))
            assert (loaded.totals(keys, MEASURES, bounding) == truth.totals(keys, MEASURES, bounding)).all()
            shapes = loaded.shapes(keys, norm=norm, presence=False)
            assert (shapes == truth.shapes(keys, norm=norm, presence=False)).all()
        assert (loaded.magnitudes(0) == truth.magnitudes(0)).all()
        tree = [Measure("units"), Measure("tree", 0, HUNDRED, levels=2)]
        assert (loaded.totals(keys, tree, bounding) == truth.totals(keys, tree, bounding)).all()
    engine.close()


@pytest.mark.parametrize("seed", range(15))
def test_under_a_condition_weights_are_those_of_all_rows(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    data = write(tmp_path / "visits.parquet", random)
    where = Rows(
        "SELECT * FROM (SELECT u AS unit_0, g AS key_0, x AS key_1, CAST(x AS DOUBLE) AS value_0 "
        "FROM (SELECT u, g, x FROM visits WHERE x > 3) AS t WHERE g <> 'b') AS t WHERE value_0 IS NOT NULL",
        1, 2, 1,
    )  # fmt: skip
    engine = prepare(open_source(tmp_path / "visits.parquet"), GROUPED)
    sizes: dict[object, dict[object, int]] = {}
    for row in data:
        if row["u"] is not None:
            groups = sizes.setdefault(row["u"], {})
            groups[row["g"]] = groups.get(row["g"], 0) + 1
    keys = [(g, x) for g in ("a", "c", "é", "b") for x in range(2, 10)]
    wanted = {key: [0, 0] for key in keys}
    for row in data:
        if row["u"] is not None and row["x"] > 3 and row["g"] not in ("b", None):
            whole = weight(Fraction(9, 2), sum(n * n for n in sizes[row["u"]].values()))
            wanted[row["g"], row["x"]][0] += whole
            wanted[row["g"], row["x"]][1] += whole * steps(float(row["x"]), HUNDRED)
    with engine.load(where) as loaded:
        assert isinstance(loaded, PreparedLoaded)
        found = loaded.totals(keys, [Measure("rows"), MEASURES[2]], Bounding("l2", Fraction(9, 2)))
        assert found.tolist() == [wanted[key] for key in keys]
    engine.close()


def test_one_unit_moves_totals_and_shapes_by_no_more_than_said(tmp_path: Path) -> None:
    random = Random(3)
    data = write(tmp_path / "visits.parquet", random)
    where = Rows("SELECT u AS unit_0, g AS key_0 FROM visits WHERE x < 5", 1, 1)
    keys = [("a",), ("b",), ("c",), ("é",), (None,)]
    limit = Fraction(5, 2)

    def ask(folder: Path, rows: list[dict[str, object]]) -> tuple[np.ndarray, np.ndarray]:
        folder.mkdir()
        columns = {name: [row[name] for row in rows] for name in ("u", "g", "x")}
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / "visits.parquet")
        engine = prepare(open_source(folder / "visits.parquet"), GROUPED_BY)
        with engine.load(where) as loaded:
            found = loaded.totals(keys, [Measure("rows")], Bounding("l2", limit))
            shapes = loaded.shapes(keys, norm="l2", presence=False)
        engine.close()
        return found[:, 0], shapes

    whole, shapes = ask(tmp_path / "whole", data)
    for unit in range(1, 7):
        totals, other = ask(tmp_path / str(unit), [row for row in data if row["u"] != unit])
        moved = [int(a - b) for a, b in zip(whole, totals, strict=True)]
        assert sum(move * move for move in moved) <= (limit * WEIGHT) ** 2
        assert np.abs(shapes - other).sum() <= 1


GROUPED_BY = Rows("SELECT u AS unit_0, g AS key_0 FROM visits", 1, 1)


def test_the_copy_is_private_and_goes_stale(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    write(path, Random(0))
    engine = prepare(open_source(path), GROUPED)
    assert stat.S_IMODE(os.stat(engine.path).st_mode) == 0o600
    assert engine.path.parent == tmp_path
    assert sorted(os.listdir(tmp_path)) == sorted(["visits.parquet", engine.path.name])
    made = os.stat(engine.path).st_mtime_ns
    again = prepare(open_source(path), GROUPED)
    assert os.stat(again.path).st_mtime_ns == made
    again.close()
    write(path, Random(1))
    assert not engine.fresh
    with engine.load(GROUPED) as loaded:
        assert isinstance(loaded, DuckdbLoaded)
    engine.path.write_bytes(b"half a file")
    anew = prepare(open_source(path), GROUPED)
    assert anew.fresh
    anew.close()
    engine.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT u AS unit_0, upper(g) AS key_0 FROM visits",
        "SELECT x AS unit_0, g AS key_0 FROM visits",
        "SELECT DISTINCT u AS unit_0, g AS key_0 FROM visits",
        "SELECT a.u AS unit_0, a.g AS key_0 FROM visits a JOIN visits b ON a.u = b.u",
        "SELECT u AS unit_0, g AS key_0 FROM visits UNION ALL SELECT u, g FROM visits",
        "SELECT u AS unit_0, max(g) AS key_0 FROM visits GROUP BY u",
        "SELECT u AS unit_0, g AS key_0 FROM visits WHERE x IN (SELECT x FROM visits)",
        "SELECT u AS unit_0, g AS key_0 FROM (SELECT u, 'a' AS g FROM visits) AS t",
        "SELECT u AS unit_0, g AS key_0 FROM visits LIMIT 3",
        "SELECT unnest([1, 1, 1]) AS x, u AS unit_0, g AS key_0 FROM visits",
        "SELECT 1 AS unit_0, g AS key_0 FROM (SELECT u, g FROM visits) AS t",
    ],
)
def test_what_does_not_fit_is_asked_of_the_table(tmp_path: Path, sql: str) -> None:
    write(tmp_path / "visits.parquet", Random(0))
    engine = prepare(open_source(tmp_path / "visits.parquet"), GROUPED_BY)
    assert engine.fits(GROUPED_BY)
    assert engine.fits(Rows(sql, 1, 1)) is None
    engine.close()


def test_refusals(tmp_path: Path) -> None:
    write(tmp_path / "visits.parquet", Random(0))
    engine = open_source(tmp_path / "visits.parquet")
    with pytest.raises(InvalidArgument, match="can be prepared for"):
        prepare(engine, Rows("SELECT g AS key_0 FROM visits", 0, 1))
    engine.close()
    frame = open_source(pyarrow.table({"u": [1], "g": ["a"]}), "visits")
    with pytest.raises(InvalidArgument, match="beside which"):
        prepare(frame, GROUPED_BY)
    stored = prepare(frame, GROUPED_BY, path=tmp_path / "copy.prepared")
    assert stored.fits(GROUPED_BY)
    stored.close()


def test_a_copy_for_other_columns_is_not_taken(tmp_path: Path) -> None:
    write(tmp_path / "visits.parquet", Random(0))
    place = tmp_path / "copy.prepared"
    prepare(open_source(tmp_path / "visits.parquet"), GROUPED_BY, path=place).close()
    other = Rows("SELECT u AS unit_0, x AS key_0 FROM visits", 1, 1)
    first = place.read_bytes()
    engine = prepare(open_source(tmp_path / "visits.parquet"), other, path=place)
    assert place.read_bytes() != first
    assert engine.fits(other)
    assert engine.fits(GROUPED_BY) is None
    place.write_bytes(first)
    found = PreparedEngine(open_source(tmp_path / "visits.parquet"), flatten(other.sql), other, place)
    assert not found.fresh
    found.close()
    engine.close()


def test_types_that_a_copy_cannot_keep(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(tmp_path / "clinic.duckdb") as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS u, CAST(1 AS HUGEINT) AS g")
    engine = open_source(tmp_path / "clinic.duckdb", "visits")
    with pytest.raises(InvalidArgument, match="cannot be kept"):
        prepare(engine, GROUPED_BY)
    assert os.listdir(tmp_path) == ["clinic.duckdb"]
    engine.close()


def test_columns_are_seen_through_selects() -> None:
    flat = flatten('SELECT a AS key_0 FROM (SELECT b + 1 AS a FROM (SELECT "x y" AS b FROM t) AS t) AS t')
    assert flat is not None
    assert flat.columns == {"key_0": '"x y" + 1'}
    assert name(1) == name(1.0)


def test_names_in_selects_do_not_tell_case_apart() -> None:
    flat = flatten('SELECT A AS "KEY_0" FROM (SELECT b + 1 AS a FROM (SELECT x AS B FROM t) AS t) AS t')
    assert flat is not None
    assert flat.columns == {"key_0": '"x" + 1'}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s.x AS key_0 FROM visits",
        "SELECT z AS key_0 FROM (SELECT x FROM visits) AS t",
        "SELECT x AS key_0, g AS KEY_0 FROM visits",
    ],
)
def test_columns_that_are_not_clear(sql: str) -> None:
    assert flatten(sql) is None
