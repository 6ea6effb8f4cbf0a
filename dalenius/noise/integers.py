"""Uniform integers, without the bias of a remainder."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dalenius.noise.bits import Bits
from dalenius.noise.reading import Number, whole
from dalenius.noise.source import drawn_from


def uniform(below: Number, size: int, *, bits: Bits | None = None) -> NDArray[np.int64] | NDArray[np.object_]:
    """Independent uniform integers k with 0 ≤ k < below, of any size: Python's own beyond 2⁶³.

    They come from the source, or from a stream that is given as `bits`.
    """
    limit = whole(below, "below", least=1, most=None)
    count = whole(size, "size")
    if limit <= 1 << 63:
        return drawn_from(bits, partial(int64_below, limit, count))
    values = np.empty(count, object)
    values[:] = drawn_from(bits, lambda source: [_huge(limit, source) for _ in range(count)])
    return values


def int64_below(limit: int, size: int, source: Bits) -> NDArray[np.int64]:
    """Of as many bits as limit − 1 has, what is not below the limit is drawn again; limit ≥ 1."""
    assert limit >= 1, "no integer is below the limit"
    bits = max((limit - 1).bit_length(), 1)
    values = np.empty(size, np.int64)
    todo = np.arange(size)
    while todo.size:
        drawn = (source.words(todo.size, np.uint64) >> np.uint64(64 - bits)).astype(np.int64)
        fits = drawn < limit if limit < 1 << 63 else np.ones(todo.size, bool)
        values[todo[fits]] = drawn[fits]
        todo = todo[~fits]
    return values


def _huge(limit: int, source: Bits) -> int:
    bits = (limit - 1).bit_length()
    while (drawn := source.integer(bits)) >= limit:
        pass
    return drawn
