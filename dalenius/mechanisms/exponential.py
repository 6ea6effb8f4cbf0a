"""The exponential mechanism: a candidate of utility u is chosen with probability ∝ e^{u/scale}.

Theorem (McSherry and Talwar 2007; Durfee and Rogers 2019). Where the utilities of some candidates gain at
most `span` on those of others (see `choice`: 2Δ, or Δ where monotone), the privacy loss of the choice lies in
an interval of length ε = span/scale that contains 0: ε-bounded range, hence ε-differentially private and
ε²/8-zCDP. `losses.BoundedRange` is its profile, attained in the limit at every point: among two candidates
the odds are multiplied by e^ε, wherever they start.

Error: with n candidates the choice is scale·log((n − 1)(1 − α)/α) or more below the best with probability at
most α (`shortfall`), attained by one best and n − 1 others that far below. `error` is None: candidates are
names, not numbers.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius import noise
from dalenius.losses.bounded_range import BoundedRange
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.mechanisms.additive import Bounded, read_sensitivity
from dalenius.mechanisms.choice import Choice, least_scale
from dalenius.mechanisms.mechanism import Law
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity


@dataclass(frozen=True)
class Exponential(Choice, kind="exponential"):
    """P(i) ∝ e^{uᵢ/scale}, each utility uᵢ of `sensitivity`."""

    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    sensitivity: Bounded = Bounded()
    monotone: bool = False
    grid: Grid | None = None

    @property
    def loss(self) -> Loss:
        """That of a bounded range."""
        return BoundedRange(self.limit, relation=self.sensitivity.relation)

    def draw(self, steps: Steps, size: int) -> Steps:
        """By exact proposals and coins."""
        return noise.exponential_mechanism(steps, self.step / self.scale, size)

    def worst_case(self) -> tuple[Any, Any]:
        """One candidate far below another, so that its odds are nearly its probability, and nearer."""
        return self._apart(0, round(3 * self.scale / self.step))

    def probabilities(self, value: Any) -> Law:
        """e^{u/scale} over their sum."""
        steps = self.steps(value)
        weights = np.exp(-(steps.max() - steps) * float(self.step / self.scale))
        return Law(tuple(range(steps.size)), weights / weights.sum())

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number = 0,
        sensitivity: Sensitivity | Number,
        monotone: bool = False,
        grid: Grid | None = None,
    ) -> Exponential:
        """The least scale with which one choice is (epsilon, delta)-differentially private."""
        bound = read_sensitivity(sensitivity)
        scale = least_scale(
            BoundedRange, epsilon=epsilon, delta=delta, sensitivity=bound, monotone=monotone, grid=grid
        )
        return Exponential(scale=scale, sensitivity=bound, monotone=monotone, grid=grid)
