"""Reading ε off an enclosure of δ(ε).

δ is non-increasing, so one evaluation settles a side for good: an ε where the upper end is at most δ
is an upper bound on inf{ε ≥ 0 : δ(ε) ≤ δ}, an ε where the lower end is above δ a lower bound. The
search (regula falsi on log δ, halving when it stalls) only chooses where to look, so its arithmetic
needs no analysis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

Enclose = Callable[[float], tuple[float, float]]

ROUNDS = 80
NARROW = 2.0**-49
"""Relative width at which a search stops, unless told otherwise: finer is round-off."""


def invert(
    enclose: Enclose, delta: float, *, guess: float = 1.0, scale: float = 1.0, narrow: float = NARROW
) -> tuple[float, float]:
    """Enclose inf{ε ≥ 0 : δ(ε) ≤ delta}, delta > 0, looking first about `scale` around `guess`."""
    known = cache(enclose)
    if known(0.0)[1] <= delta:
        return (0.0, 0.0)
    high = _search(lambda epsilon: known(epsilon)[1], delta, guess, scale, narrow)[1]
    near = high if math.isfinite(high) else guess
    above = math.nextafter(delta, 1.0)
    if known(near)[0] == 0.0 and known(0.0)[0] <= above:
        # Neither where the answer is nor at 0 is anything known from below: a pair that only dominates.
        return (0.0, high)
    low = _search(lambda epsilon: known(epsilon)[0], above, near, scale * 2.0**-20, narrow)[0]
    return (min(low, high), high)


def _search(
    side: Callable[[float], float], delta: float, guess: float, scale: float, narrow: float
) -> tuple[float, float]:
    """Neighbouring ε with side(first) > delta ≥ side(second): zero and infinity stand for none found."""

    def excess(epsilon: float) -> float:
        ratio = side(epsilon) / delta
        return math.log(ratio) if ratio > 0 else -800.0

    a, b = _bracket(excess, guess, scale)
    return _narrow(excess, a, b, narrow) if math.isfinite(b) and excess(a) > 0 else (a, b)


def _bracket(excess: Callable[[float], float], guess: float, scale: float) -> tuple[float, float]:
    """From the guess outward in growing strides, down to zero at most."""
    outward = 1 if excess(guess) > 0 else -1
    here = guess
    for _ in range(ROUNDS):
        there = max(here + outward * scale, 0.0)
        if there == 0.0 or (excess(there) > 0) != (outward > 0):
            return (here, there) if outward > 0 else (there, here)
        here, scale = there, 4 * scale
    return (here, math.inf) if outward > 0 else (0.0, here)


def _narrow(excess: Callable[[float], float], a: float, b: float, narrow: float) -> tuple[float, float]:
    """The Illinois method: a side kept twice counts half."""
    fa, fb, kept = excess(a), excess(b), 0
    for round_ in range(ROUNDS):
        if b - a <= narrow * b:
            break
        middle = _between(a, b, fa, fb, round_, narrow * b / 4)
        value = excess(middle)
        if value > 0:
            a, fa, fb, kept = middle, value, fb / 2 if kept > 0 else fb, 1
        else:
            b, fb, fa, kept = middle, value, fa / 2 if kept < 0 else fa, -1
    return a, b


def _between(a: float, b: float, fa: float, fb: float, round_: int, margin: float) -> float:
    """The secant's zero, a margin inside; the middle every eighth time, or where the secant says nothing."""
    if round_ % 8 == 7 or not fa > fb:
        return a + (b - a) / 2
    return min(max(a + (b - a) * (fa / (fa - fb)), a + margin), b - margin)
