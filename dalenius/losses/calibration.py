"""Calibration: the smallest parameter of a family of losses that keeps a promise.

The family must get no more costly as its parameter grows. The answer is a rational whose loss was
evaluated and found within the promise on the safe side, so rounding never breaks it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dalenius.errors import InvalidArgument
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.profiles.rounding import floor

LEAST, MOST = 1e-6, 1e12
"""Where a parameter is looked for."""
NARROW = 3e-12
"""Relative distance of the answer from the least parameter."""


def calibrate(
    family: Callable[[Fraction], Loss], *, epsilon: Number, delta: Number, name: str = "parameter"
) -> Fraction:
    """The least parameter, to eleven digits, with which family(parameter) is (epsilon, delta)-private."""
    limit, failure = numbers.positive(epsilon, "epsilon"), numbers.delta(delta)

    def excess(log_parameter: float) -> float:
        loss = family(read(log_parameter))
        if failure == 0:
            return _ratio(loss.epsilon(0).upper, float(limit))
        return _ratio(loss.delta(limit).upper, floor(failure))

    low, high = _bracket(excess, name)
    return _kept(family, _narrow(excess, low, high), limit, failure)


def _kept(
    family: Callable[[Fraction], Loss], log_parameter: float, limit: Fraction, failure: Fraction
) -> Fraction:
    """The parameter, raised until the ε of its loss reads as within the limit too."""
    margin = NARROW
    while family(read(log_parameter)).epsilon(failure).upper > limit:
        log_parameter, margin = log_parameter + margin, 2 * margin
    return read(log_parameter)


def _ratio(cost: float, allowed: float) -> float:
    """log(cost/allowed), kept near zero; positive just where the cost is above."""
    size = math.log(max(cost, 1e-300)) - math.log(allowed) if cost < math.inf else 40.0
    return max(min(size, 40.0), 1e-18) if cost > allowed else min(max(size, -40.0), 0.0)


def read(log_parameter: float) -> Fraction:
    """The parameter as a short decimal, rounded up."""
    value = math.exp(log_parameter)
    digits = 12 - math.floor(math.log10(value))
    return Fraction(math.ceil(Fraction(value) * Fraction(10) ** digits), 1) / Fraction(10) ** digits


def _bracket(excess: Callable[[float], float], name: str) -> tuple[float, float]:
    """Logarithms of a parameter that is too small and of one that is not."""
    here, stride = 0.0, 0.7
    outward = 1 if excess(here) > 0 else -1
    while math.log(LEAST) < here < math.log(MOST):
        there = here + outward * stride
        if (excess(there) > 0) != (outward > 0):
            return (here, there) if outward > 0 else (there, here)
        here, stride = there, 1.7 * stride
    if outward < 0 and excess(math.log(MOST)) > 0:
        raise InvalidArgument(
            f"The cost of this family grows with its {name}.",
            remedy=f"Calibrate a {name} that makes the loss cheaper as it grows, such as a noise scale.",
        )
    if outward < 0:
        return math.log(LEAST) - 1, here
    raise InvalidArgument(
        f"No {name} up to {MOST:.0e} keeps this promise.".replace("e+", "e"),
        remedy="Allow a larger epsilon or delta, or fewer steps.",
    )


def _narrow(excess: Callable[[float], float], low: float, high: float) -> float:
    """Regula falsi with the Illinois rule, on logarithms."""
    f_low, f_high, kept = excess(low), excess(high), 0
    for round_ in range(60):
        if high - low < NARROW:
            break
        middle = high - f_high * (high - low) / (f_high - f_low) if round_ % 6 < 5 else (low + high) / 2
        middle = min(max(middle, low + NARROW / 3), high - NARROW / 3)
        value = excess(middle)
        if value > 0:
            low, f_low, f_high, kept = middle, value, f_high / 2 if kept > 0 else f_high, 1
        else:
            high, f_high, f_low, kept = middle, value, f_low / 2 if kept < 0 else f_low, -1
    return high
