"""Laws of counts: Skellam, the difference of two Poisson counts, and the binomial."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dalenius.arithmetic import arb
from dalenius.noise.law import Law
from dalenius.noise.lazy import ball


def _log_ratio(near: arb, far: arb) -> arb:
    """How far the logarithm falls, infinite where nothing is left."""
    return arb("inf") if far == 0 else (near / far).log()


@dataclass(frozen=True)
class Skellam(Law):
    """f(k) = e^{−v} I_|k|(v), v the variance: log-concave as the convolution of two log-concave laws."""

    variance: Fraction

    @property
    def spread(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.variance)

    def weight(self, k: int) -> arb:
        """By the Bessel function of balls."""
        return ball(self.variance).bessel_i(arb(abs(k)), scaled=True)

    def drop(self, k: int, step: int) -> arb:
        """By the weights themselves."""
        return _log_ratio(self.weight(k), self.weight(k + step))


@dataclass(frozen=True)
class Binomial(Law):
    """f(k) = P(mode + k successes in `trials`); 0 < probability < 1."""

    trials: int
    probability: Fraction

    @property
    def mode(self) -> int:
        """⌊(n + 1)p⌋."""
        return math.floor((self.trials + 1) * self.probability)

    @property
    def spread(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.trials * self.probability * (1 - self.probability))

    def weight(self, k: int) -> arb:
        """By gamma functions of balls."""
        yes = self.mode + k
        no = self.trials - yes
        if yes < 0 or no < 0:
            return arb(0)
        ways = arb(self.trials + 1).lgamma() - arb(yes + 1).lgamma() - arb(no + 1).lgamma()
        chance = yes * ball(self.probability).log() + no * ball(1 - self.probability).log()
        return (ways + chance).exp()

    def drop(self, k: int, step: int) -> arb:
        """By the weights themselves."""
        return _log_ratio(self.weight(k), self.weight(k + step))
