"""`Tilted`: the cosine of a direction that is in a cap with another probability than its own, and its sums.

Let t be the first entry of a uniform direction of R^d, given t ≥ c with probability p, else given the
contrary; Q and M as in `caps`, and a_k = E t^k. By parts,

    a_1 = M(p/Q − (1 − p)/(1 − Q)),   a_k = ((d − 1)c^{k−1}·a_1 + (k − 1)·a_{k−2})/(d + k − 2),   a_0 = 1.

Given t, the rest of the direction is uniform on a sphere of R^n, n = d − 1, of radius √(1 − t²). So an entry
of a report is x = e·t·σ + √(1 − e²)·√(1 − t²)·z, times √d: e is that entry of the vector's direction, σ a
sign and z an entry of a uniform direction of R^n. As E z^{2k} = (2k − 1)!!/(n(n + 2)…(n + 2k − 2)) is at most
(2k − 1)!!/n^k, term by term E e^{λz} ≤ e^{λ²/2n}, for n = 1 too, where z is a sign. Hence

    E e^{λx} ≤ E exp(λetσ + λ²(1 − e²)(1 − t²)/2n).

For d = 1 there is no z, and e is 1. Chernoff: the mean of N terms is above its own by h with probability at
most exp(−N·max over λ of (λh − K(λ))), where K is the largest logarithm of the right side for x − E x, over e
and the law of σ. It is taken on a grid of both, t by quadrature, and made larger by a hundredth, which is
also for the random rounding to coarse steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dalenius.local import caps, sums

Floats = NDArray[np.float64]
WIDER = 1.01
NODES, REACH = 96, 16.0
"""Of the quadrature: points on either side of the cut, and standard deviations that they reach."""
LEAST_SPREAD = 1e-9
"""Variances below are not told from 0."""


@dataclass(frozen=True)
class Tilted:
    """See the module."""

    dimension: int
    cut: float
    chance: float

    @cached_property
    def mean(self) -> float:
        """E t."""
        q = caps.share(self.dimension, self.cut)
        return caps.pull(self.dimension, self.cut) * (self.chance / q - (1 - self.chance) / (1 - q))

    def moment(self, k: int) -> float:
        """E t^k, of an even k."""
        if k == 0:
            return 1.0
        d, own = self.dimension, self.cut ** (k - 1) * self.mean
        return ((d - 1) * own + (k - 1) * self.moment(k - 2)) / (d + k - 2)

    @property
    def rest(self) -> int:
        """n, or 1 where there is no rest."""
        return max(self.dimension - 1, 1)

    @property
    def most_square(self) -> float:
        """The most that E x² can be, times d: linear in e², so at one of its ends."""
        second = self.moment(2)
        return self.dimension * max(second, (1 - second) / self.rest)

    def entries(self, many: int) -> Floats:
        """Those e that are tried."""
        return np.linspace(0, 1, many) if self.dimension > 1 else np.ones(1)

    def half_width(self, n: int, alpha: float) -> float:
        """Of an interval for the mean of n terms √d·x: the shorter one."""
        normal = float(sums.normal(n, self.most_square * WIDER, alpha, lopsided=self.lopsided))
        return min(self._chernoff(n, alpha), normal)

    def _chernoff(self, n: int, alpha: float) -> float:
        """Of both tails."""
        log = math.log(2 / alpha)
        rates = math.sqrt(2 * log / n / self.most_square) * np.geomspace(0.25, 2, 25)
        return float(min((WIDER * self._growth(rate) + log / n) / rate for rate in rates.tolist()))

    @cached_property
    def cosines(self) -> tuple[Floats, Floats]:
        """Values of t and their weights, by Gauss and Legendre in the angle on either side of the cut."""
        if self.dimension == 1:
            return np.array([1.0, -1.0]), np.array([self.chance, 1 - self.chance])
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        right, edge = math.pi / 2, math.acos(self.cut)
        reach, found = min(right, REACH / math.sqrt(self.dimension)), []
        for low, high, mass in ((right - reach, edge, self.chance), (edge, right + reach, 1 - self.chance)):
            angles = (low + high) / 2 + (high - low) / 2 * nodes
            likely = weights * np.sin(angles) ** (self.dimension - 2)
            found.append((np.cos(angles), likely / likely.sum() * mass))
        return np.concatenate([found[0][0], found[1][0]]), np.concatenate([found[0][1], found[1][1]])

    def _growth(self, rate: float) -> float:
        """K, of √d·x."""
        (cosine, weight), by = self.cosines, rate * math.sqrt(self.dimension)
        entry, lean = self.entries(41)[:, None], np.linspace(0, 1, 41)
        spread = by**2 * (1 - entry**2) * (1 - cosine**2) / (2 * self.rest)
        one, other = (
            np.log(np.exp(by * sign * entry * cosine + spread) @ weight)[:, None] for sign in (1, -1)
        )
        mixed = one + np.log1p(lean * np.expm1(other - one))
        return float((mixed - by * entry * (1 - 2 * lean) * self.mean).max())

    @property
    def lopsided(self) -> float:
        """L of the theorem of Berry and Esseen, by fourth moments; none where a variance may be 0."""
        e, n, second, fourth = self.entries(101), self.rest, self.moment(2), self.moment(4)
        along, across = e**2, 1 - e**2
        whole = along**2 * fourth + 6 * along * across * (second - fourth) / n
        whole = whole + across**2 * (1 - 2 * second + fourth) * 3 / (n * (n + 2))
        least = along * (second - self.mean**2) + across * (1 - second) / n
        if self.dimension * least.min() < LEAST_SPREAD:
            return math.inf
        cubes = (whole**0.25 + e * self.mean) ** 3
        return float((cubes / least).max() / math.sqrt(least.min())) * WIDER
