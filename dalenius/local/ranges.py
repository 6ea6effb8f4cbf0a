"""Shares of ranges of an ordered domain, by one private report of each person about one level of it.

Each device draws one of h levels, uniformly and exactly, and reports about its item on that level alone. The
level is no secret: it does not depend on the item. So a report is as private as the one of its level.

Ranges. A report stands for a number x (`terms`) whose mean is 1 for an item in the range and 0 for any
other, over the draw of the level too. The mean of x over reports is the estimate: unbiased, its terms
independent and bounded, so `sums` has its interval, of 0.95 or more for each range by itself. As means are 0
or 1, the sum of variances is the sum of E x² less the people in the range; it is stated by the reports, and
for the interval E x² is bounded by them. Intervals for 10,000 people are up to twice as wide as normal ones,
for a million 1.05 to 1.3 times.

Theorem (levels). Given that m of the n people reported on a level, these are a uniform choice of m people.
Let their reports be coins of chances p_1, …, p_n. The generating function of how many come up, the mean over
choices S of the product of (1 − p_i + p_i·z) over S, is an elementary symmetric polynomial of the factors,
so it has no zero with a positive imaginary part (Borcea, Brändén and Liggett 2009: such polynomials are
stable, and remain so under z ↦ a + bz, b ≥ 0): all its zeros are real, and its coefficients are not
negative. So the sum has the law of m independent coins, of the mean chance of all n people. Hoeffding's
theorem and the interval of Clopper and Pearson (`intervals.mean_chance`) therefore hold on each level, for
all people.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.local import frequency, intervals, sums
from dalenius.local.estimator import Estimator
from dalenius.local.frequency import LISTED
from dalenius.local.items import read_items
from dalenius.local.randomizer import Floats, Ints, Randomizer
from dalenius.local.reports import Rows
from dalenius.local.shuffler import Batch, estimator_of
from dalenius.losses.raw import DiscretePair
from dalenius.mechanisms.mechanism import Law
from dalenius.privacy import numbers
from dalenius.release import Release

MOST_ITEMS = 1 << 22
NOTE = "shares of ranges by the same reports, unbiased, each interval by itself"


def read_ordered(value: object, name: str) -> int:
    """A number of items in order."""
    return numbers.count(value, name, least=2, most=MOST_ITEMS)


@dataclass(frozen=True)
class RangeRandomizer(Randomizer):
    """Ranges of the items 0 to `domain` − 1; anything else counts as item 0. See the module."""

    _: KW_ONLY
    domain: int

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "domain", read_ordered(self.domain, "domain"))

    @property
    @abstractmethod
    def apart(self) -> tuple[Fraction, Fraction]:
        """The masses of reports that tell the first and the last item apart."""

    @abstractmethod
    def terms(self, first: int, stop: int) -> Floats:
        """What each report stands for, as an estimate of whether first ≤ item < stop."""

    @abstractmethod
    def least(self) -> Floats:
        """Of each report, the least chance that it has with any item."""

    @abstractmethod
    def masses(self, item: int) -> Floats:
        """The law of a report."""

    @property
    def loss(self) -> DiscretePair:
        """Of one report: that between items which no level has together, of which all others are in part."""
        a, b = self.apart
        return DiscretePair((a, b, 1 - a - b), (b, a, 1 - a - b), relation=self.relation)

    def worst_case(self) -> tuple[int, int]:
        """The first and the last item."""
        return 0, self.domain - 1

    def read(self, values: Any) -> Ints:
        """Items by their numbers; anything else is item 0."""
        return read_items(values, self.domain)

    @property
    def shape(self) -> tuple[int, int]:
        """One number."""
        return self.cells, 1

    def tally(self, rows: Rows) -> Ints:
        """How often each report came."""
        return np.bincount(rows[:, 0].astype(np.int64, copy=False), minlength=self.cells)

    def probabilities(self, value: Any) -> Law | None:
        """Where reports can be listed."""
        if self.cells > LISTED:
            return None
        return Law(tuple(range(self.cells)), self.masses(int(self.read([value])[0])))

    def of_terms(self, terms: Floats, mean: Floats, square: Floats, count: int) -> tuple[Floats, ...]:
        """The ends and the variances of a range's share, by the means of terms and of their squares."""
        reach, least = float(np.abs(terms).max()), self.least()
        around = least @ terms**2 - (least @ terms) ** 2 / least.sum()
        lopsided = (reach + 1) / math.sqrt(around) if around > 0 else math.inf
        bound = sums.at_most(square, reach**2, count, sums.RISK * frequency.ALPHA)
        alpha = (1 - sums.RISK) * frequency.ALPHA
        wide = sums.half_width(count, np.asarray(bound), reach + 1, alpha, lopsided=lopsided)
        variance = np.maximum(square - np.clip(mean, 0, 1), 0) / count
        low, high, _ = intervals.held(mean - wide, mean + wide, 0.0, 1.0)
        return low, high, variance


def range_shares(given: Estimator | Batch, ranges: Iterable[tuple[int, int]]) -> Release:
    """The share of people in each range, given by its first and its last item."""
    (estimator, notes), rows = estimator_of(given), list(ranges)
    randomizer = estimator.randomizer
    if not isinstance(randomizer, RangeRandomizer):
        raise InvalidArgument(
            "These reports are not about ranges.", remedy="Collect them with HaarRanges or TreeRanges."
        )
    found = [_one(randomizer, estimator, first, last) for first, last in rows]
    release = estimator.estimate()
    names = ("first", "last", "share", "share_low", "share_high", "variance")
    columns = {name: tuple(row[place] for row in found) for place, name in enumerate(names)}
    receipt = replace(release.receipt, postprocessing=(*release.receipt.postprocessing, NOTE))
    return replace(release, columns=columns, measures=("share",), receipt=receipt).bounded(*notes)


def _one(randomizer: RangeRandomizer, estimator: Estimator, first: Any, last: Any) -> tuple[Any, ...]:
    begin = numbers.count(first, "first", least=0, most=randomizer.domain - 1)
    end = numbers.count(last, "last", least=begin, most=randomizer.domain - 1)
    terms, n = randomizer.terms(begin, end + 1), max(estimator.count, 1)
    mean, square = (np.array([float(estimator.tally @ part) / n]) for part in (terms, terms**2))
    low, high, variance = randomizer.of_terms(terms, mean, square, n)
    return begin, end, float(mean[0]), float(low[0]), float(high[0]), float(variance[0])
