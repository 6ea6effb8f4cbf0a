"""Moments at any order from those at a few, each found once.

K(t) = log E e^{tL} is convex, so between two orders it lies below its chord. The orders are powers of
2^{1/8}.
"""

from __future__ import annotations

import math
from functools import lru_cache

from dalenius.losses.loss import Loss
from dalenius.profiles.rounding import U

PARTS = 8
"""Orders from one power of two to the next."""


def chord(loss: Loss, order: float) -> float:
    """At least the moment of this order, in the worse direction of the pairs of the loss."""
    place = math.floor(PARTS * math.log2(order))
    before, after = (math.exp2((place + side) / PARTS) for side in (-1, 1))
    ends = _moment(loss, before), _moment(loss, after)
    if math.isinf(ends[1]):
        return _moment(loss, order)
    share = (order - before) / (after - before)
    return (ends[0] * (1 - share) + ends[1] * share) * (1 + 32 * U)


@lru_cache(maxsize=4096)
def _moment(loss: Loss, order: float) -> float:
    """From the pairs, as every loss has it."""
    return Loss.moment(loss, order)
