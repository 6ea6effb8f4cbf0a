"""Sequences and norms with their rounding errors counted (see `profiles.enclosure`).

Long products start afresh every `BLOCK` terms from a ball-arithmetic value, so that a term of any index is
within 2·BLOCK + 4 roundings of the truth. Sums of squares are rounded once (`math.fsum`).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dalenius.arithmetic import arb, workprec
from dalenius.profiles.balls import BITS, ball, upper
from dalenius.profiles.enclosure import Interval, spread
from dalenius.profiles.pair import Floats
from dalenius.profiles.rounding import down, up

BLOCK = 1024
"""Terms between two values that are computed afresh."""
Enclosed = tuple[Floats, Floats]
"""Two arrays with the truth between them, term by term."""


def central_binomials(length: int) -> Enclosed:
    """C(2k, k)/4^k for k < length, from the ratios (2k−1)/(2k)."""
    rows = -(-length // BLOCK)
    k = np.arange(rows * BLOCK, dtype=np.float64).reshape(rows, BLOCK)
    ratios = np.ones_like(k)
    ratios[:, 1:] = (2 * k[:, 1:] - 1) / (2 * k[:, 1:])
    with workprec(BITS):
        starts = [upper(_central_binomial(row * BLOCK)) for row in range(rows)]
    terms = np.array(starts)[:, None] * np.cumprod(ratios, axis=1)
    return spread(terms.ravel()[:length], 2 * BLOCK + 4)


def _central_binomial(k: int) -> arb:
    """Γ(k + ½)/(√π·Γ(k + 1))."""
    return (arb(k) + arb(1) / 2).gamma() * (arb(k) + 1).rgamma() / arb.pi().sqrt()


def powers(base: Fraction, length: int) -> Enclosed:
    """base^k for k < length, 0 ≤ base < 1."""
    rows = -(-length // BLOCK)
    within = np.cumprod(np.concatenate([[1.0], np.full(BLOCK - 1, float(base))]))
    with workprec(BITS):
        starts = [upper(ball(base) ** (row * BLOCK)) for row in range(rows)]
    terms = np.array(starts)[:, None] * within
    return spread(terms.ravel()[:length], 2 * BLOCK + 4)


def repeated(column: Floats, times: int, gap: int, length: int) -> Floats:
    """`times` copies of a non-negative column, shifted by `gap` each, added up and cut at `length`.

    Windows of 1, 2, 4, … copies are doubled, so that at most 2·log₂(times) + 1 sums make a term.
    """
    gap = min(gap, length)
    window = np.zeros((-(-length // gap), gap))
    window.ravel()[: min(len(column), length)] = column[:length]
    total, done, size = np.zeros_like(window), 0, 1
    while times:
        if times % 2:
            total, done = total + _lowered(window, done), done + size
        window, size, times = window + _lowered(window, size), 2 * size, times // 2
    return total.ravel()[:length]


def _lowered(rows: Floats, by: int) -> Floats:
    return np.concatenate([np.zeros_like(rows[:by]), rows[: max(len(rows) - by, 0)]])


def norm(low: Floats, high: Floats, units: float = 0) -> Interval:
    """The L2 norm of something between two non-negative arrays, each off by `units` more roundings."""
    return root((math.fsum(low * low), math.fsum(high * high)), 2 * units + 2)


def root(square: Interval, units: float = 0) -> Interval:
    """The square root of a non-negative number, itself off by `units` roundings."""
    low, high = spread(np.array(square), units)
    return (max(down(math.sqrt(low[0])), 0.0), up(math.sqrt(high[1])))
