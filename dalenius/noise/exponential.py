"""Weights that fall by the same factor at every step: the discrete Laplace and the geometric law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.arithmetic import arb
from dalenius.noise.law import Floats, Ints, Law, exponentials
from dalenius.noise.lazy import ball

STEEPEST = Fraction(2**900)
"""Steeper rates than this are e^{−rate} = 0 to a double all the same."""
LEAST_FAILURE = Fraction(1, 2**900)
HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Laplace(Law):
    """f(k) = e^{−|k|/scale}, of variance 2e^{−1/scale}/(1 − e^{−1/scale})²."""

    scale: Fraction

    @property
    def spread(self) -> float:
        """The scale."""
        return float(self.scale)

    def weight(self, k: int) -> arb:
        """e^{−|k|/scale}."""
        return (-ball(abs(k) / self.scale)).exp()

    def drop(self, k: int, step: int) -> arb:
        """|step|/scale wherever it starts."""
        return ball(abs(step) / self.scale)

    def estimate(self, k: Ints) -> tuple[Floats, Floats]:
        """By one exponential of a product."""
        return exponentials(np.abs(k) * float(min(1 / self.scale, STEEPEST)))


@dataclass(frozen=True)
class Geometric(Law):
    """f(k) = (1 − probability)^k for k ≥ 0: the failures before the first success; 0 < probability < 1."""

    probability: Fraction

    @property
    def one_sided(self) -> bool:
        """It counts failures."""
        return True

    @property
    def spread(self) -> float:
        """The mean."""
        return float(1 / self.probability)

    def weight(self, k: int) -> arb:
        """(1 − probability)^k."""
        return (-k * self._rate()).exp() if k >= 0 else arb(0)

    def drop(self, k: int, step: int) -> arb:
        """The same wherever it starts."""
        return step * self._rate()

    def estimate(self, k: Ints) -> tuple[Floats, Floats]:
        """By one exponential of a product."""
        return exponentials(k * np.float64(self._float_rate()))

    def _rate(self) -> arb:
        return -ball(1 - self.probability).log()

    def _float_rate(self) -> float:
        """Within four roundings: neither logarithm is taken near its zero."""
        failure = 1 - self.probability
        if failure > LEAST_FAILURE:
            return -math.log(failure) if failure < HALF else -math.log1p(-float(self.probability))
        return float(STEEPEST)
