"""A Poisson number of runs, drawn exactly; `losses.repeated` prices it.

K has the mean μ, and with probability e^{−μ}, whatever the data, there is no run and nothing is released. The
generating function is φ(s) = e^{−μ(1−s)}. With S and S′ the probabilities under P and Q that a run is beyond
an outcome of densities f and f′, the best run has the densities fμe^{−μS} and f′μe^{−μS′}
(docs/mechanisms/private_selection.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, factorial

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.losses.selection.repeated import Poissons
from dalenius.mechanisms.runs import Runs


@dataclass(frozen=True)
class PoissonRuns(Poissons, Runs):
    """The law of K, by its `number` on average."""

    @property
    def none(self) -> float:
        """e^{−μ}."""
        return exp(-self.number)

    def draw(self, size: int) -> NDArray[np.int64]:
        """As many variables of mean 1 as there are wholes in μ, and the rest of one more by coins."""
        wholes, part = divmod(self.number, 1)
        found = sum((_of_mean_one(size) for _ in range(wholes)), np.zeros(size, np.int64))
        more = _of_mean_one(size)
        owners = np.repeat(np.arange(size), more)[noise.bernoulli(part, int(more.sum()))]
        return np.asarray(found + np.bincount(owners, minlength=size), dtype=np.int64)

    def greatest(self, masses: NDArray[np.float64]) -> NDArray[np.float64]:
        """φ(F + f) − φ(F)."""
        mean = float(self.number)
        return np.asarray(np.exp(-mean * (1 - np.cumsum(masses))) * -np.expm1(-mean * masses))


def _of_mean_one(size: int) -> NDArray[np.int64]:
    """P(k) ∝ 1/k!: a geometric k, of P(k) = 2^{−k−1}, is kept with probability 2^{k−1}/k!."""
    found = np.empty(size, np.int64)
    todo = np.arange(size)
    while todo.size:
        found[todo] = noise.geometric(Fraction(1, 2), todo.size)
        kept = np.zeros(todo.size, dtype=bool)
        for k in np.unique(found[todo]).tolist():
            rows = np.flatnonzero(found[todo] == k)
            kept[rows] = noise.bernoulli(Fraction(2**k, 2 * factorial(k)), rows.size)
        todo = todo[~kept]
    return found
