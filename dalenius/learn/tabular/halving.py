"""Where rows are dense: boxes halved again and again where noisy counts say that it is worth it.

Every level halves the boxes that go on along one column, in turn, and counts the rows of each half under
noise. A row is in one box of a level, so a level moves by 1 in every norm; which boxes go on is post-
processing of noisy counts (compare Zhang, Xiao and Xie 2016). The result is a list of points with weights
that stands for the rows: the middles of the last boxes and their noisy counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.learn.tabular.columns import Codes
from dalenius.learn.tabular.promise import Promise
from dalenius.learn.tabular.sums import ONE, Floats, Whole, counts, noisy
from dalenius.mechanisms.additive import Additive

MOST_LEVELS = 24
WORTH = 3.0
"""A box goes on where its noisy count is so many times the noise."""


@dataclass(frozen=True)
class Points:
    """Points within ±1, and how many rows each stands for."""

    places: Floats
    weights: Floats


def counting(promise: Promise, share: Fraction, wide: int, boxes: int = 2) -> Additive:
    """The noise of one level of boxes in so many columns, with its part of that share of the promise."""
    bound = promise.bound(l1=1, l2=1, linf=1, size=boxes, nonnegative=True)
    return promise.noise(bound, share / _levels(wide))


def _levels(wide: int) -> int:
    return min(MOST_LEVELS, max(6, 3 * wide))


def dense_points(rows: Whole, promise: Promise, share: Fraction) -> Points:
    """Points that stand for the rows, with that share of the promise."""
    wide = rows.shape[1]
    levels = _levels(wide)
    least = WORTH * promise.spread(counting(promise, share, wide))
    lower, upper = np.full((1, wide), -1.0), np.full((1, wide), 1.0)
    box: Codes = np.zeros(len(rows), np.int64)
    done: list[tuple[Floats, Floats]] = []
    for level in range(levels):
        at = level % wide
        middle = (lower[:, at] + upper[:, at]) / 2
        # Middles are multiples of 2^−levels, and rows whole numbers: both sides are exact.
        side = rows[:, at] >= (middle * ONE)[np.maximum(box, 0)]
        half = np.where(box >= 0, 2 * box + side, -1)
        noise = counting(promise, share, wide, 2 * len(middle))
        found = noisy(counts(half, 2 * len(middle), most=1), noise)
        lower, upper = np.repeat(lower, 2, axis=0), np.repeat(upper, 2, axis=0)
        upper[0::2, at], lower[1::2, at] = middle, middle
        goes = (found > least) & (level < levels - 1)
        done.append(((lower + upper)[~goes] / 2, found[~goes]))
        place = np.where(goes, np.cumsum(goes) - 1, -1)
        box = np.where(half >= 0, place[np.maximum(half, 0)], -1)
        lower, upper = lower[goes], upper[goes]
        if not len(lower):
            break
    places, weights = (np.concatenate(part) for part in zip(*done, strict=True))
    kept = weights > least / WORTH
    return Points(places[kept], weights[kept]) if kept.any() else Points(np.zeros((1, wide)), np.ones(1))
