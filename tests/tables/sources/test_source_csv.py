"""CSV: the first line says what is where, in every file and at every reading."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dalenius.errors import InvalidArgument, QueryFailed
from dalenius.tables.rows import Rows
from dalenius.tables.sources.opening import open_source

ROWS = Rows("SELECT id AS unit_0, ward AS key_0 FROM visits", 1, 1)
LINES = "".join(f"{i},A\n" for i in range(20))


@pytest.mark.parametrize(
    "other", ["ward,id\n", "id,ward,more\n", "id\n", "id;ward\n", "Id,ward\n", "1,B\n", "", '"id,ward\n']
)
def test_files_that_begin_otherwise_are_refused(tmp_path: Path, other: str) -> None:
    (tmp_path / "a.csv").write_text(f"id,ward\n{LINES}")
    (tmp_path / "b.csv").write_text(f"{other}{LINES}" if other else "")
    with pytest.raises(InvalidArgument, match=r"(first|same) line|file is empty"):
        open_source(tmp_path / "*.csv", "visits")


def test_files_that_begin_alike_are_one_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"id,ward\n{LINES}")
    (tmp_path / "b.csv").write_bytes(b'\xef\xbb\xbf"id","ward"\r\n7,B\r\n')
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"id,ward\n7,C\n"))
    engine = open_source(tmp_path / "*.csv*", "visits")
    assert engine.public("SELECT count(*) AS n, max(ward) AS last FROM visits") == [{"n": 22, "last": "C"}]
    engine.close()


@pytest.mark.parametrize("other", ["ward,id\n", "id,ward,more\n", "\n", "id\tward\n"])
def test_a_file_whose_columns_change_is_not_read(tmp_path: Path, other: str) -> None:
    path = tmp_path / "visits.csv"
    path.write_text(f"id,ward\n{LINES}")
    engine = open_source(path)
    path.write_text(f"{other}{LINES}")
    with pytest.raises(QueryFailed, match="changed since it was opened") as failed, engine.load(ROWS):
        pass
    assert failed.value.remedy == "Open it again."
    path.write_text(f"id,ward\n{LINES}{LINES}")
    with engine.load(ROWS) as loaded:
        assert loaded.holders(most=1, salt=bytes(32)) == {("A",): 20}
    path.unlink()
    with pytest.raises(QueryFailed), engine.load(ROWS):
        pass
    engine.close()


@pytest.mark.parametrize(
    "text",
    [
        "id,ward\r1,A\r2,B\r",
        'id,"ward\nof\nbirth"\n1,A\n',
        "id,id\n1,1\n",
        "id,\n1,1\n",
        "x" * 200_000 + "\n",
    ],
)
def test_first_lines_that_name_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "visits.csv"
    path.write_bytes(text.encode())
    with pytest.raises(InvalidArgument, match="first line") as refused:
        open_source(path)
    assert refused.value.__context__ is None


def test_marks_within_quotes_separate_nothing(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text('id;"ward, floor, bed"\n7;"A, 1, 2"\n')
    engine = open_source(path)
    assert engine.public("SELECT * FROM visits") == [{"id": 7, "ward, floor, bed": "A, 1, 2"}]
    engine.close()


def test_too_many_cells_and_too_few(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_bytes(b"id,ward\n" + LINES.encode() + b"31,B,more,and more\n32\n33,\xff\n34,C\n")
    path.write_bytes(path.read_bytes() + "35,é\n36,é\n".encode())
    engine = open_source(path)
    found = engine.public("SELECT id, ward FROM visits WHERE id > 30 ORDER BY id")
    assert found == [
        {"id": 31, "ward": "B"},
        {"id": 32, "ward": None},
        {"id": 34, "ward": "C"},
        *({"id": i, "ward": "é"} for i in (35, 36)),
    ], "a line of a file in UTF-8 that is not is left out"
    engine.close()


def test_an_empty_file_is_called_that(tmp_path: Path) -> None:
    (tmp_path / "nothing.csv").touch()
    with pytest.raises(InvalidArgument, match="The file is empty"):
        open_source(tmp_path / "nothing.csv")
