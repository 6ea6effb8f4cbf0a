"""A Poisson number of runs, and what its best run costs.

K has the mean μ, and with probability e^{−μ}, whatever the data, there is no run and nothing is released. The
generating function is φ(s) = e^{−μ(1−s)}. With S and S′ the probabilities under P and Q that a run is beyond
an outcome of densities f and f′, the best run has the densities fμe^{−μS} and f′μe^{−μS′}
(docs/mechanisms/private_selection.md).

Profile. S′ − S ≤ δ₀(0), the advantage of the base, so δ(x + μδ₀(0)) ≤ μδ₀(x).

Rényi (Papernot and Steinke 2022, but for the term of no run). Let ε̂ = log(α/(α − 1)) and δ̂ = δ₀(ε̂). Then

    e^{(α−1)D_α} ≤ e^{−μ} + μ·e^{(α−1)(D⁰_α + μδ̂)}.

Proof. The left side is e^{−μ} + μ∫f^α f′^{1−α} e^{−αμS + (α−1)μS′}, and S′ ≤ e^{ε̂}S + δ̂. ∎ Unlike the laws of
`repetition` it counts the base's divergence once, whatever μ is; for that the base's δ̂ must be small.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, factorial

import flint
import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.losses.loss import Loss
from dalenius.mechanisms.runs import Runs
from dalenius.privacy import numbers
from dalenius.profiles.balls import BITS, ball, lower, upper

MOST = 10_000
"""The largest mean."""


def a_mean(value: object, name: str) -> Fraction:
    """A positive number of runs."""
    found = numbers.positive(value, name)
    if found > MOST:
        raise InvalidArgument(f"{name} must be at most {MOST}.", remedy=f"Choose {name} such as 20.")
    return found


@dataclass(frozen=True)
class PoissonRuns(Runs):
    """The law of K, by its `number` on average."""

    number: Fraction

    @property
    def mean(self) -> float:
        """μ, rounded up."""
        with flint.ctx.workprec(BITS):
            return upper(ball(self.number))

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

    def shift(self, base: Loss) -> Fraction:
        """μδ₀(0)."""
        return self.number * Fraction(base.delta(0).upper)

    def renyi(self, base: Loss, alpha: Fraction) -> float:
        """The theorem; ε̂ is rounded down."""
        with flint.ctx.workprec(BITS):
            near = Fraction(lower((ball(alpha) / ball(alpha - 1)).log()))
        failure, once = base.delta(near).upper, base.renyi(alpha).upper
        with flint.ctx.workprec(BITS):
            mean, rest = ball(self.number), ball(alpha - 1)
            # e^{(α−1)D} = μe^x(1 + e^{−μ−x}/μ), whose logarithm does not overflow.
            x = rest * (ball(once) + mean * ball(failure))
            return upper((x + mean.log() + ((-mean - x).exp() / mean).log1p()) / rest)


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
