"""Tails of the binomial law, from above.

P[Bin(n, q) ≥ k] is the δ of n two-point losses, 0 or `STEP`, at the ε just below k of them: with so large a
step each term counts in full, as e^−1024 is below every float. So the certified sum of `profiles.binomial`
serves.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from dalenius.profiles.binomial import Binomial
from dalenius.profiles.lattice import point
from dalenius.profiles.rounding import up

STEP = 1024
"""A power of two, so that multiples up to 10^12 of it are floats."""


@lru_cache(maxsize=1024)
def at_least(count: int, rate: Fraction, threshold: int) -> Fraction:
    """No less than P[Bin(count, rate) ≥ threshold], by a hair."""
    if threshold <= 0 or (rate == 1 and threshold <= count):
        return Fraction(1)
    if threshold > count:
        return Fraction(0)
    law = Binomial(point(0), point(STEP), (rate, rate), (0.0, 0.0), count)
    return min(Fraction(up(law.delta(float((threshold - 1) * STEP))[1])), Fraction(1))
