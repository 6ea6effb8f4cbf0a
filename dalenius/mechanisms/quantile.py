"""A quantile of private numbers: the exponential mechanism over the points of a grid, by their rank error.

Records are clipped to [lower, upper] and rounded toward zero onto the grid, each by itself; a point y of the
grid is released with P(y) ∝ e^{−d(y)/scale}, where d is its rank error, in records (see `ranks`; Smith 2011).

Theorem. Let a unit have one record. Where it comes or goes, d moves by at most m = max(level, 1 − level) at
every point: below − level·n by 1 − level or −level, above − (1 − level)·n by the opposite, at a tie by one of
them. Where it is replaced, n stays and d moves by at most 1. So the release has a range bounded by
ε = 2m/scale, or 2/scale (see `exponential`): for a median that comes or goes ε = 1/scale. Both are approached
on fine grids, where one record moves few points one way and nearly all others the other way (`crossing`). No
case of `zero_out` is covered.

Error: with N grid points, the released point has a rank error of `rank_error(α)` = scale·log((N−1)(1−α)/α)
or more with probability at most α. In units of the value it depends on the data, so `error` is None.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.losses.bounded_range import BoundedRange
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.mechanisms.mechanism import Law, risk
from dalenius.mechanisms.ranked import Ranked, a_level, range_within, rank_error, reach
from dalenius.mechanisms.ranks import Segments
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid
from dalenius.privacy.unit import Relation, Unit
from dalenius.release import CONFIDENCE, Release

MOST_POINTS = 2**16
"""Up to so many points the law is written out."""
LOST = 1 / 32
"""The share of ε that the worst case does not attain, but for what a coarse grid adds."""


@dataclass(frozen=True)
class Quantile(Ranked, kind="quantile"):
    """The point below which a share of `level` of the records lies, between `lower` and `upper`."""

    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    lower: Parameter[Fraction] = Parameter(numbers.exact)
    upper: Parameter[Fraction] = Parameter(numbers.exact)
    level: Parameter[Fraction] = Parameter(a_level, Fraction(1, 2))
    grid: Grid | None = None
    relation: Relation = "add_remove"

    @property
    def loss(self) -> Loss:
        """That of a bounded range."""
        return BoundedRange(2 * reach(self.level, self.relation) / self.scale, relation=self.relation)

    def release(self, value: Any, *, name: str = "quantile", unit: Unit | None = None) -> Release:
        """Draw once on private records, one of each unit."""
        return self.stated({name: self.cells(self._segments(value).draw(1))}, name, unit)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Independent draws on public records."""
        return np.asarray(self._segments(value).draw(size) * float(self.step))

    def worst_case(self) -> tuple[Any, Any]:
        """Records on either side of a few points, and one more beyond them and all others."""
        return self.crossing(self.level, 2 * reach(self.level, self.relation) / self.scale, LOST)

    def probabilities(self, value: Any) -> Law | None:
        """Point by point; None where there are too many."""
        if self.ends[1] - self.ends[0] > MOST_POINTS:
            return None
        points, masses = self._segments(value).masses()
        return Law(tuple(k * self.step for k in points.tolist()), masses)

    def rank_error(self, alpha: Number = 1 - CONFIDENCE) -> float:
        """The rank error is at least this with probability at most `alpha`, in records."""
        return rank_error(self.scale, self.ends[1] - self.ends[0], risk(alpha))

    def _segments(self, value: Any) -> Segments:
        low, high = self.ends
        return Segments.of(self.records(value), low=low, high=high, level=self.level, scale=self.scale)

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number = 0,
        lower: Number,
        upper: Number,
        level: Number = Fraction(1, 2),
        grid: Grid | None = None,
        relation: Relation = "add_remove",
    ) -> Quantile:
        """The least scale with which one release is (epsilon, delta)-differentially private."""
        limit = range_within(epsilon, delta, 1)
        scale = 2 * reach(a_level(level, "level"), relation) / limit
        return Quantile(scale=scale, lower=lower, upper=upper, level=level, grid=grid, relation=relation)
