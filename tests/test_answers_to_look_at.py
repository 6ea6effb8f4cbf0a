"""Releases as pictures, CSV and Excel: open ends, flags, and counts that are not shown below 0."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dalenius as dp
from dalenius.errors import InvalidArgument, MissingExtra
from dalenius.losses import Pure
from dalenius.release import EXACT, Cell, Receipt, Release

RECEIPT = Receipt(Pure(1), "{}", EXACT)
OPEN: dict[str, tuple[Cell, ...]] = {
    "carrier": ("B6", "DL", "AA", "=1+1"),
    "n": (8013, 8100, 5000, -20),
    "n_low": (7074, 7900, -math.inf, -60),
    "n_high": (math.inf, 8300, None, 30),
    "n_flag": ("open above", None, "open", "clipped"),
}
FLIGHTS = Release(OPEN, ("n",), RECEIPT, counts=("n",))
DAYS = tuple(date(2026, 1, 1) + timedelta(days=i) for i in range(9))
DAILY = Release({"day": DAYS, "n": tuple(range(9))}, ("n",), RECEIPT)
RARE = dp.Budget(epsilon=100)


# What is shown.


def test_counts_are_not_shown_below_zero_and_kept_as_they_were_drawn() -> None:
    shown = FLIGHTS.shown
    assert shown.columns["n"][3] == 0 and shown.columns["n_low"][3] == 0 and shown.columns["n_high"][3] == 30
    assert shown.receipt.postprocessing == ("counts shown as 0 or more",)
    assert FLIGHTS["n"][3] == -20 and FLIGHTS.receipt.postprocessing == ()
    assert Release.from_json(FLIGHTS.to_json()) == FLIGHTS
    for text in (str(FLIGHTS), FLIGHTS._repr_html_()):
        assert "0 (0 to 30)" in text and "-20" not in text


def test_an_interval_that_held_holds_as_it_is_shown() -> None:
    """A count is not below 0, whatever its noise."""
    for low, high, truth in ((-5, 1, 0), (-9, -3, 0), (-9, -3, 4), (2, 8, 5)):
        shown = Release(
            {"n": (-1,), "n_low": (low,), "n_high": (high,)}, ("n",), RECEIPT, counts=("n",)
        ).shown
        assert not low <= truth <= high or shown.low <= truth <= shown.high


def test_what_is_not_a_count_is_shown_as_it_is() -> None:
    assert "-20" in str(Release(OPEN, ("n",), RECEIPT))
    with pytest.raises(InvalidArgument):
        Release(OPEN, ("n",), RECEIPT, counts=("carrier",))


def test_counts_of_tables_and_columns_know_that_they_are_counts(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("patient_id,age\n" + "".join(f"{i},{i % 90}\n" for i in range(50)))
    sql = "SELECT COUNT(*) AS n, COUNT(age) AS a, COUNT(DISTINCT age) AS d, SUM(age) AS s, COUNT(*) - 9 AS m"
    with dp.table(
        tmp_path / "visits.csv",
        unit=dp.Unit("patient", column="patient_id"),
        budget=RARE,
        ranges={"age": (0, 90)},
    ) as table:
        assert table.sql(f"{sql} FROM visits", epsilon=50).counts == ("n", "a", "d")
    assert dp.count([1, 2], epsilon=1).counts == ("n",)
    assert dp.histogram([1, 2], categories=[1, 2], epsilon=1).counts == ("n",)
    assert dp.sum([1, 2], lower=0, upper=3, epsilon=1).counts == ()


def test_open_ends_and_flags_are_printed() -> None:
    lines = str(FLIGHTS).splitlines()
    assert [line.split(maxsplit=1)[1].strip() for line in lines[2:6]] == [
        "8,013 (7,074 or more)",
        "8,100 ± 200",
        "5,000 (0 or more)",
        "0 (0 to 30)†",
    ]
    assert lines[-1].startswith("† what bounds took") and lines[0].split() == ["carrier", "n"]
    page = FLIGHTS._repr_html_()
    assert "8,013 (7,074 or more)" in page and "† what bounds" in page and "n_flag" not in page
    assert "<caption" not in page, "a caption is as narrow as its table"
    one = Release({"n": (5,), "n_low": (4,), "n_high": (None,), "n_flag": ("odd\x1b",)}, ("n",), RECEIPT)
    assert str(one) == "5 (4 or more)† (95 %), epsilon 1, uncharged\n† odd�"


@pytest.mark.parametrize("kind", ["to_pandas", "to_polars", "to_arrow"])
def test_frames_hold_open_ends_and_flags(kind: str) -> None:
    frame = getattr(FLIGHTS, kind)()
    assert list(frame.columns if kind != "to_arrow" else frame.column_names) == list(OPEN)
    flags = frame["n_flag"].to_pylist() if kind == "to_arrow" else list(frame["n_flag"])
    assert flags[0] == "open above" and flags[3] == "clipped" and (flags[1] is None or flags[1] != flags[1])


# Pictures.


def test_groups_are_bars_and_open_ends_have_no_number() -> None:
    figure = FLIGHTS.plot()
    (series,) = figure.series
    assert figure.names == ("B6", "DL", "AA", "=1+1 †") and series.style == "bars"
    assert series.y == (8013, 8100, 5000, 0)
    assert series.low == (7074, 7900, 0, 0) and series.high == (None, 8300, None, 30)
    assert any("open end" in note for note in figure.notes) and any("†" in note for note in figure.notes)
    assert figure._repr_svg_()


def test_dates_and_many_numbers_are_a_line() -> None:
    figure = DAILY.plot(title="Days")
    assert (figure.x_scale, figure.title) == ("date", "Days") and figure.series[0].style == "line"
    assert figure.series[0].x[0] == (DAYS[0] - date(1970, 1, 1)).days and figure.series[0].low is None
    ages = Release({"age": tuple(range(9, 0, -1)), "n": tuple(range(9))}, ("n",), RECEIPT)
    assert ages.plot().series[0].x == tuple(range(1, 10))
    assert ages.plot(kind="bars").series[0].style == "bars"
    assert Release({"age": (1, 2), "n": (3, 4)}, ("n",), RECEIPT).plot().names == ("1", "2")


def test_a_second_key_has_colours() -> None:
    columns: dict[str, tuple[Cell, ...]] = {"sex": ("F", "F", "M"), "ward": ("A", "B", "B"), "n": (1, 2, 3)}
    figure = Release(columns, ("n",), RECEIPT).plot()
    assert [(series.name, series.x) for series in figure.series] == [("A", (0,)), ("B", (0, 1))]
    assert figure.names == ("F", "M")


def test_what_has_no_value_is_left_out_and_said() -> None:
    columns: dict[str, tuple[Cell, ...]] = {"k": ("a", "b", "c"), "x": (None, math.nan, 10**400)}
    figure = Release(columns, ("x",), RECEIPT).plot()
    assert figure.names == ("c",) and "Left out, as they have no value: 2." in figure.notes
    assert Release({"k": (), "n": ()}, ("n",), RECEIPT).plot()._repr_svg_(), "no groups are no trouble"
    assert dp.count([1, 2], epsilon=1).plot().names == ("n",)


def test_a_long_table_is_cut_and_said() -> None:
    long = Release({"k": tuple(map(str, range(99))), "n": tuple(range(99))}, ("n",), RECEIPT)
    assert len(long.plot().names) == 60 and any("60 of 99" in note for note in long.plot().notes)


@pytest.mark.parametrize(
    ("release", "words", "options"),
    [
        (FLIGHTS, ("carrier",), {}),
        (FLIGHTS, (), {"kind": "pie"}),
        (FLIGHTS, (), {"kind": "line"}),
        (Release({"yes": (True,)}, ("yes",), RECEIPT), (), {}),
        (Release({"ward": ("A",)}, (), RECEIPT), (), {}),
    ],
)
def test_what_cannot_be_drawn_is_refused(release: Release, words: Any, options: Any) -> None:
    with pytest.raises(InvalidArgument):
        release.plot(*words, **options)


# Files.


def test_csv_holds_everything_as_it_was_drawn(tmp_path: Path) -> None:
    text = FLIGHTS.to_csv(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes().decode() == text
    head, *rows = csv.reader(io.StringIO(text))
    assert head == list(OPEN) and rows[0] == ["B6", "8013", "7074", "inf", "open above"]
    assert rows[3] == ["=1+1", "-20", "-60", "30", "clipped"] and rows[2][3] == ""


def test_excel_holds_the_table_and_the_receipt(tmp_path: Path) -> None:
    from openpyxl import load_workbook

    columns = {**OPEN, "day": (date(2026, 1, 31), None, None, None), "big": (2**60, 1, 2, 3)}
    path = Release(columns, ("n",), RECEIPT, counts=("n",)).to_excel(tmp_path / "a.xlsx")
    book = load_workbook(path)
    head, first, _, third, last = ([cell.value for cell in row] for row in book["release"].iter_rows())
    assert head == list(columns) and first[:5] == ["B6", 8013, 7074, "∞", "open above"]
    assert third[2:4] == [0, None] and last[:4] == ["=1+1", 0, 0, 30]
    assert first[5].date() == date(2026, 1, 31) and first[6] == str(2**60)
    assert book["release"]["A5"].data_type == "s", "a text that looks like a formula is none"
    stated = {row[0].value: row[1].value for row in book["receipt"].iter_rows()}
    assert stated["cost"] == "epsilon 1" and stated["error bars"] == "95 %"
    assert stated["afterwards"] == "counts shown as 0 or more"
    with pytest.raises(InvalidArgument, match="xlsx"):
        FLIGHTS.to_excel(tmp_path / "a.xls")


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtra, match=r"dalenius\[excel\]"):
        FLIGHTS.to_excel(tmp_path / "a.xlsx")
    assert [*tmp_path.iterdir()] == []


def test_the_format_says_which_are_counts_where_some_are() -> None:
    assert json.loads(FLIGHTS.to_json())["counts"] == ["n"]
    assert "counts" not in json.loads(DAILY.to_json()) and FLIGHTS.confidence == Fraction(19, 20)
