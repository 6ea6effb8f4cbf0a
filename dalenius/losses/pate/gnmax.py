"""GNMax: the class with the most votes, after Gaussian noise of scale σ on each count.

A unit's records are all in the part of one teacher, so neighbours differ in one teacher, whose vote moves
from one class to another: two counts change by 1, an L2 distance of √2. That holds

    under add_remove, zero_out   where a unit's part follows from the unit alone, such as a hash or a coin of
                                 its own. Cutting a list into equal parts does not do: a unit that leaves
                                 shifts all that come after it.
    under replace                where the part is that of a place in a list of fixed length. Where it follows
                                 from the unit, two teachers change: state it for add_remove and use .under.

Theorem (Papernot et al. 2018). The winner is post-processing of the noisy counts, whose worst pair is N(μ,
1), N(0, 1) with μ = √2/σ: D_α = α/σ². With two classes, one answer is a threshold on N(μ, 1), at a
place that whole votes leave it: the profile of a single answer is touched at some ε, and approached at all as
σ grows. That of several answers is an upper bound, as the winner tells less than the counts. From below they
are bounded by two classes that are one vote apart, where the winner is randomized response with P(true) =
Φ(μ/2). A group of k moves k votes, an L2 distance of k√2 at most: kμ. So do two units where one replaces
another and each has its own teacher: 2μ.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache

from dalenius.arithmetic import workprec
from dalenius.losses.fields import Described, Parameter, ratio
from dalenius.losses.loss import Loss
from dalenius.losses.randomized_response import RandomizedResponse
from dalenius.privacy.unit import Relation
from dalenius.profiles.balls import BITS, ball, upper
from dalenius.profiles.gaussian_pairs import ShiftPair
from dalenius.profiles.pair import Worst

DIGITS = 10**24
"""μ is kept to so many parts of 1/σ."""


@dataclass(frozen=True, repr=False)
class GNMax(Described, kind="gnmax"):
    """The winner of votes with Gaussian noise of `scale`, counted in votes, on every class."""

    scale: Parameter[Fraction] = Parameter(ratio)
    _: KW_ONLY
    relation: Relation = "add_remove"

    @property
    def distance(self) -> Fraction:
        """μ = √2/σ, rounded up."""
        return Fraction(math.isqrt(2 * DIGITS**2) + 1, DIGITS) / self.scale

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        return (((ShiftPair(self.distance), 1),),)

    @property
    def tight(self) -> bool:
        """The winner tells less than the noisy counts."""
        return False

    def attained(self) -> Loss | None:
        """Two classes one vote apart."""
        lies = _less_likely(self.scale)
        return RandomizedResponse(2 * lies, relation=self.relation) if 2 * lies < 1 else None

    def concentration(self) -> tuple[Fraction, Fraction]:
        """D_α ≤ α/σ²; and D_α/α of randomized response tends to 0."""
        return (self.distance**2 / 2, Fraction(0))

    def enlarged(self, size: int) -> GNMax:
        """A group of k moves k votes at most."""
        return GNMax(self.scale / size, relation=self.relation)


@lru_cache(maxsize=1024)
def _less_likely(scale: Fraction) -> Fraction:
    """Φ(−μ/2) = ½ erfc(1/2σ), rounded up: one vote less against noise of variance 2σ²."""
    with workprec(BITS):
        return Fraction(min(upper((1 / (2 * ball(scale))).erfc() / 2), 0.5))
