"""A profile known at knots, read between them, and its moments.

H is convex in y = e^ε, so between two knots it is at most its chord and at least the line of the next two
knots, drawn back. Moments of a pair that is its own reverse (Sason and Verdú 2016), top the largest loss:
    (E e^{tL} − 1)/(t(1+t)) = ∫₀^top (e^{tε} + e^{−(1+t)ε})·H(ε) dε.
On a cell of width h the chord's mean is at most H₀ − ½e^{−h}(H₀ − H₁). Since e^{tε} rises and H falls, the
mean of their product is at most the product of their means (Chebyshev); e^{−(1+t)ε} is at most its value at
the left. Below, each factor is taken at its lesser end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dalenius.profiles.enclosure import ELEMENTARY, Interval, spread
from dalenius.profiles.pair import Floats
from dalenius.profiles.rounding import U


@dataclass(frozen=True, eq=False)
class Profile:
    """H enclosed at increasing knots, the first at 0 and the last at the largest loss, where H is 0."""

    knots: Floats
    lower: Floats
    upper: Floats

    def at(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose H(ε), 0 ≤ ε ≤ top: a quotient of expm1 and a chord are within 2·ELEMENTARY + 12 units."""
        last = len(self.knots) - 1
        i = np.clip(np.searchsorted(self.knots, epsilon, side="right") - 1, 0, last - 1)
        after = np.minimum(i + 2, last)
        widths = np.expm1(np.diff(self.knots))
        along = np.clip(np.expm1(epsilon - self.knots[i]) / widths[i], 0.0, 1.0)
        chord = self.upper[i] * (1 - along) + self.upper[i + 1] * along
        drop = np.maximum(self.lower[i + 1] - self.upper[after], 0.0)
        run = widths[i] * np.exp(self.knots[i] - self.knots[i + 1]) / widths[np.minimum(i + 1, last - 1)]
        line = self.lower[i + 1] + drop * (1 - along) * run * (1 - 1e-12)
        slack = self.upper[i] * (4 * U * (2 * ELEMENTARY + 12))
        return np.maximum(line - slack, 0.0), chord + slack

    def log_moment(self, order: float) -> Interval:
        """Enclose log E e^{tL}; never more than t times the top loss."""
        most = order * float(self.knots[-1]) * (1 + 4 * U)
        if most > 600:
            return (0.0, most)
        left, right = self.knots[:-1], self.knots[1:]
        h = right - left
        rising, falling = np.exp(order * left), np.exp(-(1 + order) * left)
        high = self.upper[:-1] - 0.5 * np.exp(-h) * np.maximum(self.upper[:-1] - self.upper[1:], 0.0)
        mean = np.expm1(order * h) / order
        above = float(np.sum(high * (rising * mean + falling * h)))
        below = float(np.sum(self.lower[1:] * (rising + np.exp(-(1 + order) * right)) * h))
        units = 6 * ELEMENTARY + 16 + len(h) + 8 * (1 + order) * float(self.knots[-1])
        scale = order * (1 + order)
        ends = [spread(np.array([scale * part]), units)[side][0] for side, part in enumerate((below, above))]
        slack = 16 * U
        return (math.log1p(ends[0]) * (1 - slack), min(math.log1p(ends[1]) * (1 + slack), most))
