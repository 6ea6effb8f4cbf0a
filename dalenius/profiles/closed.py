"""The profile of Gaussians alone, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dalenius.arithmetic import arb, workprec
from dalenius.profiles.balls import BITS, ball, lower, upper
from dalenius.profiles.inverse import invert


@dataclass(frozen=True)
class GaussianProfile:
    """N(μ, 1) against N(0, 1) with μ² = `squared`: δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), in balls."""

    squared: Fraction

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε), with as many bits as the cancellation takes."""
        mu = math.sqrt(float(self.squared))
        size = 1 + abs(epsilon / mu) + mu + abs(epsilon)
        with workprec(BITS + int(4 * abs(math.log2(mu)) + 6 * math.log2(size))):
            root, e = ball(self.squared).sqrt(), ball(epsilon)
            ahead, behind = ((e / root + sign * root / 2) / arb(2).sqrt() for sign in (-1, 1))
            value = (ahead.erfc() - e.exp() * behind.erfc()) / 2
            return max(0.0, lower(value)), min(1.0, upper(value))

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose the least ε ≥ 0 with δ(ε) ≤ delta."""
        if delta == 0:
            return math.inf, math.inf
        mu = math.sqrt(float(self.squared))
        guess = mu * mu / 2 + mu * math.sqrt(-2 * math.log(min(delta, 0.5)))
        return invert(self.delta, delta, guess=guess, scale=mu)
