"""Four digits of an ε in words: what is spent or needed rounded up, what is left rounded down."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal


def at_most(epsilon: float) -> str:
    """Rounded up."""
    return _shown(epsilon, ROUND_CEILING)


def at_least(epsilon: float) -> str:
    """Rounded down."""
    return _shown(epsilon, ROUND_FLOOR)


def _shown(epsilon: float, rounding: str) -> str:
    if not math.isfinite(epsilon):
        return "∞"
    return f"{Decimal(repr(epsilon)).normalize(Context(prec=4, rounding=rounding)):f}"
