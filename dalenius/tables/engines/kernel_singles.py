"""Rows each of which is a unit of its own: nothing to sort, one weight for all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalenius.tables.engines.engine import MAGNITUDES, MASS, Bounding
from dalenius.tables.engines.kernel import Digester
from dalenius.tables.engines.kernel_rows import Asked, Block, Weigher, magnitude_bins, pieces, present
from dalenius.tables.engines.kernel_sums import Sum
from dalenius.tables.engines.kernel_weights import Norm, Whole, shape_bins, weights


class Singles:
    """Rows each of which is a unit of its own, in one group."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = list(blocks)

    def holders(self, keys: int, most: int, digester: Digester) -> Whole:
        """How many rows have each key, by its code."""
        found = np.zeros(keys, np.int64)
        for block in self.blocks:
            np.add.at(found, block.words.astype(np.intp), 1)
        return found

    def shapes(self, asked: Asked, norm: Norm, presence: bool) -> Whole:
        """All in one bin."""
        ones = np.ones(self._rows(asked), np.int64)
        return shape_bins(ones, ones, norm)

    def magnitudes(self, column: int) -> Whole:
        """Each row has all its mass in one bin."""
        found = np.zeros(MAGNITUDES, np.int64)
        for piece in pieces(self.blocks):
            np.add.at(found, magnitude_bins(present(piece.values[column])[1]), MASS)
        return found

    def weigh(self, asked: Asked, bounding: Bounding, digester: Digester) -> Weigher:
        """One weight for all."""
        return Weigher(None, asked, weights(np.ones(1, np.int64), bounding.limit, bounding.norm))

    def add_units(self, total: Sum, asked: Asked, bounding: Bounding, digester: Digester) -> None:
        """Add to the measure `units`."""
        one = weights(np.ones(1, np.int64), bounding.presence, bounding.norm).astype(np.int64)
        for block in self.blocks:
            total.add(asked.places[block.words], np.broadcast_to(one, block.words.shape), None)

    def _rows(self, asked: Asked) -> int:
        return sum(int(np.count_nonzero(asked.places[block.words] < asked.count)) for block in self.blocks)
