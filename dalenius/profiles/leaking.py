"""The profile of a composition that gives everything away by a chance f, and is another one otherwise.

Where P and Q are ([f, 1 − f, 0], [0, 1 − f, f]) times a pair with profile δ₀, the first outcome adds f and
the second (1 − f) δ₀(ε), as its likelihood ratio is 1: δ(ε) = f + (1 − f) δ₀(ε). Several such chances make
one, 1 − Π (1 − fᵢ).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.profiles.pair import Floats
from dalenius.profiles.profile import Profile, sample, sketch
from dalenius.profiles.rounding import TINY, U, ceiling, floor

NEAR = 1e-12
"""How far below the ε of a δ is looked, as a share, for one of a δ that differs by rounding."""
Read = Callable[[Profile, Floats], tuple[Floats, Floats]]
"""Encloses a profile at every ε of an array."""


@dataclass(frozen=True)
class LeakingProfile:
    """`rest`, but for a chance of `leak`, which is between these two."""

    rest: Profile
    leak: tuple[Fraction, Fraction]

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε)."""
        # f + (1 − f) δ₀ grows with f.
        ends = zip(self.leak, self.rest.delta(epsilon), strict=True)
        low, high = (leak + (1 - leak) * Fraction(end) for leak, end in ends)
        return floor(low), min(1.0, ceiling(high))

    def deltas(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose δ at every ε of an increasing array."""
        return self._many(epsilon, sample)

    def sketch(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose δ at every ε of an increasing array, for curves."""
        return self._many(epsilon, sketch)

    def _many(self, epsilon: Floats, read: Read) -> tuple[Floats, Floats]:
        low, high = read(self.rest, epsilon)
        (least, _), (_, most) = ((floor(leak), ceiling(leak)) for leak in self.leak)
        kept = floor(1 - self.leak[0]), ceiling(1 - self.leak[1])
        low, high = (least + kept[0] * low) * (1 - 4 * U), (most + kept[1] * high) * (1 + 4 * U)
        return np.maximum(low - TINY, 0.0), np.minimum(high + TINY, 1.0)

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose the least ε ≥ 0 with δ(ε) ≤ delta, by what is left of delta for the rest."""
        least = self._left(delta, self.leak[1])
        most = self._left(math.nextafter(delta, 2.0), self.leak[0])
        if most < 0:
            return math.inf, math.inf
        low, high = self.rest.epsilon(floor(least)) if least >= 0 else (math.inf, math.inf)
        if low > 0 and ceiling(most) > math.nextafter(max(floor(least), 0.0), 2.0):
            # An ε with more than this δ is below the answer, as is that of a larger δ.
            near = low * (1 - NEAR)
            low = near if near < math.inf and self.rest.delta(near)[0] > most else self._from(most)
        return low, high

    def _from(self, delta: Fraction) -> float:
        return self.rest.epsilon(ceiling(delta))[0]

    def _left(self, delta: float, leak: Fraction) -> Fraction:
        return (Fraction(delta) - leak) / (1 - leak) if leak < 1 else Fraction(delta) - 1
