"""The profile of Gaussians alone, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dalenius.arithmetic import arb, workprec
from dalenius.profiles.balls import BITS, ball, lower, upper
from dalenius.profiles.inverse import invert

FAR, TERMS = 100, 20
"""From where on erfc is taken from its series far out, and how many terms of it are added."""


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
            # The square of the second is ε above that of the first.
            rest = (-ahead * ahead).exp() * scaled_erfc(behind) if behind > FAR else e.exp() * behind.erfc()
            value = (ahead.erfc() - rest) / 2
            return max(0.0, lower(value)), min(1.0, upper(value))

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose the least ε ≥ 0 with δ(ε) ≤ delta."""
        if delta == 0:
            return math.inf, math.inf
        mu = math.sqrt(float(self.squared))
        guess = mu * mu / 2 + mu * math.sqrt(-2 * math.log(min(delta, 0.5)))
        return invert(self.delta, delta, guess=guess, scale=mu)


def scaled_erfc(x: arb) -> arb:
    """Enclose e^(x²)·erfc x for x > 0: the series is nearer than its first term left out.

    It is Σ (−1)ⁿ (2n−1)!!/(2x²)ⁿ / (x√π).
    """
    term, total, inverse = arb(1), arb(0), 1 / (2 * x * x)
    for n in range(TERMS):
        total += term
        term *= -(2 * n + 1) * inverse
    return total.union(total + term) / (x * arb.pi().sqrt())
