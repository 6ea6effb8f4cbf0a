"""What a bound on units' contributions takes from each group, at most.

**Theorem.** Let unit u have n(g) rows in group g, and size s, their norm over the groups (L2 or L1). The
bound C gives them the weight W = min(1, C/s), up to rounding down. From group g it takes (1 − W)·n(g), which
is

    at most s − C, as n(g) ≤ s,        and (s/C − 1) times what it leaves of the unit there.

So for any T ≥ C all units take from g at most (T/C − 1)·(what is left of g) + Σ_{s > T} (s − C). For the
number of units that are in g, n(g) = 1, and 1 − C/s takes the place of s − C. A margin adds
up k groups: where s is an L2 norm, Σ n(g) ≤ √k·s (Cauchy-Schwarz), and √k·(s − C) takes the place of s − C
(`spread`).

The sum is over a histogram of sizes, its bins taken at their upper ends; with noise it is bounded as `tails`
says, under the assumption stated there. T is tried at C and 2C at half of the risk each, and where no unit is
larger. Weights are whole numbers of 1/WEIGHT, cut towards zero: sizes are taken a little larger for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.engines.engine import SIZES, WEIGHT
from dalenius.tables.planning.deviations import Floats
from dalenius.tables.planning.tails import Tail

FARTHER = (1.0, 2.0)
"""Places of T, over C."""
NO_WHOLE = (1, 3)
"""Half octaves that hold no whole number."""
UNKNOWN = 2.0**31
"""The size that stands for any, where it is not known how many rows a unit can have."""
ROUNDED = 1 + 2.0**-12
"""How far a size is beyond the upper end of its bin by rounding, at most; and what whole weights add."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """Units by size, as noise shows them: half-octave bins, none of them above `most`."""

    tail: Tail | None
    """None where nothing stands out."""
    most: float
    presence: bool = False
    bins: NDArray[np.int64] = field(default_factory=lambda: np.arange(SIZES))
    """The half octaves of the engine that can hold units."""

    @cached_property
    def ends(self) -> Floats:
        """The upper ends of bins."""
        return np.minimum(2.0 ** (self.bins / 2), self.most)

    @cached_property
    def middles(self) -> Floats:
        """What sizes of bins are about; small whole ones are known exactly."""
        at = self.bins
        return np.minimum(2.0 ** (at / 2 - np.where(at <= 2, 0, 1 / 4)), self.most)

    def taken(self, sizes: Floats, limits: Floats, above: Floats) -> Floats:
        """Return what each limit takes from one unit of each size above a place, a row for each limit."""
        limits, above = limits[:, None], above[:, None]
        lost = 1 - limits / sizes if self.presence else sizes - limits
        return np.where(sizes > above * (1 + 1e-9), np.maximum(lost, 0.0), 0.0)

    def most_taken(self, limits: Floats, alpha: float, above: float = 1.0) -> Floats:
        """Return what each limit takes from all units, or from those so many times larger, at most.

        Where nothing bounds it, of units of a size that stands out.
        """
        assert self.tail is not None
        amounts = self.taken(self.ends * ROUNDED, limits, limits * above)
        found = self.tail.most(amounts, alpha)
        if np.isfinite(found).all():
            return found
        amounts[:, self.tail.top + 1 :] = 0.0
        return self.tail.most(amounts, alpha)

    def likely_taken(self, limits: Floats) -> tuple[Floats, Floats]:
        """Return what each limit likely takes from all units, and the deviation of that."""
        assert self.tail is not None
        return self.tail.likely(self.taken(self.middles, limits, limits))

    @property
    def whole(self) -> float:
        """What all units have, about; of those that may be seen."""
        assert self.tail is not None
        every = np.ones(len(self.bins)) if self.presence else self.middles
        return max(float(self.tail.likely(every[None, :])[0][0]), 1.0)

    @property
    def largest(self) -> float:
        """The size that no unit exceeds; infinite where no end is in sight."""
        end = None if self.tail is None else self.tail.end
        if end is None:
            return self.most if self.most < UNKNOWN else math.inf
        return float(self.ends[end])

    @property
    def clear(self) -> float:
        """The largest size that stands out."""
        return self.most if self.tail is None else float(self.ends[self.tail.top])


def bins_of(most: float, *, whole: bool) -> NDArray[np.int64]:
    """Return the bins that can hold units: none beyond `most`, and none without a whole number if `whole`."""
    last = min(math.ceil(2 * math.log2(max(most, 1.0))), SIZES - 1)
    return np.array([at for at in range(last + 1) if not (whole and at in NO_WHOLE)])


@dataclass(frozen=True, eq=False)
class Removed:
    """What a limit takes from groups."""

    sizes: Sizes
    limit: float
    spread: float = 1.0
    """The sum of a unit's rows over the groups of a total is at most so many times their norm."""

    def at_most(self, kept: Floats, alpha: float, size: float = 1.0) -> Floats:
        """Return what is taken from each group, at most, at risk alpha.

        Args:
            kept: What is left in each group, at most.
            alpha: The risk.
            size: The most that a row counts.
        """
        factors, amounts = _thresholds(self, alpha)
        if size <= 0:
            return np.zeros_like(kept)
        left = np.maximum(kept, 0.0)
        tries = [
            (factor * left if factor > 0 else 0.0) + size * self.spread * amount
            for factor, amount in zip(factors.tolist(), amounts.tolist(), strict=True)
        ]
        return np.asarray(np.min(np.broadcast_arrays(left + np.inf, *tries), axis=0))

    @property
    def share(self) -> float:
        """The share of all rows that is likely taken, where that stands out of noise; 0 elsewhere."""
        if self.sizes.tail is None:
            return 0.0
        taken, spread = self.sizes.likely_taken(np.array([self.limit]))
        found = float(taken[0] - spread[0])
        return min(max(found / max(self.sizes.whole, found), 0.0), 0.9)

    @property
    def nothing(self) -> bool:
        """Whether the limit takes nothing from any unit that there can be."""
        return self.limit >= self.sizes.most * (1 - 1e-9)


@lru_cache(maxsize=256)
def _thresholds(removed: Removed, alpha: float) -> tuple[Floats, Floats]:
    """Return T/C − 1 and Σ_{s > T} for each T."""
    sizes, limit = removed.sizes, removed.limit
    above = limit * np.array(FARTHER)
    limits = np.full_like(above, limit)
    if sizes.tail is None:
        amounts = np.where(above >= sizes.most * (1 - 1e-9), 0.0, np.inf)
    else:
        taken = sizes.taken(sizes.ends * ROUNDED, limits, above)
        amounts = sizes.tail.most(taken, alpha / len(FARTHER))
    factors = np.array([_factor(place / limit) for place in above])
    largest = sizes.largest
    if math.isfinite(largest):
        factors = np.append(factors, _factor(largest * ROUNDED / limit))
        amounts = np.append(amounts, 0.0)
    known = np.isfinite(factors)
    return factors[known], amounts[known]


def _factor(over: float) -> float:
    """Return how many times what is left of a unit is taken from it, where it is so far over the limit."""
    if over <= 1:
        return 0.0
    # A weight is cut by less than 1/WEIGHT.
    cut = over / WEIGHT
    return over / (1 - cut) - 1 if cut < 1 / 2 else math.inf
