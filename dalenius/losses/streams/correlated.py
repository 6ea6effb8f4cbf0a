"""Gaussian noise on something whose sensitivity is known between two bounds.

A release of Cx + z with z ~ N(0, σ²I) is dominated by N(μ, 1) against N(0, 1), μ = Δ/σ, for any Δ not below
the sensitivity of C, and attains the same pair with any Δ not above it. Where only an upper bound on the
sensitivity of a stream is known, the loss keeps both and says that it is not tight.

`noise_multiplier` is σ over the bound on the norm of one contribution at one step; `sensitivity` and
`attainable` are the bounds for contributions of norm 1 under add_remove or zero_out. Under replace two units
of that sensitivity may differ by twice as much.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

from dalenius.errors import InvalidArgument
from dalenius.losses.bound import Bound
from dalenius.losses.fields import MOST_LOSS, Described, Parameter, ratio
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation
from dalenius.profiles.gaussian_pairs import ShiftPair
from dalenius.profiles.pair import Worst

DIGITS = 12
"""Digits kept of a noise multiplier or a sensitivity."""


@dataclass(frozen=True, repr=False)
class CorrelatedGaussian(Described, kind="correlated_gaussian"):
    """Gaussian noise of `noise_multiplier` on a stream of sensitivity from `attainable` to `sensitivity`."""

    noise_multiplier: Parameter[Fraction] = Parameter(ratio)
    _: KW_ONLY
    sensitivity: Parameter[Fraction] = Parameter(numbers.positive)
    attainable: Parameter[Fraction] = Parameter(numbers.non_negative)
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.attainable > self.sensitivity:
            raise InvalidArgument(
                "attainable must not be above sensitivity.", remedy="Pass the lower bound as attainable."
            )
        if not Fraction(1, MOST_LOSS**2) <= self.sensitivity / self.noise_multiplier <= MOST_LOSS:
            raise InvalidArgument(
                "sensitivity must be from 1e-12 to 1e6 times noise_multiplier.",
                remedy="Choose another noise_multiplier.",
            )

    @property
    def tight(self) -> bool:
        """Where the two bounds meet."""
        return self.attainable == self.sensitivity

    @property
    def distance(self) -> Fraction:
        """μ: how far apart neighbours may be, in standard deviations."""
        return (2 if self.relation == "replace" else 1) * self.sensitivity / self.noise_multiplier

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        return (((ShiftPair(self.distance), 1),),)

    def concentration(self) -> tuple[Fraction, Fraction]:
        """D_α ≤ αμ²/2, and some unit attains it with the lower bound."""
        rho = self.distance**2 / 2
        return (rho, rho * (self.attainable / self.sensitivity) ** 2)

    def attained(self) -> Loss | None:
        """The Gaussian that some unit attains."""
        least = Fraction(1, MOST_LOSS**2) * self.noise_multiplier
        if self.attainable < least:
            return None
        return Gaussian(self.noise_multiplier / self.attainable, relation=self.relation)

    def enlarged(self, size: int) -> CorrelatedGaussian:
        """Contributions of k units add up to k times the sensitivity at most, and k alike attain it."""
        return CorrelatedGaussian(
            self.noise_multiplier,
            sensitivity=self.sensitivity * size,
            attainable=self.attainable * size,
            relation=self.relation,
        )


def gaussian(noise_multiplier: Number, sensitivity: Bound, relation: Relation) -> Loss:
    """A plain Gaussian where the sensitivity is known, its multiplier rounded down where it is no fraction.

    What is described then is that Gaussian, of a hair less noise than the stream has.
    """
    noise, most = ratio(noise_multiplier, "noise_multiplier"), Fraction(sensitivity.upper)
    if sensitivity.lower == sensitivity.upper:
        return Gaussian(noise / most, relation=relation)
    if sensitivity.tight:
        return Gaussian(_rounded(noise / most, math.floor), relation=relation)
    return CorrelatedGaussian(
        noise,
        sensitivity=_rounded(most, math.ceil),
        attainable=_rounded(Fraction(sensitivity.lower), math.floor),
        relation=relation,
    )


def _rounded(number: Fraction, whole: Callable[[Fraction], int]) -> Fraction:
    """The number to DIGITS digits, rounded up or down."""
    if number == 0:
        return number
    scale = Fraction(10) ** (DIGITS - 1 - math.floor(math.log10(number)))
    return whole(number * scale) / scale
