"""Directed rounding: costs round up, lower bounds round down.

IEEE 754 arithmetic (+ − × ÷ √) is correctly rounded, so one step of `nextafter` encloses it.
Elementary functions (exp, log, expm1, log1p, sin, cos, erfc) are taken to be within `ULPS` units
in the last place: the C library and numpy document less than 2 for float64, and the test suite
checks the figure against ball arithmetic (docs/proofs/rounding.md).
"""

from __future__ import annotations

import math
from fractions import Fraction

U = 2.0**-53
"""Unit round-off of float64."""
ULPS = 4.0
"""Assumed error of an elementary function, in units of the last place (2U relative)."""
HUGE = 2**1023
"""Rationals beyond this are rounded to the largest float or to infinity."""
TINY = 2.0**-1022
"""Least normal number: what underflow may lose in one operation is below this."""
LEAST = 2.0**-1074
"""Least positive number: rounding to a number this small moves by half of it at most."""


def up(value: float, steps: int = 1) -> float:
    """The float `steps` above."""
    for _ in range(steps):
        value = math.nextafter(value, math.inf)
    return value


def down(value: float, steps: int = 1) -> float:
    """The float `steps` below."""
    for _ in range(steps):
        value = math.nextafter(value, -math.inf)
    return value


def exp_bound(exponent: float) -> float:
    """e^exponent as an upper bound: infinite rather than an overflow."""
    return math.exp(exponent) if exponent < 700 else math.inf


def ceiling(number: Fraction) -> float:
    """The least float not below `number`."""
    nearest = _nearest(number)
    return nearest if math.isinf(nearest) or Fraction(nearest) >= number else up(nearest)


def floor(number: Fraction) -> float:
    """The greatest float not above `number`."""
    nearest = _nearest(number)
    return (
        nearest
        if nearest == -math.inf or (nearest < math.inf and Fraction(nearest) <= number)
        else down(nearest)
    )


def _nearest(number: Fraction) -> float:
    """float(number), infinite where that would overflow."""
    return float(number) if abs(number) < HUGE else (math.inf if number > 0 else -math.inf)
