"""What a cell of a stream becomes follows from that cell alone, whatever stands beside it."""

from __future__ import annotations

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
from dalenius.streams import ContinualSum, DistinctCount, HeavyHitters, StreamQuantiles
from dalenius.streams.hashing import hashed
from dalenius.streams.participants import names

BIG = 2**60 + 1
"""A whole number that no float is equal to."""
CELL = st.one_of(
    st.integers(-(2**70), 2**70),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.floats(),
    st.none(),
    st.booleans(),
    st.builds(np.int8, st.integers(-128, 127)),
    st.builds(np.uint64, st.integers(0, 2**64 - 1)),
    st.builds(np.str_, st.text(max_size=4)),
    st.builds(np.bool_, st.booleans()),
    st.lists(st.integers(), max_size=2),
    st.just(np.ma.masked),
    st.just(pd.NA),
    st.just(Decimal("sNaN")),
    st.just(10**400),
    st.just("\ud800"),
)
CELLS = st.lists(CELL, max_size=5)
QUANTILES = StreamQuantiles.calibrate(horizon=4, epsilon=1, delta=1e-6, lower=-1, upper=1, bins=4)


def objects(listed: list[Any]) -> np.ndarray[Any, Any]:
    """An array of cells of any type."""
    array = np.empty(len(listed), object)
    for place, cell in enumerate(listed):
        array[place] = cell
    return array


@given(CELLS, CELLS)
def test_the_words_of_two_lists_are_those_of_both_together(first: list[Any], second: list[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apart = np.concatenate([hashed(first, 3), hashed(second, 3)])
        assert np.array_equal(apart, hashed(first + second, 3))
        assert np.array_equal(apart, hashed(objects(first + second), 3))


@given(CELLS, CELLS)
def test_bins_units_and_frequent_items_are_told_cell_by_cell(first: list[Any], second: list[Any]) -> None:
    both = first + second
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apart = np.concatenate([QUANTILES.bins(first), QUANTILES.bins(second)])
        assert np.array_equal(apart, QUANTILES.bins(both))
    assert names(first, len(first)) + names(second, len(second)) == names(both, len(both))
    HeavyHitters(epsilon=1, delta=1e-6, counters=4).start().add(both)


@given(CELLS, CELL)
def test_one_item_of_any_type_moves_one_bit_of_the_sketch(items: list[Any], more: Any) -> None:
    mechanism = DistinctCount(epsilon=1, buckets=64, levels=8)
    without, with_it = (set(mechanism.places(each).tolist()) for each in (items, [*items, more]))
    assert len(without ^ with_it) <= 1


def test_a_text_among_numbers_moves_one_bit() -> None:
    mechanism, numbers = DistinctCount(epsilon=1), list(range(1, 301))
    without, with_it = (set(mechanism.places(each).tolist()) for each in (numbers, [*numbers, "a"]))
    assert len(without ^ with_it) <= 1


@given(st.lists(st.integers(0, 127), min_size=1, max_size=5))
def test_a_number_is_the_same_item_in_every_type(items: list[int]) -> None:
    listed = hashed(items, 0)
    for kind in (np.int8, np.uint8, np.int16, np.int64, np.uint64, ">i4"):
        assert np.array_equal(hashed(np.array(items, kind), 0), listed)
        assert np.array_equal(hashed(list(np.array(items, kind)), 0), listed)
    assert np.array_equal(hashed(np.array([-1], np.int8), 0), hashed([-1, 2**64 - 1], 0)[:1])
    assert np.array_equal(hashed([True, False], 0), hashed(np.array([True, False]), 0))
    assert np.array_equal(hashed([1, 0], 0), hashed([True, False], 0))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([BIG, None]),
        pa.chunked_array([[BIG], [None]]),
        pa.array([BIG, None]).dictionary_encode(),
        pl.Series([BIG, None]),
        pd.Series([BIG, None], dtype="Int64"),
        pd.Series([BIG, None], dtype="int64[pyarrow]"),
        pd.Series(pd.Categorical([BIG, None])),
        pd.Series([BIG, None], dtype=object),
        np.ma.array([BIG, 3], mask=[False, True]),
    ],
    ids=lambda column: type(column).__module__,
)
def test_a_missing_cell_makes_no_floats_of_a_column(column: Any) -> None:
    assert np.array_equal(hashed(column, 0), hashed([BIG, None], 0))
    assert names(column, 2) == [BIG, ""]


