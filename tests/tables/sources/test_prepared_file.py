"""The stored copy as a file: where it may lie, that nobody takes it for another, and who may read it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from threading import Barrier, Thread

import duckdb
import pyarrow
import pyarrow.parquet
import pytest

from dalenius.errors import InvalidArgument, QueryFailed
from dalenius.tables.engines.engine import WEIGHT, Bounding, Measure
from dalenius.tables.engines.loaded import DuckdbLoaded
from dalenius.tables.engines.prepared import PreparedLoaded
from dalenius.tables.rows import Rows
from dalenius.tables.sources import prepared_copy
from dalenius.tables.sources.opening import open_source
from dalenius.tables.sources.prepared import PreparedEngine, prepare

GROUPED = Rows("SELECT u AS unit_0, g AS key_0 FROM visits", 1, 1)
KEYS = [("a",), ("b",)]


def write(path: Path, rows_each: int = 3) -> Path:
    units = [unit for unit in range(4) for _ in range(rows_each)]
    groups = ["a" if unit % 2 else "b" for unit in units]
    pyarrow.parquet.write_table(pyarrow.table({"u": units, "g": groups}), path)
    return path


def rows_found(loaded: object) -> list[int]:
    return [int(total) for total in loaded.totals(KEYS, [Measure("rows")], Bounding("l2"))[:, 0]]


def test_another_copy_in_its_place_is_not_trusted(tmp_path: Path) -> None:
    """One of a table with a row a person says that each has norm 1, where they have a hundred rows here."""
    source = write(tmp_path / "visits.parquet", 100)
    engine = prepare(open_source(source), GROUPED)
    (tmp_path / "other").mkdir()
    other = prepare(open_source(write(tmp_path / "other" / "visits.parquet", 1)), GROUPED)
    with engine.load(GROUPED) as loaded:
        assert isinstance(loaded, PreparedLoaded)
        assert max(rows_found(loaded)) <= 2 * WEIGHT
    copy = engine.path.read_bytes()
    os.replace(other.path, engine.path)
    assert not engine.fresh
    with engine.load(GROUPED) as loaded:
        assert isinstance(loaded, DuckdbLoaded)
    engine.path.write_bytes(b"half a file")
    assert not engine.fresh
    engine.path.unlink()
    assert not engine.fresh
    engine.path.write_bytes(copy)
    with engine.load(GROUPED) as loaded:
        assert isinstance(loaded, PreparedLoaded)
    other.close()
    engine.close()


def test_a_copy_that_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    engine = prepare(open_source(write(tmp_path / "visits.parquet", 100)), GROUPED)
    (tmp_path / "other").mkdir()
    other = prepare(open_source(write(tmp_path / "other" / "visits.parquet", 1)), GROUPED)
    with engine.load(GROUPED) as loaded:
        os.replace(other.path, engine.path)
        with pytest.raises(QueryFailed):
            loaded.totals(KEYS, [Measure("rows")], Bounding("l2"))
        with pytest.raises(QueryFailed):
            loaded.shapes(KEYS, norm="l2", presence=False)
    other.close()
    engine.close()


def test_no_pattern_finds_the_copy(tmp_path: Path) -> None:
    for i in range(2):
        write(tmp_path / f"v{i}.parquet")
    for pattern in ("*.parquet", "v*"):
        engine = prepare(open_source(tmp_path / "*.parquet", "visits"), GROUPED)
        before = rows_found_in(tmp_path / "*.parquet")
        assert engine.path.exists()
        if pattern == "v*":
            with pytest.raises(InvalidArgument, match="kind of file"):
                open_source(tmp_path / pattern, "visits")
        else:
            assert rows_found_in(tmp_path / pattern) == before
        with pytest.raises(InvalidArgument, match="kind of file"):
            open_source(engine.path)
        renamed = engine.path.with_suffix(".parquet")
        engine.path.rename(renamed)
        with pytest.raises(InvalidArgument, match="reserved"):
            open_source(renamed)
        renamed.unlink()
        engine.close()


def rows_found_in(pattern: Path) -> list[dict[str, int]]:
    engine = open_source(pattern, "visits")
    found = engine.public("SELECT count(*) AS n FROM visits")
    engine.close()
    return found


def test_files_of_several_kinds_are_no_table(tmp_path: Path) -> None:
    write(tmp_path / "v.parquet")
    (tmp_path / "v.csv").write_text("u,g\n1,a\n")
    with pytest.raises(InvalidArgument, match="different kinds"):
        open_source(tmp_path / "v.*")


def test_where_a_copy_may_lie(tmp_path: Path) -> None:
    source = write(tmp_path / "visits.parquet")
    data = source.read_bytes()
    engine = open_source(source)
    for path in (source, tmp_path / "copy.parquet", tmp_path / "copy"):
        with pytest.raises(InvalidArgument, match=r"ends in \.prepared"):
            prepare(engine, GROUPED, path=path)
    os.link(source, tmp_path / "copy.prepared")
    with pytest.raises(InvalidArgument, match="place of the source"):
        prepare(engine, GROUPED, path=tmp_path / "copy.prepared")
    engine.close()
    assert source.read_bytes() == data
    with duckdb.connect(tmp_path / "odd.prepared") as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS u, 'a' AS g")
        handed_in = open_source(connection, "visits")
        with pytest.raises(InvalidArgument, match="place of the source"):
            prepare(handed_in, GROUPED, path=tmp_path / "odd.prepared")
        handed_in.close()


@pytest.mark.parametrize("table", ["k", "g", "n", "s", "b", "w", "copy", "u0"])
def test_tables_of_any_name(table: str, tmp_path: Path) -> None:
    rows = Rows(f"SELECT u AS unit_0, g AS key_0 FROM {table}", 1, 1)
    engine = open_source(write(tmp_path / f"{table}.parquet"))
    with engine.load(rows) as loaded:
        wanted = rows_found(loaded)
    prepared = prepare(engine, rows)
    with prepared.load(rows) as loaded:
        assert isinstance(loaded, PreparedLoaded)
        assert rows_found(loaded) == wanted
    prepared.close()


def test_two_threads_that_prepare_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = write(tmp_path / "visits.parquet"), tmp_path / "copy.prepared"
    start, modes, problems = Barrier(4), set(), []
    replace = os.replace

    def seen(half: os.PathLike[str], path: os.PathLike[str]) -> None:
        modes.add(stat.S_IMODE(os.stat(half).st_mode))
        start.wait(600)
        replace(half, path)

    monkeypatch.setattr(prepared_copy.os, "replace", seen)

    def work() -> None:
        try:
            engine = open_source(source)
            made: PreparedEngine = prepare(engine, GROUPED, path=target)
            assert made.fresh
            made.close()
        except BaseException as problem:
            problems.append(problem)

    before = os.umask(0)
    try:
        threads = [Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        os.umask(before)
    assert problems == []
    assert modes == {0o600}
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["copy.prepared", "visits.parquet"]


def test_nothing_is_left_where_a_copy_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_source(write(tmp_path / "visits.parquet"))

    def full(*_: object) -> None:
        raise OSError

    for name in ("replace", "fsync"):
        with monkeypatch.context() as patched:
            patched.setattr(prepared_copy.os, name, full)
            with pytest.raises(OSError):
                prepare(engine, GROUPED)
        assert os.listdir(tmp_path) == ["visits.parquet"]
    engine.close()
