"""What dominates the best of a random number of runs, known from above: the bounds of `repeated`.

The truth is convex in e^ε, and 1 where that is 0. So it is below the chord between any two bounds, and the
lower convex hull of bounds at several ε is a bound again: that of a pair, which composes sharply, while
E[K]·δ₀(ε − c) says nothing for ε < c and falls too fast after it. The bounds taken are E[K]·H₀(ε − c) for
ε ≥ 0, where H₀(x) ≤ 1 − e^x + e^x·δ₀(−x) for x < 0; 0 at the size of a pure loss; and each for the reverse.

Where one run gives everything away with probability d, the best one does with at most E[K]·d. That chance
is set apart, as a pair of its own: the profile is L + (1 − L)·h, and h that of what is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from dalenius.losses.loss import Loss
from dalenius.losses.pure import four_points
from dalenius.losses.selection.repeated import FINE, Repeated
from dalenius.profiles.discrete import infinite_mass
from dalenius.profiles.enclosure import ELEMENTARY, clip, spread
from dalenius.profiles.pair import Floats, Pair
from dalenius.profiles.rounding import U, ceiling, floor

FEW = 4
"""Up to so many values of a profile are evaluated one by one."""
PER_DOUBLING = 32
"""Orders at which divergences are known, for each time that the order doubles."""
KNOTS, LEVEL = 48, 0.4
"""Of a profile: how many knots, and what share of δ is left from one to the next."""


@dataclass(frozen=True)
class SelectedPair(Pair):
    """What dominates the best run; known from above only."""

    loss: Loss
    runs: Repeated
    apart: Fraction = Fraction(0)

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Nothing below; above the theorem, and for ε < 0 the same of the reverse."""
        far = np.abs(epsilon)
        bound = np.minimum(self._above(far), 1.0)
        above = np.where(epsilon >= 0, bound, behind(far, bound))
        return clip(epsilon, np.zeros_like(epsilon), above, top=self.support[1])

    def log_moment(self, order: float) -> tuple[float, float]:
        """Between nothing and the theorem on Rényi divergences, or what a pure loss of that size allows."""
        most = log_moment(self.loss, self.runs, order)
        if self.largest is not None:
            most = min(most, four_points(self.largest, Fraction(0)).log_moment(order)[1])
        return (0.0, most)

    @property
    def support(self) -> tuple[float, float]:
        """That of a pure loss, where one run is one; else anything."""
        top = math.inf if self.largest is None else ceiling(self.largest)
        return (-top, top)

    @cached_property
    def largest(self) -> Fraction | None:
        """ε₀ + c where one run is ε₀-private, but for what is set apart."""
        once = self.loss.epsilon(self.apart).upper
        return None if once == math.inf else Fraction(once) + self.shift

    def reversed(self) -> SelectedPair:
        """Itself: the bounds are those of the worse direction."""
        return self

    @property
    def lost(self) -> Fraction:
        """The chance that is set apart, of the best run."""
        return Fraction(self.runs.mean) * self.apart

    @cached_property
    def shift(self) -> Fraction:
        """c of the theorem."""
        return self.runs.shift(self.loss)

    def _above(self, epsilon: Floats) -> Floats:
        """At most the chord between points of the hull, in e^ε; for few values also the theorem itself."""
        ends, high = _hull(self, KNOTS)
        j = np.clip(np.searchsorted(ends, epsilon), 1, len(ends) - 1)
        a, b = ends[j - 1], ends[j]
        at = np.minimum(epsilon, b)
        with np.errstate(under="ignore"):
            early = np.expm1(at - b) / np.expm1(a - b)
            late = np.exp(at - b) * (np.expm1(a - at) / np.expm1(a - b))
            chord = spread(high[j - 1] * early + high[j] * late, 4 * ELEMENTARY + 8 + (b - at))[1]
        bound = np.where(epsilon >= ends[-1], high[-1], chord)
        return bound if epsilon.size > FEW else np.minimum(bound, self._few(epsilon))

    def _few(self, epsilon: Floats) -> Floats:
        """E[K]·H₀(ε − c), one by one."""
        least = np.nextafter(epsilon - ceiling(self.shift), -np.inf)
        once = np.array([self.loss.delta(Fraction(x)).upper for x in np.abs(least).tolist()])
        return self.kept(np.where(least >= 0, once, behind(np.abs(least), once)))

    def kept(self, once: Floats) -> Floats:
        """E[K] times what one run has, without what is set apart."""
        bound = spread(once * self.runs.mean, 2)[1]
        if not self.apart:
            return bound
        lost = floor(self.lost)
        return spread(np.maximum(bound - lost, 0.0) / (1 - lost), 8)[1]


