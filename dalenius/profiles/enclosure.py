"""Enclosures: a pair of floats, or of arrays, between which the truth lies.

Analysis. An exact value x computed by m correctly rounded operations on positive numbers, with
elementary functions counted as 2·ULPS of them, differs from the computed x̂ by a factor within
(1 ± U)^±m (Higham 2002, Lemma 3.1). For mU ≤ 1/4 that lies in x̂·(1 ± 2mU); underflow adds at most
TINY. `spread` widens by exactly that, its own roundings being covered by four units more. A gap
g ≤ 0 that carries a relative error moves 1 − e^g by no larger a relative error, as |g|e^g ≤ 1 − e^g.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dalenius.arithmetic import arb
from dalenius.profiles.balls import ball, lower, upper
from dalenius.profiles.pair import Floats
from dalenius.profiles.rounding import LEAST, TINY, ULPS, U, ceiling, floor

Interval = tuple[float, float]
"""Two floats with the truth between them."""
ELEMENTARY = 2 * ULPS
"""Error of an elementary function, in units of U."""


def interval(value: arb) -> Interval:
    """The ball, rounded outward."""
    return (lower(value), upper(value))


def mass(value: arb) -> Interval:
    """The ball of something non-negative, rounded outward."""
    return (max(lower(value), 0.0), upper(value))


def around(number: Fraction) -> Interval:
    """The rational, rounded outward."""
    return (floor(number), ceiling(number))


def between(ends: Interval) -> arb:
    """The ball that contains the interval."""
    return ball(ends[0]).union(ball(ends[1]))


def spread(value: Floats, units: float | Floats) -> tuple[Floats, Floats]:
    """Enclose the exact value of a non-negative quantity computed with `units` roundings."""
    slack = value * (2 * U * (units + 4)) + TINY
    return np.maximum(value - slack, 0.0), value + slack


def product(factor: Interval, mass: Interval, units: float) -> Interval:
    """Enclose a product of numbers ≥ 0 that is computed with `units` roundings, and may underflow."""
    lo, hi = factor[0] * mass[0] * (1 - 2 * U * units), factor[1] * mass[1] * (1 + 2 * U * units)
    return max(lo - 2 * LEAST, 0.0), hi + 2 * LEAST if factor[1] > 0 and mass[1] > 0 else 0.0


def products(factor: Interval, lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
    """Enclose products with values of an enclosure, before rounding that is relative: they may underflow."""
    most = np.where((hi > 0) & (factor[1] > 0), factor[1] * hi + LEAST, 0.0)
    return np.maximum(factor[0] * lo - LEAST, 0.0), most


def below(gap: Floats, units: float | Floats = 1) -> tuple[Floats, Floats]:
    """Enclose (1 − e^gap)₊, the gap itself having come from `units` roundings, which keep its sign."""
    lo, hi = spread(-np.expm1(np.minimum(gap, 0.0)), ELEMENTARY + units)
    return lo, np.where(gap >= 0, 0.0, hi)


def clip(epsilon: Floats, lo: Floats, hi: Floats, *, top: float = math.inf) -> tuple[Floats, Floats]:
    """Every hockey-stick divergence lies between max(0, 1 − e^ε) and 1, and is 0 from the top loss on."""
    least = below(epsilon)
    lo, hi = np.maximum(lo, least[0]), np.maximum(hi, least[1])
    lo, hi = np.where(epsilon >= top, least[0], lo), np.where(epsilon >= top, least[1], hi)
    return np.minimum(lo, 1.0), np.minimum(hi, 1.0)
