"""The bounds that make the mean error over groups least, by what noisy histograms show of units.

**How much of a unit counts.** Clipping the contributions of all units to norm C takes from a unit of size s
(its norm) and spread w (its sum over its norm) what is above: w·(s − C) rows. Over G groups the mean absolute
error is at most that of the noise, which is C times a constant, and the rows taken from all units over G. Its
least value over C is found on the noisy histogram of sizes and spreads. Above the largest size that stands
out of the noise the histogram is continued by a geometric tail.

**Clipping or sampling groups.** Keeping k of a unit's groups by chance, of e that it has evenly, keeps k/e of
its rows with norm √(k/e) of what it was; clipping to that norm keeps √(k/e) of its rows. So by mean error
clipping is never worse, and groups are sampled only where the caller says so.

**Averages.** The weights of an average are those of its sum and of its count, so clipping takes nothing from
it but the say of some units; noise, though, counts against the rows that are left. `Stakes` adds all this up.

What is chosen depends on noisy counts and public facts only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.tables.engines.engine import SIZES, SPREADS
from dalenius.tables.seeing import Blur, Floats, seen

FAR_SIZE = 8.0
"""By how many bins the threshold for seeing grows by one standard deviation."""
TAIL, SLOWEST = 8, 0.6
"""Bins by which a histogram is continued, and the slowest rate at which it is taken to fall."""
UNSEEN = Fraction(3)
"""The bound on units of which nothing can be seen: then noise is too loud for any choice to matter much."""
WITHIN = (1 / 6, 1 / 2, 5 / 6)
"""Where in a bin its units are taken to be, in three equal parts."""


@dataclass(frozen=True)
class Chosen:
    """A bound on a unit's norm, and what it is thought to take: all of it estimates from noisy counts."""

    limit: Fraction
    clipped: float
    """The share of units that have more."""
    lost: float
    """The share of rows that is taken away."""
    rows: float
    """Rows a unit that are left, on average."""
    sighted: bool = True
    """Whether anything stood out of the noise."""


@dataclass(frozen=True)
class Stakes:
    """What a bound costs all aggregates together, in rows over all groups.

    `fixed` is the noise, for a bound of 1, of what is a sum over rows; `relative` that of what is divided by
    the number of rows that are left; `bias` what a row costs that is taken away.
    """

    fixed: float
    relative: float
    bias: float

    def error(self, limit: Floats, taken: Floats, total: float) -> Floats:
        """Of bounds that take so many of all rows away."""
        left = np.maximum(total - taken, 1e-9 * total)
        return np.asarray(self.fixed * limit + self.relative * limit * total / left + self.bias * taken)


def clear_shapes(counts: Floats, *, blur: Blur, most: float, norm: str, widest: float) -> Floats:
    """The histogram of sizes and spreads without its noise, where that can be told.

    `blur` is its noise, `most` and `widest` the largest size and number of groups that a unit can have.
    """
    table = counts.reshape(SIZES, SPREADS)
    sizes, spreads = np.arange(SIZES), np.arange(SPREADS)
    last = min(math.ceil(2 * math.log2(max(most, 1.0))), SIZES - 1)
    wide = 0 if norm == "l1" else math.ceil(math.log2(max(widest, 1.0)))
    # A sum over a norm is at most the norm, for whole numbers, and at most the root of the number of groups.
    room = np.minimum(sizes, wide)[:, None]
    possible = (spreads[None, :] <= room) & (sizes <= last)[:, None]
    places = np.broadcast_to((sizes / FAR_SIZE)[:, None], table.shape)
    return _continued(np.maximum(seen(table, blur, places, possible), 0.0), np.where(possible, table, 0.0))


def choose_limit(clear: Floats, stakes: Stakes, *, most: float) -> Chosen:
    """The bound on units' norms."""
    size, spread, units = _points(clear)
    return _least(size, spread, units, stakes, 2.0 ** (np.arange(4 * SIZES) / 8), most)


def choose_pairs(clear: Floats, stakes: Stakes, *, most: float) -> Chosen:
    """The number of values of a unit that are counted, as if each of its rows had another."""
    size, spread, units = _points(clear)
    tries = np.unique(np.ceil(2.0 ** (np.arange(4 * SIZES) / 8)))
    return _least(size * spread, np.ones_like(size), units, stakes, tries, most)


def _least(size: Floats, spread: Floats, units: Floats, stakes: Stakes, tries: Floats, most: float) -> Chosen:
    """The best bound, and what it takes; a small one where nobody can be seen."""
    if not units.size:
        return Chosen(min(UNSEEN, Fraction(math.floor(most))), 0.0, 0.0, 1.0, sighted=False)
    size, tries = np.minimum(size, most), np.minimum(tries, most)
    taken = np.array([float((units * spread * np.maximum(size - limit, 0)).sum()) for limit in tries])
    total, people = float((units * spread * size).sum()), float(units.sum())
    best = int(np.argmin(stakes.error(tries, taken, total)))
    limit = float(tries[best])
    clipped = float(units[size > limit * (1 + 1e-9)].sum()) / people
    bound = Fraction(math.ceil(limit * 2**10), 2**10)
    return Chosen(bound, clipped, taken[best] / total, (total - taken[best]) / people)


def _points(clear: Floats) -> tuple[Floats, Floats, Floats]:
    """Units of the histogram as points: sizes, spreads and how many; whole small sizes are known exactly."""
    rows, columns = np.nonzero(clear)
    parts = [(part - 1) / 2 for part in WITHIN]
    exact = rows <= 1
    sizes = np.concatenate([2.0 ** ((rows + np.where(exact, 0.0, part)) / 2) for part in parts])
    spreads = np.tile(2.0 ** (np.maximum(columns - 0.5, 0.0) / 2), len(parts))
    return sizes, spreads, np.tile(clear[rows, columns] / len(parts), len(parts))


def _continued(clear: Floats, noisy: Floats) -> Floats:
    """The histogram with a geometric tail after the largest size that was seen.

    It falls as the last sizes seen do, and no slower than what noise shows of the next one says.
    """
    by_size = clear.sum(axis=1)
    top = int(np.max(np.nonzero(by_size)[0], initial=0))
    before, here = by_size[max(top - 2, 0) : top].sum(), by_size[max(top - 1, 0) : top + 1].sum()
    if top < 2 or before == 0 or top + 1 == SIZES:
        return clear
    beyond = max(float(noisy[top + 1][clear[top] > 0].sum()), 0.0)
    rate = min(here / before, beyond / by_size[top], SLOWEST)
    steps = np.arange(1, min(TAIL, SIZES - 1 - top) + 1)
    tail = clear.copy()
    tail[top + steps] = clear[top] * (rate**steps)[:, None]
    return tail
