"""A smooth cut χ(x) = ½ erfc((x − m)/v): one on the left of m, zero on the right.

For ζ = ξ + iτ with ξ ≥ 0, |erfc ζ| ≤ e^{τ²} erfc ξ, because erfc ζ = e^{−ζ²}(2/√π)∫₀^∞ e^{−t²−2ζt} dt.
So with E = e^{(t/v)²}: |χ(x+it)| ≤ E χ(x) for x ≥ m and |χ(x+it)| ≤ 1 + E (1 − χ(x)) for x ≤ m, and the
complement 1 − χ obeys the mirrored bounds. Each bound is monotone on either side of m.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dalenius.profiles.pair import Floats
from dalenius.profiles.rounding import exp_bound

REACH = 6.3
"""½ erfc(6.3) < 3e-19."""


def half_erfc(values: Floats) -> Floats:
    """½ erfc, elementwise, by the C library where it is neither 1 to the last digit nor an underflow."""
    result = np.where(values < 0, 1.0, 0.0)
    near = np.flatnonzero((values > -6.5) & (values < 27.5))
    result[near] = [0.5 * math.erfc(v) for v in values[near].tolist()]
    return result


FAR = 26.0
"""Where erfc is about to underflow."""
EDGE = 9.0
"""Beyond so many widths a cutoff is only bounded: what is left there is below e^{−81}."""


def log_half_erfc(values: Floats, far: float = FAR) -> Floats:
    """log(½ erfc); beyond `far` from above, by erfc z ≤ e^{−z²}/(z√π), which is off by less than 1/(2z²)."""
    result = np.zeros_like(values)
    near = np.flatnonzero((values > -6.5) & (values <= far))
    result[near] = [math.log(0.5 * math.erfc(v)) for v in values[near].tolist()]
    beyond = values > far
    result[beyond] = -(values[beyond] ** 2) - np.log(2 * math.sqrt(math.pi) * values[beyond])
    return result


@dataclass(frozen=True)
class Cutoff:
    """χ with centre `middle` (on a cell edge) and width `width`."""

    middle: float
    width: float

    def inside(self, x: Floats) -> Floats:
        """χ(x)."""
        return half_erfc((x - self.middle) / self.width)

    def outside(self, x: Floats) -> Floats:
        """1 − χ(x), without cancellation."""
        return half_erfc((self.middle - x) / self.width)

    def log_inside(self, x: Floats) -> Floats:
        """log χ(x)."""
        return log_half_erfc((x - self.middle) / self.width, EDGE)

    def log_outside(self, x: Floats) -> Floats:
        """log(1 − χ(x))."""
        return log_half_erfc((self.middle - x) / self.width, EDGE)

    def growth(self, t: float) -> float:
        """E = e^{(t/v)²}."""
        return exp_bound((t / self.width) ** 2)

    def within(self, other: Cutoff, left: float, right: float) -> bool:
        """Whether χ ≤ χ′ of the other on [left, right], but for differences that underflow.

        The two cross where (x − m)/v = (x − m′)/v′, and nowhere else.
        """
        if self.middle > other.middle:
            return False
        if self.width == other.width:
            return True
        scaled = (other.middle - self.middle) / (other.width - self.width)
        crossing = self.middle - self.width * scaled
        return not left <= crossing <= right or abs(scaled) > 27.3

    def snapped(self, step: float) -> Cutoff:
        """The same with its middle on a cell edge."""
        return Cutoff(round(self.middle / step) * step, self.width)
