"""An ε in words and as a float: what is spent or needed is rounded up, what is left is rounded down."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction


def at_most(epsilon: float) -> str:
    """Four digits of the decimal it prints as, rounded up."""
    return _shown(epsilon, ROUND_CEILING)


def at_least(epsilon: float) -> str:
    """The same, rounded down."""
    return _shown(epsilon, ROUND_FLOOR)


def upward(epsilon: Fraction) -> float:
    """A float whose printed decimal is not below: 0.3 for three tenths."""
    nearest = float(epsilon)
    return nearest if Fraction(repr(nearest)) >= epsilon else math.nextafter(nearest, math.inf)


def _shown(epsilon: float, rounding: str) -> str:
    if not math.isfinite(epsilon):
        return "∞"
    return f"{Decimal(repr(epsilon)).normalize(Context(prec=4, rounding=rounding)):f}"