@pytest.mark.parametrize("column", [pa.array(["a", None]), pl.Series(["a", None]), pd.Series(["a", None])])
def test_columns_of_texts_are_their_cells(column: Any) -> None:
    assert np.array_equal(hashed(column, 0), hashed(["a", None], 0))
    assert names(column, 2) == ["a", ""]


@pytest.mark.parametrize(
    "typed", [np.array([1.5]), pd.Series([1.5]), pa.array([1.5]), np.array(["2026"], "M8[Y]")]
)
def test_columns_of_other_types_are_refused_whatever_is_in_them(typed: Any) -> None:
    for refusing in (lambda: hashed(typed, 0), lambda: names(typed, 1)):
        with pytest.raises(InvalidArgument, match="by their type"):
            refusing()
    with pytest.raises(InvalidArgument, match="several columns"):
        hashed(pd.DataFrame({"a": [1], "b": [2]}), 0)


def test_what_stands_alone_is_one_cell() -> None:
    for alone in (3, "a", b"a", None, 1.5, np.int64(3), np.float64("nan")):
        assert np.array_equal(hashed(alone, 0), hashed([alone], 0))
    assert hashed(np.array(3), 0) == hashed(3, 0)
    assert hashed({"a"}, 0) == hashed(iter(["a"]), 0) == hashed("a", 0)
    assert not hashed(np.array([]), 0).size and not hashed([], 0).size
    assert len(set(hashed([1, "1", b"1", None], 0).tolist())) == 4


def test_no_number_counts_in_the_first_bin_whatever_it_is() -> None:
    odd = [
        0.6,
        None,
        "0.6",
        True,
        Decimal("0.6"),
        Fraction(3, 5),
        Decimal("-Infinity"),
        1j,
        np.longdouble("1e4000"),
    ]
    assert QUANTILES.bins(odd).tolist() == [3, 0, 0, 3, 3, 3, 0, 0, 3]
    assert QUANTILES.bins(pa.array([1, None])).tolist() == [3, 0] == QUANTILES.bins([1, None]).tolist()
    with pytest.raises(InvalidArgument, match="by their type"):
        QUANTILES.bins(np.array(["0.6"]))


def test_events_without_a_unit_do_not_count() -> None:
    """Were they of one unit, an event of one person would decide whether that of another counts."""
    counter = ContinualSum.calibrate(horizon=10, epsilon=1000, delta=1e-6, most=1).start()
    counter.add([1] * 6, unit=["ana", None, float("nan"), "", 7, 3.0])
    assert set(counter._participants.seen) == {"ana", 7}
    counter.add([1, 1], unit=["7", 7])
    assert set(counter._participants.seen) == {"ana", 7, "7"}
    counter.add(1, unit=None)
    assert round(counter.value().value) == 3
    with pytest.raises(InvalidArgument, match="as many as"):
        counter.add([1, 1], unit=["ben"])


def test_whose_events_are_is_said_exactly_where_units_are_bounded() -> None:
    bounded = ContinualSum.calibrate(horizon=10, epsilon=1, delta=1e-6, most=1).start()
    with pytest.raises(InvalidArgument, match="unit says whose"):
        bounded.add(1)
    with pytest.raises(InvalidArgument, match="unit says whose"):
        ContinualSum.calibrate(horizon=10, epsilon=1, delta=1e-6).start().add(1, unit="ana")


def test_frequent_items_may_be_of_any_type() -> None:
    session = HeavyHitters(epsilon=5, delta=1e-6).start()
    session.add(["a"] * 100 + [None] * 90 + [7] * 80 + [10**9000, 1.5])
    session.add(np.array([7] * 5, np.int8))
    assert session.value()["item"].tolist() == ["a", "", "7"]
