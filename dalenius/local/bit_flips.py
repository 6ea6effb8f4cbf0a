"""dBitFlip: a few buckets drawn once by each device, and one flipped bit for each of them.

Of k = `domain` buckets a device draws d = `chosen` different ones, before it has a value, and reports for
each whether its value falls there: 1 with probability p = `own` if it does, and 1 − p if it does not.

Theorem (Ding, Kulkarni and Yekhanin 2017). Two values differ in two bits at most. Their loss is, exactly,
that of two such bits with probability d(d − 1)/(k(k − 1)), of one with 2d(k − d)/(k(k − 1)), and else
nothing: ε = 2·log(p/(1 − p)), and half of it for d = 1, where a report never has two. Let N devices have
drawn a bucket and c of their bits be 1. The share f of people in it is estimated without bias by (c/N −
q)/(p − q), q = 1 − p, given N; of variance at most s(1 − s)/(N(p − q)²), s = f·p + (1 − f)·q, about k/d
times that of unary encoding.

Error bars. Of the people in the bucket, M ~ Bin(n·f, d/k) have drawn it, each by himself; `intervals`
bounds M of N by the coins, and then n·f of M, as for Hadamard response. Of alpha, four fifths go to the
first.

Memoised (`client`), a device keeps its buckets and at most d + 1 responses, one for each of its buckets and
one for all others: any number of reports of one value cost ε, once.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.local import intervals, tallies
from dalenius.local.crowds import binomials
from dalenius.local.frequency import ALPHA, LISTED, FrequencyOracle, shares_table
from dalenius.local.randomizer import Estimates, Ints, ratio_of
from dalenius.local.reports import Rows
from dalenius.losses.fields import Parameter
from dalenius.losses.raw import DiscretePair
from dalenius.mechanisms.mechanism import Law
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

FIRST = 0.8
"""The part of alpha for coins."""


@dataclass(frozen=True)
class BitFlips(FrequencyOracle, kind="bit_flips"):
    """dBitFlip. A report has, for each bucket in order, twice its number and one more where the bit is 1."""

    _: KW_ONLY
    chosen: Parameter[int] = Parameter(lambda value, name: numbers.count(value, name, most=2**12))
    own: Parameter[Fraction] = Parameter(numbers.probability)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.chosen > self.domain:
            raise InvalidArgument("chosen must be at most domain.", remedy="Choose fewer buckets.")
        if not Fraction(1, 2) < self.own < 1:
            raise InvalidArgument(
                "own must be above 1/2 and below 1.", remedy="Use calibrate(...), which chooses it."
            )

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """By the bit of an item, where it is drawn."""
        return self.own, 1 - self.own

    @property
    def drawn(self) -> Fraction:
        """With which probability a device has drawn a bucket."""
        return Fraction(self.chosen, self.domain)

    @property
    def apart(self) -> tuple[Fraction, Fraction]:
        """Where both buckets are drawn: by both bits."""
        both = self.drawn * (self.chosen - 1) / (self.domain - 1)
        return both * self.own**2, both * (1 - self.own) ** 2

    @property
    def loss(self) -> DiscretePair:
        """Of one report: both buckets drawn, either, or none."""
        a, b = self.apart
        either = 2 * self.drawn * (self.domain - self.chosen) / (self.domain - 1)
        c, d = either * self.own, either * (1 - self.own)
        rest = 1 - a - b - c - d
        return DiscretePair((a, b, c, d, rest), (b, a, d, c, rest), relation=self.relation)

    @property
    def shape(self) -> tuple[int, int]:
        """A bucket and a bit, for each drawn."""
        return 2 * self.domain, self.chosen

    @property
    def cells(self) -> int:
        """For each bucket the devices that drew it, and the bits of 1."""
        return 2 * self.domain

    # The device.

    def draw_buckets(self, size: int) -> Ints:
        """Sets of buckets in order, each as likely (Floyd's way)."""
        rows = np.full((size, self.chosen), -1, np.int64)
        for place, limit in enumerate(range(self.domain - self.chosen, self.domain)):
            drawn = np.asarray(noise.uniform(limit + 1, size), dtype=np.int64)
            there = (rows[:, :place] == drawn[:, None]).any(axis=1)
            rows[:, place] = np.where(there, limit, drawn)
        return np.sort(rows, axis=1)

    def flipped(self, buckets: Ints, values: Ints) -> NDArray[np.bool_]:
        """Bits of values, each flipped with probability 1 − p."""
        flips = noise.bernoulli(1 - self.own, buckets.size).reshape(buckets.shape)
        return np.asarray((buckets == values[:, None]) ^ flips, dtype=np.bool_)

    def joined(self, buckets: Ints, bits: NDArray[Any]) -> Rows:
        """Reports of buckets and bits."""
        return np.asarray(2 * buckets + bits)

    def randomize(self, values: Ints) -> Rows:
        """The first report of as many devices."""
        buckets = self.draw_buckets(values.size)
        return self.joined(buckets, self.flipped(buckets, values))

    # The server.

    def possible(self, rows: Rows) -> NDArray[np.bool_]:
        """Different buckets, in order."""
        buckets = rows >> 1
        return np.asarray((buckets[:, 1:] > buckets[:, :-1]).all(axis=1))

    def adds_up(self, tally: Ints, count: int) -> bool:
        """As many buckets of each report as are chosen, none of them twice."""
        drawn = tallies.between(tally, 0, count) and tallies.between(tally[1::2] + tally[::2], 0, count)
        return drawn and tallies.total(tally) == self.chosen * count

    def tally(self, rows: Rows) -> Ints:
        """How often each bucket came with each bit."""
        return np.bincount(rows.astype(np.int64).ravel(), minlength=2 * self.domain)

    def supporters(self, tally: Ints) -> Ints:
        """The ones of its bit."""
        return tally[1::2]

    def forged_shift(self, forged: Number) -> float:
        """Return by how much forged reports can move an estimated share, at most.

        Forged reports may all have drawn one bucket, which honest devices draw with probability d/k. So with
        a fraction g of forged reports, g/(g + (1 − g)·d/k) of those of a bucket are forged, where honest
        devices draw it as often as is expected; and they move its share by at most that over p − q.

        Args:
            forged: The fraction of all reports that is forged.
        """
        part, (p, q) = numbers.probability(forged, "forged"), self.support
        return float(part / (part + (1 - part) * self.drawn) / (p - q))

    def estimates_despite(self, tally: Ints, count: int, forged: int) -> Estimates:
        """Return, of those who drew a bucket, the share whose value falls there.

        Args:
            tally: The sum of the reports.
            count: How many reports there are.
            forged: How many of them are forged, at most.
        """
        p, q = map(float, self.support)
        ones, drawn = tally[1::2], tally[1::2] + tally[::2]
        chance = np.where(drawn, ones / np.maximum(drawn, 1), q)
        held = np.clip(chance, q, p)
        variance = held * (1 - held) / (np.maximum(drawn, 1) * (p - q) ** 2)
        # Where nobody reported, zero is off by at most one.
        variance, none = np.where(drawn, variance, 1.0), int(np.count_nonzero(drawn == 0))
        notes = (f"nobody drew {none} of the buckets: any share of theirs may be",) if none else ()
        low, high, open_ = self._ends(ones, drawn, count, forged)
        return shares_table((chance - q) / (p - q), (low, high), variance, (*notes, *intervals.doubts(open_)))

    def _ends(
        self, ones: Ints, drawn: Ints, count: int, forged: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        p, q = map(float, self.support)
        if self.chosen == self.domain:
            return intervals.share(ones, count, p, q, ALPHA, forged=forged)
        return intervals.in_part(
            ones, drawn, count, (p, q), float(self.drawn), (FIRST * ALPHA, (1 - FIRST) * ALPHA), forged
        )

    def variance(self, share: Number = 0, *, users: int = 1) -> float:
        """At most, for as many who drew the bucket as are expected."""
        p, q = self.support
        chance = q + (p - q) * numbers.probability(share, "share")
        return float(chance * (1 - chance) / (p - q) ** 2 / self.drawn) / users

    def simulated(self, true: Ints) -> tuple[Estimates, bool]:
        """For each bucket: who drew it, and their bits."""
        n = int(true.sum())
        inside, outside = binomials(true, self.drawn), binomials(n - true, self.drawn)
        ones = binomials(inside, self.own) + binomials(outside, 1 - self.own)
        tally = np.stack([inside + outside - ones, ones], axis=1).ravel()
        return self.estimates(tally, n), False

    def probabilities(self, value: Any) -> Law | None:
        """Of all reports, where they can be listed."""
        sets = list(combinations(range(self.domain), self.chosen)) if self.domain <= 16 else []
        if not 0 < len(sets) << self.chosen <= LISTED:
            return None
        item, p, q = int(self.read([value])[0]), *map(float, self.support)
        outcomes, masses = [], []
        for buckets, bits in product(sets, product((0, 1), repeat=self.chosen)):
            outcomes.append(tuple(2 * bucket + bit for bucket, bit in zip(buckets, bits, strict=True)))
            same = [(bucket == item) == bool(bit) for bucket, bit in zip(buckets, bits, strict=True)]
            masses.append(np.prod([p if one else q for one in same]) / len(sets))
        one = self.chosen == 1
        return Law(tuple(o[0] for o in outcomes) if one else tuple(outcomes), np.array(masses))

    @staticmethod
    def calibrate(*, domain: int, epsilon: Number, chosen: int) -> BitFlips:
        """The one whose reports are epsilon-private; with one bit all of ε is for it."""
        limit = numbers.epsilon(epsilon)
        ratio = ratio_of(limit if chosen == 1 else limit / 2)
        return BitFlips(domain=domain, chosen=chosen, own=ratio / (ratio + 1))
