"""Points of an integer range by the ranks of private records: segments of one rank error, and a choice.

Of n sorted records in [low, high], `below` are less than a point y and `above` are greater. Its rank error
for the quantile `level` is how far level·n lies outside [below, n − above]:

    d(y) = max(0, below − level·n, above − (1 − level)·n),

which is 0 at the quantile itself, ties included. It is the same at all points between two neighbouring
records, so a choice with P(y) ∝ e^{−d(y)/scale} is one of at most 2n + 1 segments with P ∝
length·e^{−d/scale} and a uniform point in it.

The law is exact. With integers s ≥ 2^q·length·e^{−d/scale}, a segment is proposed with probability s/Σs and
accepted with 2^q·length·e^{−d/scale}/s by a uniform number, revealed as far as comparing with balls needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.arithmetic import arb
from dalenius.noise import source as sources
from dalenius.noise.law import Floats, exponentials
from dalenius.noise.lazy import ball, below
from dalenius.noise.source import Source
from dalenius.privacy.quantized import Steps

STEEPEST = Fraction(2**900)
"""Steeper rates than this are e^{−rate} = 0 to a double all the same."""
BITS = 61
"""Proposals add up to at most a little more than 2^BITS."""


@dataclass(frozen=True, eq=False)
class Segments:
    """Runs of points of one rank error, which is `distance` times that of a step; `rate` is per step."""

    start: Steps
    length: Steps
    distance: Steps
    rate: Fraction

    @staticmethod
    def of(records: Steps, *, low: int, high: int, level: Fraction, scale: Fraction) -> Segments:
        """Of sorted records within [low, high]."""
        places, counts = np.unique(records, return_counts=True)
        upto = np.concatenate([[0], np.cumsum(counts)])
        # Between the records' places lie the gaps: gap, place, gap, …, gap.
        start = np.empty(2 * places.size + 1, np.int64)
        start[0], start[1::2], start[2::2] = low, places, places + 1
        ends = np.append(start[1:], high + 1)
        under, over = np.repeat(upto, 2)[:-1], upto[-1] - np.repeat(upto, 2)[1:]
        top, bottom, n = level.numerator, level.denominator, int(upto[-1])
        distance = np.maximum(bottom * under - top * n, bottom * over - (bottom - top) * n)
        kept = ends > start
        found = np.maximum(distance, 0)[kept]
        return Segments(start[kept], (ends - start)[kept], found, 1 / (scale * bottom))

    def draw(self, size: int) -> Steps:
        """Independent points."""
        return sources.drawn(lambda source: self._points(size, source))

    def _points(self, size: int, source: Source) -> Steps:
        chosen = self._choose(size, source)
        points = self.start[chosen]
        for i in np.unique(chosen).tolist():
            rows = np.flatnonzero(chosen == i)
            points[rows] += noise.uniform(int(self.length[i]), rows.size).astype(np.int64)
        return points

    def masses(self) -> tuple[Steps, Floats]:
        """All points in order, and their probabilities."""
        weights = np.exp(-self.distance * float(min(self.rate, STEEPEST)))
        points = np.concatenate([np.arange(a, a + n) for a, n in zip(self.start, self.length, strict=True)])
        return points, np.repeat(weights, self.length) / float(np.sum(weights * self.length))

    def _choose(self, size: int, source: Source) -> Steps:
        value, off = exponentials(self.distance.astype(np.float64) * float(min(self.rate, STEEPEST)))
        most = (value + off) * self.length
        unit = 2.0 ** (BITS - math.frexp(float(most.sum()))[1])
        slots = (most * unit).astype(np.int64) + 1
        ends = np.cumsum(slots)
        least = (value - off) * self.length * unit / slots
        chosen = np.empty(size, np.int64)
        todo = np.arange(size)
        while todo.size:
            index = np.searchsorted(ends, noise.uniform(int(ends[-1]), todo.size), side="right")
            chosen[todo] = index
            todo = todo[~self._accepted(index, least, unit, slots, source)]
        return chosen

    def _accepted(
        self, index: Steps, least: Floats, unit: float, slots: Steps, source: Source
    ) -> NDArray[np.bool_]:
        """Which proposals pass: most by 32 bits of V and a bound from below, the others by balls."""
        bits = source.words(index.size, np.uint32)
        passed = (bits + 1.0) * 2.0**-32 <= least[index] * (1 - 2.0**-50)
        for i in np.flatnonzero(~passed).tolist():
            place = int(index[i])
            share = Fraction(unit) * int(self.length[place]) / int(slots[place])
            power = -self.rate * int(self.distance[place])
            passed[i] = below(partial(_exact, share, power), source, int(bits[i]), 32)
        return passed


def _exact(share: Fraction, power: Fraction) -> arb:
    return ball(share) * ball(power).exp()
