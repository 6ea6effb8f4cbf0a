"""Choosing a candidate: exact laws, and neither errors nor shapes that depend on utilities."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.noise import selection
from dalenius.noise.candidates import CLIP, Weights, integers

UTILITIES = np.array([3, 0, 5, 5, -2, 4])
RATE = Fraction(1, 3)
SELECT = [noise.exponential_mechanism, noise.permute_and_flip, noise.noisy_max]


def exponential_law(utilities: np.ndarray, rate: float) -> np.ndarray:
    weights = np.exp(rate * (utilities - utilities.max()))
    return weights / weights.sum()


def flip_law(utilities: np.ndarray, rate: float) -> np.ndarray:
    """The definition, over all orders: the first of them whose coin succeeds."""
    heads = np.exp(rate * (utilities - utilities.max()))
    law = np.zeros(utilities.size)
    for order in itertools.permutations(range(utilities.size)):
        left = 1.0
        for i in order:
            law[i] += left * heads[i]
            left *= 1 - heads[i]
    return law / math.factorial(utilities.size)


def noisy_max_law(utilities: np.ndarray, scale: float) -> np.ndarray:
    """Summed over the value of the maximum and over who shares it."""
    r, reach = math.exp(-1 / scale), 60 * scale
    law = np.zeros(utilities.size)
    for top in range(int(utilities.min() - reach), int(utilities.max() + reach)):
        z = top - utilities
        at = (1 - r) / (1 + r) * r ** np.abs(z)
        under = np.where(z <= 0, r ** (1 - z) / (1 + r), 1 - r ** np.maximum(z, 0) / (1 + r))
        for ties in range(1, 1 << utilities.size):
            who = np.array([ties >> i & 1 for i in range(utilities.size)], bool)
            law[who] += np.where(who, at, under).prod() / who.sum()
    return law


@pytest.mark.parametrize("rate", [Fraction(1, 3), 0, 0.05, 1])
def test_the_exponential_mechanism(rate, likely) -> None:
    chosen = noise.exponential_mechanism(UTILITIES, rate, 1_000_000)
    likely(np.bincount(chosen, minlength=6), exponential_law(UTILITIES, float(rate)))


def test_permute_and_flip(likely) -> None:
    chosen = noise.permute_and_flip(UTILITIES, RATE, 30_000)
    likely(np.bincount(chosen, minlength=6), flip_law(UTILITIES, float(RATE)))


def test_noisy_max(likely) -> None:
    chosen = noise.noisy_max(UTILITIES, 2, 20_000)
    law = noisy_max_law(UTILITIES, 2)
    assert law.sum() == pytest.approx(1)
    likely(np.bincount(chosen, minlength=6), law)


def test_choices_by_balls_alone(monkeypatch: pytest.MonkeyPatch, likely) -> None:
    whole = selection._coins
    monkeypatch.setattr(selection, "_coins", lambda low, high, *rest: whole(0 * low - 1, 0 * high + 2, *rest))
    chosen = noise.exponential_mechanism(UTILITIES, RATE, 60_000)
    likely(np.bincount(chosen, minlength=6), exponential_law(UTILITIES, float(RATE)))
    chosen = noise.permute_and_flip(UTILITIES, RATE, 10_000)
    likely(np.bincount(chosen, minlength=6), flip_law(UTILITIES, float(RATE)))


def test_rejected_proposals_are_made_up_for(monkeypatch: pytest.MonkeyPatch, likely) -> None:
    """Doubles that are said to be off by a third of themselves make an envelope that rejects."""
    exact = Weights.of

    def loose(utilities, rate) -> Weights:
        weights = exact(utilities, rate)
        return Weights(weights.distance, rate, weights.value, weights.value / 3)

    monkeypatch.setattr(Weights, "of", loose)
    chosen = noise.exponential_mechanism(UTILITIES, RATE, 60_000)
    likely(np.bincount(chosen, minlength=6), exponential_law(UTILITIES, float(RATE)))


def test_a_million_candidates(likely) -> None:
    """In a hundred groups of ten thousand, each group of one utility."""
    utilities = np.repeat(np.arange(100), 10_000)
    chosen = noise.exponential_mechanism(utilities, Fraction(1, 50), 200_000) // 10_000
    likely(np.bincount(chosen, minlength=100), exponential_law(np.arange(100), 0.02))
    for select in SELECT:
        assert 0 <= int(select(utilities, 1)[0]) < 10**6


@pytest.mark.parametrize("select", SELECT)
@pytest.mark.parametrize(
    "utilities",
    [
        [2**63 - 1, -(2**63)],
        np.array([2**63 - 1, -(2**63)]),
        np.array([2**64 - 1, 0], np.uint64),
        [10**30, -(10**30)],
        np.array([10**30, 0], object),
        np.array([127, -128], np.int8),
    ],
)
def test_the_best_by_far_is_chosen_whatever_the_integers(select, utilities) -> None:
    assert set(select(utilities, 1, 50).tolist()) == {0}


def test_clipping_brings_no_two_utilities_farther_apart() -> None:
    wide = [-(10**30), -CLIP - 1, -CLIP, 0, 5, CLIP, CLIP + 1, 10**30]
    clipped = integers(wide).tolist()
    for (a, x), (b, y) in itertools.combinations(zip(wide, clipped, strict=True), 2):
        assert 0 <= y - x <= b - a


@pytest.mark.parametrize("select", SELECT)
@pytest.mark.parametrize(
    "utilities", [[], [1.5], [True], np.array([[1]]), np.array([0.5]), np.array([True]), 3, "ab"]
)
def test_what_is_no_vector_of_integers_is_refused(select, utilities) -> None:
    with pytest.raises(InvalidArgument, match=r"^utilities must be"):
        select(utilities, 1)


@pytest.mark.parametrize("select", SELECT)
def test_bad_parameters_are_refused_by_name(select) -> None:
    with pytest.raises(InvalidArgument, match=r"^(rate|scale) must be"):
        select([1, 2], -1)
    with pytest.raises(InvalidArgument, match=r"^size must be"):
        select([1, 2], 1, -1)


@pytest.mark.parametrize("rate", [10**400, Fraction(1, 10**400)])
def test_extreme_rates(rate, likely) -> None:
    chosen = noise.exponential_mechanism([0, 1], rate, 20_000)
    expected = [0.0, 1.0] if rate > 1 else [0.5, 0.5]
    if rate > 1:
        assert chosen.all()
        assert noise.permute_and_flip([0, 1], rate, 100).all()
    else:
        likely(np.bincount(chosen, minlength=2), np.array(expected))
