"""Rows are linked to the one person who agrees, and counted as alone exactly when nobody else is alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.attacks import link, links, uniqueness
from dalenius.attacks.linkage import NOBODY
from dalenius.errors import InvalidArgument

ROWS = {"age": [30, 30, 41, 52, 60], "sex": ["F", "M", "F", "F", "M"], "illness": list("abcde")}
PEOPLE = {
    "name": ["Ana", "Bo", "Cy", "Di", "Ed", "Flo"],
    "sex": ["M", "F", "F", "F", "F", "M"],
    "age": [30, 30, 41, 41, 52, 70],
}
ON = ["age", "sex"]
VALUES = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), min_size=1, max_size=30)


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_a_row_is_linked_to_the_one_person_who_agrees(kind: Callable[[Any], Any]) -> None:
    assert links(kind(ROWS), kind(PEOPLE), on=ON).tolist() == [1, 0, NOBODY, 4, NOBODY]


def test_a_report_counts_links_and_right_ones() -> None:
    found = link(ROWS, PEOPLE, on=ON)
    assert dict(found.details) == {"linked to one": 3, "linked to several": 1, "linked to nobody": 1}
    assert (found.success, found.baseline) == (3 / 5, 1 / 6)
    # The row of the woman of 52 is not Ed's: the list lacks whose it is.
    told = link(ROWS, PEOPLE, on=ON, truth=[1, 0, 2, NOBODY, NOBODY])
    assert (told.success, told.details["linked rightly"]) == (2 / 5, 2)


def test_missing_values_agree_with_each_other() -> None:
    left = {"a": [None, float("nan"), 1]}
    assert links(left, {"a": [1, None]}, on=["a"]).tolist() == [1, 1, 0]


def test_a_number_is_not_its_text() -> None:
    assert links({"a": [1, 2]}, {"a": ["1", "2"]}, on=["a"]).tolist() == [NOBODY, NOBODY]


@given(VALUES)
def test_linking_a_table_to_itself_finds_those_who_are_alone(rows: list[tuple[int, str]]) -> None:
    table = {"x": [x for x, _ in rows], "y": [y for _, y in rows]}
    alone = [NOBODY if rows.count(row) > 1 else i for i, row in enumerate(rows)]
    assert links(table, table, on=["x", "y"]).tolist() == alone
    found = uniqueness(table, on=["x", "y"])
    assert found.share == sum(a != NOBODY for a in alone) / len(rows)
    assert sum(found.sizes.values()) == len(rows)
    assert found.smallest == min(Counter(rows).values())


def test_uniqueness_looks_at_every_choice_of_columns() -> None:
    found = uniqueness({**ROWS, "zip": [1, 1, 1, 1, 2]}, on=["age", "sex", "zip"])
    assert found.shares["zip",] == 1 / 5
    assert found.shares["age",] == 3 / 5
    assert found.shares["age", "sex"] == 1
    assert len(found.shares) == 7
    assert found.figure.series[0].y == (3 / 5, 1, 1)
    assert found.figure.series[1].y == (0, 2 / 5, 1)


def test_many_columns_of_many_values_do_not_overflow() -> None:
    table = {f"c{i}": np.arange(10_000) for i in range(8)}
    assert links(table, table, on=list(table)).tolist() == list(range(10_000))


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_a_column_that_is_not_there_is_named(kind: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidArgument, match="no column 'height'"):
        links(kind(ROWS), kind(PEOPLE), on=["height"])


@pytest.mark.parametrize("on", [[], "age"])
def test_columns_must_be_listed(on: Any) -> None:
    with pytest.raises(InvalidArgument, match="on must list"):
        links(ROWS, PEOPLE, on=on)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="one person for each row"):
        link(ROWS, PEOPLE, on=ON, truth=[1])
    with pytest.raises(InvalidArgument, match="differ in length"):
        uniqueness({"a": [1, 2], "b": [1]}, on=["a", "b"])
    with pytest.raises(InvalidArgument, match="no rows"):
        link(ROWS, {"age": [], "sex": []}, on=ON)
    with pytest.raises(InvalidArgument, match="more than 12"):
        uniqueness(ROWS, on=[f"c{i}" for i in range(13)])
