"""What encode takes: one value of each person, by type and shape; nothing depends on what is in the cells."""

from __future__ import annotations

import math
import sys
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument
from dalenius.local import (
    DuchiResponse,
    FragmentPuzzle,
    HaarRanges,
    HadamardSketch,
    KaryResponse,
    PrivUnit,
    Randomizer,
    Rappor,
    SquareWave,
    reading,
)
from dalenius.local.items import read_items
from dalenius.local.strings import read_strings

ITEMS = KaryResponse(domain=3, ratio=2**60)
NUMBERS = DuchiResponse.calibrate(lower=0, upper=1, epsilon=1)
WORDS = HadamardSketch.calibrate(rows=4, columns=8, epsilon=1)
VECTORS = PrivUnit.calibrate(dimension=3, epsilon=4)
COLUMNS: list[Randomizer] = [
    ITEMS,
    NUMBERS,
    WORDS,
    SquareWave.calibrate(lower=0, upper=1, epsilon=1),
    HaarRanges.calibrate(domain=4, epsilon=1),
    Rappor.calibrate(epsilon=4),
    FragmentPuzzle.calibrate(length=1, epsilon=2, rows=2, columns=16),
]


def named(one: Randomizer) -> str:
    return type(one).__name__


@pytest.mark.parametrize("one", COLUMNS, ids=named)
def test_a_person_sends_one_report(one: Randomizer) -> None:
    """Of several columns each would be a report on one charge."""
    for bad in (np.ones((1, 3), int), np.ones((4, 2), int), np.ones((0, 2), int), np.array(1)):
        with pytest.raises(InvalidArgument, match="one value"):
            one.encode(bad)
    with pytest.raises(InvalidArgument, match="one value"):
        one.encode(pd.DataFrame({"a": [1, 2], "b": [3, 4]}))
    for good in (
        np.ones((4, 1), int),
        pd.DataFrame({"a": [1] * 4}),
        range(4),
        pl.Series([1] * 4),
        [[1, 1]] * 4,
    ):
        assert len(one.encode(good)) == 4


@pytest.mark.parametrize("one", [*COLUMNS, VECTORS], ids=named)
def test_what_is_no_column_is_refused_by_its_type(one: Randomizer) -> None:
    hidden = np.ma.masked_array([1, 2], mask=[False, True])
    for bad in (
        None,
        {1, 2},
        {1: 2},
        iter([1]),
        (x for x in [1]),
        bytearray(b"ab"),
        memoryview(b"a"),
        hidden,
    ):
        with pytest.raises(InvalidArgument) as refusal:
            one.encode(bad)
        assert "values" in refusal.value.remedy


def test_columns_of_texts_are_no_items_and_no_numbers() -> None:
    texts = ["a", "b"]
    frames = (pd.Series(texts), pd.Series(texts, dtype=object), pd.Series(texts, dtype="category"))
    for column in (*frames, pl.Series(texts), pd.DataFrame({"a": texts}), np.array(texts)):
        for one in (ITEMS, NUMBERS):
            with pytest.raises(InvalidArgument, match="by their type"):
                one.encode(column)
        assert len(WORDS.encode(column)) == 2
    with pytest.raises(InvalidArgument, match="by their type"):
        WORDS.encode(pd.Series([0.5]))


def test_missing_cells_of_frames_are_no_items() -> None:
    """Whether a column has some, and which, changes nothing but their own reports."""
    for column in (pd.Series([2, None], dtype="Int64"), pl.Series([2, None]), pd.Series([2.0, np.nan])):
        assert ITEMS.encode(column).rows[:, 0].tolist() == [2, 0]
    assert WORDS.read(pd.Series(["a", None])).tolist() == WORDS.read(["a", ""]).tolist()


def whole(cells: list[int | None]) -> list[Any]:
    """A column of whole numbers, as each library has it."""
    plain, arrow = pl.Series(cells, dtype=pl.Int64), pa.array(cells, pa.int8())
    codes = [-1 if cell is None else cell - 1 for cell in cells]
    return [
        plain,
        plain.to_frame(),
        arrow,
        pa.chunked_array([arrow, arrow[:0]]),
        arrow.dictionary_encode(),
        pa.table({"a": arrow}),
        pa.record_batch({"a": arrow}),
        pd.Series(cells, dtype="Int64"),
        pd.Series(cells, dtype="Int64", index=[-0.5, 0.0, 0.5]),
        pd.Series(cells, dtype="int64[pyarrow]"),
        pd.array(cells, dtype="Int64"),
        pd.DataFrame({"iloc": pd.Series(cells, dtype="Int64")}),
        pd.Series(pd.Categorical.from_codes(codes, [1, 2, 3])),
    ]


