"""The fast transform of Walsh and Hadamard: sums over all numbers, with the signs of a row of the matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def transformed(table: Ints) -> Ints:
    """Each row of a table, or the only one, by the Hadamard matrix; rows are as long as a power of two."""
    shape, step = table.shape, 1
    while step < shape[-1]:
        pairs = table.reshape(-1, 2, step)
        table = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        step *= 2
    return table.reshape(shape)
