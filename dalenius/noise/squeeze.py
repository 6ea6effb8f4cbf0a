"""Straight lines around a log-concave law within a bin: most doubtful layers are settled by them.

On one side of the mode let A, B be the heights C·W·f at the near ends of a bin and of the next one, P that
of the one before, N that of the one after next, and t = j/W for the j-th integer of the bin away from the
mode. Against the chord (1 − t)A + tB,
    −(A − B)²/4B ≤ height − chord ≤ min(A²/P − B, B²/N − A, A − B),
because log f lies above its chord and below the chords of the neighbours, carried on, and f ≤ A
(docs/proofs/noise.md). The area between the lines is about a share (W/spread)² of that of the law.
"""

from __future__ import annotations

import numpy as np

from dalenius.noise.law import Floats

SPARE = 2.0**-24
"""What pays for the rounding of lines, in layers: at heights up to 2^18 it stays below 2^−29."""


def lines(near: Floats, away: int, width: int) -> tuple[Floats, Floats, Floats]:
    """By bin: the lower and the upper line at its least integer, and their common slope.

    `near` are the heights at the near ends of all bins of a side and, at the end, of its tail.
    """
    a, b = near[:-1], near[1:]
    with np.errstate(all="ignore"):
        under = np.fmin((a - b) ** 2 / (4 * b), a)
        over = np.fmin(a - b, np.fmin(_from_before(a, b), _from_beyond(a, b)))
    slope = (b - a) / width
    start = a if away > 0 else a + slope * (width - 1)
    return start - under - SPARE, start + over + SPARE, away * slope


def _from_before(a: Floats, b: Floats) -> Floats:
    """A²/P − B; the first bin has none before it."""
    return np.concatenate([[np.inf], a[1:] ** 2 / a[:-1] - b[1:]])[: a.size]


def _from_beyond(a: Floats, b: Floats) -> Floats:
    """B²/N − A; what follows the tail's first integer is not known to the last bin."""
    return np.concatenate([b[:-1] ** 2 / b[1:] - a[:-1], [np.inf]])[: a.size]
