"""Releases as frames: the same cells, one type a column, and the receipt where a frame can carry it."""

from __future__ import annotations

import json
import math
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from dalenius.errors import MissingExtra
from dalenius.losses import Pure
from dalenius.release import EXACT, Cell, Receipt, Release

RECEIPT = Receipt(Pure(1), "{}", EXACT)
NOON = datetime(2026, 1, 31, 12)
COLUMNS: dict[str, tuple[Cell, ...]] = {
    "ward": ("A", None, "C"),
    "day": (date(2026, 1, 31), None, date(1970, 1, 1)),
    "at": (NOON, None, NOON + timedelta(microseconds=1)),
    "n": (1, 2, 3),
    "gaps": (1, None, -(2**63)),
    "mean": (0.5, None, math.inf),
    "mixed": (1, 0.25, None),
    "yes": (True, False, None),
    "nothing": (None, None, None),
}
RELEASE = Release(COLUMNS, ("n",), RECEIPT)


def rows(frame: Any, kind: str) -> dict[str, list[Any]]:
    if kind == "to_pandas":
        return {
            name: [
                None if missing else _plain(cell) for cell, missing in zip(column, column.isna(), strict=True)
            ]
            for name, column in frame.items()
        }
    return frame.to_dict(as_series=False) if kind == "to_polars" else frame.to_pydict()


def _plain(cell: Any) -> Any:
    return cell.to_pydatetime() if hasattr(cell, "to_pydatetime") else cell


@pytest.mark.parametrize("kind", ["to_pandas", "to_polars", "to_arrow"])
def test_a_frame_holds_the_same_cells(kind: str) -> None:
    found = rows(getattr(RELEASE, kind)(), kind)
    assert found == {name: list(column) for name, column in COLUMNS.items()}


@pytest.mark.parametrize("kind", ["to_pandas", "to_polars", "to_arrow"])
def test_a_release_without_rows_is_a_frame_without_rows(kind: str) -> None:
    frame = getattr(Release({"ward": (), "n": ()}, ("n",), RECEIPT), kind)()
    assert rows(frame, kind) == {"ward": [], "n": []}


@pytest.mark.parametrize("kind", ["to_pandas", "to_polars", "to_arrow"])
def test_what_a_type_cannot_hold_is_the_nearest_that_can(kind: str) -> None:
    """Numbers beyond all floats, moments elsewhere, and columns of many types."""
    east = datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2)))
    odd = Release(
        {"n": (2**63, 1), "huge": (-(10**400), 1), "at": (east, NOON.replace(tzinfo=UTC)), "key": ("a", 1)},
        ("n",),
        RECEIPT,
    )
    assert rows(getattr(odd, kind)(), kind) == {
        "n": [2.0**63, 1.0],
        "huge": [-math.inf, 1.0],
        "at": [NOON, NOON],
        "key": ["a", "1"],
    }


def test_columns_have_the_types_that_are_expected() -> None:
    pandas, polars, arrow = RELEASE.to_pandas(), RELEASE.to_polars(), RELEASE.to_arrow()
    assert str(pandas["n"].dtype) == "int64" and str(pandas["gaps"].dtype) == "Int64"
    assert str(polars.schema["day"]) == "Date" and str(arrow.schema.field("day").type) == "date32[day]"
    assert str(polars.schema["gaps"]) == "Int64" and str(arrow.schema.field("at").type) == "timestamp[us]"


def test_the_receipt_goes_along_where_it_can() -> None:
    for kept in (RELEASE.to_pandas().attrs["receipt"], RELEASE.to_arrow().schema.metadata[b"receipt"]):
        assert Receipt.read(**json.loads(kept)) == RECEIPT


def test_dates_are_kept_as_json() -> None:
    assert Release.from_json(RELEASE.to_json()) == RELEASE
    assert [type(cell) for cell in Release.from_json(RELEASE.to_json()).columns["at"]][:2] == [
        datetime,
        type(None),
    ]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_missing_library_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=library) as refused:
        getattr(RELEASE, f"to_{library.removeprefix('py')}")()
    assert "dalenius[frames]" in refused.value.remedy
