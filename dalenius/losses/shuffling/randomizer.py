"""A local randomizer whose reports have a part in common, whatever the value reported on.

Let R(x) be the law of the report on x, R(x) ≤ e^ε·R(x′) for any two values, and γ the mass of the blanket
ω = inf_x R(x) (Balle, Bell, Gascón and Nissim 2019): with probability γ a report is drawn in the same way
whatever x is.

    randomized response of k categories   γ = k/(e^ε + k − 1), which is its `randomize`
    local hashing to g buckets            γ = g/(e^ε + g − 1), that of its response on the buckets
    Laplace noise on a value in [0, 1]    γ = e^{−ε/2}
    any                                   γ ≥ e^{−ε}; below 2/(e^ε + 1) it says nothing

One report by itself. For two values, dR(x)/dω and dR(x′)/dω lie from 1 to e^ε, so they are mixtures of these
ends, and the pair (e^ε·p, p, 1 − (e^ε+1)p) against (p, e^ε·p, the same), p = min((1−γ)/(e^ε−1), 1/(e^ε+1)),
dominates it. It is attained, by reports of three outcomes on two values, and it is its own reverse.
docs/proofs/shuffling.md has the proofs. The guarantee is for `replace`: who reports is public. A group sends
as many reports, each randomized by itself.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import lru_cache

from dalenius.arithmetic import workprec
from dalenius.errors import InvalidArgument
from dalenius.losses.fields import Described, Parameter, amount
from dalenius.losses.loss import Loss
from dalenius.losses.pure import four_points
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation
from dalenius.profiles.atoms import Atom, Atoms, join
from dalenius.profiles.balls import BITS, ball, lower
from dalenius.profiles.enclosure import mass
from dalenius.profiles.pair import Worst

NARROWEST = Fraction(1, 10**15)
"""What two reports must be free to differ by."""
DIGITS = 15
"""Decimals of a blanket that is no rational; it is rounded down, which claims less."""


@dataclass(frozen=True, init=False, repr=False)
class LocalRandomizer(Described, kind="local_randomizer"):
    """ε-local privacy, kept as `limit`, with a part of mass `blanket` that is common to all reports."""

    limit: Parameter[Fraction] = Parameter(amount, argument="epsilon")
    _: KW_ONLY
    blanket: Parameter[Fraction] = Parameter(numbers.delta)
    relation: Relation = field(default="replace", init=False)

    def __init__(self, epsilon: Number, *, blanket: Number) -> None:
        self._keep(limit=epsilon, blanket=blanket, relation="replace")
        if self.blanket > 1 - NARROWEST:
            raise InvalidArgument(
                "blanket must be at most 1 - 1e-15.", remedy="Round it down, which claims less."
            )

    @staticmethod
    def laplace(scale: Number) -> LocalRandomizer:
        """Laplace noise of `scale` on a value in [0, 1]: ε = 1/scale, γ = e^{−ε/2}."""
        epsilon = 1 / numbers.positive(scale, "scale")
        with workprec(BITS):
            return LocalRandomizer(epsilon, blanket=_down(lower((-ball(epsilon) / 2).exp())))

    @staticmethod
    def hashing(epsilon: Number, *, buckets: int) -> LocalRandomizer:
        """A hash drawn at random, and randomized response on its `buckets`: γ = g/(e^ε + g − 1)."""
        limit, size = amount(epsilon, "epsilon"), numbers.count(buckets, "buckets", least=2)
        with workprec(BITS):
            return LocalRandomizer(limit, blanket=_down(lower(size / (ball(limit).exp() + size - 1))))

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        return (((three_points(self.limit, self.blanket), 1),),)

    def enlarged(self, size: int) -> Loss:
        """As many reports, each randomized by itself."""
        return self * size


def _down(value: float) -> Fraction:
    return Fraction(math.floor(Fraction(value) * 10**DIGITS), 10**DIGITS)


@lru_cache(maxsize=1024)
def three_points(epsilon: Fraction, blanket: Fraction) -> Atoms:
    """The worst pair of one report; two points where the blanket says nothing."""
    with workprec(BITS):
        r = ball(epsilon).exp()
        if not ball(blanket) * (r + 1) > 2:
            return four_points(epsilon, Fraction(0))
        p = (1 - ball(blanket)) / (r - 1)
        high, low, rest = mass(r * p), mass(p), mass(1 - (r + 1) * p)
    atoms = (Atom.of_loss(-epsilon, low, high), Atom.of_loss(Fraction(0), rest, rest))
    return Atoms(join((*atoms, Atom.of_loss(epsilon, high, low))))
