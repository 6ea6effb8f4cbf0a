"""`Tilted`: a normal number that is above γ with another probability than its own, and bounds of its sums.

Let a be normal, given a ≥ γ with probability p, else given the contrary; Q = Φ(−γ), φ the normal density.

    E a = φ(γ)(p/Q − (1 − p)/(1 − Q)),   E a² = 1 + γ·E a,
    E e^{λa} = e^{λ²/2}·(p/Q·Φ(λ − γ) + (1 − p)/(1 − Q)·Φ(γ − λ)).

A term is x = e·a·σ + √(1 − e²)·z with z normal, σ a sign and 0 ≤ e ≤ 1. Chernoff: the mean of n terms is
above its own by t with probability at most exp(−n·max over λ of (λt − K(λ))), where K is the largest
logarithm of E e^{λ(x − E x)} over e and the law of σ. It is taken on a grid of both and made larger by a
hundredth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dalenius.local import sums

Floats = NDArray[np.float64]
WIDER = 1.01


@dataclass(frozen=True)
class Tilted:
    """See the module."""

    cut: float
    chance: float

    @staticmethod
    def of(cut: float, ratio: float) -> Tilted:
        """With the odds of the normal law times a ratio."""
        q = math.erfc(cut / math.sqrt(2)) / 2
        return Tilted(cut, ratio * q / (1 - q + ratio * q))

    @cached_property
    def heights(self) -> tuple[float, float]:
        """By how much it is likelier than the normal law, above γ and below."""
        q = math.erfc(self.cut / math.sqrt(2)) / 2
        return self.chance / q, (1 - self.chance) / (1 - q)

    @property
    def mean(self) -> float:
        """E a."""
        above, below = self.heights
        return math.exp(-(self.cut**2) / 2) / math.sqrt(2 * math.pi) * (above - below)

    @property
    def square(self) -> float:
        """E a²."""
        return 1 + self.cut * self.mean

    @property
    def most_square(self) -> float:
        """The most that E x² can be."""
        return max(self.square, 1.0)

    def half_width(self, n: int, alpha: float) -> float:
        """Of an interval for the mean of n terms: the shorter one."""
        normal = float(sums.normal(n, self.most_square * WIDER, alpha, lopsided=self.lopsided))
        return min(self._chernoff(n, alpha), normal)

    def _chernoff(self, n: int, alpha: float) -> float:
        """Of both tails."""
        log = math.log(2 / alpha)
        rates = math.sqrt(2 * log / n / self.most_square) * np.geomspace(0.25, 2, 25)
        return float(min((WIDER * self._growth(rate) + log / n) / rate for rate in rates.tolist()))

    def _growth(self, rate: float) -> float:
        """K."""
        from scipy.special import ndtr

        entry, lean = np.meshgrid(np.linspace(-1, 1, 81), np.linspace(0, 1, 41))
        above, below = self.heights

        def log_mean(by: Floats) -> Floats:
            return np.asarray(np.log(above * ndtr(by - self.cut) + below * ndtr(self.cut - by)))

        one, other = log_mean(rate * entry), log_mean(-rate * entry)
        mixed = one + np.log1p(lean * np.expm1(other - one))
        return float((rate**2 / 2 + mixed - rate * entry * (1 - 2 * lean) * self.mean).max())

    @property
    def lopsided(self) -> float:
        """L of the theorem of Berry and Esseen, by fourth moments."""
        e, third = np.linspace(0, 1, 101), self.mean * self.cut**2 + 2 * self.mean
        fourth = self.cut * third + 3 * self.square - 2 * self.cut * self.mean
        whole = e**4 * fourth + 6 * e**2 * (1 - e**2) * self.square + 3 * (1 - e**2) ** 2
        cubes = (whole**0.25 + e * self.mean) ** 3
        least = 1 - e**2 + e**2 * (self.square - self.mean**2)
        return float((cubes / least).max() / math.sqrt(least.min())) * WIDER
