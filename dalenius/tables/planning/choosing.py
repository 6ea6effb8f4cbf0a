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
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.tables.engines.engine import SIZES, SPREADS
from dalenius.tables.planning.hidden import (
    AT_MOST,
    WITHIN,
    Crowd,
    Shapes,
    at_most,
    cell_sizes,
    cell_spreads,
    most_likely,
)
from dalenius.tables.planning.seeing import Blur, Floats, seen

FAR_SIZE = 8.0
"""By how many bins the threshold for seeing grows by one standard deviation."""
TAIL, SLOWEST = 8, 0.6
"""Bins by which a histogram is continued, and the slowest rate at which it is taken to fall."""
UNSEEN = Fraction(3)
"""The bound on units of which nothing can be seen: then noise is too loud for any choice to matter much."""


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
    most_clipped: float = 0.0
    """What the share of units that have more hardly exceeds, as far as noise lets see."""
    most_lost: float = 0.0
    """The same of the share of rows."""


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


def clear_shapes(counts: Floats, *, blur: Blur, most: float, norm: str, widest: float) -> Shapes:
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
    clear = np.maximum(seen(table, blur, places, possible), 0.0)
    top = int(np.max(np.nonzero(clear)[0], initial=0))
    noisy = np.where(possible, table, 0.0)
    longest = _continued(clear, noisy, slack=AT_MOST * blur.scale)
    tail = _continued(clear, noisy)
    return Shapes(clear if tail is None else tail, table, possible, top, blur.scale, longest)


def choose_limit(shapes: Shapes, stakes: Stakes, *, most: float) -> Chosen:
    """The bound on units' norms."""
    near, tries = shapes.beyond(), 2.0 ** (np.arange(4 * SIZES) / 8)
    longest = None if shapes.longest is None else _points(shapes.longest)
    return _least(_points(shapes.clear), longest, near, stakes, np.minimum(tries, most), most)


def choose_pairs(shapes: Shapes, stakes: Stakes, *, most: float) -> Chosen:
    """The number of values of a unit that are counted, as if each of its rows had another."""
    near = [crowd.flat() for crowd in shapes.beyond()]
    tries = np.unique(np.ceil(2.0 ** (np.arange(4 * SIZES) / 8)))
    longest = None if shapes.longest is None else _points(shapes.longest).flat()
    return _least(_points(shapes.clear).flat(), longest, near, stakes, np.minimum(tries, most), most)


@dataclass(frozen=True, eq=False)
class Points:
    """Units of a histogram as points: sizes, spreads and how many."""

    size: Floats
    spread: Floats
    units: Floats

    def flat(self) -> Points:
        """Sizes as the numbers of rows."""
        return Points(self.size * self.spread, np.ones_like(self.size), self.units)

    def taken(self, tries: Floats, most: float) -> Floats:
        """Rows above bounds, where no unit has more than `most`."""
        size, rows = np.minimum(self.size, most), self.units * self.spread
        above: Floats = np.maximum(size - tries[:, None], 0) @ rows
        return above


def _least(
    seen: Points,
    longest: Points | None,
    near: Sequence[Crowd],
    stakes: Stakes,
    tries: Floats,
    most: float,
) -> Chosen:
    """The best bound, and what it takes; a small one where nobody can be seen."""
    if not seen.units.size:
        return Chosen(min(UNSEEN, Fraction(math.floor(most))), 0.0, 0.0, 1.0, False, 1.0, 1.0)
    size, taken = np.minimum(seen.size, most), seen.taken(tries, most)
    total, people = float((seen.units * seen.spread * size).sum()), float(seen.units.sum())
    likely = most_likely(near, tries)
    tail = np.full_like(taken, np.inf) if longest is None else longest.taken(tries, most)
    # What noise may hide beyond is believed as far as a tail may reach.
    lost = np.maximum(np.minimum(likely, tail), taken)
    best = int(np.argmin(stakes.error(tries, lost, total + float(lost[0] - taken[0]))))
    limit, left = float(tries[best]), total - taken[best]
    # Units that do not stand out have rows too.
    kept = left + lost[0] - taken[0] - (lost[best] - taken[best])
    clipped = float(seen.units[size > limit * (1 + 1e-9)].sum())
    least = float(lost[best]) if longest is None else max(float(lost[best]), float(tail[best]))
    most_lost, most_clipped = at_most(near[-1].taken(limit), least), at_most(near[-1].clipped(limit), clipped)
    return Chosen(
        Fraction(math.ceil(limit * 2**10), 2**10),
        clipped / people,
        float(lost[best] / (left + lost[best])),
        float(max(kept, left)) / max(people, near[-1].clipped(0.0)[0]),
        most_clipped=most_clipped / (people - clipped + most_clipped),
        most_lost=float(most_lost / (left + most_lost)),
    )


def _points(clear: Floats) -> Points:
    """Each cell as three; whole small sizes are known exactly."""
    rows, columns = np.nonzero(clear)
    sizes, parts = cell_sizes(rows).reshape(-1), len(WITHIN)
    return Points(sizes, np.tile(cell_spreads(columns), parts), np.tile(clear[rows, columns] / parts, parts))


def _continued(clear: Floats, noisy: Floats, slack: float = 0.0) -> Floats | None:
    """The histogram with a geometric tail after the largest size that was seen, None where that is small.

    It falls as the last sizes seen do, and no slower than what noise shows of the next one says, with `slack`
    for each of its cells.
    """
    by_size = clear.sum(axis=1)
    top = int(np.max(np.nonzero(by_size)[0], initial=0))
    before, here = by_size[max(top - 2, 0) : top].sum(), by_size[max(top - 1, 0) : top + 1].sum()
    if top < 2 or before == 0 or top + 1 == SIZES:
        return None
    next_ = noisy[top + 1][clear[top] > 0]
    beyond = max(float(next_.sum()) + slack * math.sqrt(next_.size), 0.0)
    rate = min(here / before, beyond / by_size[top], SLOWEST)
    steps = np.arange(1, min(TAIL, SIZES - 1 - top) + 1)
    tail = clear.copy()
    tail[top + steps] = clear[top] * (rate**steps)[:, None]
    return tail
