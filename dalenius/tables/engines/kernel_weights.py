"""Weights of units and bins of `shapes`, exact: floats make a first guess, integers decide.

W = min(WEIGHT, ⌊WEIGHT·limit/√S⌋) is at least w exactly where w²·S ≤ (WEIGHT·limit)², that is where S is at
most the whole number ⌊(WEIGHT·limit/w)²⌋, of which there are but WEIGHT: a table. The guess of w is checked
against the table on both sides, and a weight that the table does not allow becomes 0, so nothing about floats
needs to be believed.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.engines.engine import SIZES, SPREADS, WEIGHT

Norm = Literal["l2", "l1"]
Whole = NDArray[np.int64]
_MOST = 2**63 - 1


def weights(sizes: Whole, limit: Fraction, norm: Norm) -> NDArray[np.uint16]:
    """The weights of units by their Σ n(g)² ("l2") or Σ n(g) ("l1"), each at least 1."""
    caps = _caps(limit, norm)
    lengths = np.sqrt(sizes) if norm == "l2" else sizes.astype(np.float64)
    with np.errstate(over="ignore"):
        guess = np.minimum(float(min(WEIGHT * limit, Fraction(2) ** 900)) / lengths, WEIGHT).astype(np.intp)
    guess += sizes <= caps[guess + 1]
    guess -= sizes > caps[guess]
    return np.where(sizes <= caps[guess], guess, 0).astype(np.uint16)


@lru_cache(maxsize=16)
def _caps(limit: Fraction, norm: Norm) -> Whole:
    """At w, the most that a unit of weight w or more can have; nothing has weight WEIGHT + 1."""
    power = 2 if norm == "l2" else 1
    top, bottom = (WEIGHT * limit.numerator) ** power, limit.denominator**power
    allowed = [min(_MOST, top // (bottom * w**power)) for w in range(1, WEIGHT + 1)]
    return np.array([_MOST, *allowed, -1], np.int64)


def shape_bins(rows: Whole, squares: Whole, norm: Norm) -> Whole:
    """How many units fall in each bin, by their Σ n(g) and Σ n(g)²."""
    bins = np.bincount(shape_places(rows, squares, norm), minlength=SIZES * SPREADS)
    return bins.reshape(SIZES, SPREADS)


def shape_places(rows: Whole, squares: Whole, norm: Norm) -> Whole:
    """The bin of each unit, bins counted row by row."""
    size = octaves(squares) if norm == "l2" else octaves(rows * rows)
    spread = octaves(-(-rows * rows // squares)) if norm == "l2" else np.zeros_like(size)
    return np.minimum(size, SIZES - 1) * SPREADS + np.minimum(spread, SPREADS - 1)


def octaves(numbers: Whole) -> Whole:
    """⌈log₂ x⌉ of whole numbers of at least 1: the bits of x − 1."""
    below = numbers - 1
    # Halves of 31 bits are floats exactly.
    high, low = (
        np.frexp((below >> 31).astype(np.float64))[1],
        np.frexp((below & (2**31 - 1)).astype(np.float64))[1],
    )
    return np.where(high > 0, 31 + high, low).astype(np.int64)
