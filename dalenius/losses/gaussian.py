"""The Gaussian mechanism, and mixtures of Gaussians.

Theorem (Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022). Adding N(0, σ²I) to
a value of L2 sensitivity Δ is dominated, and the bound is attained, by the pair N(μ, 1), N(0, 1)
with μ = Δ/σ: δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ). The pair is its own reverse, and releases with
μ₁, μ₂, … compose to √(Σμ²).

Theorem (Choquette-Choo et al. 2024). If the norm of a unit's contribution
is random, at most sᵢ with probability pᵢ, and unseen, the release is dominated by
Σ pᵢN(sᵢ/σ, 1) against N(0, 1) for removing a unit and by the reverse for adding one. A Poisson sample is
the case s = 0, 1; a group of k in one is the binomial case s = 0, …, k.

`noise_multiplier` is σ over the bound on one unit's norm. Under add_remove and zero_out that norm
is the sensitivity; under replace two units of that norm may differ by twice as much, so μ doubles.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from math import comb

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.fields import Described, Numbers, Parameter, ratio
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation
from dalenius.profiles.gaussian_pairs import MixturePair, ShiftPair
from dalenius.profiles.pair import Worst

MOST_SHIFTS = 64
"""Shifts in a mixture, at most."""


@dataclass(frozen=True, repr=False)
class Gaussian(Described, kind="gaussian"):
    """Gaussian noise of `noise_multiplier` times the bound on one unit's L2 norm."""

    noise_multiplier: Parameter[Fraction] = Parameter(ratio)
    _: KW_ONLY
    relation: Relation = "add_remove"

    @property
    def distance(self) -> Fraction:
        """μ: how far apart neighbours are, in standard deviations."""
        return (2 if self.relation == "replace" else 1) / self.noise_multiplier

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        return (((ShiftPair(self.distance), 1),),)

    def concentration(self) -> tuple[Fraction, Fraction]:
        """D_α = αμ²/2 at every order."""
        return (self.distance**2 / 2, self.distance**2 / 2)

    def enlarged(self, size: int) -> Gaussian:
        """A group of k has k times the sensitivity."""
        return Gaussian(self.noise_multiplier / size, relation=self.relation)

    def sampled_group(self, rate: Fraction, size: int) -> Loss:
        """A group of k, present or absent together, on a Poisson sample: how many take part is binomial."""
        if size >= MOST_SHIFTS:
            raise NotSound(
                f"A group of {size} on a Poisson sample needs a mixture of {size + 1} Gaussians.",
                remedy=f"Choose a group of fewer than {MOST_SHIFTS}, or take .group before .poisson.",
            )
        weights = [comb(size, j) * rate**j * (1 - rate) ** (size - j) for j in range(size + 1)]
        return GaussianMixture(
            self.noise_multiplier, weights=weights, shifts=range(size + 1), relation=self.relation
        )

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number,
        sampling_rate: Number = 1,
        steps: int = 1,
        relation: Relation = "add_remove",
    ) -> Gaussian:
        """The least noise with which `steps` releases on Poisson samples are (epsilon, delta)-private."""
        from dalenius.losses.calibration import calibrate

        rate, count = numbers.rate(sampling_rate, "sampling_rate"), numbers.count(steps, "steps")

        def family(noise: Fraction) -> Loss:
            return Gaussian(noise, relation=relation).poisson(rate) * count

        found = calibrate(family, epsilon=epsilon, delta=delta, name="noise_multiplier")
        return Gaussian(found, relation=relation)


@dataclass(frozen=True, repr=False)
class GaussianDP(Described, kind="gaussian_dp"):
    """μ-Gaussian differential privacy: no easier to attack than N(mu, 1) against N(0, 1)."""

    mu: Parameter[Fraction] = Parameter(ratio)
    _: KW_ONLY
    relation: Relation = "add_remove"

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        return (((ShiftPair(self.mu), 1),),)

    def concentration(self) -> tuple[Fraction, Fraction]:
        """D_α = αμ²/2 at every order."""
        return (self.mu**2 / 2, self.mu**2 / 2)

    def enlarged(self, size: int) -> GaussianDP:
        """Dong, Roth and Su 2022: a group of k is kμ-GDP."""
        return GaussianDP(self.mu * size, relation=self.relation)


@dataclass(frozen=True, repr=False)
class GaussianMixture(Described, kind="gaussian_mixture"):
    """Gaussian noise on a contribution whose norm is `shifts`[i] with probability `weights`[i], unseen."""

    noise_multiplier: Parameter[Fraction] = Parameter(ratio)
    _: KW_ONLY
    weights: Numbers = Numbers(numbers.probability)
    shifts: Numbers = Numbers(numbers.non_negative)
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.weights) != len(self.shifts) or not 1 <= len(self.weights) <= MOST_SHIFTS:
            raise InvalidArgument(
                f"weights and shifts must be equally many, from 1 to {MOST_SHIFTS}.",
                remedy="Give each shift its weight.",
            )
        if sum(self.weights) != 1:
            raise InvalidArgument(
                "weights must add up to 1.", remedy="Pass fractions that add up to exactly 1."
            )
        if self.relation == "replace":
            raise NotSound(
                "No theorem gives a mixture of Gaussians under the replace relation.",
                remedy="State it for add_remove, where the theorem holds.",
            )

    def directions(self) -> tuple[Worst, ...]:
        """Removing a unit, then adding one."""
        merged: dict[Fraction, Fraction] = {}
        for weight, shift in zip(self.weights, self.shifts, strict=True):
            if weight:
                distance = shift / self.noise_multiplier
                merged[distance] = merged.get(distance, Fraction(0)) + weight
        pair = MixturePair(tuple(sorted(merged.items())))
        return (((pair, 1),), ((pair.reversed(), 1),))

    def concentration(self) -> tuple[Fraction, Fraction]:
        """That of the largest shift, which D_α/α tends to as α grows."""
        rho = (
            max(s for w, s in zip(self.weights, self.shifts, strict=True) if w) / self.noise_multiplier
        ) ** 2 / 2
        return (rho, rho)

    def enlarged(self, size: int) -> Loss:
        """Contributions of several units add up in norm at most: the sum of independent copies."""
        total = {Fraction(0): Fraction(1)}
        for _ in range(size):
            following: dict[Fraction, Fraction] = {}
            for at, mass in total.items():
                for weight, shift in zip(self.weights, self.shifts, strict=True):
                    following[at + shift] = following.get(at + shift, Fraction(0)) + mass * weight
            total = following
        shifts = sorted(total)
        return GaussianMixture(
            self.noise_multiplier, weights=[total[s] for s in shifts], shifts=shifts, relation=self.relation
        )
