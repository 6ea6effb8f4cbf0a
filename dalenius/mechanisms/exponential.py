"""The exponential mechanism: a candidate of utility u is chosen with probability ∝ e^{u/scale}.

Theorem (McSherry and Talwar 2007; Durfee and Rogers 2019). Where the utilities of some candidates gain at
most `span` on those of others (see `choice`: 2Δ, or Δ where monotone), the privacy loss of the choice lies in
an interval of length ε = span/scale that contains 0: ε-bounded range, hence ε-differentially private and
ε²/8-zCDP. `losses.BoundedRange` is its profile, attained at every point by a pair of its own: among two
candidates the odds are multiplied by e^ε, wherever they start; at δ = 0 in the limit of a candidate that is
never chosen. The worst case stops where ε falls short by `LOST`, so that the candidate is still seen.

Error: with n candidates the choice is scale·log((n − 1)(1 − α)/α) or more below the best with probability at
most α (`shortfall`), attained by one best and n − 1 others that far below. `error` is None: candidates are
names, not numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius import noise
from dalenius.losses.bounded_range import BoundedRange
from dalenius.losses.loss import Loss
from dalenius.mechanisms.choice import OneChoice, log_odds
from dalenius.mechanisms.mechanism import Law
from dalenius.privacy.quantized import Steps
from dalenius.privacy.unit import Relation

LOST = 1 / 32
"""The share of ε that the worst case does not attain."""


@dataclass(frozen=True)
class Exponential(OneChoice, kind="exponential"):
    """P(i) ∝ e^{uᵢ/scale}, each utility uᵢ of `sensitivity`."""

    @staticmethod
    def price(limit: Fraction, steps: int, relation: Relation = "add_remove") -> Loss:
        """That of a bounded range."""
        return BoundedRange(limit, relation=relation)

    def draw(self, steps: Steps, size: int) -> Steps:
        """By exact proposals and coins."""
        return noise.exponential_mechanism(steps, self.rate, size)

    def worst_case(self) -> tuple[Any, Any]:
        """One candidate far below another, so that its odds are nearly its probability, and nearer."""
        return self._apart(0, round(Fraction(log_odds(float(self.limit), LOST)) / self.rate))

    def probabilities(self, value: Any) -> Law:
        """e^{u/scale} over their sum."""
        steps = self.steps(value)
        weights = np.exp(-(steps.max() - steps) * float(self.rate))
        return Law(tuple(range(steps.size)), weights / weights.sum())
