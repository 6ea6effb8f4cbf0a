"""Coins that protect nobody, such as those of the shapes of trees: from the one source all the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius import noise

Floats = NDArray[np.float64]
FINE = 2**53


class Coins:
    """What k-means++ and trees draw."""

    def random(self, size: int) -> Floats:
        """Numbers from 0 to 1."""
        return np.asarray(noise.uniform(FINE, size), dtype=np.float64) / FINE

    def uniform(self, low: float, high: float, shape: tuple[int, ...] = (1,)) -> Floats:
        """Numbers between these."""
        return low + (high - low) * self.random(int(np.prod(shape))).reshape(shape)

    def integers(self, below: int, size: int) -> NDArray[np.int64]:
        """Whole numbers from 0 on."""
        return np.asarray(noise.uniform(below, size), dtype=np.int64)

    def permutation(self, size: int) -> NDArray[np.int64]:
        """The numbers below `size`, in any order."""
        return np.argsort(self.random(size)).astype(np.int64)

    def choice(self, chances: Floats) -> int:
        """A place, by its share of the chances."""
        until = np.cumsum(chances)
        return int(
            np.searchsorted(until, until[-1] * self.random(1)[0], side="right").clip(0, until.size - 1)
        )
