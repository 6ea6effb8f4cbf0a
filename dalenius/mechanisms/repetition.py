"""A truncated negative binomial number of runs, and what its best run costs.

K ≥ 1 has P(K = k) ∝ (1 − γ)^k Π_{l<k} (l + η)/(l + 1): a truncated negative binomial law. Compared with the
geometric law, what is left is Π_{0<l<k} (l + η)/(l + 1) ≤ 1 where η ≤ 1: a geometric draw k is kept if k − 1
coins of these rational probabilities all succeed, so K is exact. Its generating function φ has

    φ'(s) ∝ (1 − (1 − γ)s)^{−1−η},   φ'(1) = E[K] = η(1 − γ)/(γ − γ^{1+η}), at η = 0 (1 − γ)/(γ·log(1/γ)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from flint import arb
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.losses.loss import Loss
from dalenius.mechanisms.runs import Runs
from dalenius.privacy import numbers
from dalenius.profiles.balls import BITS, ball, lower, upper

BATCH, SPARE = 2**20, 16
"""The most geometric draws made at once, and how many more of them than are needed on average."""
LEAST, NEAR = 2.0**-40, 2.0**-36
"""The least τ that is stated, and how near the search for it comes, as a share of where it starts."""
ORDERS = [1 + Fraction(2) ** k for k in range(-4, 21)]
"""Second orders tried for Rényi privacy; the order 1 needs nothing of the base."""


def a_stop(value: object, name: str) -> Fraction:
    """A probability from 10^−6 to below 1."""
    found = numbers.exact(value, name)
    if not Fraction(1, 10**6) <= found < 1:
        raise InvalidArgument(f"{name} must be from 1e-6 to below 1.", remedy=f"Choose {name} such as 0.1.")
    return found


def a_shape(value: object, name: str) -> Fraction:
    """A number above −1, at most 1."""
    found = numbers.exact(value, name)
    if not -1 < found <= 1:
        raise InvalidArgument(
            f"{name} must be above -1 and at most 1.",
            remedy=f"Choose {name} as 1 for a geometric number of runs, 0 for a logarithmic one.",
        )
    return found


@dataclass(frozen=True)
class Repetition(Runs):
    """The law of K, by γ = `stop` and η = `shape`."""

    stop: Fraction
    shape: Fraction

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

    @property
    def mean(self) -> float:
        """E[K], rounded up."""
        with flint.ctx.workprec(BITS):
            return upper(self._mean())

    def _mean(self) -> arb:
        stop, shape = ball(self.stop), ball(self.shape)
        if self.shape == 0:
            return (1 - stop) / (stop * (1 / stop).log())
        return shape * (1 - stop) / (stop * (1 - (shape * stop.log()).exp()))

    def greatest(self, masses: NDArray[np.float64]) -> NDArray[np.float64]:
        """The law of the greatest of K draws from increasing outcomes of these masses."""
        stop, shape = float(self.stop), float(self.shape)
        under = 1 - (1 - stop) * (np.cumsum(masses) - masses)
        rise = -np.log1p(-(1 - stop) * masses / under)
        if shape == 0:
            return np.asarray(rise / -math.log(stop))
        return np.asarray(np.expm1(shape * rise) * under**-shape / math.expm1(-shape * math.log(stop)))

    def shift(self, base: Loss) -> Fraction:
        """(1 + η)τ."""
        return (1 + self.shape) * Fraction(_shift(base, self.stop))

    def renyi(self, base: Loss, alpha: Fraction) -> float:
        """The theorem of Papernot and Steinke, with the best of several second orders."""
        first = base.renyi(alpha).upper
        with flint.ctx.workprec(BITS):
            wide = -ball(self.stop).log()
            choices = [wide]
            for order in ORDERS:
                known = base.renyi(order).upper
                if known < math.inf:
                    choices.append((1 - 1 / ball(order)) * ball(known) + wide / ball(order))
            more = min(upper(c) for c in choices)
            rest = self._mean().log() / ball(alpha - 1)
            return upper(ball(first) + ball(1 + self.shape) * ball(more) + rest)


def _shift(base: Loss, stop: Fraction) -> float:
    """τ, rounded up: the root is found in floats, and what is returned serves by directed rounding."""
    from scipy.optimize import brentq

    odds = stop / (1 - stop)

    def spare(shift: float) -> float:
        with flint.ctx.workprec(BITS):
            allowed = lower(ball(shift).expm1() * ball(odds))
        return allowed - base.delta(Fraction(shift)).upper

    # No δ exceeds that at 0, so where (e^τ − 1)γ/(1 − γ) reaches it τ serves; so does what makes δ vanish.
    most = max(LEAST, min(math.log1p(base.delta(0).upper / float(odds)), base.epsilon(0).upper))
    while spare(most) < 0:
        most *= 2
    if spare(LEAST) >= 0:
        return LEAST
    shift, more = float(brentq(spare, LEAST, most, xtol=most * NEAR, rtol=NEAR)), NEAR
    while spare(shift) < 0:
        shift, more = shift + more * most, 2 * more
    return shift
