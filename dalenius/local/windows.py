"""`Window`: a report near the value is e^ε times likelier than one far from it, on a grid.

Values are the places 0 to `steps`, reports the numbers 0 to `steps` + `width` − 1. Place i has the window of
the `width` reports from i on. With r = `ratio` and T = width·r + steps, a report within the window has
probability r/T, any other one 1/T: so no report is more than r times likelier with one place than with
another, and all of these numbers are rational. Two places differ in at most min(steps, width) reports each
way, which is the worst case, attained by the two ends.

Theorem (mean). Let report j stand for y_j = (j − (steps + width − 1)/2)·g with g = 2T/(steps·width·(r − 1)),
and place i for t = 2i/steps − 1. The y_j add up to zero, and those of a window to width·(i − steps/2)·g. So
the mean of y is (r − 1)/T times the latter, which is t: exactly, on every grid. And with N = steps + width

    E y² = A + B·t²,   A = g²·(N(N² − 1) + (r − 1)·width·(width² − 1))/(12T),   B = T/((r − 1)·width).

With one step and a width of one this is randomized response; with width/steps → e^{−ε/2} on ever finer grids
the piecewise mechanism; with another width the square wave.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius import noise
from dalenius.local.crowds import binomials, uniform_counts
from dalenius.local.randomizer import Floats, Ints

MOST_STEPS = 1 << 12
AT_ONCE = 1 << 18
"""Counts that are drawn at a time."""


@dataclass(frozen=True)
class Window:
    """See the module."""

    steps: int
    width: int
    ratio: Fraction

    @property
    def reports(self) -> int:
        """How many there are."""
        return self.steps + self.width

    @property
    def total(self) -> Fraction:
        """T, the sum of weights."""
        return self.width * self.ratio + self.steps

    @property
    def apart(self) -> tuple[Fraction, Fraction]:
        """The masses of reports that tell the ends apart, under the one and under the other."""
        differing = min(self.steps, self.width)
        return differing * self.ratio / self.total, differing / self.total

    @property
    def grain(self) -> Fraction:
        """g: how far two neighbouring reports are apart, with values from −1 to 1."""
        return 2 * self.total / (self.steps * self.width * (self.ratio - 1))

    @property
    def points(self) -> Floats:
        """What each report stands for."""
        return np.asarray((np.arange(self.reports) - (self.reports - 1) / 2) * float(self.grain), np.float64)

    @property
    def square(self) -> tuple[Fraction, Fraction]:
        """A and B."""
        n, w, more = self.reports, self.width, self.ratio - 1
        level = self.grain**2 * (n * (n**2 - 1) + more * w * (w**2 - 1)) / (12 * self.total)
        return level, self.total / (more * w)

    def masses(self, place: int) -> Floats:
        """The law of a report."""
        weights = np.ones(self.reports)
        weights[place : place + self.width] = float(self.ratio)
        return weights / float(self.total)

    def randomize(self, places: Ints) -> Ints:
        """A report of each place: in the window, or beside it."""
        inside = noise.bernoulli(self.width * self.ratio / self.total, places.size)
        near = places + np.asarray(noise.uniform(self.width, places.size), dtype=np.int64)
        far = np.asarray(noise.uniform(self.steps, places.size), dtype=np.int64)
        return np.where(inside, near, far + self.width * (far >= places))

    def crowd(self, people: Ints) -> Ints:
        """How often each report comes of so many people at each place, by its joint law.

        A report is any of all with N/T, each as likely, and else one of the window.
        """
        near = binomials(people, (self.ratio - 1) * self.width / self.total)
        found: Ints = uniform_counts((people - near).sum(keepdims=True), self.reports)[0]
        places, step = np.flatnonzero(near), max(AT_ONCE // self.width, 1)
        for start in range(0, places.size, step):
            here = places[start : start + step]
            spots = here[:, None] + np.arange(self.width)
            np.add.at(found, spots, uniform_counts(near[here], self.width))
        return found
