"""Ranges by the Haar transform: on each level, which half of which block the person's item is in.

The items, padded to 2^h, are halved h times. On level l, from 0, there are 2^l blocks; c(l, k) is the share
of people in the left half of block k less that in the right half. A range of the share R with g of 2^h items
has

    R = g/2^h + Σ w(l, k)·c(l, k),   w = (its items in the left half − those in the right)/(the block's),

where only the blocks count that an end of the range is in: two on each level, |w| ≤ 1/2.

Theorem (Cormode, Kulkarni and Srivastava 2019, HaarHRR). The device draws a level and one of its 2^l numbers
j, both uniformly, and sends the entry ±1 of its block's row of the Hadamard matrix at j, times +1 for the
left and −1 for the right half, turned with probability 1/(e^ε + 1): ε-private, about log₂ of the items plus
one bits. For C = (e^ε + 1)/(e^ε − 1), h·C times the bit sent times the entry at (k, j) has the mean c(l, k),
so ranges are unbiased. The variance of a range is at most h²C²/(2n), and less in the mean.

Two items in different halves of all have different signs on level 0, and there tell a report apart with
every j; on other levels with half of them. No pair of items tells more: a = (h + 1)/(2h)·e^ε/(e^ε + 1), b =
a/e^ε.

Estimates are the c(l, k), by those who reported on the level, with exact tails (theorem in `ranges`). They
are orthogonal, so they are consistent as they are: ranges that are parts of a range add up to it.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

import numpy as np

from dalenius import noise
from dalenius.local import frequency, intervals
from dalenius.local.randomizer import Estimates, Floats, Ints, ratio_of, read_ratio
from dalenius.local.ranges import RangeRandomizer
from dalenius.local.reports import Rows
from dalenius.local.walsh import transformed
from dalenius.privacy.numbers import Number


@dataclass(frozen=True)
class HaarRanges(RangeRandomizer, kind="haar_ranges"):
    """Reports are numbered level by level, then by j, then by the bit, 0 for +1."""

    _: KW_ONLY
    ratio: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "ratio", read_ratio(self.ratio, "ratio"))

    @property
    def levels(self) -> int:
        """h."""
        return (self.domain - 1).bit_length()

    @property
    def cells(self) -> int:
        """A bit for each level and number."""
        return 2 * ((1 << self.levels) - 1)

    @property
    def apart(self) -> tuple[Fraction, Fraction]:
        """All of the first level, half of the others."""
        a = Fraction(self.levels + 1, 2 * self.levels) * self.ratio / (self.ratio + 1)
        return a, a / self.ratio

    @property
    def factor(self) -> float:
        """C."""
        return float((self.ratio + 1) / (self.ratio - 1))

    def randomize(self, values: Ints) -> Rows:
        """A level, a number, and the sign there, or its opposite."""
        level = np.asarray(noise.uniform(self.levels, values.size), dtype=np.int64)
        most = self.levels - 1
        drawn = np.asarray(noise.uniform(1 << most, values.size), dtype=np.int64) >> (most - level)
        side = values >> (most - level)
        minus = odd((side >> 1) & drawn) ^ (side & 1)
        turned = noise.bernoulli(1 / (self.ratio + 1), values.size)
        return np.asarray(2 * ((1 << level) - 1 + drawn) + (minus ^ turned))

    def masses(self, item: int) -> Floats:
        """By the sign at each level and number."""
        found = self.least()
        for level, part in self._parts():
            side = item >> (self.levels - 1 - level)
            minus = odd((side >> 1) & np.arange(1 << level)) ^ (side & 1)
            found[part].reshape(-1, 2)[np.arange(1 << level), minus] *= float(self.ratio)
        return found

    def least(self) -> Floats:
        """That of the turned sign."""
        found = np.empty(self.cells)
        for level, part in self._parts():
            found[part] = 1 / (self.levels * (1 << level) * float(self.ratio + 1))
        return found

    def terms(self, first: int, stop: int) -> Floats:
        """By the blocks that the ends are in; nobody is beyond the last item."""
        stop = 1 << self.levels if stop == self.domain else stop
        found = np.full(self.cells, (stop - first) / (1 << self.levels))
        for level, part in self._parts():
            long, places = self.levels - level, np.arange(1 << level)
            row = np.zeros(1 << level)
            for block in {first >> long, (stop - 1) >> long}:
                row += _weight(first, stop, block << long, 1 << long) * (1 - 2 * odd(block & places))
            signed = np.stack([row, -row], axis=1).ravel()
            found[part] += self.levels * self.factor * signed
        return found

    def estimates(self, tally: Ints, count: int) -> Estimates:
        """Left less right, block by block."""
        columns: dict[str, list[float]] = {name: [] for name in NAMES}
        for level, part in self._parts():
            plus, minus = tally[part].reshape(-1, 2).T
            for name, cells in self._level(level, plus, minus).items():
                columns[name].extend(cells.tolist())
        return Estimates(columns, ("difference",), ("a level of each",))

    def _level(self, level: int, plus: Ints, minus: Ints) -> dict[str, Floats | Ints]:
        blocks, there = np.arange(1 << level), int((plus + minus).sum())
        up = (there + transformed(plus - minus)) // 2
        low, high = (self.factor * (2 * end - 1) for end in _ends(up, there))
        mean = self.factor * (2 * up / there - 1) if there else np.zeros(blocks.size)
        # Where nobody reported, zero is off by at most one.
        spread = (self.factor**2 - np.clip(mean, -1, 1) ** 2) / there if there else np.ones(blocks.size)
        long = 1 << (self.levels - level)
        ends = intervals.held(low, high, -1.0, 1.0)[:2]
        return dict(zip(NAMES, (blocks * long, (blocks + 1) * long - 1, mean, *ends, spread), strict=True))

    def _parts(self) -> list[tuple[int, slice]]:
        """The reports of each level."""
        starts = [2 * ((1 << level) - 1) for level in range(self.levels + 1)]
        return [(level, slice(starts[level], starts[level + 1])) for level in range(self.levels)]

    def variance(self, *, users: int = 1) -> float:
        """Of the share of any range, at most."""
        return self.levels**2 * self.factor**2 / 2 / users

    @staticmethod
    def calibrate(*, domain: int, epsilon: Number) -> HaarRanges:
        """The one whose reports are epsilon-private."""
        return HaarRanges(domain=domain, ratio=ratio_of(epsilon))


def _weight(first: int, stop: int, begin: int, long: int) -> float:
    """w: the items of the range in the left half of a block less those in the right, over the block's."""
    middle = begin + long // 2
    left = max(min(stop, middle) - max(first, begin), 0)
    return (left - max(min(stop, begin + long) - max(first, middle), 0)) / long


NAMES = ("first", "last", "difference", "difference_low", "difference_high", "variance")


def _ends(up: Ints, there: int) -> tuple[Floats, Floats]:
    different, places = np.unique(up, return_inverse=True)
    low, high = intervals.mean_chance(different, there, frequency.ALPHA)
    return np.broadcast_to(low, different.shape)[places], np.broadcast_to(high, different.shape)[places]


def odd(codes: Ints) -> Ints:
    """1 where a number has an odd number of bits, else 0."""
    return (np.bitwise_count(codes) & 1).astype(np.int64)
