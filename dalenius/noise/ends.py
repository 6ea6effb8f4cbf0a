"""Floats that enclose a weight known by a ball."""

from __future__ import annotations

import math
import sys

from dalenius.arithmetic import arb


def enclose(weight: arb) -> tuple[float, float]:
    """The floats around a non-negative number, proven by comparing them with its ball.

    A ball of 60 bits or more gives neighbours of the nearest float; zero gives (0, 0).
    """
    if weight == 0:
        return (0.0, 0.0)
    nearest = float(weight.mid())
    low = max(math.nextafter(nearest, -math.inf), 0.0)
    high = max(math.nextafter(nearest, math.inf), sys.float_info.min)
    while low > 0 and not weight >= low:
        low = low / 2 if low > sys.float_info.min else 0.0
    while high < math.inf and not weight <= high:
        high *= 2
    return (low, high)
