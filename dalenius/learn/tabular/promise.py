"""What a fit may reveal, split among the noisy sums that it makes.

Theorem (Dong, Roth and Su 2022, Corollary 3.3; Dwork and Roth 2014, Theorem 3.16). Let stage i of an adaptive
sequence add noise to whole numbers, with a share sᵢ of the promise, Σ sᵢ ≤ 1.

    delta > 0   Gaussian noise of at least Δ₂·σ/√sᵢ has μᵢ² ≤ sᵢ/σ², so all stages together cost no more than
                one Gaussian with the noise multiplier σ, the least that keeps (ε, δ)
    delta = 0   Laplace noise of at least Δ₁/(sᵢ·ε) costs sᵢ·ε, so all stages together cost ε

So the loss that is charged is known before data is read, whatever the stages see of each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dalenius.errors import InvalidArgument
from dalenius.losses.gaussian import Gaussian as GaussianLoss
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.mechanisms.laplace import Laplace
from dalenius.noise.reading import MOST_SCALE
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity, sqrt_up
from dalenius.privacy.unit import Relation

FINE = 10**9
"""Shares are rounded down to multiples of its inverse."""
MOST_SUMS = 2**26
"""Noisy sums of one stage."""


@dataclass(frozen=True)
class Promise:
    """A fit is (epsilon, delta)-private under `relation`; each unit has at most `rows` rows."""

    epsilon: Fraction
    delta: Fraction
    relation: Relation
    rows: int = 1

    @property
    def pure(self) -> bool:
        """Whether there is no delta."""
        return self.delta == 0

    @cached_property
    def multiplier(self) -> Fraction:
        """The noise of one Gaussian sum with all of the promise, over how far a unit moves it."""
        return GaussianLoss.calibrate(epsilon=self.epsilon, delta=self.delta).noise_multiplier

    @cached_property
    def loss(self) -> Loss:
        """Of all stages together."""
        if self.pure:
            return Pure(self.epsilon, relation=self.relation)
        # The noise is over the distance of neighbours, which the loss under replace takes as twice the norm.
        twice = 2 if self.relation == "replace" else 1
        return GaussianLoss(twice * self.multiplier, relation=self.relation)

    def bound(
        self, *, l1: Fraction | int, l2: Fraction | int, linf: int, size: int, nonnegative: bool = False
    ) -> Sensitivity:
        """How far a unit moves `size` sums of its rows, each row within these norms, in steps."""
        if size > MOST_SUMS:
            raise InvalidArgument(
                f"So many columns and classes take {size} sums, and a fit makes {MOST_SUMS} at most.",
                remedy="Pass fewer columns, or fewer categories, classes or clusters.",
            )
        k = self.rows
        one = Sensitivity.of_sum(
            l1=k * l1, l2=k * l2, linf=k * linf, nonnegative=nonnegative, relation=self.relation
        )
        return Sensitivity(l0=size, l1=one.l1, l2=one.l2, linf=one.linf, relation=self.relation)

    def noise(self, bound: Sensitivity, share: float | Fraction) -> Additive:
        """The noise of one stage, on whole numbers."""
        part = Fraction(int(share * FINE), FINE)
        grid = Grid(0)
        if self.pure:
            wide = bound.need("l1") / (part * self.epsilon)
            found: Additive = Laplace(scale=wide, sensitivity=bound, grid=grid, exact=True)
        else:
            wide = bound.need("l2") * self.multiplier * sqrt_up(1 / part)
            found = Gaussian(scale=wide, sensitivity=bound, grid=grid, exact=True)
        return drawable(found)

    def spread(self, noise: Additive) -> float:
        """The standard deviation of one entry's noise, in steps."""
        return float(noise.scale) * (2**0.5 if self.pure else 1.0)


def drawable(noise: Additive) -> Additive:
    """Refuse noise that is wider than a sampler draws it, before it is asked to."""
    check_scale(noise.scale / noise.step)
    return noise


def check_scale(steps: Fraction) -> None:
    """The same for a scale in steps."""
    if steps > MOST_SCALE:
        raise InvalidArgument(
            "Noise for such an epsilon and delta leaves nothing of the data.",
            remedy="Choose a larger epsilon or delta.",
        )
