"""The profile of a composition that gives everything away by a chance f, and is another one otherwise.

Where P and Q are ([f, 1 − f, 0], [0, 1 − f, f]) times a pair with profile δ₀, the first outcome adds f and
the second (1 − f) δ₀(ε), as its likelihood ratio is 1: δ(ε) = f + (1 − f) δ₀(ε). Several such chances make
one, 1 − Π (1 − fᵢ).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dalenius.profiles.profile import Profile
from dalenius.profiles.rounding import ceiling, floor


@dataclass(frozen=True)
class LeakingProfile:
    """`rest`, but for a chance of `leak`."""

    rest: Profile
    leak: Fraction

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε)."""
        low, high = (self.leak + (1 - self.leak) * Fraction(end) for end in self.rest.delta(epsilon))
        return floor(low), min(1.0, ceiling(high))

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose the least ε ≥ 0 with δ(ε) ≤ delta, by what is left of delta for the rest."""
        least, most = (self._left(end) for end in (delta, math.nextafter(delta, 2.0)))
        return (
            self.rest.epsilon(ceiling(most))[0] if most >= 0 else math.inf,
            self.rest.epsilon(floor(least))[1] if least >= 0 else math.inf,
        )

    def _left(self, delta: float) -> Fraction:
        return (Fraction(delta) - self.leak) / (1 - self.leak)
