"""Each cell is read by itself: what it becomes does not depend on its company, and none is refused."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument
from dalenius.privacy import Grid
from dalenius.privacy.quantized import MOST
from dalenius.privacy.records import (
    cells,
    exact,
    identity,
    integer,
    number,
    steps,
    whole,
    whole_codes,
    whole_steps,
)

CELL = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**80), 2**80),
    st.floats(),
    st.text(max_size=3),
    st.fractions(),
    st.decimals(),
    st.lists(st.integers(), max_size=2),
    st.just(pd.NA),
    st.just(np.timedelta64("NaT")),
    st.just(10**5000),
    st.just(Decimal("1E+999999999")),
)


@given(first=st.lists(CELL, max_size=4), second=st.lists(CELL, max_size=4))
def test_whole_steps_of_two_lists_are_those_of_both_together(first: list[Any], second: list[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apart = [*whole_steps(first).tolist(), *whole_steps(second).tolist()]
        assert whole_steps(first + second).tolist() == apart
    assert all(abs(step) <= MOST for step in apart)


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        (True, 1),
        (np.bool_(True), 1),
        (-2.9, -2),
        (Fraction(-29, 10), -2),
        (Decimal("2.9"), 2),
        (np.longdouble(2.9), 2),
        (2**53 + 1, 2**53 + 1),
        (10**5000, MOST),
        (-math.inf, -MOST),
        (Decimal("-1E+999999999"), -MOST),
        (Decimal("1E-999999999"), 0),
        (math.nan, 0),
        (Decimal("sNaN"), 0),
        (None, 0),
        ("3", 0),
        (np.timedelta64(3, "s"), 0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_numbers_are_rounded_toward_zero_and_all_else_is_zero(cell: Any, found: int) -> None:
    assert steps(cell, Grid(0)) == found
    assert whole_steps([cell, 7]).tolist() == [found, 7]


@pytest.mark.parametrize(
    "column",
    [
        [1, None, 2**60 + 1],
        np.array([1, None, 2**60 + 1], dtype=object),
        np.ma.array([1, 5, 2**60 + 1], mask=[False, True, False]),
        pd.Series([1, None, 2**60 + 1], dtype="Int64"),
        pd.Series([1, None, 2**60 + 1], dtype=object),
        pl.Series([1, None, 2**60 + 1], dtype=pl.Int64),
        pa.array([1, None, 2**60 + 1]),
    ],
    ids=lambda column: type(column).__module__.split(".")[0],
)
def test_one_missing_cell_changes_no_other_in_any_container(column: Any) -> None:
    assert whole_steps(column).tolist() == [1, 0, 2**60 + 1]


@pytest.mark.parametrize("values", [np.array([1.5]), np.array(["1"]), pd.Series([1.5]), np.array([True])])
def test_a_declared_type_is_refused_whatever_the_cells_are(values: Any) -> None:
    with pytest.raises(InvalidArgument, match="by their type"):
        whole_steps(values)


def test_a_code_that_is_no_whole_number_is_none_of_them() -> None:
    assert whole_codes([2, 2.0, True, 2.5, None, "2", 10**5000]).tolist() == [2, 2, 1, -1, -1, -1, MOST]
    assert whole_codes(np.array([3, 4], dtype=np.int8)).tolist() == [3, 4]


def test_unsigned_integers_do_not_wrap() -> None:
    assert whole_steps(np.array([2**64 - 1, 3], dtype=np.uint64)).tolist() == [MOST, 3]
    assert whole_steps(np.array([255, 3], dtype=np.uint8)).tolist() == [255, 3]


def test_what_is_a_whole_number_by_value_or_by_type() -> None:
    assert [whole(cell) for cell in (3.0, Decimal("3"), Fraction(3), True)] == [3, 3, 3, 1]
    assert [whole(cell) for cell in (0.5, math.inf, math.nan, "3", None)] == [None] * 5
    assert [integer(cell) for cell in (3, np.int8(3), True, 3.0, Decimal(3), "3")] == [
        3,
        3,
        1,
        None,
        None,
        None,
    ]


def test_exact_numbers_are_not_rounded() -> None:
    assert exact(Decimal("0.1")) == Fraction(1, 10) and exact(2**60 + 1) == 2**60 + 1
    assert math.isnan(exact("0.1")) and number(10**400) == math.inf


def test_ids_are_one_only_where_they_are_the_same() -> None:
    ids = [1, "1", b"1", "int 1", (1,), (1, "a"), ("1", "a"), ("1 a",), (1, ("a",)), 10**5000, "a", "a\0"]
    names = [identity(cell) for cell in ids]
    assert None not in names and len(set(names)) == len(ids)
    assert identity(np.int64(1)) == identity(Decimal("1.0")) == identity(1)
    assert [identity(cell) for cell in (None, math.nan, 1.0, True, "", b"", (), (None,), [1])] == [None] * 9


def test_one_text_is_one_cell() -> None:
    assert cells("ab", "O", "", "") == ["ab"] and cells(7, "O", "", "") == [7]
