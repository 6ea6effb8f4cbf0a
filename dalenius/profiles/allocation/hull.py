"""Upper bounds on a convex function, made convex themselves.

H is convex in x = e^ε, so below every upper bound u it lies below the greatest convex function below u: the
lower hull of the points. Bounds from several convolutions meet in small jumps, which a lattice law, made of
second differences, would magnify; the hull bridges them.
"""

from __future__ import annotations

import numpy as np

from dalenius.profiles.pair import Floats
from dalenius.profiles.rounding import U

MOST_ROUNDS = 2000
"""How often points above a chord of their neighbours are left out."""


def hull(epsilon: Floats, upper: Floats) -> Floats:
    """The lower hull at the points, rounded up by one factor for all; `epsilon` must increase."""
    kept = np.flatnonzero(np.isfinite(upper))
    if len(kept) < 3 or epsilon[-1] > 700:
        return upper
    for _ in range(MOST_ROUNDS):
        steps = np.diff(epsilon[kept])
        drops = -np.diff(upper[kept]) / -np.expm1(-steps)
        bent = drops[1:] * np.exp(-steps[1:]) > drops[:-1]
        if not bent.any():
            break
        kept = np.delete(kept, np.flatnonzero(bent) + 1)
    place = np.arange(len(epsilon))
    after = np.clip(np.searchsorted(kept, place), 1, len(kept) - 1)
    left, right = kept[after - 1], kept[after]
    share = np.expm1(epsilon - epsilon[right]) / np.expm1(epsilon[left] - epsilon[right])
    chords = upper[right] + (upper[left] - upper[right]) * share
    inside = (place > left) & (place < right)
    return np.asarray(np.where(inside, np.minimum(upper, chords), upper) * (1 + 64 * U))
