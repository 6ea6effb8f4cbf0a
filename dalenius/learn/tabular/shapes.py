"""Random shapes of trees, from noisy histograms of the columns.

Every column is cut into cells: a code each, or equal parts of its bounds. A tree asks `depth` questions, the
same ones in every branch, each of one column: whether a row's cell is beyond a threshold, or among a random
set of codes. Thresholds follow noisy histograms, so that rows fall on both sides. Chance here protects
nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.learn.tabular.coins import Coins
from dalenius.learn.tabular.columns import Codes, read_bounds
from dalenius.learn.tabular.sums import Floats
from dalenius.mechanisms.contributions import table
from dalenius.privacy import numbers

CELLS = 64
"""Equal parts of the bounds of a column that holds no codes."""
MOST_CODES = 4096


@dataclass(frozen=True)
class Cells:
    """How values become cells: `sizes[j]` of them between lower[j] and upper[j], all public."""

    lower: Floats
    upper: Floats
    sizes: tuple[int, ...]
    coded: tuple[bool, ...]

    def of(self, data: Any) -> tuple[Codes, NDArray[np.bool_]]:
        """The cells of rows, and which rows hold numbers only."""
        values = table(data, len(self.sizes))
        present: NDArray[np.bool_] = np.asarray(~np.isnan(values).any(axis=1))
        held = np.clip(np.where(np.isnan(values), self.lower, values), self.lower, self.upper)
        many = np.array(self.sizes, np.float64)
        width = np.where(self.coded, 1.0, (self.upper - self.lower) / many)
        return np.clip(np.floor((held - self.lower) / width), 0, many - 1).astype(np.int64), present


def read_cells(bounds: Any, width: int, coded: Any) -> Cells:
    """Cells by bounds, and by the numbers of the columns that hold codes."""
    lower, upper = read_bounds(bounds, width)
    chosen = {numbers.count(one, "categorical", least=0, most=width - 1) for one in coded or ()}
    for j in chosen:
        whole = lower[j].denominator == upper[j].denominator == 1
        if not whole or upper[j] - lower[j] >= MOST_CODES:
            raise InvalidArgument(
                f"Column {j} holds codes, and its bounds are not whole numbers or leave too many.",
                remedy=f"Give it the least and the largest code as bounds, at most {MOST_CODES} apart.",
            )
    sizes = tuple(int(upper[j] - lower[j]) + 1 if j in chosen else CELLS for j in range(width))
    least, most = (np.array([float(end) for end in side]) for side in (lower, upper))
    return Cells(least, most, sizes, tuple(j in chosen for j in range(width)))


@dataclass(frozen=True)
class Shape:
    """Questions: a column each, and on which side its cells are."""

    columns: tuple[int, ...]
    sides: tuple[NDArray[np.bool_], ...]

    def leaves(self, cells: Codes) -> Codes:
        """The number of the leaf that each row falls in."""
        found = np.zeros(len(cells), np.int64)
        for column, side in zip(self.columns, self.sides, strict=True):
            found = 2 * found + side[cells[:, column]]
        return found


def drawn(histograms: list[Floats], coded: tuple[bool, ...], depth: int, chance: Coins) -> Shape:
    """A random shape, its columns different ones where there are enough."""
    many = len(histograms)
    columns = chance.permutation(many)[:depth] if depth <= many else chance.integers(many, depth)
    sides = [
        chance.random(len(histograms[j])) < 0.5 if coded[j] else _beyond(histograms[j], chance)
        for j in columns.tolist()
    ]
    return Shape(tuple(columns.tolist()), tuple(sides))


def _beyond(histogram: Floats, chance: Coins) -> NDArray[np.bool_]:
    """The cells beyond a threshold that has a random share of the rows below it, both sides having some."""
    below = np.cumsum(np.maximum(histogram, 0) + 1e-9)
    below = below / below[-1]
    edge = int(np.searchsorted(below, chance.uniform(0.02, 0.98)[0]))
    return np.arange(len(histogram)) > min(edge, len(histogram) - 2)
