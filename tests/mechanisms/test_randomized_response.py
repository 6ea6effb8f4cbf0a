from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from contract import ALARM
from scipy.stats import binom, norm

from dalenius.errors import InvalidArgument, NotSound
from dalenius.mechanisms.randomized_response import RandomizedResponse
from dalenius.privacy.unit import Unit


def test_warners_design() -> None:
    """Warner 1965: the truth with probability p = 3/4 has ε = log 3 (Dwork and Roth 2014, Section 3.2)."""
    mechanism = RandomizedResponse(randomize=Fraction(1, 2))
    assert mechanism.probabilities(1).masses.tolist() == [0.25, 0.75]
    assert mechanism.loss.epsilon(0).upper == pytest.approx(math.log(3), rel=1e-15)


@pytest.mark.parametrize(("epsilon", "categories"), [(1, 2), (0.1, 2), (2, 10), (8, 1000), (800, 2)])
def test_calibration_is_tight_and_kept(epsilon: float, categories: int) -> None:
    """r = k/(e^ε + k − 1), never below."""
    mechanism = RandomizedResponse.calibrate(epsilon=epsilon, categories=categories)
    assert mechanism.loss.epsilon(0).upper <= epsilon
    least = categories * math.exp(-min(epsilon, 700)) / (1 + (categories - 1) * math.exp(-min(epsilon, 700)))
    assert float(mechanism.randomize) <= least * (1 + 1e-13)


def test_the_estimator_is_unbiased_and_its_variance_is_known() -> None:
    """By enumeration of all reports of three people in three categories."""
    mechanism = RandomizedResponse(randomize=Fraction(3, 5), categories=3)
    true, other = 0.6, 0.2
    people = (0, 0, 2)
    mean, square = np.zeros(3), np.zeros(3)
    for reports in product(range(3), repeat=3):
        mass = math.prod(true if r == p else other for r, p in zip(reports, people, strict=True))
        share = mechanism.estimate(list(reports)).share
        mean, square = mean + mass * share, square + mass * share**2
    f = np.array([2, 0, 1]) / 3
    assert mean == pytest.approx(f, abs=1e-12)
    variance = (f * true * (1 - true) + (1 - f) * other * (1 - other)) / (3 * (true - other) ** 2)
    assert square - mean**2 == pytest.approx(variance, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_error_bars_cover(alpha: float) -> None:
    """Exactly, by the law of the count: twenty people, any number of them in the category."""
    mechanism, n = RandomizedResponse(randomize=Fraction(1, 2), categories=4), 20
    true, other = 0.625, 0.125
    found = [mechanism.estimate([0] * c + [1] * (n - c), alpha=alpha) for c in range(n + 1)]
    for m in range(n + 1):
        law = np.convolve(binom.pmf(range(m + 1), m, true), binom.pmf(range(n - m + 1), n - m, other))
        held = [f.low[0] <= m / n <= f.high[0] for f in found]
        assert float(law @ np.array(held)) >= 1 - alpha - 1e-12


def test_error_bars_of_many_reports_are_those_of_the_normal_law() -> None:
    """False alarm 1e-7 for the share; widths within a hundredth of the normal approximation."""
    mechanism = RandomizedResponse.calibrate(epsilon=1, categories=3)
    people = np.repeat([0, 1, 2], [50_000, 30_000, 20_000])
    found = mechanism.estimate(mechanism.release(people)["report"])
    true = 1 - float(mechanism.randomize) * 2 / 3
    other = float(mechanism.randomize) / 3
    f = np.array([0.5, 0.3, 0.2])
    spread = np.sqrt((f * true * (1 - true) + (1 - f) * other * (1 - other)) / 1e5) / (true - other)
    assert (np.abs(found.share - f) < norm.isf(ALARM / 6) * spread).all()
    assert (found.high - found.low) / (2 * 1.96 * spread) == pytest.approx(1, abs=0.02)


def test_what_is_no_category_counts_as_the_first() -> None:
    mechanism = RandomizedResponse(randomize=0, categories=3)
    assert mechanism.release([-5, 7, 10**30, 1, True]).columns["report"] == (0, 0, 0, 1, 1)
    assert mechanism.release(np.array([255, 2], dtype=np.uint8)).columns["report"] == (0, 2)
    assert mechanism.release(np.array([2**64 - 1, 2], dtype=np.uint64)).columns["report"] == (0, 2)
    assert mechanism.release(np.array([2.0, np.nan, 0.5, -np.inf])).columns["report"] == (2, 0, 0, 0)
    odd = [2, None, "2", math.nan, 2.0, 1.5, [2], np.int8(2), np.float32(2), np.zeros(2)]
    assert mechanism.release(odd).columns["report"] == (2, 0, 0, 0, 2, 0, 0, 2, 2, 0)
    assert RandomizedResponse(randomize=0, categories=300).release(np.array([-1], dtype=np.int8)).value == 0
    assert len(mechanism.release([])) == 0


@pytest.mark.parametrize("bad", ["a", np.array(["a"]), np.array([1j]), np.array(["2020"], "datetime64[Y]")])
def test_categories_are_whole_numbers_by_type(bad: object) -> None:
    with pytest.raises(InvalidArgument):
        RandomizedResponse(randomize=0.5).release(bad)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf")])
def test_bad_parameters_are_refused_by_name(bad: float) -> None:
    with pytest.raises(InvalidArgument, match="epsilon"):
        RandomizedResponse.calibrate(epsilon=bad)
    with pytest.raises(InvalidArgument, match="categories"):
        RandomizedResponse.calibrate(epsilon=1, categories=bad)
    if bad:
        with pytest.raises(InvalidArgument, match="randomize"):
            RandomizedResponse(randomize=bad)


def test_what_cannot_be_estimated_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="randomize"):
        RandomizedResponse(randomize=1).estimate([0, 1])
    with pytest.raises(InvalidArgument, match="reports"):
        RandomizedResponse(randomize=0.5).estimate([])


def test_who_takes_part_is_not_hidden() -> None:
    assert RandomizedResponse.calibrate(epsilon=1).loss.relation == "replace"
    hidden = RandomizedResponse.calibrate(epsilon=1, relation="zero_out")
    assert hidden.loss.relation == "zero_out"
    unit = Unit("person", relation="zero_out")
    assert hidden.release([1, None], unit=unit).receipt.unit == unit
    with pytest.raises(NotSound, match="add_remove") as refusal:
        RandomizedResponse(randomize=0.5, relation="add_remove")
    assert "zero_out" in refusal.value.remedy
    with pytest.raises(InvalidArgument, match="relation"):
        RandomizedResponse(randomize=0.5, relation="none")
