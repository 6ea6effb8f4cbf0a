"""Exact laws for the tests of samplers, by other means than the library's own, and the chi-square test.

A statistical check here fails by chance with a probability of at most 2e-9, and there are fewer than 300 of
them in the default and the slow run together; looking for repeated draws adds 3e-7. So the total false-alarm
rate is below 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

ALARM = 1e-9
EXPECTED = 400
"""Least expected count of a cell: the statistic then follows its limit law far into the tail."""

Floats = NDArray[np.float64]
Draw = Callable[[int], NDArray[np.int64]]


@dataclass(frozen=True)
class Truth:
    """A law on the integers by its distribution function P(K ≤ k), evaluated at integers as floats."""

    below: Callable[[Floats], Floats]
    reach: float
    """Nearly all mass lies within ± this much of `centre`."""
    centre: float = 0.0

    def cells(self, size: int) -> tuple[NDArray[np.int64], Floats]:
        """Last integers of cells of at least EXPECTED draws, at most 400 of them, and their probabilities."""
        share = max(EXPECTED / size, 1 / 400)
        grid = np.unique(np.round(self.centre + self.reach * np.linspace(-1, 1, 20_001)))
        ends, last = [], 0.0
        for k, p in zip(grid.tolist(), self.below(grid).tolist(), strict=True):
            if p - last >= share and 1 - p >= share:
                ends.append(k)
                last = p
        edges = np.array(ends)
        return edges.astype(np.int64), np.diff(np.concatenate([[0.0], self.below(edges), [1.0]]))


def _exponential(scale: float, one_sided: bool = False) -> Truth:
    """With r = e^{−1/scale}: P(K ≤ k) is 1 − r^{k+1} for k ≥ 0 where K ≥ 0, and as here where it is not."""
    rate = 1 / scale

    def below(k: Floats) -> Floats:
        if one_sided:
            return np.where(k < 0, 0.0, -np.expm1(-rate * (np.maximum(k, 0) + 1)))
        low = np.exp(rate * np.minimum(k, 0)) / (1 + math.exp(-rate))
        high = 1 - np.exp(-rate * (np.maximum(k, 0) + 1)) / (1 + math.exp(-rate))
        return np.where(k < 0, low, high)

    return Truth(below, 25 * scale + 5)


def _rounded(scale: float) -> Truth:
    return Truth(lambda k: special.ndtr((k + 0.5) / scale), 8 * scale + 3)


def _discrete(scale: float) -> Truth:
    """Summed up for small scales; from 30 on by the integral and its first correction."""
    if scale > 30:
        return Truth(lambda k: special.ndtr((k + 0.5) / scale) + _midpoint(k + 0.5, scale), 8 * scale)
    return _listed(lambda k: np.exp(-((k / scale) ** 2) / 2), int(40 * scale + 3))


def _midpoint(x: Floats, scale: float) -> Floats:
    """Euler and Maclaurin: Σ_{j ≤ x − ½} φ(j/s)/s = Φ(x/s) − φ′(x/s)/24s² + O(s^−4)."""
    z = x / scale
    return z * np.exp(-z * z / 2) / math.sqrt(2 * math.pi) / (24 * scale**2)


def _listed(weights: Callable[[Floats], Floats], reach: int, first: int | None = None) -> Truth:
    start = -reach if first is None else first
    mass = weights(np.arange(start, reach + 1).astype(float))
    total = np.cumsum(mass) / mass.sum()

    def below(k: Floats) -> Floats:
        at = np.clip(k - start, 0, total.size - 1).astype(np.int64)
        return np.where(k < start, 0.0, total[at])

    return Truth(below, reach)


@pytest.fixture
def truth() -> Callable[..., Truth]:
    """The law by its name and parameters."""
    laws: dict[str, Callable[..., Truth]] = {
        "discrete_laplace": lambda s: _exponential(float(s)),
        "geometric": lambda p: _exponential(-1 / math.log1p(-p), one_sided=True),
        "rounded_gaussian": lambda s: _rounded(float(s)),
        "discrete_gaussian": lambda s: _discrete(float(s)),
        "skellam": lambda v: _listed(lambda k: special.ive(np.abs(k), v), int(9 * math.sqrt(v) + 20)),
        "binomial": lambda n, p: _listed(lambda k: stats.binom.pmf(k, n, p), n, first=0),
    }
    return lambda name, *parameters: laws[name](*parameters)


@pytest.fixture
def follows() -> Callable[[Draw, int, Truth], None]:
    """Chi-square of a sampler against its law, drawn in parts of at most two million."""

    def check(draw: Draw, size: int, law: Truth) -> None:
        edges, chances = law.cells(size)
        counts = np.zeros(chances.size)
        for start in range(0, size, 2_000_000):
            values = draw(min(2_000_000, size - start))
            counts += np.bincount(np.searchsorted(edges, values, side="left"), minlength=chances.size)
        likely(counts, chances)

    return check


@pytest.fixture
def same() -> Callable[[NDArray[np.int64], NDArray[np.int64]], None]:
    """Chi-square of two samples against each other, in cells of the pooled one."""

    def check(a: NDArray[np.int64], b: NDArray[np.int64]) -> None:
        pooled = np.sort(np.concatenate([a, b]))
        edges = np.unique(pooled[:: 2 * EXPECTED])
        counts = [np.bincount(np.searchsorted(edges, x), minlength=edges.size + 1) for x in (a, b)]
        table = np.array(counts)[:, sum(counts) >= EXPECTED]
        assert table.shape[1] > 1
        assert stats.chi2_contingency(table).pvalue > ALARM

    return check


def likely(counts: NDArray[np.float64], chances: Floats) -> None:
    """The counts are likely for the chances."""
    expected = chances * counts.sum()
    assert expected.min() > EXPECTED / 4
    if counts.size > 1:
        statistic = float(((counts - expected) ** 2 / expected).sum())
        assert stats.chi2.sf(statistic, counts.size - 1) > ALARM, (statistic, counts.size)


@pytest.fixture(name="likely")
def likely_fixture() -> Callable[[NDArray[np.float64], Floats], None]:
    return likely
