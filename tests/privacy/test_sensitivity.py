"""Sensitivities: what is stated implies the rest, rounded up, under each relation."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.privacy.sensitivity import Sensitivity, sqrt_up
from dalenius.privacy.unit import Relation

VECTORS = st.lists(st.integers(-9, 9), min_size=1, max_size=6).filter(any)


def norms(vector: list[int]) -> tuple[int, int, int, int]:
    """l0, l1, the square of l2, linf."""
    sizes = [abs(entry) for entry in vector]
    return sum(map(bool, sizes)), sum(sizes), sum(size**2 for size in sizes), max(sizes)


def holds(sensitivity: Sensitivity, vector: list[int]) -> bool:
    l0, l1, square, linf = norms(vector)
    return (
        (sensitivity.l0 is None or l0 <= sensitivity.l0)
        and (sensitivity.l1 is None or l1 <= sensitivity.l1)
        and (sensitivity.l2 is None or square <= sensitivity.l2**2)
        and (sensitivity.linf is None or linf <= sensitivity.linf)
    )


@given(VECTORS, st.sets(st.sampled_from(["l0", "l1", "l2", "linf"]), min_size=1))
def test_what_is_implied_holds_for_every_vector_that_meets_what_is_stated(
    vector: list[int], stated: set[str]
) -> None:
    l0, l1, square, linf = norms(vector)
    bounds = {"l0": l0, "l1": l1, "l2": sqrt_up(Fraction(square)), "linf": linf}
    if stated == {"l0"}:
        with pytest.raises(InvalidArgument, match="l1, l2 or linf"):
            Sensitivity(l0=l0)
    else:
        assert holds(Sensitivity(**{name: bounds[name] for name in stated}), vector)


@given(st.data(), st.integers(1, 5), st.booleans(), st.sampled_from(["add_remove", "zero_out", "replace"]))
def test_a_sum_moves_no_further_than_said(
    data: st.DataObject, size: int, nonnegative: bool, relation: Relation
) -> None:
    entries = st.lists(st.integers(0 if nonnegative else -5, 5), min_size=size, max_size=size)
    old, new = data.draw(entries.filter(any)), data.draw(entries.filter(any))
    both = [max(pair) for pair in zip(norms(old), norms(new), strict=True)]
    bounds = {"l0": both[0], "l1": both[1], "l2": sqrt_up(Fraction(both[2])), "linf": both[3]}
    said = Sensitivity.of_sum(**bounds, nonnegative=nonnegative, relation=relation)
    moved = [a - b for a, b in zip(old, new, strict=True)] if relation == "replace" else old
    assert not any(moved) or holds(said, moved)


def test_a_histogram_count_moves_by_one_or_by_two() -> None:
    added = Sensitivity.of_sum(l0=1, linf=1, nonnegative=True)
    assert (added.l0, added.l1, added.l2, added.linf) == (1, 1, 1, 1)
    replaced = Sensitivity.of_sum(l0=1, linf=1, nonnegative=True, relation="replace")
    assert (replaced.l0, replaced.l1, replaced.linf) == (2, 2, 1)
    assert replaced.l2 == sqrt_up(Fraction(2)) and float(replaced.need("l2")) == 2**0.5


def test_signed_contributions_double_in_every_norm_under_replace() -> None:
    said = Sensitivity.of_sum(l0=4, linf=1, relation="replace")
    assert (said.l0, said.l1, said.l2, said.linf) == (8, 8, 4, 2)


def test_another_relation_takes_the_triangle_inequality_or_is_refused() -> None:
    said = Sensitivity(l0=1, linf=0.5).under("replace")
    assert (said.l0, said.l1, said.l2, said.linf, said.relation) == (2, 1, 1, 1, "replace")
    with pytest.raises(RelationMismatch):
        said.under("add_remove")


def test_a_norm_that_nothing_implies_is_refused() -> None:
    said = Sensitivity(l2=1)
    assert said.need("linf") == 1
    with pytest.raises(NotSound, match="l1") as refusal:
        said.need("l1")
    assert "l0" in refusal.value.remedy
    with pytest.raises(InvalidArgument, match="norm"):
        said.need("l3")


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "1", True])
def test_bounds_are_positive_numbers(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="linf"):
        Sensitivity(linf=bad)


def test_a_float_is_the_decimal_it_prints() -> None:
    assert Sensitivity(linf=0.1).linf == Fraction(1, 10)


@given(st.fractions(min_value=Fraction(1, 10**40), max_value=10**40))
def test_roots_round_up_and_barely(number: Fraction) -> None:
    root = sqrt_up(number)
    assert number <= root**2 < number * (1 + Fraction(1, 2**62))


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_roots_of_squares_are_exact(number: Fraction) -> None:
    assert sqrt_up(number**2) == number


def test_one_number_stays_one_under_every_relation() -> None:
    number = Sensitivity.of_number(3)
    assert (number.l0, number.l1, number.l2, number.linf) == (1, 3, 3, 3)
    twice = number.under("replace")
    assert (twice.l0, twice.l1, twice.of_one_number) == (1, 6, True)
    assert number != Sensitivity(l0=1, linf=3)
    with pytest.raises(InvalidArgument, match="l0 = 1"):
        Sensitivity(l0=2, linf=1, of_one_number=True)
