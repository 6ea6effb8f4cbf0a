"""A privacy odometer: what was spent so far, when no limit was set and every loss is chosen adaptively.

Theorem. Let filters of growing ε₁ < ε₂ < … with δ₁, δ₂, … all watch the same releases, and let the reading
at the end be εₖ, of the first filter that accepts everything. Then for every k and every set S of outcomes
with that reading, P(S) ≤ e^{εₖ} Q(S) + δₖ; over all readings the δ add up to Σ δₖ = δ.

Proof. The outcomes with reading εₖ are among those of the process that filter k stops. ∎ (Rogers, Roth,
Ullman and Vadhan 2016 define odometers; Lécuyer 2021 makes them of filters. The reading may be taken at any
time, also one chosen in view of the releases.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.cost import Cost
from dalenius.losses.filters import Filter
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

LEVELS = tuple(Fraction(e, 100) for e in (10, 20, 30, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1200, 1600))
"""The ε that a reading may have."""


@dataclass(frozen=True, init=False)
class Odometer:
    """Filters at every level, sharing `delta` equally."""

    filters: tuple[Filter, ...]

    def __init__(self, *, delta: Number = 0, levels: Sequence[Number] = LEVELS) -> None:
        values = [numbers.positive(level, "levels") for level in levels]
        if not values or sorted(set(values)) != values:
            raise InvalidArgument("levels must grow.", remedy="Pass levels in increasing order.")
        share = numbers.delta(delta) / len(values)
        object.__setattr__(self, "filters", tuple(Filter(epsilon=v, delta=share) for v in values))

    @property
    def nothing(self) -> tuple[Cost, ...]:
        """The cost of no release at all, for every level."""
        return tuple(one.nothing for one in self.filters)

    def add(self, total: tuple[Cost, ...], loss: Loss) -> tuple[Cost, ...]:
        """The total with one more release."""
        return tuple(cost + one.cost(loss) for one, cost in zip(self.filters, total, strict=True))

    def epsilon(self, total: tuple[Cost, ...]) -> Fraction:
        """The reading: the first level whose filter accepts the total."""
        for one, cost in zip(self.filters, total, strict=True):
            if one.accepts(cost):
                return one.epsilon
        raise NotSound(
            f"More was spent than the highest level, {self.filters[-1].epsilon}, holds.",
            remedy="Read an odometer made with higher levels from the start.",
        )
