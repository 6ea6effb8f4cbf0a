"""Propose–test–release: noise for a proposed local sensitivity, after a private test that it holds nearby.

The caller proposes a bound b, the sensitivity of `mechanism`. With a value f(x) comes a whole number d(x),
its distance to instability, such that for all neighbours x, x′
    |d(x) − d(x′)| ≤ 1,   and |f(x) − f(x′)| ≤ b wherever d(x) ≥ 1.
The least number of units to change before f's local sensitivity exceeds b is such a distance (0 where it does
already), and so is any lower bound on it that moves by at most 1. If d(x) + Z > `threshold`, with Z discrete
Laplace of `test_scale`, the value is released by `mechanism`; otherwise it is released that it is not.

Theorem (Dwork and Lei 2009, here with exact constants). With a = e^{−1/test_scale} and
δ₀ = P(Z > threshold) = a^{threshold+1}/(1+a), the loss is dominated by
    Approximate(0, δ₀) + DiscreteLaplace(test_scale) + mechanism.loss.
Proof. Let x, x′ be neighbours. If d(x) ≥ 1 or d(x′) ≥ 1, the values are at most b apart, and what is seen
follows from d + Z and the release: the last two terms. If d(x) = d(x′) = 0, both say no with the same
probability 1 − δ₀, and what else they do has mass δ₀: the first term. Composing dominates either. ∎
So with a test at ε₁ and a release at ε₂ it is (ε₁ + ε₂, δ₀)-private: 2ε for equal parts. But for δ₀ it is
attained where the release costs as much as randomized response. For k units it is bounded along a path of k
neighbours: the composition does not dominate them term by term.

Where a value is released its error bar is that of `mechanism`; whether one is, is for the data to say.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.arithmetic import workprec
from dalenius.errors import InvalidArgument
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.dominated import Dominated
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.mechanism import Law, Mechanism
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import MOST, Grid
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Unit
from dalenius.profiles.balls import BITS, ball, upper
from dalenius.release import Cell, Release

NOTHING = -math.inf
"""How `sample` and `probabilities` write that nothing was released: a selection by score prefers anything."""
LEAST_DELTA = Fraction(1, 10**300)
MOST_SCALE = 2**50
"""Of the noise of the test, as far as it can be drawn."""
NARROW = Fraction(1, 2**46)
"""By so little is a promise narrowed until what rounds up reads as within it."""


def _threshold(value: object, name: str) -> int:
    return numbers.count(value, name, least=0)


@dataclass(frozen=True)
class ProposeTestRelease(Mechanism, kind="propose_test_release"):
    """A release by `mechanism` where the distance plus noise of `test_scale` is above `threshold`."""

    _: KW_ONLY
    mechanism: Additive
    test_scale: Parameter[Fraction] = Parameter(numbers.positive)
    threshold: Parameter[int] = Parameter(_threshold)

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Additive):
            raise InvalidArgument(
                "mechanism must add noise to a value.", remedy="Pass a Laplace or a Gaussian mechanism."
            )
        if self.test_scale > MOST_SCALE:
            raise InvalidArgument("test_scale must be at most 2^50.", remedy="Choose a smaller test_scale.")
        _ = self.loss

    @property
    def scale(self) -> Fraction:
        """Of the noise on the value."""
        found: Fraction = self.mechanism.scale
        return found

    @property
    def loss(self) -> Loss:
        """That of the theorem."""
        inner = self.mechanism.loss
        failure = Fraction(_beyond(self.test_scale, self.threshold))
        test = DiscreteLaplace(self.test_scale, relation=inner.relation)
        return Dominated(Approximate(0, delta=failure, relation=inner.relation) + test + inner)

    @property
    def numerics(self) -> str:
        """That of the release."""
        return self.mechanism.numerics

    def release(self, value: Any, *, unit: Unit | None = None) -> Release:
        """Test and release a pair: the value, and its distance to instability."""
        number, distance = _pair(value)
        columns: dict[str, Any] = dict(self.mechanism.release(number).columns)
        stable = distance + int(noise.discrete_laplace(self.test_scale, 1)[0]) > self.threshold
        if not stable:
            columns = {name: (None,) * len(column) for name, column in columns.items()}
        flags: tuple[Cell, ...] = (stable,) * len(columns["value"])
        return self._released({**columns, "stable": flags}, ("value", "stable"), unit)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Releases of a public pair; minus infinity where there is none."""
        number, distance = _pair(value)
        draws = np.asarray(self.mechanism.sample(number, size), dtype=np.float64)
        draws[noise.discrete_laplace(self.test_scale, size) <= self.threshold - distance] = NOTHING
        return draws

    def worst_case(self) -> tuple[Any, Any]:
        """Values as far apart as proposed, at distances where the test is most in doubt."""
        low, high = self.mechanism.worst_case()
        return (low, self.threshold), (high, self.threshold + 1)

    def probabilities(self, value: Any) -> Law | None:
        """That of the release where the test passes, and minus infinity."""
        number, distance = _pair(value)
        law = self.mechanism.probabilities(number)
        if law is None:
            return None
        below = distance > self.threshold
        tail = _beyond(self.test_scale, abs(self.threshold - distance) - below)
        passes = 1 - tail if below else tail
        return Law((*law.outcomes, NOTHING), np.append(law.masses * passes, 1 - passes), law.rest)

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number,
        sensitivity: Sensitivity | Number,
        test_share: Number = Fraction(1, 2),
        grid: Grid | None = None,
        exact: bool = False,
    ) -> ProposeTestRelease:
        """Laplace noise for the proposed `sensitivity`, after a test that takes its share of epsilon."""
        total = numbers.positive(epsilon, "epsilon")
        share = numbers.positive(numbers.delta(test_share, "test_share"), "test_share")
        failure = numbers.positive(numbers.delta(delta), "delta")
        if failure < LEAST_DELTA:
            raise InvalidArgument("delta must be at least 1e-300.", remedy="Choose a larger delta.")

        def at(limit: Fraction) -> ProposeTestRelease:
            inner = Laplace.calibrate(
                epsilon=limit * (1 - share), sensitivity=sensitivity, grid=grid, exact=exact
            )
            scale = 1 / (limit * share)
            return ProposeTestRelease(
                mechanism=inner, test_scale=scale, threshold=_least_threshold(scale, failure)
            )

        found, less = at(total), NARROW
        while found.loss.epsilon(failure).upper > total:
            found, less = at(total * (1 - less)), 2 * less
        return found


def _least_threshold(scale: Fraction, failure: Fraction) -> int:
    """The least t with P(Z > t) at most `failure`."""
    low, high = -1, 1
    while _beyond(scale, high) > failure:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _beyond(scale, middle) > failure else (low, middle)
    return high


def _pair(value: Any) -> tuple[Any, int]:
    """The value, and the distance held from 0 to 2^62."""
    if not isinstance(value, tuple) or len(value) != 2 or not isinstance(value[1], int | np.integer):
        raise InvalidArgument(
            "value must be a pair: the value, and its distance as a whole number.",
            remedy="Pass a tuple (value, distance).",
        )
    return value[0], max(0, min(MOST, int(value[1])))


def _beyond(scale: Fraction, steps: int) -> float:
    """At least P(Z > steps) for steps ≥ 0: a^{steps+1}/(1+a)."""
    with workprec(BITS):
        rate = 1 / ball(scale)
        return upper((-rate * (steps + 1)).exp() / (1 + (-rate).exp()))
