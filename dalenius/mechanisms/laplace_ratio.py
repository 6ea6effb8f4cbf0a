"""The least Laplace noise for (ε, δ), as a share of the L1 sensitivity.

It is between 10⁻⁶, which hides nothing, and 1/ε, which needs no δ: no scale outside is ever tried, so that a
search refuses nothing that its answer would not be refused for.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dalenius.errors import InvalidArgument
from dalenius.losses.calibration import calibrate
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import MOST_EPSILON, MOST_STEPS

MOST_NOISE = MOST_STEPS * 99 // 100
"""The largest scale, in steps, that is calibrated."""
LEAST = Fraction(1, MOST_EPSILON)
ROUNDING = 1 + Fraction(1, 10**9)
"""How far beyond 1/ε is tried, as a loss is evaluated with rounding."""


def least_ratio(family: Callable[[Fraction], Loss], *, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The least ratio with which `family` of it, scale over sensitivity, is (epsilon, delta)-private."""
    if delta == 0:
        return 1 / epsilon
    if family(LEAST).epsilon(delta).upper <= epsilon:
        return LEAST
    most = ROUNDING / epsilon
    found = calibrate(
        lambda ratio: family(min(max(ratio, LEAST), most)), epsilon=epsilon, delta=delta, name="scale"
    )
    return min(max(found, LEAST), most)


def check_epsilon(epsilon: Fraction, steps: Fraction | int) -> None:
    """Laplace noise of so many steps of sensitivity at this ε is one that can be counted."""
    if steps > MOST_NOISE:
        raise InvalidArgument(
            "The sensitivity has more than 1e12 steps of the grid.",
            remedy="Leave grid out, or choose a coarser one.",
        )
    if steps > MOST_NOISE * epsilon:
        least = numbers.above(Fraction(steps, MOST_NOISE))
        raise InvalidArgument(
            f"epsilon must be at least {least} here, so that noise has less than 1e12 steps of the grid.",
            remedy=f"Choose epsilon={least} or more.",
        )
