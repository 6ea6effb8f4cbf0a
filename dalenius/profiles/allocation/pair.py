"""The pair of t steps in exactly one of which, chosen uniformly and unseen, the unit takes part.

With X = dP/dQ of one step under Q and S = (1/t)ΣXᵢ of t independent copies, the pair is (S·Qᵗ, Qᵗ), and
    H(ε) = E(S − e^ε)₊ + P(L = ∞),        reversed: H(ε) = e^ε·E(e^{−ε} − S)₊,
the one for ε < 0 following from the other by H_{P‖Q}(ε) = 1 − e^ε + e^ε·H_{Q‖P}(−ε). Both are enclosed by
convolution (`panel`), and everywhere by the step's own divergence: E(S − y)₊ ≤ E(X − y)₊ since S is
a mean, and E(S − y)₊ ≥ Σᵢ E(Xᵢ/t − y)₊ = E(X − ty)₊ since (a + b − y)₊ ≥ (a − y)₊ + (b − y)₊ for a, b ≥ 0.

Moments. E S^α at whole α is α!/t^α times the coefficient of x^α in (Σ E[X^j]x^j/j!)^t; between them K is
convex and K(t)/t grows. Past MOST_ORDER, E S^α ≤ E X^α. For the reverse E S^{−a} is at most E X^{−a}, by
convexity, and (E X^{−a/t})^t, as a mean is at least the geometric one; or taken from the profile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.arithmetic import workprec
from dalenius.profiles import integrals
from dalenius.profiles.allocation.hull import hull
from dalenius.profiles.allocation.moments import whole_moment
from dalenius.profiles.allocation.outline import ranges
from dalenius.profiles.allocation.panel import FINE, FINEST, MEDIUM, QUICK, Detail, panel
from dalenius.profiles.enclosure import ELEMENTARY, Interval, between, clip, mass, spread
from dalenius.profiles.pair import Floats, Pair
from dalenius.profiles.rounding import TINY, U, down, up

MOST_ORDER = 64
"""Up to which order the power series of a moment is expanded."""
MOST_PROFILED = 32.0
"""Up to which order a moment of the reverse is taken from the profile."""
FAR = 690.0
"""Beyond e^±FAR nothing is asked of a convolution."""
LOOK = 1100
"""Up to so many points, unless equally spaced, are taken for a look around."""
EVEN = 1e-6
"""By how much equally spaced points may be off in all."""
SOME_STEPS, MANY_STEPS = 500, 20_000
"""From so many steps on a finer grid is worth its time, and the finest."""


@dataclass(frozen=True)
class Allocated(Pair):
    """(S·Qᵗ, Qᵗ) for one step's `pair` (P, Q), or `backward`, (Qᵗ, S·Qᵗ)."""

    pair: Pair
    steps: int
    backward: bool = False

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """At ε ≥ 0 by its own convolution, at ε < 0 by that of the reverse."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        detail = self._detail(epsilon)
        low, high = np.empty_like(epsilon), np.empty_like(epsilon)
        ahead = epsilon >= 0
        low[ahead], high[ahead] = self._right(epsilon[ahead], detail)
        far = -epsilon[~ahead]
        ends = self.reversed()._right(far, detail)
        less, rest = np.exp(-far), -np.expm1(-far)
        low[~ahead] = spread(rest + less * ends[0], 2 * ELEMENTARY + 3)[0]
        high[~ahead] = spread(rest + less * ends[1], 2 * ELEMENTARY + 3)[1]
        if len(epsilon) > 2 and bool((np.diff(epsilon) > 0).all()):
            if epsilon[0] == 0:
                # A lattice law is made of both directions: what they say of ε = 0 must be the same.
                other = float(self.reversed()._right(epsilon[:1], detail)[1][0])
                high = high * max(1.0, other / max(float(high[0]), TINY)) * (1 + 4 * U)
            high = hull(epsilon, high)
        top = self.support[1] if self.infinite_mass[1] == 0.0 else math.inf
        return clip(epsilon, low, high, top=top)

    def log_moment(self, order: float) -> tuple[float, float]:
        """Exact at whole orders ahead; elsewhere between bounds."""
        if self.infinite_mass[1] > 0:
            return (math.inf if self.infinite_mass[0] > 0 else 0.0, math.inf)
        if self.backward:
            return self._back_moment(order)
        if order > MOST_ORDER:
            return (whole_moment(self.pair, self.steps, MOST_ORDER)[0], self.pair.log_moment(order)[1])
        floor, ceil = math.floor(order), math.ceil(order)
        before, after = (whole_moment(self.pair, self.steps, whole) for whole in (floor, ceil))
        share = order - floor
        least = before[0] * (order / floor) * (1 - 8 * U) if floor else 0.0
        most = after[1] if share == 0 else before[1] * (1 - share) + after[1] * share
        # One step in each epoch has no smaller moment than their mean.
        return (max(least, 0.0), min(most * (1 + 8 * U), self.pair.log_moment(order)[1]))

    @property
    def support(self) -> tuple[float, float]:
        """That of one step, as S is a mean; lower by log t where Q has outcomes that P has not."""
        low, high = self.pair.support
        if self.pair.reversed().infinite_mass[1] > 0:
            low = down(low - up(math.log(self.steps), 8), 2)
        return (-high, -low) if self.backward else (low, high)

    @property
    def largest(self) -> Fraction | None:
        """The largest loss of one step, where that is known as a rational."""
        known = getattr(self.pair.reversed() if self.backward else self.pair, "largest", None)
        return known if isinstance(known, Fraction) else None

    @property
    def infinite_mass(self) -> tuple[float, float]:
        """P's for one step ahead; backward, that all steps show what P never does."""
        if not self.backward:
            return self.pair.infinite_mass
        ends = self.pair.reversed().infinite_mass
        return ends if ends[1] == 0.0 else _power(ends, self.steps)

    def reversed(self) -> Allocated:
        """The other direction."""
        return Allocated(self.pair, self.steps, not self.backward)

    def _detail(self, epsilon: Floats) -> Detail:
        """One point is the question itself, equally spaced ones are the grid of a composition."""
        many, count = self.steps >= MANY_STEPS, len(epsilon)
        if count == 1:
            return FINEST if many else FINE
        even = count > 2 and abs(epsilon[-1] - epsilon[0] - (count - 1) * (epsilon[1] - epsilon[0])) < EVEN
        return (FINE if self.steps >= SOME_STEPS else MEDIUM) if even or count > LOOK else QUICK

    def _right(self, epsilon: Floats, detail: Detail) -> tuple[Floats, Floats]:
        """For ε ≥ 0, between what one step says and what a convolution does."""
        step = self.pair.reversed() if self.backward else self.pair
        with np.errstate(all="ignore"):
            most = np.nan_to_num(step.hockey(epsilon)[1], nan=1.0)
            low, high = self._convolved(epsilon, detail)
            if not self.backward:
                beyond = epsilon + up(math.log(self.steps), 8)
                low = np.maximum(low, np.nan_to_num(step.hockey(np.nextafter(beyond, np.inf))[0], nan=0.0))
        infinite = self.infinite_mass
        return np.minimum(np.maximum(low, infinite[0]), most), np.minimum(high, most)

    def _convolved(self, epsilon: Floats, detail: Detail) -> tuple[Floats, Floats]:
        sign = -1.0 if self.backward else 1.0
        level = np.exp(sign * np.minimum(epsilon, FAR))
        slack = (2 * ELEMENTARY + 4) * U
        low, high = np.zeros_like(level), np.full_like(level, math.inf)
        edges = sign * ranges(self.pair, self.steps, not self.backward)
        place = np.minimum(np.searchsorted(edges, sign * level, side="right") - 1, len(edges) - 1)
        for index in np.unique(place).tolist():
            at = place == index
            if index < len(edges) - 1:
                served = panel(self.pair, self.steps, not self.backward, index, detail)
                low[at], high[at] = served.read(level[at] * (1 - slack), level[at] * (1 + slack))
            if not np.isfinite(high[at]).all():
                high[at] = np.minimum(high[at], self._before(index, detail, level[at]))
        low[epsilon > FAR] = 0.0
        if self.backward:
            units = 4 * ELEMENTARY + 8
            return spread(low / level, units)[0], spread(high / level, units)[1]
        infinite = self.pair.infinite_mass
        return (low + infinite[0]) * (1 - 2 * U), (high + infinite[1]) * (1 + 2 * U)

    def _before(self, index: int, detail: Detail, level: Floats) -> Floats:
        """From the ranges before: from 1 on a call falls as z grows, and put/z as z becomes less."""
        calls = not self.backward
        edges = ranges(self.pair, self.steps, calls)
        for earlier in range(min(index, len(edges) - 1) - 1, -1, -1):
            edge = edges[earlier + 1 : earlier + 2]
            found = float(panel(self.pair, self.steps, calls, earlier, detail).read(edge, edge)[1][0])
            if math.isfinite(found):
                return np.full_like(level, found) if calls else level * (found / edge[0] * (1 + 8 * U))
        return np.full_like(level, math.inf)

    def _back_moment(self, order: float) -> Interval:
        """By the bounds of the module, and from the profile, whose far end they bound."""
        most = Plain(self.pair, self.steps, backward=True).log_moment(order)[1]
        if order > MOST_PROFILED:
            return (0.0, most)
        low, high = integrals.log_moment(Plain(self.pair, self.steps, backward=True), order)
        return (min(low, most), min(high, most))


@dataclass(frozen=True)
class Plain(Allocated):
    """The same with moments by closed bounds alone, for integrals that need some."""

    def reversed(self) -> Plain:
        """The other direction."""
        return Plain(self.pair, self.steps, not self.backward)

    def _back_moment(self, order: float) -> Interval:
        back = self.pair.reversed()
        many = self.steps * back.log_moment(up(order / self.steps))[1] * (1 + 4 * U)
        return (0.0, min(many, back.log_moment(order)[1]))


def _power(ends: Interval, times: int) -> Interval:
    with workprec(128):
        return mass(between(ends) ** times)
