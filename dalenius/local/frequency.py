"""`FrequencyOracle`: how many people have each item of a public domain, by one private report of each.

A report supports some items. Say it supports the person's own with probability p, and any other given one
with q. If c of n reports support an item, the share f of people who have it is estimated without bias by

    (c/n − q)/(p − q),   of variance   (f·p(1−p) + (1−f)·q(1−q)) / (n(p − q)²)

(Wang, Blocki, Li and Jha 2017, Theorem 2): over the coins of the randomizer, the people fixed. For a rare
item and the best p and q for ε, the limit is 4e^ε/(n(e^ε − 1)²) (Ye and Barg 2019). Variances are stated at
the estimate, held within 0 and 1, which leaves them without bias where it was there. Error bars:
`intervals`.

Estimates of rare items are often below zero: that is what having no bias means. `on_simplex` makes shares of
them, and says so on the receipt.

Theorem (loss). Between two items all reports of such an oracle fall in three classes: a part whose mass is a
under the first and b < a under the second, one of b and a, and a rest that is alike. So the loss is that of
the pair (a, b, 1 − a − b) against (b, a, 1 − a − b), exactly, and log(a/b) is the least ε. Where some pairs
of items have less of these parts, a and b in proportion, they are told apart as if the report were hidden
with some probability; the largest is the loss.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.local import intervals
from dalenius.local.crowds import binomials
from dalenius.local.items import read_items
from dalenius.local.randomizer import Estimates, Floats, Ints, Randomizer, read_ratio
from dalenius.local.reports import Rows
from dalenius.losses.raw import DiscretePair
from dalenius.mechanisms.mechanism import Law
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.release import CONFIDENCE

if TYPE_CHECKING:
    from dalenius.local.choosing import Choice

MOST_ITEMS = 2**26
"""So that a tally is within the memory of one machine."""
LISTED = 1 << 12
"""Reports up to which a law is listed."""
ALPHA = float(1 - CONFIDENCE)


def read_domain(value: object, name: str) -> int:
    """A number of items."""
    return numbers.count(value, name, least=2, most=MOST_ITEMS)


@dataclass(frozen=True)
class FrequencyOracle(Randomizer):
    """Shares of the items 0 to `domain` − 1; anything else counts as item 0. See the module."""

    _: KW_ONLY
    domain: int

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "domain", read_domain(self.domain, "domain"))

    @property
    @abstractmethod
    def support(self) -> tuple[Fraction, Fraction]:
        """With which probability a report supports the person's item, and with which another: p and q."""

    @property
    @abstractmethod
    def apart(self) -> tuple[Fraction, Fraction]:
        """The masses a and b of reports that tell two items apart."""

    @abstractmethod
    def supporters(self, tally: Ints) -> Ints:
        """How many reports support each item."""

    @property
    def loss(self) -> DiscretePair:
        """Of one person's report."""
        a, b = self.apart
        return DiscretePair((a, b, 1 - a - b), (b, a, 1 - a - b), relation=self.relation)

    def worst_case(self) -> tuple[int, int]:
        """Any two items."""
        return 0, 1

    def read(self, values: Any) -> Ints:
        """Items by their numbers; anything else is item 0."""
        return read_items(values, self.domain)

    def variance(self, share: Number = 0, *, users: int = 1) -> float:
        """Of the estimate of such a share of so many people."""
        p, q = self.support
        f = numbers.probability(share, "share")
        return float((f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2) / users

    def estimates(self, tally: Ints, count: int) -> Estimates:
        """The share of each item."""
        return self.estimates_despite(tally, count, 0)

    def estimates_despite(self, tally: Ints, count: int, forged: int) -> Estimates:
        """Return the share of each item, with intervals for the share among honest reports.

        Args:
            tally: The sum of the reports.
            count: How many reports there are.
            forged: How many of them are forged, at most.
        """
        return self.shares(self.supporters(tally), count, forged=forged)

    def forged_shift(self, forged: Number) -> float:
        """Return by how much forged reports can move an estimated share, at most.

        Theorem. A report adds w/n to the estimate of a share, w = (s − q)/(p − q) with s = 1 where it
        supports the item, else 0. So replacing a fraction g of all reports, by any that a device can make and
        in view of all others, moves the estimate by at most g/(p − q). It is attained where reports that do
        not support the item are replaced by reports that do. A person's own report moves it by as much.

        Args:
            forged: The fraction of all reports that is forged.
        """
        p, q = self.support
        return float(numbers.probability(forged, "forged") / (p - q))

    def shares(self, counts: Ints, count: int, *notes: str, forged: int = 0) -> Estimates:
        """By how many of so many reports support each item."""
        p, q = map(float, self.support)
        share = (counts / count - q) / (p - q)
        held = np.clip(share, 0, 1)
        variance = (held * p * (1 - p) + (1 - held) * q * (1 - q)) / (count * (p - q) ** 2)
        low, high, open_ = intervals.share(counts, count, p, q, ALPHA, forged=forged)
        return shares_table(share, (low, high), variance, (*notes, *intervals.doubts(open_)))

    def simulated(self, true: Ints) -> tuple[Estimates, bool]:
        """Estimates as so many people with each item would give them, and whether jointly so."""
        n = int(true.sum())
        p, q = self.support
        return self.shares(binomials(true, p) + binomials(n - true, q), n), False

    @staticmethod
    def best(
        domain: int, epsilon: Number, *, bits: int | None = None, most_shift: Number | None = None
    ) -> FrequencyOracle:
        """Return the oracle of the least variance; of nearly equal ones the fastest.

        Args:
            domain: The number of items.
            epsilon: What a report may cost.
            bits: The most bits of a report.
            most_shift: The most that a fraction of forged reports may move a share, over that fraction.
        """
        return FrequencyOracle.choose(domain, epsilon, bits=bits, most_shift=most_shift).oracle

    @staticmethod
    def choose(
        domain: int, epsilon: Number, *, bits: int | None = None, most_shift: Number | None = None
    ) -> Choice:
        """Return the same as `best`, with all oracles that were considered, and why it is this one.

        Args:
            domain: The number of items.
            epsilon: What a report may cost.
            bits: The most bits of a report.
            most_shift: The most that a fraction of forged reports may move a share, over that fraction.
        """
        from dalenius.local.choosing import choose

        return choose(domain, epsilon, bits=bits, most_shift=most_shift)


def shares_table(
    share: Floats, ends: tuple[Floats, Floats], variance: Floats, notes: tuple[str, ...]
) -> Estimates:
    """Shares with their ends and variances, item by item."""
    columns = {
        "item": range(len(share)),
        "share": share.tolist(),
        "share_low": ends[0].tolist(),
        "share_high": ends[1].tolist(),
        "variance": variance.tolist(),
    }
    return Estimates(columns, ("share",), notes)


@dataclass(frozen=True)
class SetResponse(FrequencyOracle):
    """An oracle of one number: a report is `ratio` times likelier within the item's set than without.

    Of `reports` possible ones each item has a set of `size`, and of two sets `differing` are in the first
    alone. So a report is within with probability p = size·ratio/(size·ratio + reports − size), and uniform
    on either side: e^ε times likelier at most, where `ratio` is at most e^ε, whatever the sets are.
    """

    _: KW_ONLY
    ratio: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "ratio", read_ratio(self.ratio, "ratio"))

    @property
    @abstractmethod
    def reports(self) -> int:
        """How many reports there are."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Of the set of an item."""

    @property
    @abstractmethod
    def differing(self) -> int:
        """In how many reports the set of one item differs from another's, one way."""

    @abstractmethod
    def within(self, reports: Rows, item: int) -> NDArray[np.bool_]:
        """Which reports are in the set of an item."""

    @property
    def truth(self) -> Fraction:
        """With which probability a report is in the set of the person's item."""
        return self.size * self.ratio / (self.size * self.ratio + self.reports - self.size)

    @property
    def apart(self) -> tuple[Fraction, Fraction]:
        """By the reports in one set alone."""
        inside = self.truth * self.differing / self.size
        return inside, inside / self.ratio

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """By the reports that two sets share."""
        a, b = self.apart
        return self.truth, self.truth - a + b

    @property
    def shape(self) -> tuple[int, int]:
        """One number."""
        return self.reports, 1

    @property
    def cells(self) -> int:
        """One for each report."""
        return self.reports

    def tally(self, rows: Rows) -> Ints:
        """How often each report came."""
        return np.bincount(rows[:, 0].astype(np.int64, copy=False), minlength=self.reports)

    def probabilities(self, value: Any) -> Law | None:
        """Two masses, where reports can be listed."""
        if self.reports > LISTED:
            return None
        item, codes = int(self.read([value])[0]), np.arange(self.reports)
        inside, outside = self.truth / self.size, (1 - self.truth) / (self.reports - self.size)
        masses = np.where(self.within(codes[:, None], item), float(inside), float(outside))
        return Law(tuple(codes.tolist()), masses)

    def log_ratio(self, draws: NDArray[Any], pair: tuple[Any, Any]) -> Floats:
        """By the sets that a report is in."""
        first, second = (
            self.within(np.reshape(draws, (len(draws), -1)), int(item)) for item in self.read(pair)
        )
        return math.log(self.ratio) * (first.astype(np.float64) - second)

    def coins(self, size: int) -> NDArray[np.bool_]:
        """Whether each report is within."""
        return noise.bernoulli(self.truth, size)
