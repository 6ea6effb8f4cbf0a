"""What a threshold on noisy counts costs when a unit brings keys that nobody else holds.

A unit holds m keys, j of them held by nobody else. On the other m − j it raises counts by 1: post-processing
of the noise on m − j numbers, with the profile H. Each of the j is shown with probability
d = P(noise ≥ threshold − 1), where without the unit it cannot be; one of them is with s = 1 − (1 − d)^j. All
noise is independent, so writing out Σ (P − e^ε Q)₊ both ways, removing and adding the unit cost
    s + (1 − s)·H(ε − log(1 − s))   and   H(ε + log(1 − s)).
δ(ε) is the greater, for the worst j = 0 … m. H is that of m − j numbers under discrete Laplace noise, or of
the Gaussian at √(m−j)/scale. Under Laplace noise at ε = m/scale the worst is s at j = m.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Literal

from dalenius.arithmetic import arb, workprec
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.loss import Loss
from dalenius.losses.raw import DiscretePair
from dalenius.privacy.sensitivity import sqrt_up
from dalenius.profiles.balls import BITS, ball, lower

Noise = Literal["laplace", "gaussian"]
"""The law of the noise, in whole numbers."""
ROUND = 2**160
"""Probabilities are multiples of one part in so many."""


def held(scale: Fraction, noise: Noise, count: int) -> Loss:
    """The noise on so many keys that others hold too."""
    if noise == "laplace":
        return DiscreteLaplace(scale) * count
    return Gaussian(scale / sqrt_up(Fraction(count)))


def brought(scale: Fraction, threshold: int, noise: Noise, new: int) -> Loss:
    """So many keys that nobody else holds: shown, or as without the unit."""
    shown = chance(scale, threshold, noise, new)
    return DiscretePair([shown, 1 - shown], [0, 1])


def delta(
    scale: Fraction, threshold: int, noise: Noise, others: int, new: int, epsilon: Fraction
) -> Fraction:
    """δ at ε where a unit holds so many keys of `others` and brings `new` ones, rounded up.

    H falls, so its argument is rounded down; below zero it is H(−x) = 1 − e^{−x}(1 − H(x)), as the noise
    is its own reverse.
    """
    shown = chance(scale, threshold, noise, new)
    if others == 0 or shown == 1:
        # Then H(x) = max(0, 1 − e^x), which leaves less than s for adding the unit.
        return shown
    loss = held(scale, noise, others)
    with workprec(BITS):
        apart = (1 - ball(shown)).log()
        more, less = epsilon + Fraction(lower(-apart)), epsilon + Fraction(lower(apart))
        hidden = Fraction(lower(ball(less).exp())) if less < 0 else Fraction(1)
    removed = shown + (1 - shown) * Fraction(loss.delta(more).upper)
    added = 1 - hidden * (1 - Fraction(loss.delta(abs(less)).upper))
    return max(removed, added)


@lru_cache(maxsize=1024)
def chance(scale: Fraction, threshold: int, noise: Noise, new: int) -> Fraction:
    """That one of `new` keys is shown, 1 − (1 − P(1 + noise ≥ threshold))^new, rounded up."""
    with workprec(512):
        if noise == "laplace":
            a = (-1 / ball(scale)).exp()
            each = a ** (threshold - 1) / (1 + a)
        else:
            each = (ball((threshold - Fraction(3, 2)) / scale) / arb(2).sqrt()).erfc() / 2
        if not each < 1:
            return Fraction(1)
        above = (-(new * (-each).log1p()).expm1() * ROUND).upper().ceil().unique_fmpz()
    if above is None:
        return Fraction(1)
    return min(Fraction(int(above), ROUND), Fraction(1))
