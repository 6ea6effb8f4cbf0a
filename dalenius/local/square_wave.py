"""The square wave, for the distribution of numbers: a report near the number, or with less chance any other.

Theorem (Li, Wang, Lopuhaä-Zwakenberg, Škorić and Li 2020). A number v in [0, 1] is reported as a point of
[−b, 1 + b], one within b of v being e^ε times likelier than any other: ε-private. Of all waves this square
one tells the most in their sense, with b = (εe^ε − e^ε + 1)/(2e^ε(e^ε − 1 − ε)), which maximizes an upper
bound of what report and number share: 0.256 at ε = 1.

Here the numbers fall into `bins` first, which are told apart by windows of `width` reports (`windows`): with
width = 2⌊b·bins⌋ + 1 that is the paper's own discrete form. Probabilities are rational; a number outside is
in the nearest bin, and what is no number in the first.

What is estimated. A release has the shares of the reports themselves: of each the count c, c/n, and an
interval for the mean chance with which the n people give that report, by exact tails (Hoeffding 1956;
`intervals`), 0.95 or more for each report by itself. The distribution of the numbers is a guess from these
shares, by `distribution`, as post-processing that the receipt names: it has no error bars, as none are known
to cover.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dalenius.local import frequency, intervals
from dalenius.local.piecewise import read_steps
from dalenius.local.randomizer import Estimates, Ints, Randomizer, ratio_of, read_ratio
from dalenius.local.reals import FINE, check_range, read_units
from dalenius.local.reports import Rows
from dalenius.local.windows import MOST_STEPS, Window
from dalenius.losses.fields import Parameter
from dalenius.losses.raw import DiscretePair
from dalenius.mechanisms.mechanism import Law
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

SMALL = 1e-3
"""Below this ε, b is 1/2 to three digits."""


def read_bins(value: object, name: str) -> int:
    """How many bins there are."""
    return numbers.count(value, name, least=2, most=MOST_STEPS)


@dataclass(frozen=True)
class SquareWave(Randomizer, kind="square_wave"):
    """Numbers from `lower` to `upper` in `bins` of the same length, and windows of `width` reports."""

    _: KW_ONLY
    ratio: Fraction
    lower: Parameter[Fraction] = Parameter(numbers.moderate)
    upper: Parameter[Fraction] = Parameter(numbers.moderate)
    bins: Parameter[int] = Parameter(read_bins)
    width: Parameter[int] = Parameter(read_steps)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "ratio", read_ratio(self.ratio, "ratio"))
        check_range(self.lower, self.upper)

    @cached_property
    def window(self) -> Window:
        """Its law: the places are the bins."""
        return Window(self.bins - 1, self.width, self.ratio)

    @property
    def loss(self) -> DiscretePair:
        """Of one report: that between the first and the last bin, of which all others are in part."""
        a, b = self.window.apart
        return DiscretePair((a, b, 1 - a - b), (b, a, 1 - a - b), relation=self.relation)

    def worst_case(self) -> tuple[float, float]:
        """The ends."""
        return float(self.lower), float(self.upper)

    def read(self, values: Any) -> Ints:
        """The bin of each number."""
        units = read_units(values, float(self.lower), float(self.upper))
        return np.asarray(np.minimum((units * self.bins) >> FINE, self.bins - 1))

    @property
    def shape(self) -> tuple[int, int]:
        """One number."""
        return self.window.reports, 1

    def randomize(self, values: Ints) -> Rows:
        """In the window of the bin, or beside it."""
        return self.window.randomize(values)

    @property
    def cells(self) -> int:
        """One for each report."""
        return self.window.reports

    def tally(self, rows: Rows) -> Ints:
        """How often each report came."""
        return np.bincount(rows[:, 0].astype(np.int64, copy=False), minlength=self.cells)

    def probabilities(self, value: Any) -> Law:
        """Two heights."""
        return Law(tuple(range(self.cells)), self.window.masses(int(self.read([value])[0])))

    def estimates(self, tally: Ints, count: int) -> Estimates:
        """How often each report came; variances are those of people who are all alike, the most there is."""
        share = tally / count
        low, high = intervals.mean_chance(tally, count, frequency.ALPHA)
        columns = {
            "report": range(self.cells),
            "count": tally.tolist(),
            "share": share.tolist(),
            "share_low": low.tolist(),
            "share_high": high.tolist(),
            "variance": (share * (1 - share) / count).tolist(),
        }
        return Estimates(columns, ("share",), ("shares of reports, not yet of numbers",))

    def of_crowd(self, values: Sequence[Any], people: Ints) -> tuple[Estimates, bool]:
        """How often each report comes of so many people with each number."""
        bins = np.zeros(self.bins, np.int64)
        np.add.at(bins, self.read(values), people)
        return self.estimates(self.window.crowd(bins), int(people.sum())), True

    @staticmethod
    def calibrate(*, lower: Number, upper: Number, epsilon: Number, bins: int = 256) -> SquareWave:
        """The one whose reports are epsilon-private, of the paper's width."""
        many = read_bins(bins, "bins")
        width = 2 * int(half_wave(float(numbers.epsilon(epsilon))) * many) + 1
        return SquareWave(lower=lower, upper=upper, ratio=ratio_of(epsilon), bins=many, width=width)


def half_wave(epsilon: float) -> float:
    """b of the theorem, for numbers from 0 to 1."""
    if epsilon < SMALL:
        return 0.5
    shrunk = math.exp(-epsilon)
    return shrunk * (epsilon - 1 + shrunk) / (2 * (1 - shrunk - epsilon * shrunk))
