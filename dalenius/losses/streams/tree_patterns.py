"""How the steps of one unit may fall into the blocks of a binary tree: the largest sum of squared counts.

For a cyclic participation all patterns are counted. For a minimal separation b and at most k steps, no level
exceeds what results when its blocks are filled one after the other with m = min(k, ⌈2^h/b⌉) steps each. The
pattern 0, b, 2b, … attains that on every level when b is a power of two. Where it does not, the exact maximum
is found for moderate b and k: of a block only the number of its steps and the free steps at its two ends
matter, and two halves join when the free steps between add up to b − 1 (an idea of Kairouz et al. 2021,
Appendix D.2).
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from dalenius.losses.streams.participation import Participation
from dalenius.profiles.pair import Floats

MOST_WORK = 2 * 10**8
"""Sums that are tried for an exact answer, at most."""
Counts = NDArray[np.int64]


def largest_squares(length: int, pattern: Participation) -> tuple[int, int]:
    """Enclose max over patterns of Σ over complete blocks (steps in the block)²."""
    gap, times = min(pattern.separation, length), pattern.times(length)
    if pattern.fixed:
        exact = int(np.max(_cycles(length, gap)))
        return exact, exact
    least = sum(_row(length, h, gap, times) for h in range(length.bit_length()))
    most = sum(_level(length, h, gap, times) for h in range(length.bit_length()))
    if least < most and times**2 * gap**3 <= MOST_WORK:
        least = most = _exact(length, gap, times)
    return least, most


def _cycles(length: int, gap: int) -> Counts:
    """For each first step, over all levels; a block no longer than the gap holds one step at most."""
    steps = np.arange(length)
    first, total = steps % gap, np.zeros(gap, dtype=np.int64)
    for h in range(length.bit_length()):
        blocks = length >> h
        kept = first[: blocks << h]
        if 2**h <= gap:
            total += np.bincount(kept, minlength=gap)
        else:
            counts = np.bincount(kept * blocks + (steps[: len(kept)] >> h), minlength=gap * blocks)
            total += np.sum(counts.reshape(gap, blocks) ** 2, axis=1)
    return total


def _row(length: int, h: int, gap: int, times: int) -> int:
    """What the pattern 0, b, 2b, … gives on one level."""
    steps = gap * np.arange(times)
    counts = np.bincount(steps[steps < length >> h << h] >> h)
    return int(np.sum(counts.astype(np.int64) ** 2))


def _level(length: int, h: int, gap: int, times: int) -> int:
    """At most this on one level: full blocks first, as squares grow faster than their sum."""
    fit = min(times, -(-(1 << h) // gap))
    full, rest = divmod(min(times, fit * (length >> h)), fit)
    return full * fit**2 + rest**2


def _exact(length: int, gap: int, times: int) -> int:
    """Blocks of the length's binary digits, the largest first, joined from the left.

    table[m, s, e] is the most that m steps in a block give when its first s and its last e steps are left
    free, s and e below the gap; −∞ where they do not fit.
    """
    blocks = [np.full((2, gap, gap), -np.inf)]
    blocks[0][1, 0, 0] = 1.0
    # Without a step of its own, a block of one keeps its neighbours apart by no more than one.
    free = np.arange(gap)
    blocks[0][0][free[:, None] + free <= gap] = 0.0
    for h in range(1, length.bit_length()):
        half = blocks[-1]
        table = _joined(half, half, gap, min(times, -(-(2**h) // gap)))
        blocks.append(table + np.arange(len(table))[:, None, None] ** 2)
    parts = [blocks[h] for h in reversed(range(length.bit_length())) if length >> h & 1]
    whole: Floats = reduce(lambda left, right: _joined(left, right, gap, times), parts)
    return int(whole[:, 0, 0].max())


def _joined(left: Floats, right: Floats, gap: int, times: int) -> Floats:
    """Two blocks side by side; a sum of the two together is not counted yet."""
    table = np.full((min(times, len(left) + len(right) - 2) + 1, gap, gap), -np.inf)
    for i, one in enumerate(left[: len(table)]):
        two = right[: len(table) - i]
        part = table[i : i + len(two)]
        # Free steps at the right end of one and at the left end of the other: together gap − 1.
        for free in range(gap):
            np.maximum(part, one[None, :, gap - 1 - free, None] + two[:, free, None, :], out=part)
    return table
