"""Profiles in closed form: Gaussians alone, and a single release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np

from dalenius.losses.balls import BITS, ball, lower, upper
from dalenius.losses.inverse import invert
from dalenius.losses.pair import Pair


@dataclass(frozen=True)
class GaussianProfile:
    """N(μ, 1) against N(0, 1) with μ² = `squared`: δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), in balls."""

    squared: Fraction

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε), with as many bits as the cancellation takes."""
        mu = math.sqrt(float(self.squared))
        lost = 2 * (epsilon / mu - mu / 2) ** 2 + 2 * abs(math.log2(mu)) + 64
        with flint.ctx.workprec(BITS + int(min(lost, 1e6))):
            root, e = ball(self.squared).sqrt(), ball(epsilon)
            ahead, behind = ((e / root + sign * root / 2) / flint.arb(2).sqrt() for sign in (-1, 1))
            value = (ahead.erfc() - e.exp() * behind.erfc()) / 2
            return max(0.0, lower(value)), min(1.0, upper(value))

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose the least ε ≥ 0 with δ(ε) ≤ delta, delta > 0."""
        mu = math.sqrt(float(self.squared))
        guess = mu * mu / 2 + mu * math.sqrt(-2 * math.log(min(delta, 0.5)))
        return invert(self.delta, delta, guess=guess, scale=mu)


@dataclass(frozen=True)
class SingleProfile:
    """One release of one pair: its own hockey-stick divergence."""

    pair: Pair

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε)."""
        low, high = self.pair.hockey(np.array([epsilon]))
        return float(low[0]), float(high[0])

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose the least ε ≥ 0 with δ(ε) ≤ delta, delta > 0."""
        top = self.pair.support[1]
        guess = min(top, 1.0) if top > 0 else 0.0
        scales = np.geomspace(1e-12, 1e6, 200)
        heights = self.pair.hockey(scales)[1]
        guess = float(scales[min(int(np.searchsorted(-heights, -delta)), len(scales) - 1)])
        return invert(self.delta, delta, guess=guess, scale=0.1 * guess)
