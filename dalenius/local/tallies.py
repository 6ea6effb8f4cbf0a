"""Whether so many reports can have a tally: what a state must meet before anything is estimated from it.

A state may come from anywhere. One that no reports add up to would give shares beyond 1, intervals that are
no numbers, or sums that overflow; so each randomizer says what its tallies have in common, by these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
HALF = 24
"""Bits of a number that are added up apart from the rest, so that no sum overflows."""


def total(tally: Ints) -> int:
    """The sum, exactly, of up to 2^27 numbers below 2^58."""
    return (int((tally >> HALF).sum()) << HALF) + int((tally & ((1 << HALF) - 1)).sum())


def between(tally: Ints, least: int, most: int) -> bool:
    """Whether all numbers are."""
    return not tally.size or bool(tally.min() >= least and tally.max() <= most)


def parts_of(tally: Ints, count: int) -> bool:
    """Whether each report is counted once, at some place."""
    return between(tally, 0, count) and total(tally) == count


def signed_parts_of(tally: Ints, count: int) -> bool:
    """Whether each report adds 1 or −1, at some place."""
    if not between(tally, -count, count):
        return False
    size = total(np.abs(tally))
    return size <= count and (count - size) % 2 == 0
