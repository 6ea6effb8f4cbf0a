from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument
from dalenius.mechanisms.contributions import column, kept, same_length, table

IDS = st.lists(st.sampled_from(["ann", "bob", "cyd", "dan"]), max_size=30)


@settings(max_examples=60)
@given(ids=IDS, most=st.integers(1, 4), gone=st.sampled_from(["ann", "bob"]))
def test_a_unit_that_leaves_changes_nothing_for_the_others(ids: list[str], most: int, gone: str) -> None:
    names = np.array(ids, dtype=object)
    all_kept = kept(names, most)
    others = names != gone
    assert kept(names[others], most).tolist() == all_kept[others].tolist()
    for name in set(ids):
        assert all_kept[names == name].sum() == min(most, ids.count(name))


def test_what_is_kept_is_neither_the_first_nor_the_same_for_all() -> None:
    names = np.repeat(np.arange(200), 5)
    places = kept(names, 1).reshape(200, 5).argmax(axis=1)
    # 200 uniform choices of five: a cell below 15 or above 70 has probability below 1e-7.
    counts = np.bincount(places, minlength=5)
    assert counts.min() > 10 and counts.max() < 80


def test_ids_of_different_types_or_endings_are_different_units() -> None:
    """A unit that is merged with another would change what is kept of it."""
    assert kept([1, "1"], 1).all()
    assert kept(["a", "a\0"], 1).all()
    assert kept(["a", "a"], 1).sum() == 1


def test_no_value_of_a_list_is_refused() -> None:
    odd = [
        1,
        None,
        "x",
        10**400,
        -(10**400),
        Fraction(1, 2),
        Decimal("0.25"),
        True,
        [1],
        Decimal("sNaN"),
        np.int8(3),
    ]
    found = column(odd)
    assert found.dtype == np.float64
    assert np.nan_to_num(found, nan=-7).tolist() == [
        1, -7, -7, np.finfo(float).max, -np.finfo(float).max, 0.5, 0.25, 1, -7, -7, 3,
    ]  # fmt: skip


@pytest.mark.parametrize("number", [3, -7, 2**53 + 1, 2**63 - 1])
def test_a_number_reads_alike_in_every_type_of_column(number: int) -> None:
    """One null turns integers into floats or objects; the other records must not move."""
    whole = np.array([number, 5])
    types = (
        whole,
        whole.astype(float),
        whole.astype(object),
        np.append(whole.astype(object), None),
        [number],
    )
    assert {column(values)[0] for values in types} == {float(number)}


def test_what_is_masked_is_missing() -> None:
    found = column(np.ma.array([1, 10**6], mask=[False, True]))
    assert np.nan_to_num(found, nan=-1).tolist() == [1, -1]


def test_large_unsigned_numbers_are_read() -> None:
    assert column(np.array([2**64 - 1, 3], dtype=np.uint64)).tolist() == [2.0**64, 3]


@pytest.mark.parametrize("kind", ["U3", "S3", "M8[D]", "m8[D]", "c16", "V4"])
def test_a_column_of_another_type_is_refused(kind: str) -> None:
    with pytest.raises(InvalidArgument, match="numbers"):
        column(np.zeros(2, dtype=kind))


def test_a_series_is_read_by_its_array() -> None:
    class Series:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return np.array([1.5, 2.5])

    assert column(Series()).tolist() == [1.5, 2.5]


@pytest.mark.parametrize("bad", [3, "text", np.zeros((2, 2)), None])
def test_what_is_no_column_is_refused(bad: object) -> None:
    with pytest.raises(InvalidArgument):
        column(bad)


def test_rows_of_another_length_hold_nothing() -> None:
    found = table([[1, 2], [3], "ab", (4, None)], 2)
    assert np.nan_to_num(found, nan=-1).tolist() == [[1, 2], [-1, -1], [-1, -1], [4, -1]]
    assert table([], 3).shape == (0, 3)
    for bad in (np.zeros((2, 3)), 3, "ab", {"a": 1}, None):
        with pytest.raises(InvalidArgument, match="values must be"):
            table(bad, 2)


def test_a_table_reads_alike_in_every_type() -> None:
    rows = np.array([[1, 2], [3, 4]])
    hidden = np.ma.array(rows, mask=[[False, True], [False, False]])
    for values in (rows, rows.astype(float), rows.astype(object), rows.tolist(), iter(rows.tolist())):
        assert table(values, 2).tolist() == rows.tolist()
    assert np.nan_to_num(table(hidden, 2), nan=-1).tolist() == [[1, -1], [3, 4]]


def test_a_missing_id_changes_nothing_for_the_others() -> None:
    ids = np.repeat(np.arange(50), 4)
    expected = kept(ids, 2).tolist()
    for other in (np.append(ids.astype(object), None), [*ids.tolist(), None], [*ids.tolist(), math.nan]):
        assert kept(other, 2).tolist() == [*expected, False]


def test_records_without_an_id_are_left_out() -> None:
    """Two people without an id are not one unit: what counts of one must not depend on the other."""
    odd = [None, math.nan, 3.0, math.inf, True, "", b"", (), (1, None), [1], Decimal("sNaN"), Fraction(1, 2)]
    for cell in odd:
        assert kept([cell, 7], 1).tolist() == [False, True]
    assert kept(np.array(["", "a", ""]), 1).tolist() == [False, True, False]
    assert kept(np.ma.array([1, 2, 3], mask=[True, True, False]), 1).tolist() == [False, False, True]


@pytest.mark.parametrize(
    "ids", [np.array([1.0, 2.0]), pd.Series([1, None]), pd.Series([1.5, None], dtype="Float64")], ids=repr
)
def test_floats_are_refused_as_ids_by_their_type(ids: Any) -> None:
    """Ids of 17 digits beside one gap are floats to pandas, and several of them are one float."""
    with pytest.raises(InvalidArgument, match="ids are floats") as refused:
        kept(ids, 1)
    assert "Int64" in refused.value.remedy


def test_no_id_is_refused() -> None:
    odd = [
        10**5000,
        -(10**5000),
        b"x",
        (1, 2),
        (1, "2"),
        "(1, 2)",
        "\ud800",
        UUID(int=7),
        7,
        Decimal("1E+9999"),
    ]
    assert kept(odd, 1).tolist() == [True] * 9 + [False]
    assert kept([10**5000, Fraction(10**5000)], 1).sum() == 1, "a whole number of any type is one unit"


@pytest.mark.parametrize("ids", [np.zeros((2, 2)), np.array(["2020-01-01"], dtype="M8[D]"), np.array([1j])])
def test_ids_that_are_no_names_are_refused_by_their_type(ids: np.ndarray) -> None:
    with pytest.raises(InvalidArgument, match="ids must be"):
        kept(ids, 1)


@pytest.mark.parametrize("ids", [3, "ab", None, {"a": 1}, iter([1, 2]), np.array(1)])
def test_ids_without_a_length_are_refused(ids: object) -> None:
    with pytest.raises(InvalidArgument, match="ids must be"):
        same_length(ids, 2)
