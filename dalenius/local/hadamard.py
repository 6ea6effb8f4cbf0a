"""Hadamard response: a number of the item's block, more often one where its row of a Hadamard matrix is +1.

Reports are the K = blocks·b numbers of `blocks` blocks of b = 2^m each. The items of a block have rows 1 to
b − 1 of the Hadamard matrix of order b, whose entry at (j, z) is −1 to the number of bits that j and z
share; the set of an item is the b/2 numbers of its block with +1. Two sets of one block share b/4, of two
blocks none.

Theorem (Acharya, Sun and Zhang 2019). A report is e^ε times likelier in the set, so ε-private.
Let c⁺ of n reports be in the set of an item and c⁻ in the rest of its block. The share is estimated without
bias by (c⁺ − c⁻)/(nμ), μ = p(1 − e^{−ε}), where p = e^ε/(e^ε − 1 + 2·blocks) is the probability of the set;
of variance (E[c⁺ + c⁻] − n·f·μ²)/(nμ)², whose mean over blocks is (e^ε − 1 + 2·blocks)²/(blocks·(e^ε −
1)²·n) − f/n: with the best number of blocks at most about twice the limit. Reports have ⌈log₂ K⌉ bits and
shares are decoded with K·m additions.

Error bars. Given which reports are in the block, each of the N there is in the set by itself: with e^ε/(e^ε
+ 1) if the person has the item, else with 1/2. So `intervals` bounds how many of these people, M, have the
item; and M is Bin(n·f, p(1 + e^{−ε})), whose exact tails bound f. Of alpha, four fifths go to the first
bound, and all of it where there is one block, as then M is n·f. With more, bars of large shares are up to
twice as wide as needed.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.local import intervals
from dalenius.local.crowds import binomials
from dalenius.local.frequency import ALPHA, SetResponse, read_domain, shares_table
from dalenius.local.randomizer import Estimates, Ints, ratio_of
from dalenius.local.reports import Rows
from dalenius.local.walsh import transformed
from dalenius.losses.fields import Parameter
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

MOST_REPORTS = 2**27
FIRST = 0.8
"""The part of alpha for who is in the set."""


@dataclass(frozen=True)
class HadamardResponse(SetResponse, kind="hadamard_response"):
    """Items in `blocks` blocks, each with rows of the least matrix that has enough."""

    _: KW_ONLY
    blocks: Parameter[int] = Parameter(lambda value, name: numbers.count(value, name, most=2**20))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reports > MOST_REPORTS:
            raise InvalidArgument("There are over 2^27 reports.", remedy="Choose fewer blocks, or items.")

    @property
    def block(self) -> int:
        """Numbers in a block."""
        return max(1 << (-(-self.domain // self.blocks)).bit_length(), 4)

    @property
    def reports(self) -> int:
        """The numbers of all blocks."""
        return self.block * self.blocks

    @property
    def size(self) -> int:
        """Half a block."""
        return self.block // 2

    @property
    def differing(self) -> int:
        """All of a set from that of another block; half of it from another of the same."""
        return self.size if self.blocks > 1 else self.size // 2

    def _places(self, items: Ints) -> tuple[Ints, Ints]:
        """The block and the row of items: one after the other, so that blocks have as many."""
        row = items // self.blocks
        return items - row * self.blocks, row + 1

    def randomize(self, values: Ints) -> Rows:
        """In the set; or in the rest of the block; or in another block."""
        block, row = self._places(values)
        drawn = np.asarray(noise.uniform(self.block, values.size), dtype=np.int64)
        inside = self.coins(values.size)
        # Turning the lowest bit of the row turns the sign: each half of the block goes onto the other.
        wrong = _odd(drawn & row) == inside
        here = block * self.block + np.where(wrong, drawn ^ (row & -row), drawn)
        if self.blocks == 1:
            return here
        other = np.asarray(noise.uniform(self.reports - self.size, values.size), dtype=np.int64) - self.size
        elsewhere = other + self.block * (other >= block * self.block)
        return np.where(inside | (other < 0), here, elsewhere)

    def within(self, reports: Rows, item: int) -> NDArray[np.bool_]:
        """By the entry of the matrix."""
        codes = np.asarray(reports[:, 0]).astype(np.int64)
        block, row = self._places(np.array([item]))
        return np.equal(codes // self.block, block) & ~_odd(codes % self.block & row)

    def supporters(self, tally: Ints) -> Ints:
        """c⁺, by the fast transform of Walsh and Hadamard."""
        differences, totals = self._sums(tally)
        return (differences + totals) // 2

    def _sums(self, tally: Ints) -> tuple[Ints, Ints]:
        """c⁺ − c⁻ and c⁺ + c⁻ of each item."""
        table = tally.reshape(self.blocks, self.block)
        totals = table.sum(axis=1)
        differences = transformed(table)[:, 1:].T.ravel()[: self.domain]
        return differences, np.tile(totals, self.block - 1)[: self.domain]

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """With another item of the same block."""
        same = (self.ratio + 1) / 2 / (self.ratio - 1 + 2 * self.blocks)
        return self.truth, same

    @property
    def signal(self) -> Fraction:
        """μ: how much oftener a report of the item is in its set than in the rest of the block."""
        return self.truth * (1 - 1 / self.ratio)

    def variance(self, share: Number = 0, *, users: int = 1) -> float:
        """The mean over blocks."""
        held = numbers.probability(share, "share")
        rare = (self.ratio - 1 + 2 * self.blocks) ** 2 / (self.blocks * (self.ratio - 1) ** 2)
        return float(rare - held) / users

    def estimates_despite(self, tally: Ints, count: int, forged: int) -> Estimates:
        """Return shares by differences within blocks, with intervals for honest reports.

        Args:
            tally: The sum of the reports.
            count: How many reports there are.
            forged: How many of them are forged, at most.
        """
        return self.of_sums(*self._sums(tally), count, forged)

    def forged_shift(self, forged: Number) -> float:
        """Return by how much forged reports can move an estimated share, at most.

        A report adds ±1/(nμ) or nothing to it, so replacing a fraction g of all reports moves it by at most
        2g/μ, attained where reports of the rest of the block are replaced by reports of the set.

        Args:
            forged: The fraction of all reports that is forged.
        """
        return float(2 * numbers.probability(forged, "forged") / self.signal)

    def of_sums(self, differences: Ints, totals: Ints, count: int, forged: int = 0) -> Estimates:
        """By c⁺ − c⁻ and c⁺ + c⁻ of each item."""
        mu = float(self.signal)
        share = differences / (count * mu)
        variance = (totals - count * np.clip(share, 0, 1) * mu**2) / (count * mu) ** 2
        low, high, open_ = self._ends((differences + totals) // 2, totals, count, forged)
        return shares_table(share, (low, high), np.maximum(variance, 0), intervals.doubts(open_))

    def _ends(
        self, counts: Ints, totals: Ints, count: int, forged: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        high = float(self.ratio / (self.ratio + 1))
        if self.blocks == 1:
            return intervals.share(counts, count, high, 0.5, ALPHA, forged=forged)
        there = float(self.truth * (1 + 1 / self.ratio))
        return intervals.in_part(
            counts, totals, count, (high, 0.5), there, (FIRST * ALPHA, (1 - FIRST) * ALPHA), forged
        )

    def simulated(self, true: Ints) -> tuple[Estimates, bool]:
        """For each item: who is in the block, and of them who is in the set."""
        n, block = int(true.sum()), self._places(np.arange(self.domain))[0]
        together = np.bincount(block, weights=true.astype(np.float64), minlength=self.blocks)
        of_block = np.rint(together).astype(np.int64)[block]
        there = self.truth * (1 + 1 / self.ratio)
        own, same = binomials(true, there), binomials(of_block - true, there)
        others = same + binomials(n - of_block, 2 * self.truth / self.ratio)
        inside = binomials(own, self.ratio / (self.ratio + 1)) + binomials(others, Fraction(1, 2))
        return self.of_sums(2 * inside - own - others, own + others, n), False

    @staticmethod
    def calibrate(*, domain: int, epsilon: Number) -> HadamardResponse:
        """The number of blocks, a power of two, of the least variance."""
        ratio, many = ratio_of(epsilon), read_domain(domain, "domain")
        powers = [1 << k for k in range(21) if (1 << k) <= max(many // 2, 1)]
        made = [HadamardResponse(domain=many, ratio=ratio, blocks=blocks) for blocks in powers]
        return min(made, key=lambda one: one.variance())


def _odd(numbers_: Ints) -> NDArray[np.bool_]:
    """Whether a number has an odd number of bits."""
    return (np.bitwise_count(numbers_) & 1).astype(bool)
