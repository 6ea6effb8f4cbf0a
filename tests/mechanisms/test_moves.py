"""Moves stay within the sensitivity and use it up."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.mechanisms.moves import LENGTH, TURNS, furthest, in_turn
from dalenius.privacy.sensitivity import Sensitivity

BOUNDS = st.builds(
    Sensitivity,
    l0=st.integers(1, 9),
    l1=st.none() | st.integers(1, 60),
    l2=st.none() | st.integers(1, 30),
    linf=st.integers(1, 20),
)


@given(BOUNDS, st.sampled_from(["l1", "l2", "linf"]))
def test_a_move_is_one_of_neighbours(bound: Sensitivity, norm: str) -> None:
    move = furthest(bound, norm)
    assert move and all(size >= 1 for size in move)
    assert len(move) <= (bound.l0 or 0)
    assert sum(move) <= bound.need("l1")
    assert sum(size**2 for size in move) <= bound.need("l2") ** 2
    assert max(move) <= bound.need("linf")


@given(st.integers(1, 9), st.integers(1, 20))
def test_where_all_entries_may_change_fully_they_do(count: int, far: int) -> None:
    for norm in ("l1", "l2", "linf"):
        assert furthest(Sensitivity(l0=count, linf=far), norm) == [far] * count


def test_a_gaussian_move_is_spread_over_all_entries_where_it_stays_as_long() -> None:
    even = furthest(Sensitivity(l0=5, l2=2**20), "l2")
    assert len(even) == 5
    assert max(even) - min(even) <= 3
    assert math.isqrt(sum(size**2 for size in even)) >= 2**20 - 3
    assert furthest(Sensitivity(l0=5, l2=1), "l2") == [1]
    assert furthest(Sensitivity(l0=9, l1=10, linf=8), "l2") == [8, 2]
    assert furthest(Sensitivity(l2=2**20), "l2") == [2**19] * 4


def test_a_laplace_move_has_its_largest_entries_first() -> None:
    assert furthest(Sensitivity(l0=9, l1=11, linf=4), "l1") == [4, 4, 3]
    assert furthest(Sensitivity(l1=11), "l1") == [11]


@pytest.mark.parametrize(
    ("length", "entries"), [(1, 1), (1, 5), (2, 5), (3, 64), (7, 7), (1, None), (1, 10**9)]
)
def test_every_entry_has_its_turn(length: int, entries: int | None) -> None:
    turns = in_turn([1] * length, entries)
    assert len(turns) <= TURNS
    assert {len(turn) for turn in turns} == {max(length, min(entries or 4, LENGTH))}
    assert all(sum(turn) == length for turn in turns)
    assert turns[0][0] == turns[-1][-1] == 1
    if len(turns) < TURNS:
        assert all(map(any, zip(*turns, strict=True)))
