"""The k best candidates, by peeling: the exponential mechanism chooses k times, each time among those left.

Theorem (Durfee and Rogers 2019). Given what was chosen before, each round is an exponential mechanism on the
candidates left, of range ε = span/scale (see `exponential`), so all k rounds are an adaptive composition of
bounded ranges, `losses.BoundedRange(ε) * k`: kε for δ = 0, about ε√(k log(1/δ)/2) + kε²/8 for small δ. Adding
Gumbel noise of that scale to every utility once and reporting the k greatest in order has the same law, so
neither way is cheaper. One-shot Laplace noise has no bounded range and pays kε for δ = 0 too. The kε is
attained in the limit of candidates that are never chosen, each gaining a span on the one that always is: in
every round the loss is then ε. For δ > 0 the claim lets every round be the worst, given what was seen.

Error: with probability at least 1 − α, for all j at once, the j-th choice is within `shortfall(n, α/k)` of
the j-th best utility: what is left always holds one of the j best.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.losses.bounded_range import BoundedRange
from dalenius.losses.fields import Parameter, whole
from dalenius.losses.loss import Loss
from dalenius.mechanisms.choice import Choice, about, log_odds, most_range
from dalenius.mechanisms.gridded import read_sensitivity
from dalenius.mechanisms.mechanism import Law, risk
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.release import CONFIDENCE

MOST_ORDERS = 10_000
"""Up to so many outcomes the law is written out."""
LOST = 1 / 8
"""The most of ε, as a share, that the worst case does not attain: less would make it too rare to be seen."""


@dataclass(frozen=True)
class TopK(Choice, kind="top_k"):
    """`count` candidates in order, each chosen with P ∝ e^{u/scale} among those left."""

    _: KW_ONLY
    count: Parameter[int] = Parameter(whole)

    @property
    def loss(self) -> Loss:
        """One bounded range for each choice."""
        return BoundedRange(self.limit, relation=self.relation) * self.count

    def steps(self, value: Any) -> Steps:
        """Utilities in grid steps, at least as many as are to be chosen."""
        found = super().steps(value)
        if found.size < self.count:
            raise InvalidArgument(
                f"{self.count} cannot be chosen of {found.size} candidates.",
                remedy="Pass more candidates, or choose fewer.",
            )
        return found

    def draw(self, steps: Steps, size: int) -> Steps:
        """Rows that agree so far have the same candidates left, and go on together."""
        chosen = np.empty((size, self.count), np.int64)
        todo = [(np.arange(size), np.arange(steps.size), 0)]
        while todo:
            rows, left, place = todo.pop()
            found = noise.exponential_mechanism(steps[left], self.rate, rows.size)
            chosen[rows, place] = left[found]
            if place + 1 < self.count:
                todo += [(rows[found == i], np.delete(left, i), place + 1) for i in np.unique(found).tolist()]
        return chosen

    def worst_case(self) -> tuple[Any, Any]:
        """As many candidates as are chosen, together well below one more, and nearer."""
        far = log_odds(float(self.limit), LOST) + math.log(self.count)
        return self._apart(*[0] * self.count, round(Fraction(far) / self.rate))

    def probabilities(self, value: Any) -> Law | None:
        """The product over the rounds; None where there are too many orders."""
        steps = self.steps(value)
        weights = np.exp(-(steps.max() - steps) * float(self.rate)).tolist()
        orders = list(
            itertools.islice(itertools.permutations(range(steps.size), self.count), MOST_ORDERS + 1)
        )
        if len(orders) > MOST_ORDERS:
            return None
        return Law(tuple(orders), np.array([_chance(order, weights) for order in orders]))

    def shortfall(self, count: int, alpha: Number = 1 - CONFIDENCE) -> float:
        """How far below the j-th best utility the j-th choice is, for any j, with probability ≤ `alpha`."""
        return super().shortfall(count, risk(alpha) / self.count)

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number = 0,
        count: int,
        sensitivity: Sensitivity | Number,
        monotone: bool = False,
        grid: Grid | None = None,
    ) -> TopK:
        """The least scale with which all choices together are (epsilon, delta)-differentially private."""
        bound, choices = read_sensitivity(sensitivity), whole(count, "count")
        trial = TopK(count=choices, scale=about(bound, grid), sensitivity=bound, monotone=monotone, grid=grid)
        limit = most_range(lambda b: BoundedRange(b) * choices, epsilon=epsilon, delta=delta, choices=choices)
        scale = trial.span * trial.step / limit
        return TopK(count=choices, scale=scale, sensitivity=bound, monotone=monotone, grid=grid)


def _chance(order: tuple[int, ...], weights: list[float]) -> float:
    chance = 1.0
    for i, choice in enumerate(order):
        chance *= weights[choice] / sum(w for j, w in enumerate(weights) if j not in order[:i])
    return chance
