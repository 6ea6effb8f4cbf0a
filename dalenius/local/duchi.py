"""Duchi's mechanism for the mean of numbers, which is also Microsoft's 1BitMean: a report is one bit.

Theorem (Duchi, Jordan and Wainwright 2018). For t in [−1, 1] the report is +C or −C, C = (e^ε + 1)/(e^ε −
1), the former with probability 1/2 + t/(2C). It is ε-private and unbiased, of variance C² − t²: at worst
4.683 at ε = 1. For ε up to about 0.61 the piecewise mechanism's variance is larger for every number.

Theorem (Ding, Kulkarni and Yekhanin 2017, 1BitMean). For x in [0, m] the bit is 1 with probability 1/(e^ε +
1) + (x/m)·(e^ε − 1)/(e^ε + 1). With t = 2x/m − 1 that is 1/2 + t/(2C): the same law, so one class. What
Windows adds to it, answering again from memory, is not here.

The law is drawn as: to one of the two ends, without bias, then randomized response, which is what makes it
exact for every number. The sum of bits is one of coins, whose mean chance is 1/2 + mean/(2C), so the
interval is that of `intervals.mean_chance`, by exact tails (Hoeffding 1956, Clopper and Pearson 1934).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dalenius.local import frequency, intervals
from dalenius.local.randomizer import Estimates, Floats, Ints, ratio_of
from dalenius.local.reals import NumberRandomizer, placed, rounded
from dalenius.local.reports import Rows
from dalenius.local.windows import Window
from dalenius.privacy.numbers import Number


@dataclass(frozen=True)
class DuchiResponse(NumberRandomizer, kind="duchi_response"):
    """One bit: 1 for the upper end."""

    @cached_property
    def window(self) -> Window:
        """That of randomized response."""
        return Window(1, 1, self.ratio)

    @property
    def places(self) -> int:
        """The two ends."""
        return 1

    @property
    def apart(self) -> tuple[Fraction, Fraction]:
        """By the bit."""
        return self.window.apart

    @property
    def square(self) -> tuple[Fraction, Fraction]:
        """C² at every value."""
        return ((self.ratio + 1) / (self.ratio - 1)) ** 2, Fraction(0)

    @property
    def points(self) -> Floats:
        """−C and C."""
        return self.window.points

    def masses(self, place: int) -> Floats:
        """Of the two bits."""
        return self.window.masses(place)

    def randomize(self, values: Ints) -> Rows:
        """To an end, then the truth or a lie."""
        return self.window.randomize(rounded(values, 1))

    def crowd(self, units: Ints, people: Ints) -> Ints:
        """To the ends, then by the window."""
        return self.window.crowd(placed(units, people, 1))

    def estimates(self, tally: Ints, count: int) -> Estimates:
        """By how many bits are 1."""
        return self.of_ones(tally[1:], count)

    def estimates_despite(self, tally: Ints, count: int, forged: int) -> Estimates:
        """Return the mean of honest numbers, by the theorem on forged reports in `intervals`.

        Args:
            tally: The sum of the reports.
            count: How many reports there are.
            forged: How many of them are forged, at most.
        """
        return self.of_ones(tally[1:], count, forged)

    def of_ones(self, ones: Ints, count: int, forged: int = 0) -> Estimates:
        """By how many of so many bits are 1; an entry for each survey."""
        reach, honest = float(self.points[1]), max(count - forged, 0)
        least = intervals.mean_chance(np.maximum(ones - forged, 0), honest, frequency.ALPHA)[0]
        most = intervals.mean_chance(np.minimum(ones, honest), honest, frequency.ALPHA)[1]
        low, high = ((2 * end - 1) * reach for end in (least, most))
        mean = (2 * ones / count - 1) * reach
        # Everybody may be at the mean: the most that the variance can be.
        variance = (reach**2 - np.clip(mean, -1, 1) ** 2) / count
        return self._table(mean, (low, high), variance)

    @staticmethod
    def calibrate(*, lower: Number, upper: Number, epsilon: Number) -> DuchiResponse:
        """The one whose reports are epsilon-private."""
        return DuchiResponse(lower=lower, upper=upper, ratio=ratio_of(epsilon))

    @staticmethod
    def one_bit_mean(*, most: Number, epsilon: Number) -> DuchiResponse:
        """Microsoft's 1BitMean, of numbers from 0 to `most`."""
        return DuchiResponse.calibrate(lower=0, upper=most, epsilon=epsilon)
