"""A truncated negative binomial number of runs, drawn exactly; `losses.repeated` prices it.

K ≥ 1 has P(K = k) ∝ (1 − γ)^k Π_{l<k} (l + η)/(l + 1): a truncated negative binomial law. Compared with the
geometric law, what is left is Π_{0<l<k} (l + η)/(l + 1) ≤ 1 where η ≤ 1: a geometric draw k is kept if k − 1
coins of these rational probabilities all succeed, so K is exact. Its generating function φ has
φ'(s) ∝ (1 − (1 − γ)s)^{−1−η}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.losses.selection.repeated import Geometrics
from dalenius.mechanisms.runs import Runs

BATCH, SPARE = 2**20, 16
"""The most geometric draws made at once, and how many more of them than are needed on average."""


@dataclass(frozen=True)
class Repetition(Geometrics, Runs):
    """The law of K, by γ = `stop` and η = `shape`."""

    def draw(self, size: int) -> NDArray[np.int64]:
        """Independent numbers of runs."""
        found = np.empty(0, np.int64)
        while found.size < size:
            batch = min(BATCH, math.ceil((size - found.size) * self._tries) + SPARE)
            kept = self._kept(1 + noise.geometric(self.stop, batch))
            found = np.append(found, kept[kept > 0])
        return found[:size]

    @property
    def _tries(self) -> float:
        """About how many geometric draws one K takes."""
        stop, shape = float(self.stop), float(self.shape)
        log = -math.log(stop)
        return (1 - stop) / stop / (math.expm1(shape * log) / shape if shape else log)

    def _kept(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same, with zeros where a coin failed."""
        coins = 1
        while self.shape != 1 and (left := np.flatnonzero(counts > coins)).size:
            failed = ~noise.bernoulli((coins + self.shape) / (coins + 1), left.size)
            counts[left[failed]] = 0
            coins += 1
        return counts

    @property
    def none(self) -> float:
        """There is at least one run."""
        return 0.0

    def greatest(self, masses: NDArray[np.float64]) -> NDArray[np.float64]:
        """The law of the greatest of K draws from increasing outcomes of these masses."""
        stop, shape = float(self.stop), float(self.shape)
        under = 1 - (1 - stop) * (np.cumsum(masses) - masses)
        rise = -np.log1p(-(1 - stop) * masses / under)
        if shape == 0:
            return np.asarray(rise / -math.log(stop))
        return np.asarray(np.expm1(shape * rise) * under**-shape / math.expm1(-shape * math.log(stop)))
