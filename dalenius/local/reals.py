"""`NumberRandomizer`: the mean of numbers from `lower` to `upper`, by one private report of each person.

Reading. A number is clipped to the range and put on the 2^48 steps of it, which moves it by at most 2^−49 of
the range; what is no number counts as `lower`. From there on all is exact. Where a randomizer has a coarser
grid, the number goes to one of the two places around it with such chances that the mean is the number
itself: what is unbiased on the places is unbiased on all numbers. That is done before anything private is
drawn, so it cannot weaken the guarantee.

A report stands for a number y (`points`, for values from −1 to 1) of mean t, the value, and E y² = A + B·t²
on the places. Then the variance of a report is A + (B − 1)·t² + B·c, where c, at most 1/steps², is that of
going to a place; and with q = E y² this is q·(1 − 1/B) + A/B + c. So reports tell the variance of their mean
by themselves: that is how it is stated, and bounded from above (`sums`) for the interval, which holds the
mean of those who reported with probability 0.95 or more. For Duchi's the sum is one of coins, and the
interval is by exact tails (`intervals`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.local import frequency, intervals, sums
from dalenius.local.crowds import dyadic
from dalenius.local.randomizer import Estimates, Floats, Ints, Randomizer, read_ratio
from dalenius.local.reading import floats, number, numeric_column
from dalenius.local.reports import Rows
from dalenius.losses.fields import Parameter
from dalenius.losses.raw import DiscretePair
from dalenius.mechanisms.mechanism import Law
from dalenius.privacy import numbers

FINE = 48
"""The range is read in so many halvings."""


@dataclass(frozen=True)
class NumberRandomizer(Randomizer):
    """Numbers from `lower` to `upper`; a report is at most `ratio` times likelier with one than another."""

    _: KW_ONLY
    ratio: Fraction
    lower: Parameter[Fraction] = Parameter(numbers.moderate)
    upper: Parameter[Fraction] = Parameter(numbers.moderate)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "ratio", read_ratio(self.ratio, "ratio"))
        check_range(self.lower, self.upper)

    # What each of them is.

    @property
    @abstractmethod
    def places(self) -> int:
        """The steps of its grid."""

    @property
    @abstractmethod
    def apart(self) -> tuple[Fraction, Fraction]:
        """The masses of reports that tell the ends apart."""

    @property
    @abstractmethod
    def square(self) -> tuple[Fraction, Fraction]:
        """A and B of the second moment."""

    @property
    @abstractmethod
    def points(self) -> Floats:
        """What each report stands for, with values from −1 to 1."""

    @abstractmethod
    def masses(self, place: int) -> Floats:
        """The law of a report of a place."""

    # What they share.

    @property
    def loss(self) -> DiscretePair:
        """Of one report: that between the ends, of which all others are in part."""
        a, b = self.apart
        return DiscretePair((a, b, 1 - a - b), (b, a, 1 - a - b), relation=self.relation)

    def worst_case(self) -> tuple[float, float]:
        """The ends."""
        return float(self.lower), float(self.upper)

    def read(self, values: Any) -> Ints:
        """In steps of 2^−48 of the range."""
        return read_units(values, float(self.lower), float(self.upper))

    @property
    def shape(self) -> tuple[int, int]:
        """One number."""
        return len(self.points), 1

    @property
    def cells(self) -> int:
        """One for each report."""
        return len(self.points)

    def tally(self, rows: Rows) -> Ints:
        """How often each report came."""
        return np.bincount(rows[:, 0].astype(np.int64, copy=False), minlength=self.cells)

    def probabilities(self, value: Any) -> Law:
        """By the two places around it."""
        whole, part = divmod(int(self.read([value])[0]) * self.places, 1 << FINE)
        share = part / (1 << FINE)
        masses = (1 - share) * self.masses(whole)
        if part:
            masses = masses + share * self.masses(whole + 1)
        return Law(tuple(range(self.cells)), masses)

    @abstractmethod
    def crowd(self, units: Ints, people: Ints) -> Ints:
        """The tally of so many people with each number that was read, drawn by its joint law."""

    def of_crowd(self, values: Sequence[Any], people: Ints) -> tuple[Estimates, bool]:
        """The mean as so many people with each number would give it."""
        count = int(people.sum())
        return self.estimates(self.crowd(self.read(values), people), count), True

    @property
    def half(self) -> Fraction:
        """Of the range: what 1 stands for."""
        return (self.upper - self.lower) / 2

    def variance(self, *, users: int = 1) -> float:
        """Of the mean of so many people, at most, whatever their values: a bound within B/steps²."""
        return self._worst() * float(self.half) ** 2 / users

    def _worst(self) -> float:
        level, bend = self.square
        return float(level + max(bend - 1, Fraction(0)) + bend / self.places**2)

    def estimates(self, tally: Ints, count: int) -> Estimates:
        """The mean, its ends and its variance."""
        shares = tally / count
        mean, square = float(shares @ self.points), float(shares @ self.points**2)
        return self.means(np.array([mean]), np.array([square]), count)

    def means(self, mean: Floats, square: Floats, count: int) -> Estimates:
        """By the mean of what reports stand for, and of its square; an entry for each survey."""
        reach = float(np.abs(self.points).max())
        bound = self._spread(np.asarray(sums.at_most(square, reach**2, count, sums.RISK * frequency.ALPHA)))
        alpha = (1 - sums.RISK) * frequency.ALPHA
        wide = sums.half_width(count, bound, reach + 1, alpha, lopsided=self.lopsided)
        return self._table(mean, (mean - wide, mean + wide), self._spread(square) / count)

    def _spread(self, square: Floats) -> Floats:
        """The variance of a report where such is its mean square, held within what is possible."""
        level, bend = map(float, self.square)
        if bend <= 1:
            return np.full(square.shape, self._worst())
        found = square * (1 - 1 / bend) + level / bend + self.places**-2
        return np.clip(found, level, self._worst())

    def _table(self, mean: Floats, ends: tuple[Floats, Floats], variance: Floats) -> Estimates:
        """In the units of the range."""
        half, low, high = float(self.half), float(self.lower), float(self.upper)
        middle = low + half
        least, most, open_ = intervals.held(middle + half * ends[0], middle + half * ends[1], low, high)
        columns = {
            "mean": (middle + half * mean).tolist(),
            "mean_low": least.tolist(),
            "mean_high": most.tolist(),
            "variance": (half**2 * variance).tolist(),
        }
        return Estimates(columns, ("mean",), intervals.doubts(open_))

    @cached_property
    def lopsided(self) -> float:
        """L of the theorem of Berry and Esseen: third moments over variances, at the worst place."""
        step, (level, bend) = 2 / self.places, map(float, self.square)
        worst = 0.0
        for place in range(self.places + 1):
            t = place * step - 1
            third = float(self.masses(place) @ np.abs(self.points - t) ** 3) ** (1 / 3) + step
            near = (min(abs(t) + step, 1) if bend < 1 else max(abs(t) - step, 0)) ** 2
            worst = max(worst, third**3 / (level + (bend - 1) * near))
        return worst / math.sqrt(level + min(bend - 1, 0))


def rounded(units: Ints, steps: int) -> Ints:
    """The places of numbers, one of the two around each, without bias; at most 2^14 steps."""
    draws = np.asarray(noise.uniform(1 << FINE, units.size), dtype=np.int64)
    return np.asarray((units * steps + draws) >> FINE)


def placed(units: Ints, people: Ints, steps: int) -> Ints:
    """How many people come to each place, by the law of `rounded`."""
    whole, part = units * steps >> FINE, units * steps & ((1 << FINE) - 1)
    up, found = dyadic(people, part, FINE), np.zeros(steps + 1, np.int64)
    np.add.at(found, whole, people - up)
    # Nobody goes up from the last place, which is a whole number.
    np.add.at(found, np.minimum(whole + 1, steps), up)
    return found


def read_units(values: Any, lower: float, upper: float) -> Ints:
    """Where each number is from lower to upper, in steps of 2^−48 of the range, whatever it is."""
    given = numeric_column(values, "Numbers must be numbers", "Convert them to float.")
    array = np.array([number(value) for value in given]) if isinstance(given, list) else given
    held = np.clip(np.nan_to_num(floats(array), nan=lower), lower, upper)
    units = np.floor((held / 2 - lower / 2) / (upper / 2 - lower / 2) * 2**FINE + 0.5)
    return np.asarray(units, dtype=np.int64)


def check_range(lower: Fraction, upper: Fraction) -> None:
    """Refuse a range that is none, or one that floats cannot measure."""
    if not float(lower) < float(upper):
        raise InvalidArgument("lower must be below upper.", remedy="Pass the smaller number as lower.")
    numbers.measurable(upper - lower, "upper - lower")
