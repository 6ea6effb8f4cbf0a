"""Bars hold what they say they hold: against exact laws, and as often as stated (false alarms below 1e-7)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from dalenius.learn.evaluation.bars import auc, deviation, ratio
from dalenius.learn.evaluation.tables import GRID
from dalenius.mechanisms import Gaussian, Laplace
from dalenius.mechanisms.additive import Additive
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity

ALARM = 1e-7
UNIT = Sensitivity(l0=1, linf=1)
LAWS = [
    Laplace(scale=3, sensitivity=UNIT, grid=GRID, exact=True),
    Gaussian(scale=4, sensitivity=UNIT, grid=GRID, exact=True),
]
COARSE = [
    Laplace(scale=Fraction(1, 2), sensitivity=UNIT, grid=Grid(0), exact=True),
    Gaussian(scale=Fraction(1, 2), sensitivity=UNIT, grid=Grid(0), exact=True),
]
TIMES = 150


@pytest.mark.parametrize("scale", [Fraction(1, 3), 1, 5])
def test_the_moments_of_discrete_laplace_noise_are_at_most_those_of_the_continuous(scale: Fraction) -> None:
    steps, rate = np.arange(-2000, 2001), 1 / float(scale)
    for tilt in np.linspace(0.05, 0.95, 19) / float(scale):
        moment = math.tanh(rate / 2) * float(np.exp(tilt * steps - rate * np.abs(steps)).sum())
        assert moment <= 1 / (1 - (tilt * float(scale)) ** 2) * (1 + 1e-12)


@pytest.mark.parametrize("law", LAWS + COARSE, ids=lambda law: f"{law.kind} {law.scale}")
@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0, 0.5], [0.01] * 40 + [2.0]])
def test_a_deviation_is_exceeded_no_more_often_than_said(law: Additive, weights: list[float]) -> None:
    given = np.array(weights)
    noise = law.draw(20_000 * len(given)).reshape(-1, len(given)) * float(law.step)
    off = np.abs(noise @ given)
    for alpha in (0.05, 0.3):
        missed = int((off > deviation(given, law, alpha)).sum())
        assert binom.sf(missed - 1, len(off), alpha) > ALARM
    # Not absurdly far either: a tenth of it is exceeded often.
    assert (off > deviation(given, law, 0.05) / 10).mean() > 0.2 or law.scale < 1


def test_a_larger_weight_never_deviates_less() -> None:
    for law in LAWS:
        assert deviation(np.array([1.0, 0.4]), law, 0.05) <= deviation(np.array([1.0, 0.5]), law, 0.05)
        assert deviation(np.zeros(3), law, 0.05) == 0.0


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
@pytest.mark.parametrize("counts", [[90.0, 10.0, 30.0, 5.0], [2.0, 0.0, 1.0, 0.0], [0.0, 0.0, 400.0, 0.0]])
def test_the_bar_of_a_share_holds_it(law: Additive, counts: list[float]) -> None:
    exact = np.array(counts)
    part, whole = np.array([1.0, 0, 0, 1.0]), np.ones(4)
    truth = float(part @ exact) / exact.sum()
    for alpha in (0.05, 0.3):
        missed = 0
        for _ in range(TIMES):
            noisy = exact + law.draw(4) * float(law.step)
            value, low, high = ratio(part, whole, noisy, law, alpha)
            assert 0 <= low <= value <= high <= 1
            missed += not low <= truth <= high
        assert binom.sf(missed - 1, TIMES, alpha) > ALARM


def test_bars_of_shares_shrink_with_the_counts() -> None:
    for law in LAWS:
        widths = []
        for size in (1e3, 1e6):
            counts = size * np.array([0.6, 0.1, 0.2, 0.1])
            _, low, high = ratio(np.array([1.0, 0, 0, 1.0]), np.ones(4), counts, law, 0.05)
            widths.append(high - low)
        assert 900 < widths[0] / widths[1] < 1100


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
def test_the_bar_of_an_auc_holds_it(law: Additive) -> None:
    place = np.linspace(0, 1, 16)
    first, second = np.rint(300 * (1 - place)), np.rint(200 * place**2)
    above = second @ (np.cumsum(first) - first / 2)
    truth = float(above / (first.sum() * second.sum()))
    missed, widths = 0, []
    for _ in range(TIMES):
        noisy = [side + law.draw(16) * float(law.step) for side in (second, first)]
        value, low, high = auc(*noisy, law, 0.3)
        missed += not low <= truth <= high
        widths.append(high - low)
        assert abs(value - truth) < 0.1
    assert binom.sf(missed - 1, TIMES, 0.3) > ALARM
    assert np.mean(widths) < 0.12


def test_an_auc_of_nothing_is_anything() -> None:
    for law in LAWS:
        value, low, high = auc(np.zeros(8), np.zeros(8), law, 0.05)
        assert (value, low, high) == (0.5, 0.0, 1.0)
        assert not math.isnan(ratio(np.eye(4)[0] + np.eye(4)[1], np.ones(4), np.zeros(4), law, 0.05)[0])


def test_an_auc_is_that_of_pairs() -> None:
    law = Laplace(scale=Fraction(1, 10**6), sensitivity=UNIT, grid=Grid(-30), exact=True)
    first, second = np.array([3.0, 1.0, 0.0]), np.array([1.0, 1.0, 2.0])
    pairs = [(i > j) + (i == j) / 2 for i in (0, 1, 2, 2) for j in (0, 0, 0, 1)]
    value, low, high = auc(second, first, law, 0.05)
    assert value == pytest.approx(np.mean(pairs))
    assert high - low < 1e-4
