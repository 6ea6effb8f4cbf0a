"""Where to look: the ranges of S = (1/t)ΣX over which one convolution serves, and how fine it must be.

X is heavy-tailed, and E(S − z)₊ is large either because all of the sum is, or because one X is about
t(z − 1). So it is sized up as the greater of the saddle's figure with X cut off there and of c(t(z − 1)).

Everything here chooses parameters from a rough law of X. What is certified is certified later, whatever
they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dalenius.profiles.pair import Floats, Indices, Pair
from dalenius.profiles.saddle import Plan, Sketch, plan, windowed

NODES = np.geomspace(1e-6, 80.0, 700)
"""Logarithms of X, on either side of zero, at which it is looked at."""
LOWEST = -55.0
"""log δ below which no convolution is made."""
FALL = 8.0
"""By how much, in logarithms, δ may fall within one range."""
STRIDE = 2.5
"""And how many standard deviations of the tilted sum it may be long."""
MOST_RANGES = 100
FEW = 1024
"""Points that are looked at one by one."""
NOISE = 1e-4
"""Share of δ that the transform's rounding may hide."""


Heights = tuple[tuple[float, float], ...]
"""Levels, with log δ there."""
SHARES = (0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Of the saddle's tilt, that are tried."""


@dataclass(frozen=True)
class Size:
    """At a level z: log δ(z), how fast it falls there, and the deviation of the tilted sum, all roughly."""

    log_delta: float
    slope: float
    deviation: float


@dataclass(frozen=True, eq=False)
class Outline:
    """X roughly: values in order, and the logarithms of their masses under Q, of c and of p there."""

    values: Floats
    logs: Floats
    calls: Floats
    puts: Floats

    def size(self, steps: int, level: float, *, calls: bool) -> Size:
        """What E(S − level)₊, or E(level − S)₊, comes to."""
        if not calls:
            found = plan(self.sketch(steps, steps * level, calls=False), epsilon=-level)
            return Size(found.log_delta, max(found.tilt, 0.5 / found.deviation), found.deviation)
        usual, mean = self._usual(steps)
        jump = steps * max(level - mean, 1e-9)
        found = plan(self.sketch(steps, max(jump, usual, 3 * level), calls=True), epsilon=level)
        tilt = max(found.tilt, 0.5 / found.deviation)
        if jump <= usual:
            return Size(found.log_delta, tilt, found.deviation)
        here, there = np.interp([jump, 1.05 * jump], self.values, self.calls)
        fall = max(float(here - there), 1e-9) / (0.05 * jump) * steps
        if here > found.log_delta + 3:
            return Size(float(here), fall, level)
        return Size(max(float(here), found.log_delta), max(tilt, fall), found.deviation)

    def _usual(self, steps: int) -> tuple[float, float]:
        """A value that one of all X seldom exceeds, and the mean of X up to there."""
        masses = np.exp(self.logs)
        rare = np.cumsum(masses[::-1])[::-1] * steps < 0.01
        usual = int(np.argmax(rare)) if rare.any() else len(masses) - 1
        return float(self.values[usual]), float(masses[:usual] @ self.values[:usual])

    def sketch(self, steps: int, end: float, *, calls: bool) -> tuple[Sketch]:
        """X/t up to `end`, mirrored for puts."""
        kept = max(2, int(np.searchsorted(self.values, end, side="right")) + 1)
        values, logs = self.values[:kept] / steps, self.logs[:kept]
        return (Sketch(values, logs, steps) if calls else Sketch(-values[::-1], logs[::-1], steps),)

    def end(self, log_height: float) -> float:
        """The value from which c is below e^log_height."""
        return float(self.values[min(int(np.searchsorted(-self.calls, -log_height)), len(self.values) - 1)])

    def jump(self, steps: int, level: float, log_height: float) -> float:
        """The least value above which a jump with too low a sum of the others matters no more."""
        rates = np.geomspace(0.5, 1e7, 60) * max(1.0, 1 / level)
        sums = np.array([self.sketch(steps, math.inf, calls=True)[0].cumulants(-rate)[0] for rate in rates])
        rest = level - self.values / steps
        low = (sums * (1 - 1 / steps) - 1 - np.log(rates) + rest[:, None] * rates).min(axis=1)
        low = np.minimum(low, np.log(np.maximum(rest, 1e-300)))
        chance = np.log(steps * np.cumsum(np.exp(self.logs)[::-1])[::-1] + 1e-300)
        enough = chance + low < log_height
        return float(self.values[int(np.argmax(enough))]) if enough.any() else float(self.values[-1])

    def start(self, log_height: float) -> float:
        """The value up to which p is below e^log_height."""
        return float(self.values[max(int(np.searchsorted(self.puts, log_height)) - 1, 0)])


@lru_cache(maxsize=256)
def outline(pair: Pair) -> Outline:
    """From the divergences of the pair and of its reverse at the nodes."""
    right, left = np.exp(NODES), np.exp(-NODES)[::-1]
    with np.errstate(all="ignore"):
        call = np.maximum(pair.hockey(np.append(0.0, NODES))[1] - pair.infinite_mass[1], 0.0)
        put = np.append(left, 1.0) * pair.reversed().hockey(np.append(NODES[::-1], 0.0))[1]
    points = np.concatenate([[0.0], left, [1.0], right])
    rising = np.diff(np.append(0.0, put)) / np.diff(np.concatenate([[0.0], left, [1.0]]))
    falling = np.append(-np.diff(call) / np.diff(np.append(1.0, right)), 0.0)
    below = np.maximum(np.diff(np.append(0.0, rising)), 0.0)
    above = np.maximum(falling[:-1] - falling[1:], 0.0)
    masses = np.concatenate([below, [max(0.0, 1 - float(below.sum() + above.sum()))], above])
    heights = np.append(1 - points[: len(left) + 1] + np.append(0.0, put[:-1]), call)
    depths = np.concatenate([[0.0], put, right - 1 + call[1:]])
    there = masses > 1e-290
    rows = (np.log(np.maximum(row[there], 1e-300)) for row in (masses, heights, depths))
    return Outline(points[there], *rows)


def tilted(sketch: tuple[Sketch], levels: Heights) -> Plan:
    """The least tilt at which rounding, about 1e-12·t·e^{K(λ)−λz}/λ, is a small share of δ at all levels.

    Where none is, the one that comes nearest.
    """
    found = plan(sketch, epsilon=sum(level for level, _ in levels) / len(levels))
    best, base = max(found.tilt, 0.5 / found.deviation), math.log(1e-12 * sketch[0].count)
    tried = []
    for share in SHARES:
        tilt = best * share
        value = sketch[0].cumulants(tilt)[0]
        noise = max(value - tilt * level - height for level, height in levels) + base - math.log(tilt)
        tried.append((max(noise, math.log(NOISE)), tilt))
    tilt = min(tried)[1]
    deviation = math.sqrt(max(sketch[0].cumulants(tilt)[2], 1e-300))
    return windowed(replace(found, tilt=tilt), sketch, deviation)


def gathered(points: Floats, masses: Floats, steps: int) -> Sketch:
    """A law on many points as a sketch of fewer: neighbours together, the more the farther out."""
    starts = blocks(len(points))
    total = np.maximum(np.add.reduceat(masses, starts), 1e-300)
    return Sketch.of(np.add.reduceat(masses * points, starts) / total / steps, total, steps)


def blocks(count: int) -> Indices:
    """Where blocks begin: single points at first, then ever longer ones."""
    far = np.geomspace(FEW, max(count, FEW), 2 * FEW)
    starts = np.unique(np.append(np.arange(min(count, FEW)), far).astype(np.intp))
    return starts[starts < count]


@lru_cache(maxsize=512)
def ranges(pair: Pair, steps: int, calls: bool) -> Floats:
    """Levels from 1 on, upward for calls and downward for puts, between which one convolution serves."""
    return np.array(list(_levels(outline(pair), steps, calls)))


def _levels(rough: Outline, steps: int, calls: bool) -> Iterator[float]:
    level, (least, most) = 1.0, (float(rough.values[0]), float(rough.values[-1]))
    yield level
    for _ in range(MOST_RANGES):
        size = rough.size(steps, level, calls=calls)
        shown = size.log_delta - (0.0 if calls else math.log(level))
        if shown < LOWEST or not (least < level < most):
            return
        width = min(STRIDE * size.deviation, FALL / size.slope)
        level = level + min(width, level) if calls else max(level - width, level / 2)
        yield level