@lru_cache(maxsize=64)
def _hull(pair: SelectedPair, count: int) -> tuple[Floats, Floats]:
    """Increasing ε and bounds there, from e^ε = 0 on, where every profile is 1."""
    (knots, high), shift = _knots(pair.loss, count), ceiling(pair.shift)
    ends = np.nextafter(np.concatenate([shift + knots, shift - knots]), np.inf)
    bounds = pair.kept(np.concatenate([high, behind(knots, high)]))
    if pair.largest is not None:
        ends, bounds = np.append(ends, ceiling(pair.largest)), np.append(bounds, 0.0)
    ahead = ends >= 0
    ends, bounds = ends[ahead], np.minimum(bounds[ahead], 1.0)
    return lower_hull(np.append(ends, -ends), np.append(bounds, behind(ends, bounds)))


def behind(epsilon: Floats, bound: Floats) -> Floats:
    """H(−ε) ≤ 1 − e^{−ε} + e^{−ε}δ(ε), ε ≥ 0, rounded up: the profile of the reverse is δ at most."""
    return spread(-np.expm1(-epsilon) + np.exp(-epsilon) * bound, 2 * ELEMENTARY + 3)[1]


def lower_hull(ends: Floats, bounds: Floats) -> tuple[Floats, Floats]:
    """The points that a convex function of e^ε below all of them needs: rounding costs only sharpness."""
    kept: list[tuple[float, float]] = [(-math.inf, 1.0)]
    for b, high in sorted(zip(ends.tolist(), bounds.tolist(), strict=True), key=lambda p: (p[0], -p[1])):
        while len(kept) > 1:
            (a, top), (middle, bound) = kept[-2:]
            before, after = -math.expm1(a - middle), math.expm1(min(b - middle, 700.0))
            if (bound - top) * after < (high - bound) * before:
                break
            kept.pop()
        kept.append((b, high))
    return np.array([b for b, _ in kept]), np.array([high for _, high in kept])


@lru_cache(maxsize=64)
def set_apart(loss: Loss) -> Fraction:
    """A little more than the chance that one run gives everything away; 0 where there is none."""
    worst = max((infinite_mass(terms)[1] for terms in loss.directions() or ()), default=0.0)
    return Fraction(worst) * (1 + Fraction(1, 2**30))


@lru_cache(maxsize=64)
def _knots(loss: Loss, count: int) -> tuple[Floats, Floats]:
    """Increasing ε from 0 on, and what δ is at most there; past the last it is no more."""
    first = max(loss.delta(0).upper, 2.0**-900)
    least: dict[float, float] = {0.0: first, 1.0: first}
    last = ceiling(set_apart(loss))
    for level in (max(first * LEVEL**k, last) for k in range(1, count)):
        epsilon = loss.epsilon(level).upper
        if epsilon < math.inf:
            least[epsilon] = min(level, least.get(epsilon, first))
    knots = sorted(least)
    return np.array(knots), np.minimum.accumulate([least[epsilon] for epsilon in knots])


def log_moment(loss: Loss, runs: Repeated, order: float) -> float:
    """tD_{1+t} from above: the chord between two orders, as it is convex in t (a logarithm of moments).

    No more than D at a later order, either, since divergences grow with the order.
    """
    place = math.floor(PER_DOUBLING * math.log2(order))
    low, high = (math.exp2(k / PER_DOUBLING) for k in (place, place + 1))
    start, end = (mark * _divergence(loss, runs, mark) for mark in (low, high))
    if end < math.inf and low <= order <= high:
        here = (start * (high - order) + end * (order - low)) / (high - low)
    else:
        here = order * runs.renyi(loss, 1 + Fraction(order), FINE)
    later = [order * size for mark, size in _landmarks(loss, runs) if mark >= order]
    return min([here, *later]) * (1 + 16 * U)


@lru_cache(maxsize=4096)
def _divergence(loss: Loss, runs: Repeated, order: float) -> float:
    return runs.renyi(loss, 1 + Fraction(order), FINE)


@lru_cache(maxsize=64)
def _landmarks(loss: Loss, runs: Repeated) -> tuple[tuple[float, float], ...]:
    return tuple((2.0**k, runs.renyi(loss, 1 + Fraction(2) ** k, FINE)) for k in range(-2, 10))