@pytest.mark.parametrize("cells", [[1, 2, 3], [1, 2, None], [None] * 3, [1, None, 3]])
def test_missing_cells_change_nothing_of_the_others(cells: list[int | None]) -> None:
    """Whatever numpy makes of a column that has some."""
    texts = [b"" if cell is None else b"%d" % cell for cell in cells]
    assert [read_strings(column) for column in whole(cells)] == [texts] * 13
    items = [cell or 0 for cell in cells]
    for column in whole(cells)[:-1]:
        assert read_items(column, 9).tolist() == items
    flags = [None if cell is None else cell > 1 for cell in cells]
    tall = pl.Series([None if cell is None else [cell] for cell in cells], dtype=pl.Array(pl.Int64, 1))
    for one in (WORDS, ITEMS, NUMBERS):
        with pytest.raises(InvalidArgument, match="one value"):
            one.encode(tall)
    for bools in (
        pl.Series(flags, dtype=pl.Boolean),
        pa.array(flags, pa.bool_()),
        pd.array(flags, "boolean"),
    ):
        assert read_items(bools, 9).tolist() == [int(flag or 0) for flag in flags]
        with pytest.raises(InvalidArgument, match="by their type"):
            WORDS.encode(bools)


def test_a_value_alone_is_one_person() -> None:
    assert ITEMS.encode(2).rows.tolist() == [[2]] == ITEMS.encode(np.int64(2)).rows.tolist()
    assert WORDS.read("ab").tolist() == WORDS.read(["ab"]).tolist()
    assert WORDS.read(5).tolist() == WORDS.read(["5"]).tolist()


def test_vectors_are_rows_and_people_are_not_mixed() -> None:
    row = [0.6, 0.0, -0.8]
    for bad in (
        np.tile(row, (1, 5000)),
        np.ones((3, 2)),
        np.ones(6),
        np.ones((1, 1, 3)),
        0.5,
        pd.Series(row),
    ):
        with pytest.raises(InvalidArgument, match="3 entries") as refusal:
            VECTORS.encode(bad)
        assert "(people, 3)" in refusal.value.remedy
    frame = pd.DataFrame([row, row])
    for good, many in (
        ([row], 1),
        (np.array(row), 1),
        ([row, row], 2),
        (frame, 2),
        (pd.Series([row, row]), 2),
    ):
        assert VECTORS.read(good).tolist() == [row] * many
    assert len(VECTORS.encode([])) == len(VECTORS.encode(np.empty((0, 3)))) == 0
    for bad in (
        np.empty((3, 0)),
        np.empty((0, 2)),
        np.array(1.0),
        np.array(None),
        pl.Series([1, None, 1]),
        pd.Series([1, None, 1], dtype="Int64"),
        pa.array([True, None, True]),
    ):
        with pytest.raises(InvalidArgument, match="3 entries"):
            VECTORS.encode(bad)
    with pytest.raises(InvalidArgument, match="by their type"):
        VECTORS.encode(np.array([["0.5", "1", "0"]]))


def test_cells_of_vectors_are_numbers_or_zero() -> None:
    odd = [["0.5", "x", 0], [10**400, 1, None], [math.nan, np.float32(2), 1j], [object(), True, -math.inf]]
    assert VECTORS.read(odd).tolist() == [[0, 0, 0], [0, 1, 0], [0, 2, 0], [0, 1, 0]]
    assert VECTORS.read(np.array(odd, object)).tolist() == VECTORS.read(odd).tolist()
    assert VECTORS.read([["x", 1, None]]).tolist() == [[0, 1, 0]]
    assert VECTORS.read([[[1, 2]] * 3] * 2).tolist() == [[0, 0, 0]] * 2


