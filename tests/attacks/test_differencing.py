"""Refusing small groups stops no difference; noise does, as far as the loss says and no further."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dalenius.attacks import Attack, by_difference, difference, suppressed
from dalenius.attacks.demo_differencing import under_account
from dalenius.attacks.differencing import tallied
from dalenius.errors import InvalidArgument

PEOPLE, LEAST = 100, 10
SECRET = np.random.default_rng(1).random(PEOPLE) < 0.5
ALARM = 1e-7


def ask(group: np.ndarray) -> float:
    return float(SECRET[group].sum())


def alone(person: int) -> np.ndarray:
    return np.arange(PEOPLE) == person


@pytest.mark.parametrize("both_sides", [False, True])
def test_refusing_small_groups_stops_nothing(both_sides: bool) -> None:
    rule = suppressed(ask, LEAST, both_sides=both_sides)
    assert rule(alone(3)) is None
    found = by_difference(rule, SECRET, range(PEOPLE), seed=5)
    assert (found.success, found.details["refused"]) == (1, 0)
    assert found.figure is not None
    yes, no, _ = found.figure.series
    assert set(yes.y) == {1}
    assert set(no.y) == {0}


def test_a_rule_on_both_sides_refuses_nearly_everyone_too() -> None:
    assert suppressed(ask, LEAST)(~alone(3)) is not None
    assert suppressed(ask, LEAST, both_sides=True)(~alone(3)) is None


def test_small_counts_of_large_groups_are_refused() -> None:
    few = ~SECRET | (np.arange(PEOPLE) < 3)
    assert few.sum() >= LEAST
    assert ask(few) < LEAST
    assert suppressed(ask, LEAST)(few) is None


def test_a_refused_group_is_not_counted_at_all() -> None:
    def never(group: np.ndarray) -> float:
        raise AssertionError

    assert suppressed(never, LEAST)(alone(0)) is None


def test_the_way_that_asks_least_is_taken() -> None:
    asked: list[int] = []

    def watched(group: np.ndarray) -> float:
        asked.append(int(group.sum()))
        return ask(group)

    assert difference(watched, 7, PEOPLE) == SECRET[7]
    assert asked == [1]
    asked.clear()
    assert difference(suppressed(watched, LEAST), 7, PEOPLE) == SECRET[7]
    assert asked == [PEOPLE, PEOPLE - 1]


def test_a_function_that_refuses_everything_tells_nothing() -> None:
    found = by_difference(lambda group: None, SECRET, range(PEOPLE))
    assert found.details["refused"] == PEOPLE
    assert found.success == found.baseline


def test_no_targets_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="one guess for each target"):
        tallied([], [])


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(4)])
def test_the_advantage_keeps_to_the_loss_and_who_knows_the_others_attains_it(epsilon: Fraction) -> None:
    """Two lower ends and one upper end of exact intervals may fail. False-alarm rate: 3e-7."""
    blind, informed = under_account(
        epsilon, trials=300, rng=np.random.default_rng(), confidence=1 - 2 * ALARM
    )
    assert blind.within_bound
    assert informed.within_bound
    assert informed.bound is not None
    assert 2 * informed.high - 1 >= informed.bound


def test_an_attack_that_learns_more_than_the_loss_allows_is_seen() -> None:
    found = Attack.counted("broken noise", 280, 300, baseline=0.5, confidence=1 - 2 * ALARM, bound=0.4)
    assert not found.within_bound
