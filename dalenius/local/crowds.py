"""How often things come among many people, without a draw for each of them: binomial and uniform counts.

A binomial count of many trials is the sum of those of its binary digits, so that a few tables do for all
numbers of trials. A chance of k/2^b needs fair coins alone, whatever k is: of so many numbers of b random
bits those below k are found bit by bit, as at each bit a binomial count of them goes either way.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius import noise

Ints = NDArray[np.int64]
HALF = Fraction(1, 2)


def binomials(trials: Ints, chance: Fraction) -> Ints:
    """The successes of each of several numbers of trials."""
    found = np.zeros(trials.shape, np.int64)
    for digit in range(int(trials.max(initial=0)).bit_length()):
        here = np.nonzero(trials >> digit & 1)
        found[here] += noise.binomial(1 << digit, chance, here[0].size)
    return found


def dyadic(trials: Ints, parts: Ints, bits: int) -> Ints:
    """The successes of each number of trials, of chance parts/2^bits, entry by entry."""
    found, left = np.where(parts >> bits, trials, 0), np.where(parts >> bits, 0, trials)
    for bit in range(bits - 1, -1, -1):
        if not left.any():
            break
        one, zeros = (parts >> bit & 1).astype(bool), binomials(left, HALF)
        found += np.where(one, zeros, 0)
        left = np.where(one, left - zeros, zeros)
    return found


def uniform_counts(totals: Ints, cells: int) -> Ints:
    """How often each of so many cells comes in so many uniform draws; a row for each total.

    Totals are halved down to single cells of the next power of two; draws beyond the last cell are made
    again.
    """
    found, left = np.zeros((totals.size, cells), np.int64), totals.astype(np.int64)
    while left.any():
        rows = np.flatnonzero(left)
        counts = left[rows, None]
        for _ in range((cells - 1).bit_length()):
            half = binomials(counts, HALF)
            counts = np.stack([half, counts - half], axis=2).reshape(rows.size, -1)
        found[rows] += counts[:, :cells]
        left[rows] = counts[:, cells:].sum(axis=1)
    return found
