"""Quantiles, least and largest values, from noisy counts of a tree of intervals.

The range of a value is cut into 2^L equal leaves; level l counts values in each of 2^l intervals. Every node
is also the sum of the two below it, so counts of all levels tell something of each other: the best linear
unbiased estimates of the leaves take two passes, up and down (Hay, Rastogi, Miklau and Suciu 2010). With them
`below` is the number of values below each boundary; it is linear in the nodes, with known coefficients.

The q-quantile lies in leaf t just where D_t ≤ 0 ≤ D_{t+1} for D_j = below_j − q·(all). Leaf j is within the
error bar unless the noisy D_j is above 0, or D_{j+1} below 0, by more than its noise explains, each at risk
α/2: so the leaf of the quantile is in it with probability at least 1 − α, with no allowance for how many
leaves there are. The bar is the hull of these leaves. Where up to U values more lie anywhere, D_j of all of
them is off by −q·U to (1 − q)·U, which is allowed for on top of noise.

Of the least value only this is known: no value lies below its leaf. The bar goes from the lower end of the
range to the last leaf below which the noisy count does not stand out, at risk α; a single lower value cannot
be told from none. The estimate is where values begin to stand out, and not above the median. For the largest
value it is the same from above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.planning.bars import Bars, Noisy, spread_reach
from dalenius.tables.planning.budgeting import Additive
from dalenius.tables.planning.deviations import Floats


@dataclass(frozen=True, eq=False)
class Tree:
    """Noisy numbers of values below each of the 2^L + 1 boundaries, one row a group."""

    below: Floats
    levels: int
    law: Additive

    @staticmethod
    def of(noisy: Noisy, levels: int) -> Tree:
        """From the nodes of all levels, those of level 1 first."""
        return Tree(_below(noisy.values.reshape(len(noisy.totals), -1), levels), levels, noisy.law)

    @property
    def leaves(self) -> int:
        """How many there are."""
        return 1 << self.levels

    def most(self, alpha: float) -> Floats:
        """Return how many values each group has, at most."""
        return np.asarray(self.below[:, -1] + self._slack(0.0, Fraction(alpha))[-1])

    def quantile(self, fraction: Fraction, alpha: Fraction, taken: Floats | None = None) -> Bars:
        """In leaves from the lower end; of values of which so many more may lie anywhere in a group."""
        q = float(fraction)
        excess = self.below - q * self.below[:, -1:]
        slack = self._slack(q, alpha / 2)
        more = np.zeros((len(excess), 1)) if taken is None else taken[:, None]
        upper = slack[:-1] + (q * more if q > 0 else 0.0)
        lower = -slack[1:] - ((1 - q) * more if q < 1 else 0.0)
        inside = (excess[:, :-1] <= upper) & (excess[:, 1:] >= lower)
        value = self._crossing(excess)
        low, high = _hull(inside, np.minimum(np.floor(value), self.leaves - 1))
        return Bars(np.clip(value, low, high), low, high)

    def least(self, alpha: Fraction) -> Bars:
        """The least value, in leaves from the lower end."""
        quiet = self.below[:, :-1] <= self._slack(0.0, alpha)[:-1]
        last = _last(quiet | (np.arange(self.leaves) == 0))
        middle = self._crossing(self.below - self.below[:, -1:] / 2)
        return Bars(np.minimum(last + 0.5, middle), np.zeros(len(last)), last + 1)

    def largest(self, alpha: Fraction) -> Bars:
        """The largest value, by the mirror: what is above a boundary is below it there."""
        above = (self.below[:, -1:] - self.below)[:, ::-1]
        mirror = Tree(above, self.levels, self.law).least(alpha)
        return Bars(*(self.leaves - each for each in (mirror.value, mirror.high, mirror.low)))

    def _slack(self, q: float, alpha: Fraction) -> Floats:
        """How far off D_j is at risk alpha, on one side."""
        below = coefficients(self.levels)
        return spread_reach(below - q * below[:, -1:], self.law, alpha)

    def _crossing(self, excess: Floats) -> Floats:
        """From the root to a leaf, at each level to the side where the quantile seems to be."""
        rows, first, width = np.arange(len(excess)), np.zeros(len(excess), np.int64), self.leaves
        while width > 1:
            width //= 2
            first = np.where(excess[rows, first + width] < 0, first + width, first)
        start, end = excess[rows, first], excess[rows, first + 1]
        with np.errstate(all="ignore"):
            part = np.where(end > start, -start / (end - start), 0.5)
        return np.asarray(first + np.clip(np.nan_to_num(part, nan=0.5), 0.0, 1.0))


def in_order(found: Sequence[Bars], ranks: Sequence[Fraction]) -> list[Bars]:
    """Quantiles by rank, least (rank −1) and largest (2) values: none above the next, nor an end of its bar.

    Quantiles meet in the middle; the least and the largest value, which are known least, give way to them.
    Bars are made wider only.
    """
    value = np.stack([each.value for each in found])
    inner = [place for place, rank in enumerate(ranks) if 0 <= rank <= 1]
    rising = np.maximum.accumulate(value[inner], axis=0)
    falling = np.minimum.accumulate(value[inner][::-1], axis=0)[::-1]
    value[inner] = (rising + falling) / 2
    for place, rank in enumerate(ranks):
        if not 0 <= rank <= 1:
            value[place] = value.min(axis=0) if rank < 0 else value.max(axis=0)
    low = np.minimum.accumulate(np.stack([each.low for each in found])[::-1], axis=0)[::-1]
    high = np.maximum.accumulate(np.stack([each.high for each in found]), axis=0)
    return [Bars(*each).around(each[0]) for each in zip(value, low, high, strict=True)]


@lru_cache(maxsize=8)
def coefficients(levels: int) -> Floats:
    """Of each node (a row) in each number below a boundary (a column)."""
    return _below(np.eye((2 << levels) - 2), levels)


def _below(nodes: Floats, levels: int) -> Floats:
    """The numbers below all boundaries, by the best estimates of the leaves."""
    raw = [nodes[:, (1 << level) - 2 : (2 << level) - 2] for level in range(1, levels + 1)]
    best = [raw[-1]]
    for height, level in enumerate(reversed(raw[:-1]), start=2):
        own = (1 << (height - 1)) / ((1 << height) - 1)
        best.append(own * level + (1 - own) * _paired(best[-1]))
    leaves = best.pop()
    for level in reversed(best):
        leaves = level + np.repeat(leaves - _paired(level), 2, axis=1) / 2
    return np.concatenate([np.zeros((len(nodes), 1)), np.cumsum(leaves, axis=1)], axis=1)


def _paired(level: Floats) -> Floats:
    """The sums of neighbours with one parent."""
    return np.asarray(level[:, 0::2] + level[:, 1::2])


def _last(inside: NDArray[np.bool_]) -> Floats:
    """The last place of each row that is inside."""
    return np.asarray(inside.shape[1] - 1 - np.argmax(inside[:, ::-1], axis=1), np.float64)


def _hull(inside: NDArray[np.bool_], default: Floats) -> tuple[Floats, Floats]:
    """From the first to behind the last leaf that is inside; the one of the estimate where none is."""
    some = inside.any(axis=1)
    first = np.where(some, np.argmax(inside, axis=1), default)
    behind = np.where(some, _last(inside), default) + 1
    return first.astype(np.float64), behind.astype(np.float64)
