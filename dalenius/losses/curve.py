"""A whole privacy profile δ(ε) at once, enclosed at every ε ≥ 0.

In x = e^ε the profile of a pair is convex, non-increasing and at most 1 (Balle, Barthe and Gaboardi
2018), and so is the greater of two. Hence between knots it lies below the chord of upper bounds, and
above every chord of neighbouring knots extended from outside (from a lower to an upper bound, so that
the line is certainly below). Beyond the last knot it is at most the last value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dalenius.figures import Figure, Series
from dalenius.losses.loss import Loss
from dalenius.losses.routes import profiles
from dalenius.profiles.pair import Floats
from dalenius.profiles.profile import sample, sketch
from dalenius.profiles.rounding import U

KNOTS = 257
"""Knots of a curve."""
LOWEST = 1e-30
"""How far down in δ a curve goes."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Knots ε with enclosures of δ there."""

    epsilon: Floats
    lower: Floats
    upper: Floats

    def delta(self, epsilon: float) -> float:
        """At least δ(ε), at any ε ≥ 0."""
        if epsilon >= self.epsilon[-1]:
            return float(self.upper[-1])
        j = max(1, int(np.searchsorted(self.epsilon, epsilon)))
        (a, b), (fa, fb) = self.epsilon[j - 1 : j + 1], self.upper[j - 1 : j + 1]
        share = math.expm1(epsilon - a) / math.expm1(b - a) if b < 700 else 0.0
        return float(min(1.0, (fa + (fb - fa) * share) * (1 + 64 * U) + 64 * U * fa))

    def figure(self, title: str = "Privacy profile") -> Figure:
        """δ against ε."""
        return Figure(
            title=title,
            x_label="epsilon",
            y_label="delta",
            y_scale="log",
            series=(Series("upper bound", tuple(map(float, self.epsilon)), tuple(map(float, self.upper))),),
        )

    @cached_property
    def x(self) -> Floats:
        """e^ε at the knots."""
        return np.exp(self.epsilon)


@lru_cache(maxsize=64)
def upper_curve(loss: Loss) -> Curve:
    """The curve from ε = 0 to where δ is negligible."""
    top = loss.epsilon(LOWEST).upper
    if not math.isfinite(top):
        top = loss.epsilon(0.1).upper
    knots = np.linspace(0.0, top if 0 < top < math.inf else 1.0, KNOTS)
    ends = [(sample if loss.tight else sketch)(profile, knots) for profile in profiles(loss)]
    lower = np.maximum.reduce([low for low, _ in ends])
    upper = np.maximum.reduce([high for _, high in ends])
    return Curve(knots, lower, np.minimum.accumulate(upper))
