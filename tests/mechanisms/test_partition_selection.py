from __future__ import annotations

import itertools
import math
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from contract import check_json, check_law, divergence

from dalenius.errors import InvalidArgument
from dalenius.mechanisms.partition_selection import PartitionSelection
from dalenius.release import Release


def crossing(epsilon: float, whole: int) -> float:
    """The δ at which the two terms of π cross at a whole number, where the profile is attained."""
    return 1 / (1 + (math.exp(epsilon) + 1) * math.expm1(whole * epsilon) / math.expm1(epsilon))


def test_several_keys_are_drawn_by_the_law() -> None:
    mechanism = PartitionSelection(epsilon=1, delta=crossing(1, 2), keys=3)
    check_json(mechanism)
    check_law(mechanism, draws=30_000)


def recursion(epsilon: float, delta: float) -> list[float]:
    """Desfontaines, Voss, Gipson and Mandayam 2022, in floats."""
    found = [0.0]
    while found[-1] < 1:
        last = found[-1]
        found.append(min(math.exp(epsilon) * last + delta, 1 - math.exp(-epsilon) * (1 - last - delta), 1.0))
    return found


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-5), (0.1, 1e-6), (3, 0.2), (0.01, 0.01)])
def test_the_table_is_that_of_the_paper(epsilon: float, delta: float) -> None:
    mechanism = PartitionSelection(epsilon=epsilon, delta=delta)
    expected = recursion(epsilon, delta)
    assert mechanism.sure == len(expected) - 1
    found = [float(mechanism.probability(n)) for n in range(len(expected))]
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    rising = [p for p in expected if p < 0.4]
    closed = [delta * math.expm1(n * epsilon) / math.expm1(epsilon) for n in range(len(rising))]
    assert rising == pytest.approx(closed, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-5), (0.05, 1e-8), (4, 0.3)])
def test_the_inequalities_hold_exactly_between_all_neighbours(epsilon: float, delta: float) -> None:
    mechanism = PartitionSelection(epsilon=epsilon, delta=delta)
    # A rational below e^ε, so that nothing is owed to rounding.
    grown = Fraction(math.exp(epsilon)) * (1 + Fraction(1, 10**14))
    for n in range(mechanism.sure + 3):
        less, more = mechanism.probability(n), mechanism.probability(n + 1)
        assert less <= more
        for p, q in ((less, more), (more, less), (1 - less, 1 - more), (1 - more, 1 - less)):
            assert p <= grown * q + mechanism.delta


def test_no_unit_of_two_keys_costs_more_than_the_loss() -> None:
    mechanism = PartitionSelection(epsilon=0.7, delta=0.02, keys=2)
    counts = range(mechanism.sure + 1)
    claims = {epsilon: mechanism.loss.delta(epsilon).upper for epsilon in (0.0, 0.4, 1.0, 1.4, 2.0)}
    for a, b in itertools.combinations_with_replacement(counts, 2):
        laws = [mechanism.probabilities({"a": a + d, "b": b + d}) for d in (0, 1)]
        assert laws[0] is not None
        assert laws[1] is not None
        for epsilon, claim in claims.items():
            assert divergence(laws[0], laws[1], epsilon) <= claim + 1e-12
            assert divergence(laws[1], laws[0], epsilon) <= claim + 1e-12


@pytest.mark.parametrize("keys", [1, 5, 200])
def test_calibration_keeps_the_promise_and_is_no_worse_than_equal_parts(keys: int) -> None:
    found = PartitionSelection.calibrate(epsilon=1, delta=1e-5, keys=keys)
    assert found.loss.epsilon(1e-5).upper <= 1
    parts = PartitionSelection(epsilon=Fraction(1, keys), delta=Fraction(1, 10**5 * keys), keys=keys)
    assert found.sure <= parts.sure
    if keys == 200:
        assert found.sure < 0.4 * parts.sure


def test_only_keys_that_are_held_are_shown_and_their_order_is_their_own() -> None:
    mechanism = PartitionSelection(epsilon=1, delta=1e-5)
    many = mechanism.sure
    found = mechanism.release({"b": many, "none": 0, "a": 10**400, "less": -3, 7: many, 10: many, 2.5: many})
    assert list(found.columns["key"]) == [2.5, 7, 10, "a", "b"]
    again = mechanism.release({10: many, 7: many, "a": many, 2.5: many, "b": many})
    assert again.columns == found.columns
    assert len(mechanism.release({})) == 0
    assert len(mechanism.release({float("nan"): many, None: many})) == 2


def test_a_key_of_one_unit_is_shown_as_often_as_delta_allows() -> None:
    mechanism = PartitionSelection(epsilon=1, delta=0.25)
    shown = int(np.sum(mechanism.sample({"a": 1}, 40_000)))
    # Five and a half standard deviations: a false alarm in 2.6e7 runs.
    assert abs(shown - 10_000) < 5.5 * math.sqrt(40_000 * 0.25 * 0.75)


@pytest.mark.parametrize(
    ("epsilon", "delta", "keys"),
    [
        (0, 0.1, 1),
        (-1, 0.1, 1),
        (float("nan"), 0.1, 1),
        (float("inf"), 0.1, 1),
        (1, 0, 1),
        (1, 1, 1),
        (1, 0.1, 0),
    ],
)
def test_bad_parameters_are_refused(epsilon: float, delta: float, keys: int) -> None:
    with pytest.raises(InvalidArgument):
        PartitionSelection(epsilon=epsilon, delta=delta, keys=keys)
    with pytest.raises(InvalidArgument):
        PartitionSelection.calibrate(epsilon=epsilon, delta=delta, keys=keys)


def test_a_huge_epsilon_shows_what_two_units_hold() -> None:
    mechanism = PartitionSelection(epsilon=10**5, delta=1e-9)
    assert mechanism.probability(1) == pytest.approx(1e-9)
    assert 1 - mechanism.probability(2) < 1e-36


def test_a_table_too_long_is_refused_with_a_remedy() -> None:
    with pytest.raises(InvalidArgument, match="larger epsilon"):
        PartitionSelection(epsilon=1e-7, delta=1e-9)


@pytest.mark.parametrize("counts", [{"a": 1.5}, {"a": None}, [1, 2], None])
def test_counts_must_be_whole_by_type(counts: Any) -> None:
    with pytest.raises(InvalidArgument):
        PartitionSelection(epsilon=1, delta=0.1).release(counts)


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (date(2026, 1, 31), "2026-01-31"),
        (b"x", "b'x'"),
        ((1, "a"), "(1, 'a')"),
        (Fraction(1, 3), "1/3"),
        (np.int64(3), 3),
        (np.str_("a"), "a"),
        (10**5000, hex(10**5000)),
        (None, None),
        (True, True),
        (1.5, 1.5),
        ("a", "a"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_key_of_any_type_is_released_as_what_a_release_holds(key: object, shown: object) -> None:
    found = PartitionSelection(epsilon=1, delta=1e-5).release({key: 10**6})
    assert list(found.columns["key"]) == [shown]
    assert Release.from_json(found.to_json()) == found


def test_no_key_is_refused() -> None:
    class Silent:
        def __str__(self) -> str:
            raise RuntimeError

    keys = [1, "a", None, (1, 2), b"x", 10**5000, -(10**5000), math.nan, Silent()]
    found = PartitionSelection(epsilon=1, delta=1e-5).release(dict.fromkeys(keys, 10**6))
    assert len(found) == len(keys)
