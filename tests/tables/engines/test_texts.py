"""Texts are told apart by their letters, whatever collation a database has; reserved names are refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow
import pyarrow.parquet
import pytest

from dalenius.errors import InvalidArgument
from dalenius.tables.engines.duckdb import DuckdbEngine
from dalenius.tables.engines.engine import WEIGHT, Bounding, Measure
from dalenius.tables.rows import Rows
from dalenius.tables.sources.opening import open_source
from dalenius.tables.sources.prepared import prepare

ROWS = Rows("SELECT u AS unit_0, k AS key_0, d AS distinct_0 FROM t", 1, 1, 0, 1)
SALT = bytes(32)
COLLATED = """
    CREATE TABLE t (u VARCHAR COLLATE NOCASE, k VARCHAR COLLATE NOCASE, d VARCHAR COLLATE NOCASE);
    INSERT INTO t VALUES ('a', 'x', 'D'), ('A', 'x', 'd'), ('A', 'X', 'e'), ('b', 'X', 'E'), ('b', 'é', NULL);
"""
HOLDERS = {("x",): 2, ("X",): 2, ("é",): 1}


def filed(folder: Path, sql: str = COLLATED) -> DuckdbEngine:
    with duckdb.connect(folder / "t.duckdb") as connection:
        connection.execute(sql)
    return open_source(folder / "t.duckdb", "t")


def handed(_: Path, sql: str = COLLATED) -> DuckdbEngine:
    connection = duckdb.connect()
    connection.execute(sql)
    return open_source(connection, "t")


def check(engine: DuckdbEngine, rows: Rows = ROWS) -> None:
    with engine.load(rows) as loaded:
        assert loaded.holders(most=9, salt=SALT) == HOLDERS
        measures = [Measure("rows"), Measure("units"), Measure("distinct", 0)]
        wide = Bounding("l2", Fraction(9), Fraction(9), pairs=9, salt=SALT)
        found = loaded.totals([("x",), ("X",), ("é",)], measures, wide).tolist()
    assert found == [[2 * WEIGHT, 2 * WEIGHT, 2], [2 * WEIGHT, 2 * WEIGHT, 2], [WEIGHT, WEIGHT, 0]]
    engine.close()


@pytest.mark.parametrize("opened", [filed, handed])
def test_a_collation_makes_one_of_nothing(opened: object, tmp_path: Path) -> None:
    check(opened(tmp_path))


@pytest.mark.parametrize("opened", [filed, handed])
def test_nor_does_that_of_a_view(opened: object, tmp_path: Path) -> None:
    view = "CREATE VIEW w AS SELECT u, k || '' AS k, CAST(d AS VARCHAR) AS d FROM t"
    engine = opened(tmp_path, f"{COLLATED}; {view}")
    check(engine, Rows(ROWS.sql.replace("FROM t", "FROM w"), 1, 1, 0, 1))


def test_nor_one_that_a_query_asks_for() -> None:
    engine = open_source(pyarrow.table({"u": ["a", "A"], "k": ["x", "X"]}), "t")
    rows = Rows("SELECT u COLLATE NOCASE AS unit_0, k COLLATE NOCASE AS key_0 FROM t", 1, 1)
    with engine.load(rows) as loaded:
        assert loaded.holders(most=9, salt=SALT) == {("x",): 1, ("X",): 1}
    engine.close()


def test_nor_the_default_of_a_connection() -> None:
    connection = duckdb.connect()
    connection.execute("SET default_collation = 'nocase'")
    connection.execute(COLLATED.replace(" COLLATE NOCASE", ""))
    check(open_source(connection, "t"))


def test_stored_norms_are_those_of_the_letters(tmp_path: Path) -> None:
    """With a collation the key is TRUE for half of the rows; in the copy, which has none, for none."""
    engine = filed(
        tmp_path,
        "CREATE TABLE t (u INTEGER, k VARCHAR COLLATE NOCASE); "
        "INSERT INTO t SELECT 1, CASE WHEN i < 50 THEN 'a' ELSE 'b' END FROM range(100) AS made(i)",
    )
    rows = Rows("SELECT u AS unit_0, k = 'A' AS key_0 FROM t", 1, 1)
    prepared = prepare(engine, rows)
    for one in (engine, prepared):
        with one.load(rows) as loaded:
            found = loaded.totals([(True,), (False,)], [Measure("rows")], Bounding("l2"))[:, 0].tolist()
        assert sum(total * total for total in found) <= WEIGHT**2
        assert found[0] == 0
    prepared.close()


def test_nested_units_with_texts_are_refused(tmp_path: Path) -> None:
    engine = filed(tmp_path, "CREATE TABLE t AS SELECT {'id': 'a'} AS u, {'k': 'x'} AS k")
    rows = Rows("SELECT u AS unit_0, k AS key_0 FROM t", 1, 1)
    with pytest.raises(InvalidArgument, match="nested"), engine.load(rows):
        pass
    engine.close()


@pytest.mark.parametrize("column", ["dalenius_shape", "Dalenius_Shape", "dalenius_u0"])
def test_reserved_columns(column: str, tmp_path: Path) -> None:
    data = pyarrow.table({"u": [1], "g": ["a"], column: ["1:1"]})
    pyarrow.parquet.write_table(data, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text(f"u,g,{column}\n1,a,1:1\n")
    made = f"CREATE TABLE t AS SELECT 1 AS u, '1:1' AS {column}"
    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        connection.execute(made)
    handed_in = duckdb.connect()
    handed_in.execute(made)
    files = [tmp_path / f"t.{ending}" for ending in ("parquet", "csv", "duckdb")]
    for source in (*files, data, data.to_pandas(), handed_in):
        with pytest.raises(InvalidArgument, match="reserved"):
            open_source(source, "t")


def test_a_reserved_column_that_comes_later(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"u": [1], "g": ["a"]}), path)
    engine = open_source(path)
    pyarrow.parquet.write_table(pyarrow.table({"u": [1], "g": ["a"], "dalenius_shape": ["1:1"]}), path)
    with pytest.raises(InvalidArgument, match="reserved"):
        prepare(engine, Rows("SELECT u AS unit_0, g AS key_0 FROM t", 1, 1))
    engine.close()


def test_reserved_tables(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="reserved"):
        open_source(pyarrow.table({"u": [1]}), "dalenius_rows")
    with pytest.raises(InvalidArgument, match="reserved"):
        open_source(pyarrow.table({"u": [1]}), "t", more={"dalenius_keys": pyarrow.table({"u": [1]})})
    with pytest.raises(InvalidArgument, match="reserved"):
        filed(tmp_path, "CREATE TABLE t AS SELECT 1 AS u; CREATE TABLE dalenius_units AS SELECT 1 AS u")


def test_a_broken_view_beside_the_table(tmp_path: Path) -> None:
    broken = "CREATE TABLE gone AS SELECT 1 AS x; CREATE VIEW w AS SELECT * FROM gone; DROP TABLE gone"
    check(handed(tmp_path, f"{COLLATED}; {broken}"))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("DECIMAL(38,0)", "9" * 38),
        ("DECIMAL(38,2)", "9" * 36 + ".99"),
        ("DECIMAL(38,38)", "0." + "9" * 38),
        ("HUGEINT", str(2**127 - 1)),
    ],
)
def test_the_largest_numbers_are_hashed(kind: str, text: str, tmp_path: Path) -> None:
    made = f"SELECT i AS u, v AS k, v AS d FROM (VALUES (1, '{text}'), (2, '-{text}')) AS made(i, w), "
    engine = filed(tmp_path, f"CREATE TABLE t AS {made} LATERAL (SELECT CAST(w AS {kind}) AS v)")
    for sql in (ROWS.sql, "SELECT k AS unit_0, u AS key_0, d AS distinct_0 FROM t"):
        with engine.load(Rows(sql, 1, 1, 0, 1)) as loaded:
            keys = list(loaded.holders(most=1, salt=SALT))
            assert len(keys) == 2
            measures = [Measure("rows"), Measure("distinct", 0)]
            bounding = Bounding("l2", groups=1, salt=SALT)
            assert loaded.totals(keys, measures, bounding).tolist() == [[WEIGHT, 1]] * 2
    engine.close()
