"""Uniform choices from a keyed stream, exactly: integers below a limit, and subsets."""

from __future__ import annotations

import numpy as np

from dalenius.learn.sampling.coins import Ints
from dalenius.noise.bits import Bits

MOST = (1 << 63) - 1


def below(limits: Ints, bits: Bits) -> Ints:
    """For each limit a uniform integer k with 0 ≤ k < limit.

    Of 63 bits, those at or past the last multiple of the limit are drawn again: the remainder has no bias.
    """
    values = np.zeros(limits.size, np.int64)
    todo = np.arange(limits.size)
    while todo.size:
        drawn = (bits.words(todo.size, np.uint64) >> np.uint64(1)).astype(np.int64)
        limit = limits[todo]
        fits = drawn < MOST - MOST % limit
        values[todo[fits]] = drawn[fits] % limit[fits]
        todo = todo[~fits]
    return values


def subset(count: int, size: int, bits: Bits) -> Ints:
    """`size` of the numbers below `count`, in order, every such set equally likely.

    Numbers are drawn until there are so many different ones; where that is more than half of them all,
    those to leave out are drawn.
    """
    if 2 * size > count:
        stays = np.ones(count, bool)
        stays[subset(count, count - size, bits)] = False
        return np.flatnonzero(stays)
    found = np.empty(0, np.int64)
    while found.size < size:
        fresh = below(np.full(size - found.size, count, np.int64), bits)
        found = np.union1d(found, fresh)
    return found
