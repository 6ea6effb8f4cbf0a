"""Bits come back from sums with small errors, not from few sums, and not from sums with large ones."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius.attacks import random_groups, reconstruct
from dalenius.attacks.reconstruction import Method, asked, solve
from dalenius.errors import InvalidArgument

PEOPLE = 60
METHODS: list[Method] = ["least_squares", "linear_programming"]


def town(seed: int = 1, questions: int = 4 * PEOPLE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    secret = np.random.default_rng(seed).random(PEOPLE) < 0.4
    groups = random_groups(PEOPLE, questions, seed=seed + 100)
    return secret, groups, groups @ secret.astype(int)


@pytest.mark.parametrize("method", METHODS)
def test_exact_sums_give_every_bit(method: Method) -> None:
    secret, groups, sums = town()
    found = reconstruct(secret, groups, sums, method=method)
    assert (found.success, found.trials) == (1, PEOPLE)
    assert np.allclose(solve(groups, sums, method=method), secret, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_sums_with_small_errors_give_nearly_every_bit(method: Method) -> None:
    secret, groups, sums = town()
    errors = np.random.default_rng(2).integers(-2, 3, len(sums))
    assert reconstruct(secret, groups, sums + errors, method=method).success > 0.95


def test_linear_programming_bears_wild_answers_that_least_squares_does_not() -> None:
    secret, groups, sums = town()
    rng = np.random.default_rng(3)
    wild = np.where(rng.random(len(sums)) < 0.15, rng.integers(0, PEOPLE, len(sums)), sums)
    assert reconstruct(secret, groups, wild, method="linear_programming").success == 1
    assert reconstruct(secret, groups, wild).success < 0.9


def test_few_sums_leave_most_bits_open() -> None:
    secret, groups, sums = town(questions=5)
    assert reconstruct(secret, groups, sums).success < 0.8


def test_knowing_the_spread_of_errors_helps_where_answers_are_as_many_as_people() -> None:
    secret, groups, sums = town(questions=PEOPLE)
    noisy = sums + np.random.default_rng(4).integers(-3, 4, len(sums))
    blind, knowing = (reconstruct(secret, groups, noisy, spread=spread).success for spread in (0, 2))
    assert knowing > blind + 0.1


def test_guessing_gives_the_more_frequent_bit() -> None:
    secret, groups, sums = town()
    share = secret.mean()
    assert reconstruct(secret, groups, sums).baseline == max(share, 1 - share)


def test_answers_may_be_asked_one_by_one() -> None:
    secret, groups, sums = town()
    assert (asked(lambda group: int(secret[group].sum()), groups) == sums).all()


def test_what_does_not_fit_is_refused() -> None:
    _, groups, sums = town()
    with pytest.raises(InvalidArgument, match="one answer for each group"):
        solve(groups, sums[1:])
    with pytest.raises(InvalidArgument, match="least_squares"):
        solve(groups, sums, method="magic")


def test_people_with_and_without_the_bit_are_drawn_apart() -> None:
    figure = reconstruct(*town()).figure
    assert figure is not None
    lowest, highest = min(figure.series[0].y), max(figure.series[1].y)
    assert lowest > 0.5 > highest
