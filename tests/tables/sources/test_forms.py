"""Files as offices have them: encodings, decimal commas, dates, null strings, Excel; found, or declared."""

from __future__ import annotations

import datetime
import gzip
import sys
from pathlib import Path
from typing import Any

import pytest

import dalenius as dp
from dalenius.errors import InvalidArgument, MissingExtra
from dalenius.tables.sources.forms import Form, declared, find_encoding
from dalenius.tables.sources.opening import open_source

HEAD = "id;ort;preis;einwohner;tag;fehlt\n"
LINES = [
    f"{i};{'Köln €' if i % 2 else 'Bonn'};{i},5;1.{100 + i % 900};{1 + i % 28:02d}.{1 + i % 12:02d}.2013;"
    f"{'NA' if i % 3 else i}\n"
    for i in range(300)
]
FOUND = {
    "id": "integer",
    "ort": "text",
    "preis": "real",
    "einwohner": "integer",
    "tag": "date",
    "fehlt": "integer",
}


def one(path: Path, sql: str, **options: Any) -> dict[str, Any]:
    engine = open_source(path, "t", form=declared(**options))
    try:
        (row,) = engine.public(sql)
        return row
    finally:
        engine.close()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-16-be"])
def test_every_row_of_every_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes((HEAD + "".join(LINES)).encode(encoding))
    engine = open_source(path)
    assert engine.columns("t") == FOUND
    asked = "SELECT count(*) AS n, max(ort) AS ort, max(preis) AS preis, max(einwohner) AS e, "
    asked += "count(fehlt) AS f FROM t"
    assert engine.public(asked) == [{"n": 300, "ort": "Köln €", "preis": 299.5, "e": 1399, "f": 100}]
    assert engine.public("SELECT tag FROM t WHERE id = 30") == [{"tag": datetime.date(2013, 7, 3)}]
    engine.close()


def test_packed_files_are_read_in_their_encoding(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress("id,ort\n1,Köln\n2,Genève\n".encode("cp1252")))
    assert one(path, "SELECT string_agg(ort, '+' ORDER BY id) AS ort FROM t") == {"ort": "Köln+Genève"}


def test_no_byte_makes_a_file_unreadable(tmp_path: Path) -> None:
    """What windows-1252 does not know, halves of pairs of UTF-16 and NULs are letters like others."""
    text = "id;ort\n" + "".join(f"{i};Köln\n" for i in range(20))
    (tmp_path / "a.csv").write_bytes(text.encode("cp1252") + b"20;\x81\x8d\x90\x00\xff\n21;Bonn\n")
    (tmp_path / "b.csv").write_bytes(text.encode("utf-16") + "20;".encode("utf-16-le") + b"\x00\xd8\n\x00")
    assert one(tmp_path / "a.csv", "SELECT count(*) AS n, max(id) AS id FROM t") == {"n": 22, "id": 21}
    assert one(tmp_path / "b.csv", "SELECT count(*) AS n, max(id) AS id FROM t") == {"n": 21, "id": 20}


def test_one_odd_row_does_not_change_an_encoding(tmp_path: Path) -> None:
    for encoding, odd in (("utf-8", b"9;\xe4\n"), ("cp1252", "9;ä\n".encode())):
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes("".join(["id;ort\n", "1;Köln\n" * 50]).encode(encoding) + odd)
        assert find_encoding(str(path)) == encoding


