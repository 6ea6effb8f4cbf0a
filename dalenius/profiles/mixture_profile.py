"""The privacy profile of Gaussian mixtures composed with each other and with others, by contour.

First without cutoffs (`plain`); where that is not enough and there are only mixtures and Gaussians, with
cutoffs (`reading`). Where a contour would need too many nodes or comes out wide, the discrete route is
asked as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dalenius.profiles.contour import log_kappa
from dalenius.profiles.discrete import discrete_profile, infinite_mass
from dalenius.profiles.enclosure import Interval
from dalenius.profiles.gaussian_pairs import MixturePair, ShiftPair
from dalenius.profiles.nodes import Part
from dalenius.profiles.pair import Floats, Transformed, Worst
from dalenius.profiles.plain import Plain, PlainReading
from dalenius.profiles.plan import Sketch
from dalenius.profiles.profile import sketch
from dalenius.profiles.reading import Exactly, Reading, alone, read_at
from dalenius.profiles.rounding import TINY, U, exp_bound
from dalenius.profiles.splitting import balance_at, crossing

CLOSE = 2.0
"""How far from the ε it was laid for a contour is read, in units of 1/c."""
NEAR = 0.3
"""Closer than this another contour, laid where the first one was read, would not be sharper."""
FARTHER = 3.0
"""The same for reading many ε, where a few digits less do."""
NOTHING = 1e-250
"""A δ below this is not looked at more closely."""
ORDERS = tuple(4.0**power for power in range(-1, 14))
"""Where Chernoff's bound is tried; laws so narrow that δ is next to nothing need the steep ones."""
LEAST_LEVEL = -690.0
"""The least log δ for which a contour is laid; grids grow with its square root."""
DEVIATIONS = 34.0
"""Beyond this many standard deviations a normal law has a mass below `NOTHING`."""
NARROW = 2e-9
"""Relative width in ε, or in δ, up to which nothing else is asked."""
SMALL = 1e-10
"""Absolute width in ε up to which nothing else is asked."""
WIDE = 1e-4
"""Relative width in ε, or in δ, from which the discrete route is asked too."""


