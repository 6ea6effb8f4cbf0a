"""Closed forms with directed rounding, by ball arithmetic.

A ball (`arithmetic.arb`) is an interval that contains the exact value of the formula it was computed
by, whatever the rounding on the way (Johansson 2017). So an upper end, rounded up to a float, is a
proven upper bound: no further error analysis is needed. The working precision of the surrounding
`workprec` block only decides how narrow the interval is.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction

from dalenius.arithmetic import arb, fmpq
from dalenius.profiles import rounding

LEAST = math.ulp(0.0)
"""The least positive float."""
BITS = 128
"""The usual working precision: far beyond a float, so that the last rounding is the only one seen."""


def ball(number: Fraction | float) -> arb:
    """A ball that contains `number`; a float is taken as the binary number it is."""
    if isinstance(number, float):
        return arb(number)
    exact = Fraction(number)
    return arb(fmpq(exact.numerator, exact.denominator))


def upper(value: arb) -> float:
    """A float not below anything in the ball, the least one for a narrow ball."""
    end = value.upper()
    if not end.is_finite() or end > sys.float_info.max:
        return math.inf
    if end < -sys.float_info.max:
        return -sys.float_info.max
    if -LEAST < end < LEAST:
        # Below every float: its rational would have as many digits as its exponent says.
        return LEAST if end > 0 else 0.0
    return rounding.ceiling(_rational(end))


def lower(value: arb) -> float:
    """A float not above anything in the ball."""
    return -upper(-value)


def _rational(end: arb) -> Fraction:
    mantissa, exponent = end.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
