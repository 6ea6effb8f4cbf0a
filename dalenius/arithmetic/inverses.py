"""Inverses of the error function and its complement, of one point: found by Newton's method, then proven.

What is found is y, and a margin d such that the function at y − d and y + d encloses the point: as it is
monotone, the inverse is between these. So nothing is taken on trust of how y was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dalenius.arithmetic.reals import Real, plain, read, undefined
from dalenius.arithmetic.working import WORKING, workprec

GUARD = 24
"""Bits beyond the working precision."""
FIRST = 64
"""Bits at which a start is looked for."""
TRIES = 1024
"""Margins that are tried, each four times the one before; past them nothing is known."""


def erfinv(z: Real) -> Any:
    """The x with erf x = z, |z| < 1; beyond ½ by the complement."""
    if z.low == 0:
        return z
    if z.low < 0:
        return -erfinv(-z)
    if not z < 1:
        return read(math.inf) if z == 1 else undefined()
    if z > 0.5:
        return erfcinv(_exactly(1, z))
    with workprec(FIRST):
        y = (z * Real.pi().sqrt() / 2).mid()
        # erf is concave: from the left, Newton's steps go right and stay left of the root.
        y = _settled(y, lambda at: (z - at.erf()) / _slope(at))
    return _proven(z, y, Real.erf, 1)


def erfcinv(v: Real) -> Any:
    """The x with erfc x = v, 0 < v < 2; above ½ by erf."""
    if not 0 < v < 2:
        return read(math.inf) if v == 0 else read(-math.inf) if v == 2 else undefined()
    if v > 1:
        return -erfcinv(_exactly(2, v))
    if v > 0.5:
        return erfinv(_exactly(1, v))
    with workprec(FIRST):
        goal = v.log()
        # log erfc is concave and falls: from the right, Newton's steps go left and stay right of the root.
        y = _settled((-goal).sqrt().mid(), lambda at: (at.erfc().log() - goal) * at.erfc() / _slope(at))
    return _proven(v, y, Real.erfc, -1)


def _settled(y: Real, step: Callable[[Real], Real]) -> Any:
    """Steps until they are small; if they never are, the margin of the proof is wide."""
    for _ in range(64):
        by = step(y)
        y = (y + by).mid()
        if abs(by) < y / 2**32:
            break
    return y


def _exactly(whole: int, number: Real) -> Any:
    """whole − number of a point."""
    with workprec(max(-number.unit, 0) + abs(number.low).bit_length() + 8):
        return whole - number


def _slope(y: Real) -> Any:
    """2/√π·e^(−y²)."""
    return 2 * (-y * y).exp() / Real.pi().sqrt()


def _proven(value: Real, start: Real, function: Callable[[Real], Real], sign: int) -> Any:
    """From a start of 30 bits: each step doubles them. Then a margin that the function confirms."""
    bits, y, known = WORKING.bits, start, 30
    while known < bits + GUARD:
        known = 2 * known - 4
        with workprec(min(known, bits) + 2 * GUARD):
            y = (y + sign * (value - function(y)) / _slope(y)).mid()
    with workprec(bits + 2 * GUARD):
        y = (y + plain(0, 0, 0)).mid() if y.is_finite() else start
        margin = (abs(y) / 2 ** (bits + 4)).upper() if y else plain(1, 1, -bits)
        found = undefined()
        for _ in range(TRIES):
            near, far = (y - margin).lower(), (y + margin).upper()
            least, most = (function(near), function(far))[::sign]
            if least <= value <= most:
                found = near.union(far)
                break
            margin = 4 * margin
    return found + plain(0, 0, 0)
