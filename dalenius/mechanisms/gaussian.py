"""The Gaussian mechanism: the rounded Gaussian, P(k) = Φ((k+½)g/scale) − Φ((k−½)g/scale), on steps of a grid.

Theorem. For values on the grid, adding it is adding N(0, scale²) and rounding to the nearest grid point,
which is post-processing. So the loss is that of the continuous Gaussian with μ = Δ₂/scale, on every grid, for
numbers and vectors, subsampled and composed: `losses.Gaussian` (profile: Balle and Wang 2018, Theorem 8).

Calibration is analytic: the least scale whose profile keeps the promise. `textbook` gives the classical
√(2 ln(1.25/δ))·Δ/ε (Dwork and Roth 2014, Theorem A.1), proved for ε < 1 only; it is evaluated, and refused
where it does not keep the promise, as at (9, 1e-5). P(|noise| > kg) = 2Φ(−(k+½)g/scale).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses import gaussian as losses
from dalenius.losses.fields import MOST_LOSS, Parameter
from dalenius.losses.loss import Loss
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.gridded import Bounded, read_sensitivity
from dalenius.noise.reading import MOST_SCALE
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Relation


@dataclass(frozen=True)
class Gaussian(Additive, kind="gaussian"):
    """Rounded Gaussian noise of standard deviation `scale` on values of L2 `sensitivity`."""

    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    sensitivity: Bounded = Bounded()
    grid: Grid | None = None
    exact: bool = False
    norm: ClassVar[str] = "l2"
    fineness: ClassVar[int] = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale > MOST_SCALE * self.step:
            raise InvalidArgument(
                "scale is beyond 2^50 steps of the grid.", remedy="Leave grid out, or choose a coarser one."
            )

    @property
    def loss(self) -> Loss:
        """That of the continuous Gaussian."""
        ratio = self.scale / self.distance
        if not Fraction(1, MOST_LOSS) <= ratio <= MOST_LOSS**2:
            raise InvalidArgument(
                "scale must be from 1e-6 to 1e12 times the sensitivity.", remedy="Choose scale in that range."
            )
        return _loss(ratio, self.sensitivity.relation)

    @property
    def distance(self) -> Fraction:
        """The L2 sensitivity, rounding onto the grid included."""
        return self.charged.need("l2") * self.step

    def draw(self, size: int) -> Steps:
        """A Gaussian, rounded to whole steps."""
        return noise.rounded_gaussian(self.scale / self.step, size)

    def masses(self, steps: Steps) -> NDArray[np.float64]:
        """Differences of tails, so that small masses keep their digits."""
        unit = float(self.step / self.scale) / math.sqrt(2)
        ends = [math.erfc(abs(k) * unit) for k in (np.append(np.abs(steps), 0) - 0.5).tolist()]
        more = [math.erfc((abs(k) + 0.5) * unit) for k in steps.tolist()]
        masses = 0.5 * (np.array(ends[:-1]) - np.array(more))
        return np.where(steps == 0, math.erf(0.5 * unit), masses)

    def beyond(self, steps: int) -> float:
        """2Φ(−(k+½)g/scale), rounded up."""
        if steps < 0:
            return 1.0
        x = float((steps + Fraction(1, 2)) * self.step / self.scale)
        return math.erfc(x / math.sqrt(2)) * (1 + 1e-14 * (1 + x * x)) + 1e-300

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number,
        sensitivity: Sensitivity | Number,
        grid: Grid | None = None,
        exact: bool = False,
    ) -> Gaussian:
        """The least noise with which one release is (epsilon, delta)-differentially private."""
        limit, norm = numbers.epsilon(epsilon), read_sensitivity(sensitivity).need("l2")
        if numbers.delta(delta) == 0:
            raise InvalidArgument(
                "Gaussian noise needs delta above 0.", remedy="Pass delta such as 1e-6, or use Laplace noise."
            )
        draft = Gaussian(
            scale=norm * max(Fraction(1), 1 / limit), sensitivity=sensitivity, grid=grid, exact=exact
        )
        found = losses.Gaussian.calibrate(epsilon=limit, delta=delta)
        return replace(draft, scale=found.noise_multiplier * draft.distance)

    @staticmethod
    def textbook(
        *,
        epsilon: Number,
        delta: Number,
        sensitivity: Sensitivity | Number,
        grid: Grid | None = None,
        exact: bool = False,
    ) -> Gaussian:
        """The classical calibration, refused where it does not keep the promise."""
        norm = read_sensitivity(sensitivity).need("l2")
        draft = Gaussian(scale=norm, sensitivity=sensitivity, grid=grid, exact=exact)
        limit, failure = numbers.positive(epsilon, "epsilon"), numbers.positive(delta, "delta")
        ratio = Fraction(math.sqrt(2 * math.log(float(Fraction(5, 4) / failure)))) / limit
        truth = losses.Gaussian(ratio).epsilon(failure)
        if truth.upper > limit:
            raise NotSound(
                f"The textbook Gaussian for epsilon {float(limit):.6g}, delta {float(failure):.6g} has "
                f"epsilon {truth.upper:.6g}.",
                remedy="Use Gaussian.calibrate, which is exact at every epsilon.",
            )
        return replace(draft, scale=ratio * draft.distance)


def _loss(multiplier: Fraction, relation: Relation) -> Loss:
    """The sensitivity is already that of the relation, which under replace the loss would double."""
    return losses.Gaussian(multiplier * (2 if relation == "replace" else 1), relation=relation)