@dataclass(frozen=True)
class MixtureProfile:
    """`sign` +1: L = λ under the mixtures (a unit is removed); −1: L = −λ under N(0, 1) (one is added).

    `squared` is μ² of the Gaussians, `others` have closed transforms; `worst` is the same as pairs.
    """

    parts: tuple[Part, ...]
    sign: int
    squared: float
    worst: Worst
    others: tuple[tuple[Transformed, int], ...] = ()
    proof: bool = False
    _readings: list[tuple[float, Reading | PlainReading]] = field(
        default_factory=list, compare=False, repr=False
    )

    @cached_property
    def top(self) -> float:
        """The largest possible loss, rounded up."""
        return math.fsum(n * pair.support[1] for pair, n in self.worst) * (1 + 4 * U)

    @cached_property
    def infinite(self) -> Interval:
        """Enclose the mass of infinite losses."""
        return infinite_mass(self.worst)

    @cached_property
    def _plain(self) -> Plain | None:
        if self.proof:
            return None
        return Plain(self.parts, self.sign, self.squared, self.others, self.infinite)

    @np.errstate(all="ignore")
    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε) for ε ≥ 0."""
        if epsilon >= self.top:
            return self.infinite
        if epsilon > self._far and (most := self._chernoff(epsilon, ORDERS)) < NOTHING:
            return 0.0, most
        found = self._read(epsilon)
        if found is None or found[1] - found[0] > WIDE * found[1]:
            low, high = tighter(found or (0.0, 1.0), lambda: discrete_profile(self.worst).delta(epsilon))
            # Where δ is next to nothing, neither route is narrow.
            return low, max(low, min(high, self._chernoff(epsilon, ORDERS)))
        return found

    @cached_property
    def _far(self) -> float:
        """About the ε from which Chernoff's bound is likely to show that δ is next to nothing."""
        # To second order K(t) = t(t + 1)v/2 for a loss of variance v.
        variance = sum(n * pair.log_moment(1.0)[1] for pair, n in self.worst)
        return min(50.0, DEVIATIONS * math.sqrt(max(variance, 0.0)))

    def _chernoff(self, epsilon: float, orders: tuple[float, ...]) -> float:
        """At least δ(ε): κ(t) e^{K(t) − tε} at the best of a few t."""
        logs = (
            sum(n * pair.log_moment(t)[1] for pair, n in self.worst) + log_kappa(t) - t * epsilon
            for t in orders
        )
        return 1.01 * exp_bound(min(logs)) + TINY

    def deltas(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose δ at every ε ≥ 0 of an increasing array, each contour serving all ε near it."""
        return self._many(epsilon, roughly=False)

    def sketch(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose δ at every ε ≥ 0 of an increasing array, on a coarse lattice where contours are wide."""
        return self._many(epsilon, roughly=True)

    @np.errstate(all="ignore")
    def _many(self, epsilon: Floats, *, roughly: bool) -> tuple[Floats, Floats]:
        low, high = (np.full_like(epsilon, end) for end in self.infinite)
        start, end = 0, int(np.searchsorted(epsilon, self.top))
        while start < end:
            at, reading = self._serving(float(epsilon[start]))
            if reading is None and roughly:
                low[start:end], high[start:end] = sketch(discrete_profile(self.worst), epsilon[start:end])
                break
            if reading is None:
                low[start], high[start] = self.delta(float(epsilon[start]))
                start += 1
                continue
            stop = min(end, max(start + 1, int(np.searchsorted(epsilon, at + FARTHER / reading.contour.c))))
            low[start:stop], high[start:stop] = reading.reads(epsilon[start:stop])
            start = stop
        return low, high

    def _serving(self, epsilon: float) -> tuple[float, Reading | PlainReading | None]:
        """A contour near ε, laid now if there is none, and where it was laid; None if it comes out wide."""
        for at, reading in self._readings:
            if abs(at - epsilon) * reading.contour.c < CLOSE:
                return at, reading
        found = self._read(epsilon)
        wide = found is None or found[1] - found[0] > WIDE * found[1]
        return epsilon, None if wide else self._readings[-1][1]

    @np.errstate(all="ignore")
    def private(self, epsilon: float, delta: float) -> bool:
        """Whether δ(ε) ≤ delta is certain, by a contour laid for that level."""
        if epsilon >= self.top:
            return self.infinite[1] <= delta
        plain = self._plain.at_epsilon(epsilon) if self._plain else None
        if self.others or (plain is not None and plain.read(epsilon)[1] <= delta):
            return plain is not None and plain.read(epsilon)[1] <= delta
        sketch = Sketch(self.parts, self.sign, math.log(delta), self.squared)
        reading = self._at(sketch, epsilon)
        if reading is not None and reading.read(epsilon)[1] <= delta:
            return True
        return self._chernoff(epsilon, (sketch.steepest(epsilon),)) <= delta

    def _read(self, epsilon: float) -> tuple[float, float] | None:
        for at, reading in self._readings:
            if abs(at - epsilon) * reading.contour.c < 0.5 * CLOSE:
                return reading.read(epsilon)
        plain = self._plain.at_epsilon(epsilon) if self._plain else None
        if plain is not None:
            low, high = plain.read(epsilon)
            if self.others or high - low <= NARROW * high:
                return self._kept(epsilon, plain)
        if self.others:
            return None
        log_delta = -30.0
        for _ in range(10):
            sketch = Sketch(self.parts, self.sign, log_delta, self.squared)
            found = min(-1e-3, sketch.estimate(epsilon))
            if abs(found - log_delta) < 3 or log_delta < -600:
                break
            log_delta = found if found > LEAST_LEVEL else 2 * log_delta
        laid = self._at(sketch, epsilon)
        if laid is None or self._width(laid, epsilon) > NARROW:
            laid = self._finer(laid, epsilon)
        return None if laid is None else self._kept(epsilon, laid)

    def _finer(self, laid: Reading | None, epsilon: float) -> Reading | None:
        """A reading with bulk and jumps in balance, if it is narrower."""
        sketch = Sketch(self.parts, self.sign, -30.0, self.squared)
        if not alone(sketch):
            return laid
        level = min(-1e-3, max(balance_at(sketch, epsilon), LEAST_LEVEL))
        other = self._at(replace(sketch, log_delta=level), epsilon, True)
        return min(
            (one for one in (laid, other) if one), key=lambda one: self._width(one, epsilon), default=None
        )

    @staticmethod
    def _width(reading: Reading, epsilon: float) -> float:
        low, high = reading.read(epsilon)
        return (high - low) / high

    def _at(self, sketch: Sketch, epsilon: float, balance: bool = False) -> Reading | None:
        return read_at(sketch, epsilon, self._exactly if self.proof else None, balance=balance)

    @property
    def _exactly(self) -> Exactly:
        shifts = (n * p.distance**2 for p, n in self.worst if isinstance(p, ShiftPair))
        return Exactly([p for p, _ in self.worst if isinstance(p, MixturePair)], sum(shifts, Fraction(0)))

    def _kept(self, epsilon: float, laid: Reading | PlainReading) -> tuple[float, float]:
        self._readings.append((epsilon, laid))
        del self._readings[:-32]
        return laid.read(epsilon)

    @np.errstate(all="ignore")
    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose inf{ε ≥ 0 : δ(ε) ≤ delta}."""
        found = self._plainly(delta) if delta > 2 * self.infinite[1] else None
        for balance in (False, True) if delta > 0 and not self.others else ():
            if found is None or found[1] - found[0] > max(NARROW * found[1], SMALL):
                other = self._solved(delta, balance)
                found = overlap(found, other) if found and other else found or other
        if found is None or found[1] - found[0] > max(WIDE * found[1], SMALL):
            return tighter(found or (0.0, math.inf), lambda: discrete_profile(self.worst).epsilon(delta))
        return found

    def _plainly(self, delta: float) -> tuple[float, float] | None:
        """By a contour without cutoffs."""
        laid = self._plain.at_delta(delta - self.infinite[1]) if self._plain else None
        if laid is None:
            return None
        guess, reading = laid
        found = solve(reading, delta, guess)
        if not (found > 0 and abs(found - guess) * reading.contour.c < CLOSE):
            return None
        return bracket(reading, delta, found)

    def _solved(self, delta: float, balance: bool) -> tuple[float, float] | None:
        """By contours with cutoffs, bulk and jumps told apart in the valley between them or in balance."""
        sketch = Sketch(self.parts, self.sign, math.log(delta), self.squared)
        if balance and not alone(sketch):
            return None
        guess = crossing(sketch) if balance else sketch.epsilon()
        if guess < 0.05 * sketch.sizes[0]:
            reading = self._at(sketch, 0.0, balance)
            if reading is not None and reading.read(0.0)[1] <= delta:
                return 0.0, 0.0
        low, high, best = 0.0, math.inf, None
        for _ in range(6):
            reading = self._at(sketch, guess, balance)
            if reading is None:
                return best
            found = solve(reading, delta, guess)
            apart = abs(found - guess) * reading.contour.c
            if found >= 0 and apart < CLOSE:
                best = bracket(reading, delta, found)
                if apart < NEAR or best[1] - best[0] <= NARROW * best[1]:
                    return best
                guess = found
                continue
            ends = reading.read(guess)
            low, high = (guess if ends[0] > delta else low), (guess if ends[1] <= delta else high)
            guess = found if max(low, 0.0) < found < high else between(low, high, guess)
        return best


def between(low: float, high: float, guess: float) -> float:
    """Where to look next between two ends, or beyond `guess` where there is no upper end."""
    return math.sqrt(max(low, high / 9) * high) if high < math.inf else 1.3 * guess


def tighter(known: tuple[float, float], other: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    """The same, narrowed by another enclosure."""
    return overlap(known, other())


def overlap(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """The intersection of two enclosures of one number."""
    return max(one[0], other[0]), min(one[1], other[1])


def solve(reading: Reading | PlainReading, delta: float, epsilon: float) -> float:
    """ε with the middle of the reading near delta, by Newton on log δ; −1 where the reading has no digits."""
    most, h = 3.0 / reading.contour.c, 1e-4 / reading.contour.c
    for _ in range(60):
        low, high = reading.reads(np.array([epsilon, epsilon + h]))
        value, after = (float(v) for v in 0.5 * (low + high))
        if high[0] - low[0] > 0.3 * value:
            return -1.0
        slope = (after - value) / h
        moved = math.log(delta / value) * value / slope if slope < 0 else math.copysign(most, value - delta)
        epsilon, before = max(0.0, epsilon + max(-most, min(most, moved))), epsilon
        if abs(epsilon - before) <= 1e-7 * most:
            break
    return epsilon


def bracket(reading: Reading | PlainReading, delta: float, epsilon: float) -> tuple[float, float]:
    """The certified bracket around a solution: outward in both directions until both sides are sure."""
    h = 1e-4 / reading.contour.c
    low, high = reading.reads(np.array([epsilon, epsilon + h]))
    slope = abs(float(low[1] + high[1] - low[0] - high[0])) / (2 * h) + 1e-300
    miss = abs(0.5 * float(low[0] + high[0]) - delta)
    width = max((0.6 * float(high[0] - low[0]) + 1.1 * miss) / slope, 4e-16 * epsilon, 1e-300)
    below, above = 0.0, math.inf
    for _ in range(60):
        ends = np.array([max(epsilon - width, 0.0), epsilon + width])
        low, high = reading.reads(ends)
        if below == 0.0 and low[0] >= math.nextafter(delta, 1.0):
            below = float(ends[0])
        if above == math.inf and high[1] <= delta:
            above = float(ends[1])
        if above < math.inf and (below > 0 or ends[0] == 0):
            break
        width *= 1.5
    return below, above