def test_declared_forms_are_taken_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "id;x;tag;ort\n1;1,5;03/04/2020;-\n2;2.500,25;05/06/2020;Köln\n3;n;x;unbekannt\n", "iso-8859-15"
    )
    options = {"encoding": "iso-8859-15", "decimal": ",", "dates": "DD/MM/YYYY", "null": ["-", "unbekannt"]}
    types = {"x": "DOUBLE", "tag": "DATE"}
    sql = "SELECT sum(x) AS x, count(x) AS n, min(tag) AS tag, string_agg(ort) AS ort FROM t"
    row = one(path, sql, types=types, **options)
    assert row == {"x": 2501.75, "n": 2, "tag": datetime.date(2020, 4, 3), "ort": "Köln"}


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (["31.12.2013", "01.02.2014"], "date"),
        (["31/12/2013", "01/02/2014"], "date"),
        (["12/31/2013", "02/01/2014"], "date"),
        (["31-12-2013", "01-02-2014"], "date"),
        (["31.12.2013 07:30", "01.02.2014 23:59:59"], "moment"),
        (["01/02/2013", "03/04/2013"], "text"),
    ],
)
def test_dates_are_told_unless_day_and_month_may_be_either(
    tmp_path: Path, cells: list[str], found: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id;tag\n" + "".join(f"{i};{cell}\n" for i, cell in enumerate(cells * 5)))
    engine = open_source(path)
    assert engine.columns("t")["tag"] == found
    engine.close()


def test_declared_types_leave_the_decimal_mark_and_dates_to_be_found(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x;tag\n" + "".join(f"{i},5;{1 + i}.12.2013\n" for i in range(20)))
    row = one(path, "SELECT sum(x) AS x, max(tag) AS tag FROM t", types={"x": "DOUBLE", "tag": "DATE"})
    assert row == {"x": 200.0, "tag": datetime.date(2013, 12, 20)}


def test_points_stay_decimal_marks_where_columns_have_them(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id;x;y\n" + "".join(f"{i};{i}.25;{i}.5\n" for i in range(20)))
    assert one(path, "SELECT sum(x) AS x, max(y) AS y FROM t") == {"x": 195.0, "y": 19.5}


def test_only_this_user_may_read_the_copy_and_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("id,ort\n1,Köln\n".encode("cp1252"))
    engine = open_source(path)
    assert engine.folder is not None
    copies = list(Path(engine.folder.path).glob("*.csv"))
    assert len(copies) == 1 and copies[0].stat().st_mode & 0o077 == 0
    before = engine.version()
    path.write_bytes("id,ort\n1,Köln\n2,Genève\n".encode("cp1252"))
    assert engine.version() != before
    assert engine.public("SELECT count(*) AS n FROM t") == [{"n": 2}], "a file that changed is copied anew"
    engine.close()
    assert not copies[0].exists()


@pytest.mark.parametrize(
    "options",
    [
        {"encoding": "klingon"},
        {"encoding": "base64"},
        {"encoding": "utf-32"},
        {"encoding": "cp037"},
        {"encoding": "utf-7"},
        {"decimal": ";"},
        {"dates": "DD.MM."},
        {"dates": "DD.DD.YYYY"},
        {"null": "NA"},
        {"null": [1]},
    ],
)
def test_forms_that_are_none_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as refused:
        declared(**options)
    assert "Pass" in str(refused.value.remedy)


def test_forms_fill_what_others_leave_open() -> None:
    found = Form("utf-8", ".", None, (), {"a": "BIGINT", "b": "DATE"})
    said = Form(decimal=",", types={"a": "VARCHAR"})
    whole = said.over(found)
    assert whole == Form("utf-8", ",", None, (), {"a": "VARCHAR", "b": "DATE"})
    assert whole.less(said) == Form("utf-8", types={"b": "DATE"}) and Form.read(whole.plain()) == whole


# Excel.


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "visits"
    sheet.append(["id", "tag", "preis", "ort", "neu"])
    for i in range(40):
        ort = 'Köln; "Süd", 2\nOst' if i else None
        sheet.append([i // 2, datetime.datetime(2020, 1, 1 + i % 28), i / 4, ort, i % 2 == 0])
    sheet.append([None, "no date", "#DIV/0!", 5, None, "beyond the columns"])
    book.save(tmp_path / "clinic.xlsx")
    return tmp_path / "clinic.xlsx"


def test_a_sheet_is_read_as_the_file_it_would_be_saved_as(workbook: Path) -> None:
    engine = open_source(workbook, "visits")
    kinds = {"id": "integer", "tag": "date", "preis": "real", "ort": "text", "neu": "boolean"}
    assert engine.columns("visits") == kinds
    asked = "SELECT count(*) AS n, count(tag) AS t, sum(preis) AS p, count(ort) AS o, max(ort) AS last "
    asked += "FROM visits"
    assert engine.public(asked) == [{"n": 41, "t": 40, "p": 195.0, "o": 40, "last": 'Köln; "Süd", 2\nOst'}]
    engine.close()


def test_a_workbook_is_a_table_with_an_account_beside_it(workbook: Path) -> None:
    unit, budget = dp.Unit("patient", column="id"), dp.Budget(epsilon=50, delta=1e-9)
    with dp.table(workbook, unit=unit, budget=budget, name="visits") as table:
        release = table.sql("SELECT COUNT(*) AS n FROM visits", epsilon=40)
        assert abs(release.value - 40) < 10 and (workbook.parent / "clinic.ledger").exists()


def test_a_sheet_is_named_where_there_are_several(workbook: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(workbook)
    book.create_sheet("wards").append(["ward"])
    book.save(workbook)
    with pytest.raises(InvalidArgument, match="Which sheet is meant"):
        open_source(workbook)
    engine = open_source(workbook, table="visits")
    assert len(engine.columns("clinic")) == 5
    engine.close()
    with pytest.raises(InvalidArgument, match="no sheet"):
        open_source(workbook, table="stays")


def test_what_is_no_workbook_says_nothing_of_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "clinic.xlsx"
    path.write_bytes(b"secret")
    with pytest.raises(InvalidArgument, match="workbook cannot be opened") as refused:
        open_source(path)
    assert refused.value.__context__ is None and "secret" not in str(refused.value)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtra, match="openpyxl"):
        open_source(path)