def test_entries_that_are_no_vectors_are_zeros() -> None:
    """Each is a person's, whatever the others are."""
    row, zeros = [0.6, 0.0, -0.8], [0, 0, 0]
    tables = [], [1.0], [1, 2, 3, 4], np.ones((1, 3)), np.array(1.0), np.ones(2), range(10**9), np.ma.masked
    for odd in (None, "x", "abc", math.nan, np.float64(1), 0.5, object(), {}, {1, 2, 3}, pd.NA, *tables):
        assert VECTORS.read([row, odd]).tolist() == [row, zeros]
        assert VECTORS.read(pd.Series([odd, row], dtype=object)).tolist() == [zeros, row]
        assert VECTORS.read([None, odd]).tolist() == [zeros] * 2
        assert VECTORS.read_one(odd).tolist() == [zeros]
    numbers = pl.Float64()
    for kind in (pl.List(numbers), pl.Array(numbers, 3)):
        for rows in ([row, row], [row, None], [None, None], [row, [0.6, 0.0, None]]):
            assert len(VECTORS.read(pl.Series(rows, dtype=kind))) == 2
            assert len(VECTORS.read(pl.Series(rows, dtype=kind).to_arrow())) == 2
    for cells in ([1, 2, 3], [1, 2, None]):
        assert VECTORS.read(pl.Series(cells).cast(pl.Decimal(9, 2))).tolist() == [zeros] * 3
    one = PrivUnit.calibrate(dimension=1, epsilon=4)
    assert one.read_one(0.5).tolist() == one.read_one([0.5]).tolist() == [[0.5]]
    assert one.read_one(None).tolist() == [[0]]
    for flat in (
        [0.5, None, 0.3],
        [[0.5], [], (0.3,)],
        pd.Series([0.5, None, 0.3]),
        pa.array([0.5, None, 0.3]),
    ):
        assert one.read(flat).tolist() == [[0.5], [0], [0.3]]
    assert one.read(np.array([0.5, 0.3])).tolist() == one.read([0.5, 0.3]).tolist() == [[0.5], [0.3]]


PLAIN = st.one_of(
    st.floats(), st.integers(-(10**400), 10**400), st.booleans(), st.none(), st.text(max_size=2)
)
ODD = st.sampled_from(
    [np.ma.masked, 1j, pd.NA, Decimal("sNaN"), np.float32(0.5), np.datetime64("NaT"), [1.0]]
)
ROW = st.lists(st.one_of(PLAIN, ODD), max_size=4)
PERSON = st.one_of(
    st.lists(st.floats(-1, 1), min_size=2, max_size=2),
    ROW,
    ROW.map(tuple),
    PLAIN,
    ODD,
    st.lists(st.floats(), max_size=3).map(np.array),
    st.just(np.ma.array([0.5, 0.6], mask=[False, True])),
)


@given(st.lists(PERSON, max_size=4), st.lists(PERSON, max_size=4), st.integers(1, 2))
def test_a_person_is_read_alike_whoever_else_is_there(first: list[Any], second: list[Any], size: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both = reading.vectors(first + second, size)
        apart = [reading.vectors(people, size).tolist() for people in (first, second)]
        assert both.tolist() == apart[0] + apart[1] and both.shape == (len(first + second), size)


def test_no_value_fails_or_warns() -> None:
    """Whole numbers of any length, and numbers beyond those of floats."""
    before = sys.get_int_max_str_digits()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            sys.set_int_max_str_digits(640)
            for power in (0, 616, 700, 4299, 5000, 100_000):
                for one in (WORDS, ITEMS, NUMBERS, Rappor.calibrate(epsilon=4)):
                    assert len(one.encode([10**power, -(10**power)])) == 2
        finally:
            sys.set_int_max_str_digits(before)
        assert WORDS.read([10**5000]).tolist() == WORDS.read([""]).tolist() != WORDS.read([10**600]).tolist()
        huge = np.array(["1e4000", "-1e4000", "0.5"], np.longdouble)
        assert NUMBERS.read(huge).tolist() == [1 << 48, 0, 1 << 47]
        assert ITEMS.encode(huge).rows.tolist() == [[0]] * 3
        assert VECTORS.read(huge).tolist() == [[0, 0, 0.5]]
        tiny = PrivUnit.calibrate(dimension=3, epsilon=4, radius=1e-150)
        wide = PrivUnit.calibrate(dimension=3, epsilon=4, radius=1e150)
        rows = np.array([[0, 0, 0], [1e308, -1e308, 1e308], [5e-324, 0, 0], [1e-150, 0, 0]])
        for vectors in (tiny, wide):
            assert len(vectors.estimator().add(vectors.encode(rows)).estimate()["mean"]) == 3


def test_sizes_that_floats_cannot_measure_are_refused() -> None:
    for radius in (1 / 10**200, 10**400, 0):
        with pytest.raises(InvalidArgument, match="radius"):
            PrivUnit.calibrate(dimension=3, epsilon=4, radius=radius)
    for upper in (5e-324, 1e-200, 1e200):
        for kind in (DuchiResponse, SquareWave):
            with pytest.raises(InvalidArgument, match="upper - lower"):
                kind.calibrate(lower=0, upper=upper, epsilon=1)
    one = DuchiResponse.calibrate(lower=0, upper=1e-150, epsilon=1)
    assert one.read([0, 5e-151, 1]).tolist() == [0, 1 << 47, 1 << 48]
    assert one.estimator().add(one.encode([0])).estimate()["variance"][0] > 0
