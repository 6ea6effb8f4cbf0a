"""Apple's sketches of strings: the count-mean sketch (CMS) and the Hadamard count-mean sketch (HCMS).

The sketch has k `rows` of m `columns`; each row hashes strings onto its columns. A device draws a row j for
each report. CMS: it sends a bit for each column, 1 where h_j of its string falls and 0 elsewhere, each
flipped with probability 1/(e^{ε/2} + 1). HCMS: it draws a column l and sends the entry of the Hadamard
matrix at (l, h_j), one bit, flipped with probability 1/(e^ε + 1).

Theorem (Differential Privacy Team, Apple 2017). Both are ε-private: two strings differ in two bits of CMS,
and in the one bit of HCMS for half of the columns. A report supports a string d where bit h_j(d) is 1, or
where the sent bit is the entry at (l, h_j(d)). It does with probability p if its own string falls where d
does, else with q:

    CMS    p = e^{ε/2}/(e^{ε/2} + 1), q = 1 − p        m bits and the row
    HCMS   p = e^ε/(e^ε + 1), q = 1/2                   the row, the column and one bit

If strings collide in one of m columns, the share of d is estimated without bias by (x − 1/m)/(1 − 1/m), x =
(c/n − q)/(p − q), where c of n reports support d: the mean over hashes drawn at random, and over all coins.

Error bars. Given the hashes, c is a sum of independent coins, whose mean chance `intervals` bounds. The
rest is how often others fall where d does: a mean over k rows of numbers from −1/m to 1 − 1/m, each of mean
0 and variance at most 1/m, so by Bernstein's inequality off by more than √(2L/(mk)) + 2L/(3k) with
probability at most 2e^{−L}. Of alpha, four fifths go to the coins. A string is `found` where its lower end
at alpha over the number of candidates is above zero: any that nobody has, all together, with probability at
most alpha.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.local import intervals, tallies
from dalenius.local.bit_rows import BitRows, StringRandomizer
from dalenius.local.collisions import collided
from dalenius.local.crowds import binomials
from dalenius.local.frequency import ALPHA, LISTED
from dalenius.local.randomizer import Estimates, Floats, Ints, ratio_of, read_ratio
from dalenius.local.reports import Rows
from dalenius.local.strings import Words, constants, places, power_of_two
from dalenius.local.walsh import transformed
from dalenius.losses.raw import DiscretePair
from dalenius.mechanisms.mechanism import Law
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

MOST_CELLS = 2**27
NEAR = 1 << 15
"""Pairs of a row and a candidate that are looked up at a time: they stay near the processor."""
COINS = 0.8
"""The part of alpha for coins; the rest is for hashes."""


@dataclass(frozen=True)
class Sketch(StringRandomizer):
    """Hashes of strings in rows. See the module."""

    _: KW_ONLY
    rows: int
    columns: int
    ratio: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rows", power_of_two(self.rows, "rows", least=1))
        object.__setattr__(self, "columns", power_of_two(self.columns, "columns"))
        object.__setattr__(self, "ratio", read_ratio(self.ratio, "ratio"))
        if self.rows * self.columns > MOST_CELLS:
            raise InvalidArgument("A sketch has at most 2^27 cells.", remedy="Choose fewer rows or columns.")

    @property
    @abstractmethod
    def support(self) -> tuple[Fraction, Fraction]:
        """p and q."""

    @property
    @abstractmethod
    def apart(self) -> tuple[Fraction, Fraction]:
        """The masses of reports that tell two strings apart that do not collide."""

    @abstractmethod
    def supporters(self, tally: Ints, count: int, candidates: Words) -> Ints:
        """How many of so many reports support each candidate."""

    @property
    def layout(self) -> tuple[int, int, int]:
        """One hash in each row."""
        return self.rows, self.columns, 1

    @property
    def loss(self) -> DiscretePair:
        """Of one report."""
        a, b = self.apart
        return DiscretePair((a, b, 1 - a - b), (b, a, 1 - a - b), relation=self.relation)

    def estimates(self, tally: Ints, count: int) -> Estimates:
        """A sketch lists no strings."""
        raise InvalidArgument(
            "A sketch does not list strings.", remedy="Ask about candidates: decode(estimator, [...])."
        )

    def variance(self, share: Number = 0, *, users: int = 1) -> float:
        """Of the estimate of such a share, for the coins and for hashes where one other string is all."""
        f, (p, q) = numbers.probability(share, "share"), self.support
        rest = 1 - Fraction(1, self.columns)
        chance = q + (p - q) * (f + (1 - f) / self.columns)
        coins = chance * (1 - chance) / (p - q) ** 2 / users
        hashes = (1 - f) ** 2 * rest / (self.columns * self.rows)
        return float((coins + hashes) / rest**2)

    def decoded(
        self, tally: Ints, count: int, candidates: Words, alpha: float
    ) -> tuple[dict[str, list[float]], str]:
        """By the reports that support each."""
        return self.shares(self.supporters(tally, count, candidates), count, alpha), "count-mean estimates"

    def shares(self, counts: Ints, count: int, alpha: float) -> dict[str, list[float]]:
        """Columns of shares, by how many reports support each string."""
        p, q = map(float, self.support)
        rest = 1 - 1 / self.columns
        share = ((counts / count - q) / (p - q) - 1 / self.columns) / rest
        held = np.clip(counts / count, q, p)
        variance = (held * (1 - held) / (count * (p - q) ** 2) + 1 / (self.rows * self.columns)) / rest**2
        low, high = self.ends(counts, count, ALPHA)
        surely = self.ends(counts, count, alpha / max(counts.size, 1))[0]
        return {
            "share": share.tolist(),
            "share_low": low.tolist(),
            "share_high": high.tolist(),
            "variance": variance.tolist(),
            "found": (surely > 0).tolist(),
        }

    def of_crowd(self, values: Sequence[str], people: Ints) -> tuple[Estimates, bool]:
        """Shares of these strings as so many people with each would give them."""
        p, q = self.support
        count, there = int(people.sum()), collided(self.read(list(values)), people, self.rows, self.columns)
        counts = binomials(there, p) + binomials(count - there, q)
        return Estimates({"item": list(values), **self.shares(counts, count, ALPHA)}, ("share",)), False

    def ends(self, counts: Ints, count: int, alpha: float) -> tuple[Floats, Floats]:
        """Ends of shares, by the theorem."""
        p, q = map(float, self.support)
        many = math.log(2 / ((1 - COINS) * alpha))
        off = math.sqrt(2 * many / (self.rows * self.columns)) + 2 * many / (3 * self.rows)
        low, high = ((end - q) / (p - q) for end in intervals.mean_chance(counts, count, COINS * alpha))
        rest = 1 - 1 / self.columns
        low, high = (low - 1 / self.columns - off) / rest, (high - 1 / self.columns + off) / rest
        return intervals.held(low, high, 0.0, 1.0)[:2]

    def _looked_up(self, table: NDArray[Any], candidates: Words) -> Ints:
        """The sum over rows of a table's entries where each candidate falls."""
        found, family = np.zeros(len(candidates), np.int64), constants(self.rows)
        step = max(NEAR // max(len(candidates), 1), 1)
        for start in range(0, self.rows, step):
            here = slice(start, start + step)
            spots = places(candidates[None], family[here, None], self.columns)
            found += np.take_along_axis(table[here], spots, axis=1).sum(axis=0)
        return found


@dataclass(frozen=True)
class CountMeanSketch(Sketch, BitRows, kind="count_mean_sketch"):
    """CMS; `ratio` is e^{ε/2}, that of one bit."""

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """Of its bits."""
        return self.ratio / (self.ratio + 1), 1 / (self.ratio + 1)

    @property
    def apart(self) -> tuple[Fraction, Fraction]:
        """By two bits."""
        p, q = self.support
        return p * p, q * q

    def randomize(self, values: Words) -> Rows:
        """A row, and its bits flipped."""
        row = self.draw_rows(len(values))
        bits = self.filters(row, values)
        flips = noise.bernoulli(self.support[1], bits.size).reshape(bits.shape)
        return self.joined(row, bits ^ flips)

    def supporters(self, tally: Ints, count: int, candidates: Words) -> Ints:
        """The ones of its bits."""
        return self._looked_up(self.by_row(tally)[1], candidates)

    @staticmethod
    def calibrate(*, rows: int, columns: int, epsilon: Number) -> CountMeanSketch:
        """The one whose reports are epsilon-private."""
        ratio = ratio_of(numbers.epsilon(epsilon) / 2)
        return CountMeanSketch(rows=rows, columns=columns, ratio=ratio)


@dataclass(frozen=True)
class HadamardSketch(Sketch, kind="hadamard_sketch"):
    """HCMS; `ratio` is e^ε. A report is twice the cell's number, and one more where the bit is 1."""

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """By orthogonal rows of the matrix."""
        return self.ratio / (self.ratio + 1), Fraction(1, 2)

    @property
    def apart(self) -> tuple[Fraction, Fraction]:
        """By half of the columns."""
        p = self.support[0]
        return p / 2, (1 - p) / 2

    @property
    def shape(self) -> tuple[int, int]:
        """One number."""
        return 2 * self.cells, 1

    @property
    def cells(self) -> int:
        """One for each row and column."""
        return self.rows * self.columns

    def randomize(self, values: Words) -> Rows:
        """A cell, and the entry of the matrix there, or not."""
        cell = np.asarray(noise.uniform(self.cells, len(values)), dtype=np.int64)
        lies = noise.bernoulli(1 / (self.ratio + 1), len(values))
        return 2 * cell + (self._entry(cell, values) ^ lies)

    def _entry(self, cell: Ints, words: Words) -> NDArray[np.bool_]:
        """Whether the matrix has +1 at a cell's column and where a string falls in its row."""
        row, column = np.divmod(cell, self.columns)
        return np.asarray(np.bitwise_count(column & self.spots(row, words)[:, 0]) & 1 == 0, dtype=np.bool_)

    def adds_up(self, tally: Ints, count: int) -> bool:
        """Each report at one cell, with either sign."""
        return tallies.signed_parts_of(tally, count)

    def tally(self, rows: Rows) -> Ints:
        """Bits of 1 less bits of 0 of each cell."""
        code = rows[:, 0].astype(np.int64)
        both = np.bincount(code, minlength=2 * self.cells).reshape(-1, 2)
        return both[:, 1] - both[:, 0]

    def supporters(self, tally: Ints, count: int, candidates: Words) -> Ints:
        """By the fast transform of each row, which gives those for it less those against."""
        table = transformed(tally.reshape(self.rows, self.columns))
        return (self._looked_up(table, candidates) + count) // 2

    def probabilities(self, value: Any) -> Law | None:
        """Of all reports, where they can be listed."""
        if 2 * self.cells > LISTED:
            return None
        return Law(tuple(range(2 * self.cells)), self.law_of(self.read([value])))

    def law_of(self, words: Words) -> Floats:
        """The mass of each report of one string."""
        true = self._entry(np.arange(self.cells), np.repeat(words, self.cells, axis=0))
        p = float(self.support[0]) / self.cells
        return np.where(np.stack([~true, true], axis=1), p, 1 / self.cells - p).ravel()

    @staticmethod
    def calibrate(*, rows: int, columns: int, epsilon: Number) -> HadamardSketch:
        """The one whose reports are epsilon-private."""
        return HadamardSketch(rows=rows, columns=columns, ratio=ratio_of(epsilon))
