"""The bound on units' contributions that makes the honest interval narrow, by a noisy histogram of sizes.

A bound C costs a group its noise, C times a constant, and what C takes from units. The interval of a group
holds both: the noise on its two sides, and above it what is taken, at most (`removed`). So C is sought where

    (width of the noise · C  +  what is taken, at most)  ·  (mean |error|)

is least. The error is that of the noise and of what is likely taken of a group. A product, as either may be
much the same for all bounds, and then the other decides. What is taken from one group may be all that is
taken, however many others there are, empty ones above all, or it is in proportion to what is left of it.

What is chosen depends on noisy counts and public facts only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.tables.engines.engine import SIZES
from dalenius.tables.planning.deviations import Floats
from dalenius.tables.planning.removed import FARTHER, Removed, Sizes, bins_of
from dalenius.tables.planning.seeing import Blur, outermost, seen
from dalenius.tables.planning.tails import Tail

FAR_SIZE = 8.0
"""By how many bins the threshold for seeing grows by one standard deviation."""
UNSEEN = Fraction(3)
"""The bound on units of which nothing can be seen: then noise is too loud for any choice to matter much."""
RISK = 0.02
"""At which what is taken enters a choice."""
NOTHING = 1e-3
"""Rows that do not matter: no width and no error counts as less."""
SHARED = 1.5
"""How much more a bound may cost a measure for being that of all: rows are read once for each bound. Costs
are products, so a width and an error may each be a fifth larger."""
FILLED = 200
"""How many groups have rows, at most; a guess for choosing only, as most of very many are empty."""


@dataclass(frozen=True)
class Stakes:
    """What a bound of 1 costs by its noise: the width of an interval, and the mean |error|."""

    width: float
    error: float


@dataclass(frozen=True)
class Chosen:
    """A bound on a unit's norm with what it takes, by estimate and at most, and whom it clips."""

    limit: Fraction
    removed: Removed
    clipped: float = 0.0
    """The share of units that have more, by estimate."""
    most_clipped: float = 0.0
    """What that share hardly exceeds, as far as noise lets see."""

    @property
    def sighted(self) -> bool:
        """Whether anything stood out of the noise."""
        return self.removed.sizes.tail is not None


def seen_sizes(
    counts: Floats, *, blur: Blur, most: float, presence: bool = False, whole: bool = False
) -> Sizes:
    """Return the sizes of units as a noisy histogram shows them.

    Args:
        counts: Units in each half octave of sizes, with noise.
        blur: The noise.
        most: The largest size that a unit can have.
        presence: Whether sizes are those of presence in groups.
        whole: Whether sizes are whole numbers.
    """
    bins = bins_of(most, whole=whole)
    line, counts = bins.astype(np.float64), counts[bins]
    clear = seen(counts, blur, line / FAR_SIZE, np.ones(len(bins), bool), line)
    if not clear.any():
        return Sizes(None, most, presence, bins)
    return Sizes(Tail(counts, blur, outermost(counts, blur, clear), 1 / 2), most, presence, bins)


def choose_limit(sizes: Sizes, stakes: Stakes, *, groups: int, most: float) -> Chosen:
    """Return the bound on units' norms, no larger than `most`."""
    if sizes.tail is None:
        limit = min(UNSEEN, Fraction(math.floor(most)))
        return Chosen(limit, Removed(sizes, float(limit)), 1.0, 1.0)
    tries = np.minimum(2.0 ** (np.arange(4 * SIZES) / 8), min(most, sizes.most))
    best = float(tries[int(np.argmin(costs(sizes, stakes, tries, groups)))])
    limit = Fraction(math.ceil(best * 2**10), 2**10)
    clipped, most_clipped = _clipped(sizes, float(limit))
    return Chosen(limit, Removed(sizes, float(limit)), clipped, most_clipped)


def shared_limits(sizes: Sizes, stakes: Sequence[Stakes], *, groups: int, most: float) -> list[Chosen]:
    """Return a bound for each of several measures: one for all where that costs each little.

    Args:
        sizes: The sizes of units.
        stakes: What a bound costs each measure.
        groups: How many groups there are.
        most: The largest bound.
    """
    alone = [choose_limit(sizes, each, groups=groups, most=most) for each in stakes]
    if sizes.tail is None or len(alone) == 1:
        return alone
    tries = np.array(sorted({float(each.limit) for each in alone}))
    cost = np.array([costs(sizes, each, tries, groups) for each in stakes])
    worst = (cost / cost.min(axis=1, keepdims=True)).max(axis=0)
    best = int(np.argmin(worst))
    return [alone[_of(alone, float(tries[best]))]] * len(alone) if worst[best] <= SHARED else alone


def _of(alone: Sequence[Chosen], limit: float) -> int:
    return next(place for place, each in enumerate(alone) if float(each.limit) == limit)


def costs(sizes: Sizes, stakes: Stakes, tries: Floats, groups: int) -> Floats:
    """Return what bounds cost."""
    likely, _ = sizes.likely_taken(tries)
    filled = min(groups, FILLED)
    # In proportion to what is left of a group, and of larger units alone: see `removed`.
    left = sizes.whole / filled
    taken = np.min([(far - 1) * left + sizes.most_taken(tries, RISK, above=far) for far in FARTHER], axis=0)
    error = stakes.error * tries + np.maximum(likely, 0.0) / math.sqrt(filled)
    return np.asarray((stakes.width * tries + taken + NOTHING) * (error + NOTHING))


def _clipped(sizes: Sizes, limit: float) -> tuple[float, float]:
    """Return the share of units that have more, by estimate and at most."""
    assert sizes.tail is not None
    above = (sizes.ends > limit * (1 + 1e-9)).astype(np.float64)[None, :]
    whole = max(float(sizes.tail.likely(np.ones((1, len(sizes.bins))))[0][0]), 1.0)
    likely, most = float(sizes.tail.likely(above)[0][0]), float(sizes.tail.most(above, RISK)[0])
    return min(max(likely, 0.0) / whole, 1.0), min(most / whole, 1.0)
