"""Several quantiles at once, by halving: the middle one first, then each side of it by itself.

The middle level is released by the mechanism of `quantile`; records up to the released point go left, those
beyond it right, and the levels on each side are sought among these records alone, between the points found so
far (Kaplan, Schnapp and Stemmer 2022; see `halving`). The released points never cross.

Theorem. Given all points of the earlier rounds, a record that comes or goes lies in one part of a round, and
the other parts do not change. Each part costs a range of at most 1/scale. So m levels cost ⌈log₂(m + 1)⌉
bounded ranges, one for each round: `losses.BoundedRange(1/scale) * rounds`. A replaced record is one that
goes and one that comes, in one part or in two of them, and each range is 2/scale. At δ = 0 this is approached
on fine grids, where levels are equally spaced by `worst_case`: docs/mechanisms/quantiles.md.

Ties. Many records on one point would all go left, so `dither` bits are added below the grid, of each record
at random and by itself, and taken off the released points. That is a mixture of pairs of neighbours, each of
which costs no more than stated, and profiles and moments of a mixture are no worse than its worst part's.

Error: `rank_error(α)` bounds the rank errors of all points at once with probability 1 − α, where no two
records share a dithered point. In units of the value it depends on the data, so `error` is None.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.losses.bounded_range import BoundedRange
from dalenius.losses.fields import Numbers, Parameter
from dalenius.losses.loss import Loss
from dalenius.mechanisms import ranked
from dalenius.mechanisms.halving import Halving
from dalenius.mechanisms.mechanism import Law, risk
from dalenius.mechanisms.ranked import MOST_STEPS, Ranked, a_level
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.unit import Relation, Unit
from dalenius.release import CONFIDENCE, Cell, Release

MOST_OUTCOMES = 10_000
"""Up to so many outcomes the law is written out."""
LOST = 1 / 6
"""The most of ε, as a share, that a round of the worst case does not attain: less would make it too rare."""
DITHER = 16
"""Bits below the grid, where nothing else is asked for."""


@dataclass(frozen=True)
class Quantiles(Ranked, kind="quantiles"):
    """The points of several increasing `levels`, between `lower` and `upper`."""

    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    levels: Numbers = Numbers(a_level)
    lower: Parameter[Fraction] = Parameter(numbers.exact)
    upper: Parameter[Fraction] = Parameter(numbers.exact)
    dither: Parameter[int] = Parameter(ranked.bits, DITHER)
    grid: Grid | None = None
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        ranked.check_levels(self.levels)
        super().__post_init__()
        if (self.ends[1] - self.ends[0] + 1) << self.dither > MOST_STEPS:
            raise InvalidArgument("The dithered grid is too fine.", remedy="Choose a coarser grid.")

    @property
    def rounds(self) -> int:
        """How often a record takes part."""
        return len(self.levels).bit_length()

    @property
    def halving(self) -> Halving:
        """The rounds."""
        return Halving(self.levels, self.scale)

    @property
    def loss(self) -> Loss:
        """A bounded range for each round."""
        return BoundedRange(ranked.changes(self.relation) / self.scale, relation=self.relation) * self.rounds

    def release(self, value: Any, *, name: str = "quantile", unit: Unit | None = None) -> Release:
        """Draw once on private records, one of each unit."""
        points = self.draw(self.records(value), 1)[0]
        levels: list[Cell] = [float(level) for level in self.levels]
        return self.stated({"level": levels, name: self.cells(points)}, name, unit)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Independent draws on public records, one row each."""
        return np.asarray(self.draw(self.records(value), size) * float(self.step))

    def draw(self, records: Steps, size: int) -> Steps:
        """Independent draws in steps; without dither, rows that agree so far go on together."""
        found = np.empty((size, len(self.levels)), np.int64)
        (low, high), more = self.ends, self.dither
        if more == 0:
            self.halving.fill(found, records, low, high)
            return found
        # Counted from the lower end: far from zero the dithered steps would have more than 64 bits.
        for i in range(size):
            fine = np.sort((records - low << more) + noise.uniform(1 << more, records.size).astype(np.int64))
            self.halving.fill(found[i : i + 1], fine, 0, (high - low + 1 << more) - 1)
        return (found >> more) + low

    def worst_case(self) -> tuple[Any, Any]:
        """That of the first round, after which the record that moves is in the larger part."""
        return self.crossing(self.halving.own, ranked.changes(self.relation) / self.scale, LOST)

    def probabilities(self, value: Any) -> Law | None:
        """Over all rounds; None with dither, or where there are too many outcomes."""
        low, high = self.ends
        if self.dither or (high - low + 1) ** len(self.levels) > MOST_OUTCOMES:
            return None
        law = self.halving.law(self.records(value), low, high)
        step = float(self.step)
        return Law(tuple(tuple(k * step for k in row) for row in law), np.array(list(law.values())))

    def rank_error(self, alpha: Number = 1 - CONFIDENCE) -> float:
        """With probability at most `alpha` any of the points has a rank error above this, in records.

        A part's target is off by no more than its ends, so errors add up once in each round.
        """
        others = ((self.ends[1] - self.ends[0] + 1) << self.dither) - 1
        each = risk(alpha) / len(self.levels)
        return self.rounds * (ranked.rank_error(self.halving.widest, others, each) + 1)

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number = 0,
        levels: Iterable[Number],
        lower: Number,
        upper: Number,
        dither: int = DITHER,
        grid: Grid | None = None,
        relation: Relation = "add_remove",
    ) -> Quantiles:
        """The least scale with which one release of all levels is (epsilon, delta)-differentially private."""
        listed = tuple(a_level(level, "levels") for level in levels)
        limit = ranked.range_within(epsilon, delta, max(len(listed), 1).bit_length())
        least = ranked.changes(relation) / limit
        return Quantiles(
            scale=least, levels=listed, lower=lower, upper=upper, dither=dither, grid=grid, relation=relation
        )
