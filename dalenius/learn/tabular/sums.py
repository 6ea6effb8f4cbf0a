"""Exact sums of whole numbers by matrix products, and noise on them.

Whole numbers in float64 multiply and add without rounding as long as every partial sum stays below 2^53, in
any order and on any processor. So a product of matrices of whole numbers, taken over few enough rows at a
time, is exact: what a row adds is a function of the row alone, wherever it stands.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.additive import Additive
from dalenius.privacy.quantized import Steps

Whole = NDArray[np.float64]
"""Whole numbers, each of them exact."""
Floats = NDArray[np.float64]
ROOM = 2**53
"""Below it whole numbers are exact in float64."""
BITS = 15
ONE = 2**BITS
"""What stands for 1 in a row, and in a weight."""


def row_by_row(rows: Floats, weights: Floats) -> Floats:
    """Rows times a matrix, column after column: each result has the bits that its row alone has.

    A product of matrices adds up in another order for the last few rows than for those before them.
    """
    found = np.zeros((len(rows), weights.shape[1]))
    for column, weight in zip(rows.T, weights, strict=True):
        found += column[:, np.newaxis] * weight
    return found


def products(left: Whole, right: Whole, *, most: int = ONE * ONE) -> Steps:
    """Σ over rows of leftᵢ ⊗ rightᵢ, exact, where no product of two entries is above `most`."""
    at_once = max(1, ROOM // most - 1)
    total = np.zeros((left.shape[1], right.shape[1]), np.int64)
    for start in range(0, len(left), at_once):
        part = slice(start, start + at_once)
        total += (left[part].T @ right[part]).astype(np.int64)
    return total


def totals(rows: Whole, *, most: int = ONE) -> Steps:
    """Σ over rows, exact, where no entry is above `most`."""
    return products(np.ones((len(rows), 1)), rows, most=most)[0]


def counts(codes: NDArray[np.int64], size: int, weights: Whole | None = None, *, most: int = ONE) -> Steps:
    """How many rows have each code, or the sums of their weights; a code below zero does not count."""
    total = np.zeros(size, np.int64)
    at_once = max(1, ROOM // most - 1)
    for start in range(0, len(codes), at_once):
        part = codes[start : start + at_once]
        seen = part >= 0
        some = None if weights is None else weights[start : start + at_once][seen]
        total += np.bincount(part[seen], weights=some, minlength=size).astype(np.int64)
    return total


def noisy(sums: Steps, noise: Additive, *, unit: int = 1) -> Floats:
    """The sums under noise, in units of so many steps."""
    found: NDArray[Any] = sums + noise.draw(sums.size).reshape(sums.shape)
    return found.astype(np.float64) / unit
