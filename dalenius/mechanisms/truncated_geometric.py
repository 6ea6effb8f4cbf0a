"""The greatest probability of showing a key that n units hold, π(n): see `partition_selection`.

Each value is a multiple of one part in 2^bits, rounded down from the one before, with e^ε rounded down and
e^{−ε} up: so the inequalities of the definition hold exactly between any two.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dalenius.arithmetic import arb, workprec
from dalenius.errors import InvalidArgument
from dalenius.profiles.balls import ball

BITS = 96
"""Of π, beyond those of δ."""
LONGEST = 2**18
"""Entries in the table of π, at most."""


def half(epsilon: Fraction, delta: Fraction) -> float:
    """About where π is one half."""
    return math.log1p(math.expm1(epsilon) / (2 * float(delta))) / float(epsilon)


@lru_cache(maxsize=64)
def table(epsilon: Fraction, delta: Fraction) -> tuple[tuple[int, ...], int]:
    """π as multiples of 1/one, and that one."""
    if 2.2 * half(min(epsilon, Fraction(50)), delta) > LONGEST:
        raise InvalidArgument(
            "epsilon is too small for a key.", remedy="Allow a larger epsilon, or fewer keys a unit."
        )
    one = 2 ** (BITS + math.ceil(1 / delta).bit_length())
    with workprec(2 * one.bit_length() + 200):
        # Any lesser ε is sound too, and beyond 100 makes no difference.
        grown = ball(min(epsilon, Fraction(100))).exp()
        more, less = _whole(grown * one), _whole(one / grown) + 2
    leak = math.floor(delta * one)
    found = [0]
    while (last := found[-1]) < one:
        fall = -(-max(one - last - leak, 0) * less // one)
        found.append(min(last * more // one + leak, one - fall, one))
    return tuple(found), one


def _whole(number: arb) -> int:
    """A whole number not above it, and by less than 2 below."""
    found = number.lower().floor().unique_fmpz()
    assert found is not None
    return int(found)
