"""Quantiles between public bounds: what the mechanisms that release them share.

Records are rounded toward zero onto the grid and clipped to the outermost grid points within the bounds, each
by itself; NaN counts as zero, and so does what is no number (`privacy.records`). One unit has one record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.bounded_range import BoundedRange
from dalenius.mechanisms.candidates import whole_steps
from dalenius.mechanisms.choice import log_odds, most_range
from dalenius.mechanisms.mechanism import Mechanism
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.unit import Relation, Unit, read_relation
from dalenius.release import Cell, Release

FINENESS = 12
"""The default grid has 2^12 to 2^13 steps between the bounds."""
MOST_STEPS = 2**61
"""Between the bounds."""
FINEST = 10**6
"""The largest denominator of a level: rank errors are counted in its parts."""


Values = tuple[Fraction, ...]


class Ranked(Mechanism):
    """A mechanism on private records between public bounds, by their ranks."""

    scale: Any
    lower: Any
    upper: Any
    grid: Grid | None
    relation: Relation

    def __post_init__(self) -> None:
        if read_relation(self.relation) == "zero_out":
            raise NotSound(
                "What a null record does to ranks is not settled.", remedy="Use add_remove or replace."
            )
        if self.lower >= self.upper:
            raise InvalidArgument("lower must be below upper.", remedy="Pass public bounds of the values.")
        far = max(abs(self.lower), abs(self.upper))
        least = max((self.upper - self.lower) / 2**FINENESS, far / MOST_STEPS)
        grid = Grid.within(least) if self.grid is None else self.grid
        if not isinstance(grid, Grid):
            raise InvalidArgument("grid must be a Grid.", remedy="Pass Grid(0), or leave it out.")
        object.__setattr__(self, "grid", grid)
        if not 0 < self.ends[1] - self.ends[0] <= MOST_STEPS or far > 2 * MOST_STEPS * grid.step:
            raise InvalidArgument(
                "Between lower and upper there must be 2 to 2^61 grid points, within 2^62 steps of zero.",
                remedy="Leave grid out, or subtract a public number from values and bounds.",
            )
        _ = self.loss

    @property
    def step(self) -> Fraction:
        """The distance between grid points."""
        assert self.grid is not None
        return self.grid.step

    @property
    def ends(self) -> tuple[int, int]:
        """The outermost grid points within the bounds, in steps."""
        return math.ceil(self.lower / self.step), math.floor(self.upper / self.step)

    def records(self, value: Any) -> Steps:
        """Records in steps, clipped and sorted."""
        assert self.grid is not None
        return np.sort(np.clip(whole_steps(value, self.grid), *self.ends))

    def crossing(self, level: Fraction, epsilon: Fraction, lost: float) -> tuple[Values, Values]:
        """Records at an end and on one point, and one more at the other end; or moved there from this one.

        There are so many that all points between move one way and the few before them the other, each as far
        as a rank error moves. Those few are so likely that ε falls short by a share of `lost`.
        """
        low, high = self.ends
        near, far, toward = (low, high, 1) if level > Fraction(1, 2) else (high, low, -1)
        rest, moved = min(level, 1 - level), reach(level, self.relation)
        many = math.ceil(moved / rest)
        later = math.ceil(rest * many)
        # The few points have a rank error of later − rest·many at first, the many of rest·many.
        rate = float(epsilon / (2 * moved))
        odds = log_odds(float(epsilon), lost) - float(epsilon) + float(2 * rest * many - later) * rate
        few = round((high - low) / (1 + math.exp(min(odds, 700.0))))
        place = near + toward * max(1, min(few, high - low - 1))
        first = [near] * (many - later) + [place] * later
        second = (first[1:] if self.relation == "replace" else first) + [far]
        return tuple(k * self.step for k in first), tuple(k * self.step for k in second)

    def stated(self, columns: Mapping[str, Sequence[Cell]], name: str, unit: Unit | None) -> Release:
        """A release without error bars, its receipt naming the bounds."""
        clipped = f"values clipped to [{float(self.lower):g}, {float(self.upper):g}]"
        made = self._released(columns, (name,), unit)
        return made.bounded(clipped, "one record per unit, by the caller's promise")

    def cells(self, points: Steps) -> list[Cell]:
        """Points as numbers: whole ones on a grid of whole numbers."""
        whole = self.step.denominator == 1
        return [int(k * self.step) if whole else float(k * self.step) for k in points.tolist()]


def a_level(value: object, name: str) -> Fraction:
    """A share strictly between 0 and 1, in whole parts of at most a million."""
    found = numbers.exact(value, name)
    if not 0 < found < 1 or found.denominator > FINEST:
        raise InvalidArgument(
            f"{name} must be between 0 and 1, with a denominator of at most {FINEST}.",
            remedy=f"Pass {name} such as 0.5, 0.999 or Fraction(1, 3).",
        )
    return found


def check_levels(levels: tuple[Fraction, ...]) -> None:
    """Several levels: increasing, in whole parts that they share."""
    parts = math.lcm(*(level.denominator for level in levels))
    if not levels or list(levels) != sorted(set(levels)) or parts > FINEST:
        raise InvalidArgument(
            f"levels must increase, with a common denominator of at most {FINEST}.",
            remedy="Pass levels such as [0.25, 0.5, 0.75].",
        )


def bits(value: object, name: str) -> int:
    """A number of bits from 0 to 32."""
    return numbers.count(value, name, least=0, most=32)


def changes(relation: Relation) -> int:
    """How many records come or go between neighbours."""
    return 2 if read_relation(relation) == "replace" else 1


def reach(level: Fraction, relation: Relation) -> Fraction:
    """How far neighbours move a rank error."""
    return Fraction(1) if read_relation(relation) == "replace" else max(level, 1 - level)


def range_within(epsilon: Number, delta: Number, times: int) -> Fraction:
    """The widest range that keeps the promise when released `times` times."""
    return most_range(lambda e: BoundedRange(e) * times, epsilon=epsilon, delta=delta, choices=times)


def rank_error(scale: Fraction, others: int, alpha: Fraction) -> float:
    """scale·log(others·(1 − α)/α), rounded up: one point has no rank error, all the others this."""
    odds = others * (1 - alpha) / alpha
    return float(scale) * math.log(odds) * (1 + 1e-12) if odds > 1 else 0.0
