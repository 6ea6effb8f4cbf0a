"""Error bars, by the exact law of sums of coins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, binom

from dalenius.local.intervals import mean_chance, share, trials


@pytest.mark.parametrize("alpha", [0.05, 0.3])
@pytest.mark.parametrize(("p", "q"), [(0.6, 0.1), (0.99, 0.001), (0.5, 0.25), (0.9, 0.5), (0.999, 0.02)])
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_shares_are_covered_whatever_they_are(n: int, p: float, q: float, alpha: float) -> None:
    """Exactly: for every number of people with the item, by the law of the sum of two binomial counts."""
    low, high, _ = share(np.arange(n + 1), n, p, q, alpha)
    for m in range(n + 1):
        law = np.convolve(binom.pmf(range(m + 1), m, p), binom.pmf(range(n - m + 1), n - m, q))
        held = (low <= m / n) & (m / n <= high)
        assert float(law @ held) >= 1 - alpha - 1e-12


def test_the_ends_of_hoeffding_are_needed() -> None:
    """Of three coins only the first can come up: Clopper and Pearson's lower end misses more than it says."""
    chances, alpha = np.array([0.0505, 0, 0]), 0.1
    law = np.array([1 - chances[0], chances[0], 0, 0])
    mean, (low, high) = chances.mean(), mean_chance(np.arange(4), 3, alpha)
    alone = np.array([0, *beta.ppf(alpha / 2, [1, 2, 3], [3, 2, 1])])
    assert float(law @ (alone > mean)) > alpha / 2
    assert float(law @ ((low <= mean) & (mean <= high))) == pytest.approx(1)


@pytest.mark.parametrize("chance", [0.05, 0.5, 0.97])
@pytest.mark.parametrize("alpha", [0.01, 0.3])
def test_trials_are_covered(chance: float, alpha: float) -> None:
    n = 60
    seen = np.arange(n + 1)
    low, high = trials(seen, seen, n, chance, alpha)
    for m in range(n + 1):
        law = binom.pmf(seen, m, chance)
        assert float(law @ ((low <= m) & (m <= high))) >= 1 - alpha - 1e-12
    wide_low, wide_high = trials(np.array([3]), np.array([9]), n, chance, alpha)
    assert (wide_low, wide_high) == (low[3], high[9])


def test_no_coins_tell_nothing() -> None:
    low, high = mean_chance(np.array([0, 5]), np.array([0, 10]), 0.05)
    assert (low[0], high[0]) == (0, 1) and 0 < low[1] < 0.5 < high[1] < 1
