"""Every kind of source gives the same numbers; odd files do not fail; nothing else can be reached."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

from dalenius.errors import InvalidArgument, QueryFailed
from dalenius.privacy.quantized import Grid
from dalenius.tables.engines.engine import Bounding, Measure
from dalenius.tables.rows import Range, Rows
from dalenius.tables.sources.opening import open_source

ROWS = Rows("SELECT person AS unit_0, ward AS key_0, age AS value_0 FROM visits", 1, 1, 1)
KEYS = [("A",), ("B",), (None,)]
MEASURES = [Measure("rows"), Measure("sum", 0, Range(Fraction(0), Fraction(100), Grid(0)))]
WIDE = Bounding("l2", Fraction(1000))
DATA = pyarrow.table(
    {
        "person": pyarrow.array([1, 1, 2, 3, None, 2], pyarrow.int64()),
        "ward": ["A", "B", "A", None, "A", "A"],
        "age": [30.0, 40.5, None, 200.0, 1.0, -5.0],
        "born": pyarrow.array([0, 1, 2, 3, 4, None], pyarrow.date32()),
    }
)
TYPES = {"person": "integer", "ward": "text", "age": "real", "born": "date"}


def answer(engine: object) -> list[list[int]]:
    with engine.load(ROWS) as loaded:
        found = loaded.totals(KEYS, MEASURES, WIDE)
    engine.close()
    return (found // 2**14).tolist()


WANTED = [[3, 30], [1, 40], [1, 100]]


def parquet(folder: Path) -> Path:
    pyarrow.parquet.write_table(DATA, folder / "visits.parquet")
    return folder / "visits.parquet"


def csv(folder: Path, text: str | bytes) -> Path:
    path = folder / "visits.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def database(folder: Path) -> Path:
    with duckdb.connect(folder / "clinic.duckdb") as connection:
        connection.register("data", DATA)
        connection.execute("CREATE TABLE stays AS FROM data")
        connection.execute("CREATE TABLE wards AS SELECT 'A' AS ward, 1 AS floor")
    return folder / "clinic.duckdb"


def test_parquet(tmp_path: Path) -> None:
    engine = open_source(parquet(tmp_path))
    assert engine.columns("visits") == TYPES
    assert answer(engine) == WANTED


def test_several_files(tmp_path: Path) -> None:
    for i in range(2):
        pyarrow.parquet.write_table(DATA.slice(3 * i, 3), tmp_path / f"{i}.parquet")
    assert answer(open_source(tmp_path / "*.parquet", "visits")) == WANTED


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_frames(frame: type) -> None:
    source = {pandas.DataFrame: DATA.to_pandas(), polars.DataFrame: polars.from_arrow(DATA)}.get(frame, DATA)
    assert answer(open_source(source, "visits")) == WANTED


def test_duckdb_file(tmp_path: Path) -> None:
    engine = open_source(database(tmp_path), "visits", table="stays")
    assert engine.public("SELECT * FROM wards") == [{"ward": "A", "floor": 1}]
    assert answer(engine) == WANTED
    with pytest.raises(InvalidArgument, match="stays, wards"):
        open_source(database_path := tmp_path / "clinic.duckdb", "visits")
    assert database_path.exists()


def test_duckdb_connection_stays_open() -> None:
    with duckdb.connect() as connection:
        connection.register("data", DATA)
        connection.execute("CREATE TABLE visits AS FROM data")
        assert answer(open_source(connection)) == WANTED
        assert connection.execute("SELECT count(*) FROM visits").fetchall() == [(6,)]
        assert connection.execute("SHOW TABLES").fetchall() == [("data",), ("visits",)]


def test_csv(tmp_path: Path) -> None:
    text = "person,ward,age,born\n1,A,30.0,1970-01-01\n1,B,40.5,1970-01-02\n2,A,,\n3,,200,\n,A,1,\n2,A,-5,\n"
    engine = open_source(csv(tmp_path, text))
    assert engine.columns("visits") == TYPES
    assert answer(engine) == WANTED


LINES = "".join(f"{i},A,{i}.5,1970-01-01\n" for i in range(100))


@pytest.mark.parametrize(
    "odd",
    [
        b"x,A,oops,1970-99-99\n",
        b"7\n",
        b"7,A,1,1970-01-01,more,and more\n",
        b"7,\xff\xfe,1,1970-01-01\n",
        b'7,"A,1,1970-01-01\n',
        b"7,\0,1,1970-01-01\n",
        b"\n\n",
        b"7," + b"A" * 3_000_000 + b",1,1970-01-01\n",
        b"99999999999999999999,A,1e999,1970-01-01",
    ],
    ids=range(9),
)
def test_no_line_makes_a_csv_file_fail(tmp_path: Path, odd: bytes) -> None:
    path = csv(tmp_path, b"person,ward,age,born\n" + LINES.encode() + odd)
    engine = open_source(path)
    assert engine.columns("visits") == TYPES
    ((rows, _),) = answer_all(engine)
    assert 100 <= rows <= 101


def answer_all(engine: object) -> list[list[int]]:
    with engine.load(ROWS) as loaded:
        found = loaded.totals([("A",)], MEASURES, WIDE)
    engine.close()
    return (found // 2**14).tolist()


def test_a_cell_that_does_not_fit_is_null_and_its_line_stays(tmp_path: Path) -> None:
    path = csv(tmp_path, f"person,ward,age,born\n{LINES}7,A,oops,1970-01-01\n")
    engine = open_source(path)
    counted = "SELECT count(*) AS n, count(age) AS m, count(TRY_CAST(ward AS DATE)) AS d FROM visits"
    assert engine.public(counted) == [{"n": 101, "m": 100, "d": 0}]
    engine.close()


def test_types_of_a_csv_file_may_be_given(tmp_path: Path) -> None:
    path = csv(tmp_path, "person;code\n007;1\n08;x\n")
    engine = open_source(path, types={"person": "VARCHAR", "code": "BIGINT"})
    assert engine.columns("visits") == {"person": "text", "code": "integer"}
    assert engine.public("SELECT * FROM visits ORDER BY 1")[0] == {"person": "007", "code": 1}
    engine.close()
    with pytest.raises(InvalidArgument, match="no column"):
        open_source(path, types={"persn": "VARCHAR"})
    with pytest.raises(InvalidArgument, match="no type"):
        open_source(path, types={"person": "BIGINT); DROP TABLE x"})


@pytest.mark.parametrize("source", ["nowhere.parquet", "none*.csv", __file__, 7])
def test_refused_sources(source: object) -> None:
    with pytest.raises(InvalidArgument) as refused:
        open_source(source)
    assert refused.value.remedy


def test_versions_change_with_the_file(tmp_path: Path) -> None:
    path = parquet(tmp_path)
    engine = open_source(path)
    before = engine.version()
    assert engine.version() == before
    pyarrow.parquet.write_table(DATA.slice(1), path)
    assert engine.version() != before
    engine.close()
    frame = open_source(DATA.to_pandas(), "visits")
    assert frame.version() != frame.version()
    frame.close()


@pytest.mark.parametrize(
    "sql",
    ["SELECT * FROM read_text('/etc/hostname')", "COPY (SELECT 1) TO '/tmp/dalenius-leak.csv'",
     "ATTACH '/tmp/dalenius-other.duckdb'", "SET threads = 1", "INSTALL httpfs", "SELECT * FROM DATA"],
)  # fmt: skip
def test_queries_reach_nothing_else(tmp_path: Path, sql: str) -> None:
    engine = open_source(parquet(tmp_path))
    with pytest.raises(QueryFailed):
        engine.public(sql)
    engine.close()


def test_failures_say_nothing_of_data(tmp_path: Path) -> None:
    engine = open_source(parquet(tmp_path))
    secret = Rows("SELECT person AS unit_0, CAST(ward AS INTEGER) AS key_0 FROM visits", 1, 1)
    with pytest.raises(QueryFailed) as failed, engine.load(secret):
        pass
    assert str(failed.value) == str(QueryFailed())
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    engine.close()


def test_a_truncated_file(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    rng = np.random.default_rng(0)
    big = pyarrow.table(
        {"person": rng.integers(0, 99, 10**5), "ward": ["A"] * 10**5, "age": rng.random(10**5)}
    )
    pyarrow.parquet.write_table(big, path)
    engine = open_source(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:1000] + bytes(len(whole) // 2) + whole[1000 + len(whole) // 2 :])
    with pytest.raises(QueryFailed), engine.load(ROWS) as loaded:
        loaded.totals(KEYS, MEASURES, WIDE)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(QueryFailed), engine.load(ROWS):
        pass
    path.write_bytes(whole)
    with engine.load(ROWS) as loaded:
        assert loaded.totals([("A",)], MEASURES, WIDE)[0, 0] > 0
    engine.close()


# A process that was started in the background has SIGINT ignored, and so would its children: the question
# would then run on until memory is used up.
INTERRUPTED = """
    import sys, threading, os, signal, tempfile, time
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tempfile.tempdir = sys.argv[1]
    from dalenius.tables.sources.opening import open_source
    from dalenius.tables.rows import Rows
    import pyarrow
    engine = open_source(pyarrow.table({"x": list(range(1000))}), "t", memory="400MB")
    big = "SELECT a.x AS unit_0, b.x AS key_0, hash(c.x) AS value_0 FROM t a JOIN t b ON 1 JOIN t c ON 1"
    def interrupt(begun):
        while time.process_time() < begun + 0.5:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
    try:
        threading.Thread(target=interrupt, args=(time.process_time(),)).start()
        with engine.load(Rows(big, 1, 1, 1)):
            print("loaded")
    except KeyboardInterrupt:
        print("interrupted")
    print(engine.public("SELECT 1 AS one"))
    engine.close()
    print(os.listdir(sys.argv[1]))
"""


def test_an_interrupt_stops_the_engine_and_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert said.stdout.splitlines() == ["interrupted", "[{'one': 1}]", "[]"], said.stderr
    assert said.returncode == 0, said.stderr
