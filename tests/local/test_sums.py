"""Error bars of means of bounded terms, against exact laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dalenius.local.sums import at_most, half_width, normal


@pytest.mark.parametrize("alpha", [0.05, 0.3])
@pytest.mark.parametrize("chance", [0.5, 0.1, 0.003])
@pytest.mark.parametrize("n", [3, 50, 1000, 100_000])
def test_means_of_coins_are_held(n: int, chance: float, alpha: float) -> None:
    """Exactly: the mean of n coins misses its own by more no more often than alpha, by either theorem."""
    variance = chance * (1 - chance)
    reach = max(chance, 1 - chance)
    lopsided = (chance**2 + (1 - chance) ** 2) / math.sqrt(variance)
    counts = np.arange(n + 1)
    for wide in (
        half_width(n, variance, reach, alpha, lopsided=lopsided),
        half_width(n, variance, reach, alpha, lopsided=math.inf),
        normal(n, variance, alpha, lopsided=lopsided),
    ):
        missed = np.abs(counts / n - chance) > wide
        assert float(binom.pmf(counts, n, chance)[missed].sum()) <= alpha


def test_the_normal_interval_is_the_limit() -> None:
    wide = half_width(10**10, 0.25, 0.5, 0.05, lopsided=1.0)
    assert wide == pytest.approx(1.96 * 0.5 / 1e5, rel=1e-3)
    assert normal(10, 0.25, 0.05, lopsided=1.0) == math.inf
    both = half_width(100, np.array([0.25, 0.01]), 0.5, 0.05, lopsided=1.0)
    assert both[0] == half_width(100, 0.25, 0.5, 0.05, lopsided=1.0) > both[1]


@pytest.mark.parametrize("risk", [0.005, 0.2])
@pytest.mark.parametrize("chance", [0.5, 0.01])
@pytest.mark.parametrize("n", [5, 400])
def test_expected_means_are_bounded(n: int, chance: float, risk: float) -> None:
    """Exactly: for terms of 0 or 4, the bound is too low no more often than the risk."""
    counts = np.arange(n + 1)
    low = np.asarray(at_most(4 * counts / n, 4.0, n, risk)) < 4 * chance
    assert float(binom.pmf(counts, n, chance)[low].sum()) <= risk
    assert at_most(1.0, 4.0, 10**10, risk) == pytest.approx(1.0, abs=1e-3)
