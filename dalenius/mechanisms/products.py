"""A covariance matrix, and the range of each entry, from noisy sums of products.

`sums` is symmetric: its first row holds the number of records and the sums of the columns, the others those
of products, all in the same steps; values are within ±1. Everything here is post-processing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def projected(matrix: Floats) -> Floats:
    """The nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray((nearest + nearest.T) / 2)


def entries(sums: Floats) -> Floats:
    """The covariance of the noisy sums; zeros where not even one record seems to be there."""
    count = sums[0, 0]
    if count <= 0:
        return np.zeros((len(sums) - 1, len(sums) - 1))
    means = np.clip(sums[0, 1:] / count, -1, 1)
    return np.asarray(np.clip(sums[1:, 1:] / count, -1, 1) - np.outer(means, means))


def ranges(sums: Floats, reach: int) -> tuple[Floats, Floats]:
    """The least and the largest covariance while each sum is within `reach` of the truth."""
    least = np.where(np.eye(len(sums) - 1, dtype=bool), 0.0, -1.0)
    if sums[0, 0] <= reach:
        return least, np.ones_like(least)
    counts = (sums[0, 0] - reach, sums[0, 0] + reach)
    ratios = np.array([(sums + side * reach) / count for side in (-1, 1) for count in counts])
    low, high = np.clip(ratios.min(axis=0), -1, 1), np.clip(ratios.max(axis=0), -1, 1)
    means = (low[0, 1:], high[0, 1:])
    products = np.array([np.outer(a, b) for a in means for b in means])
    return (
        np.maximum(low[1:, 1:] - products.max(axis=0), least),
        np.minimum(high[1:, 1:] - products.min(axis=0), 1.0),
    )
