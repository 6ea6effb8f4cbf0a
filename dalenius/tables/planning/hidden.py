"""What noise hides of units that a bound clips: estimates without a threshold, and how high they may be.

What stands out of a noisy histogram is a guess from below: cells of a few units each are taken for empty.
The rows that a bound C takes from all units of sizes up to S are a sum over cells, Σ (units of the cell) ·
(what C takes from one of them); with noisy counts it is unbiased, and its deviation is known. Sizes far above
what stands out are left aside: a single unit among them may have any number of rows, and no sum over noise
tells. All of it is post-processing of the noisy counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BEYOND = 3
"""By how many bins above the largest size that stands out units are looked for."""
ALWAYS = 8
"""Up to this bin, a size of 16, they are looked for in any case."""
SURER = 1.0
"""By how many deviations more must be taken than stands out, to count when a bound is chosen."""
AT_MOST = 1.645
"""Deviations above an estimate that it exceeds once in twenty times."""
WITHIN = (1 / 6, 1 / 2, 5 / 6)
"""Where in a bin its units are taken to be, in three equal parts."""


@dataclass(frozen=True, eq=False)
class Shapes:
    """Units by size (a row each) and spread: what stands out (`clear`), and what noise showed of all.

    `top` is the largest bin of sizes that stands out, `scale` the deviation of the noise of a cell.
    """

    clear: Floats
    noisy: Floats
    possible: NDArray[np.bool_]
    top: int
    scale: float
    longest: Floats | None = None
    """What stands out, with as long a tail as noise allows; None where too little does for any tail."""

    def beyond(self) -> list[Crowd]:
        """The cells of sizes up to the largest that stands out, and up to each a little above."""
        return [self._near(top) for top in range(self.top, max(self.top + BEYOND, ALWAYS) + 1)]

    def _near(self, top: int) -> Crowd:
        """The cells that can hold somebody, of sizes up to a bin."""
        rows, columns = np.nonzero(self.possible[: top + 1])
        return Crowd(cell_sizes(rows), cell_spreads(columns), self.noisy[rows, columns], self.scale)


@dataclass(frozen=True, eq=False)
class Crowd:
    """Cells with noisy counts; `sizes` has one row for each part of a bin."""

    sizes: Floats
    spreads: Floats
    counts: Floats
    scale: float

    def flat(self) -> Crowd:
        """Sizes as the numbers of rows."""
        return Crowd(self.sizes * self.spreads, np.ones_like(self.spreads), self.counts, self.scale)

    def taken(self, limit: float) -> tuple[float, float]:
        """The rows above a bound, and the deviation of that."""
        return self._sum(self.spreads * np.maximum(self.sizes - limit, 0.0).mean(axis=0))

    def clipped(self, limit: float) -> tuple[float, float]:
        """The units above it."""
        return self._sum((self.sizes > limit * (1 + 1e-9)).mean(axis=0))

    def _sum(self, each: Floats) -> tuple[float, float]:
        return float((each * self.counts).sum()), self.scale * math.sqrt(float(np.square(each).sum()))


def most_likely(near: Sequence[Crowd], limits: Floats) -> Floats:
    """Rows above each bound that there likely are, by the crowd that shows most of them.

    Each crowd begins with the cells of the one before, so that all are sums along the last.
    """
    last, ends = near[-1], [crowd.counts.size for crowd in near]
    above = np.maximum(last.sizes - limits[:, None, None], 0.0).mean(axis=1) * last.spreads
    sums, squares = np.zeros((2, len(limits), last.counts.size + 1))
    np.cumsum(above * last.counts, axis=1, out=sums[:, 1:])
    np.cumsum(above * above, axis=1, out=squares[:, 1:])
    likely = at_least((sums[:, ends], last.scale * np.sqrt(squares[:, ends])))
    return np.asarray(likely.max(axis=1))


def at_most(found: tuple[float, float], seen: float) -> float:
    """What a sum of noisy counts hardly exceeds, and not less than what stands out."""
    return max(found[0] + AT_MOST * found[1], seen, 0.0)


def at_least(found: tuple[Any, Any]) -> Any:
    """What it likely exceeds."""
    return found[0] - SURER * found[1]


def cell_sizes(rows: NDArray[np.int64]) -> Floats:
    """Sizes of units in bins, in three parts of the upper half; whole small sizes are known exactly."""
    parts = [np.where(rows <= 1, 0.0, (part - 1) / 2) for part in WITHIN]
    return np.stack([2.0 ** ((rows + part) / 2) for part in parts])


def cell_spreads(columns: NDArray[np.int64]) -> Floats:
    """Spreads of units in bins."""
    return np.asarray(2.0 ** (np.maximum(columns - 0.5, 0.0) / 2))
