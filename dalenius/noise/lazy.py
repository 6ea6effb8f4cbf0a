"""A uniform real number revealed only as far as a comparison needs, against a number known by balls.

Let V be uniform on [0, 1) and x a real number. With v the first n bits of V as an integer, V < x whenever
v + 1 ≤ x·2ⁿ, and V ≥ x whenever v ≥ x·2ⁿ. Otherwise more bits of V are drawn and x is evaluated more
precisely. A comparison of balls holds only where it holds for all their points, so the answer is that of
exact arithmetic. n bits leave it open with a probability of at most 2^{1−n} plus that of the ball's width.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dalenius.arithmetic import arb, fmpq, workprec
from dalenius.noise.bits import Bits

STEP = 64
"""Bits that are added to the uniform number at a time."""
GUARD = 96
"""Bits of working precision beyond those of the uniform number."""


def below(number: Callable[[], arb], source: Bits, start: int = 0, bits: int = 0) -> bool:
    """Whether V < `number`, where the first `bits` bits of V are already drawn and read `start`.

    `number` is evaluated anew at every working precision.
    """
    while True:
        with workprec(bits + GUARD):
            scaled = number() * arb(2) ** bits
            if scaled >= start + 1:
                return True
            if scaled <= start:
                return False
        start = (start << STEP) | source.integer(STEP)
        bits += STEP


def ball(number: Fraction) -> arb:
    """A ball that contains `number`, as narrow as the working precision allows."""
    return arb(fmpq(number.numerator, number.denominator))
