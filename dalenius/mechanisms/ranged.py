"""Values within [lower, upper] on a grid: what the sum, the mean and the variance of a column share.

Each value is clipped into the bounds and rounded toward zero onto the grid, by itself. The default grid
follows from the bounds and the noise alone, never from the values or their type. It is so fine that rounding
is lost in the noise: of the step `quantum` or finer, and coarser only as far as it takes for noise and
sensitivity to have at most 2^39 steps and the bounds 2^62.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.losses.fields import Parameter
from dalenius.mechanisms import contributions
from dalenius.mechanisms.tally import Noise, Tally, calibrated, check_bounds, per_unit_count
from dalenius.noise.reading import MOST_SCALE
from dalenius.privacy import numbers
from dalenius.privacy.numbers import MOST_STEPS, Number
from dalenius.privacy.quantized import MOST, Grid, Steps
from dalenius.privacy.unit import Relation, Unit
from dalenius.release import Cell, Release

COARSE = 2**10
"""A default grid has so many steps between the bounds, where there is room for them."""
DEFAULT_STEPS = 2**39
"""The most that noise and sensitivity have on a default grid."""
NOISELESS = Fraction(1, 10**300)
"""The scale of a draft, which makes no grid coarser."""


@dataclass(frozen=True)
class Ranged(Tally):
    """Noise of `scale` on sums made of values within [lower, upper]."""

    _: KW_ONLY
    lower: Parameter[Fraction] = Parameter(numbers.exact)
    upper: Parameter[Fraction] = Parameter(numbers.exact)
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    per_unit: Parameter[int] = Parameter(per_unit_count, 1)
    noise: Noise = "laplace"
    relation: Relation = "add_remove"
    grid: Grid | None = None
    bits: ClassVar[int] = 62

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bounds(self.lower, self.upper)
        if self.grid is None:
            self._choose_grid()
        elif not isinstance(self.grid, Grid):
            raise InvalidArgument(
                "grid must be a Grid.", remedy="Pass Grid(0) for whole numbers, or leave it out."
            )
        elif not self._within(MOST_STEPS, MOST_SCALE if self.noise == "gaussian" else MOST_STEPS):
            raise InvalidArgument(
                "The grid has too few steps between lower and upper, or too many for the noise.",
                remedy="Leave grid out: one that serves is then chosen.",
            )

    @property
    @abstractmethod
    def quantum(self) -> Fraction:
        """The largest step of a default grid."""

    @property
    def values_grid(self) -> Grid:
        """The grid of the values."""
        assert self.grid is not None
        return self.grid

    @property
    def sums_grid(self) -> Grid:
        """That of the values, unless said otherwise."""
        return self.values_grid

    @property
    def ends(self) -> tuple[int, int]:
        """The outermost grid points within the bounds, in steps."""
        step = self.values_grid.step
        return ceil(self.lower / step), floor(self.upper / step)

    @property
    def missing(self) -> Steps:
        """That of NaN: nothing, or under replace 0, clipped."""
        return self.vectors(np.array([np.nan]))

    def quantized(self, value: Any) -> tuple[Steps, NDArray[np.bool_]]:
        """Records as steps between the ends, and which of them contribute: all under replace."""
        values = contributions.column(value)
        steps = self.values_grid.quantize(values, lower=self.lower, upper=self.upper)
        present = ~contributions.missing(values)
        return steps, present if self.relation != "replace" else np.ones_like(present)

    def worst_case(self) -> tuple[Any, Any]:
        """As many records at an end as a unit may have, and none of them, or as many at the other end."""
        least, most = (float(end * self.values_grid.step) for end in self.ends)
        if self.relation == "replace":
            return np.array([most] * self.per_unit), np.array([least] * self.per_unit)
        return np.array([least] + [most] * self.per_unit), np.array([least])

    def one(
        self, name: str, found: Sequence[Cell], *, ids: Any, unit: Unit | None, alpha: Fraction
    ) -> Release:
        """A release of one number: its value, and the ends of its bar."""
        columns = {name: found[:1], f"{name}_low": found[1:2], f"{name}_high": found[2:]}
        clipped = f"values clipped to [{float(self.lower):g}, {float(self.upper):g}]"
        made = self._released(columns, (name,), unit).bounded(clipped, *self.promises(ids))
        return replace(made, confidence=1 - alpha)

    def _choose_grid(self) -> None:
        """The finest default grid that serves."""
        grid = Grid.within(min(self.quantum, (self.upper - self.lower) / COARSE))
        object.__setattr__(self, "grid", grid)
        while not self._within(DEFAULT_STEPS, DEFAULT_STEPS):
            grid = Grid(grid.exponent + 1)
            object.__setattr__(self, "grid", grid)
            if grid.step > self.upper - self.lower:
                raise self._no_grid()

    def _within(self, distance: int, noise: int) -> bool:
        """Whether there is a step between the ends, and no more of anything than may be."""
        least, most = self.ends
        if not (-MOST <= least < most <= MOST and most - least <= 2**self.bits):
            return False
        far = 0 if self.noise == "gaussian" else self.bound.need("l1") / self.step
        return far <= distance and self.scale / self.step <= noise

    def _no_grid(self) -> InvalidArgument:
        """Why there is none: too much noise, or bounds whose distance is nothing to what they are."""
        if self.scale == NOISELESS:
            return InvalidArgument(
                "lower and upper are too near to each other for how far they are from zero.",
                remedy="Subtract a public number, such as lower, from the values and from both bounds.",
            )
        # Where the bounds are at fault this says so.
        _ = replace(self, scale=NOISELESS, grid=None)
        return InvalidArgument(
            "scale is too large: a grid for it has no step between lower and upper.",
            remedy="Choose a smaller scale, or wider bounds.",
        )

    @classmethod
    def calibrate(
        cls,
        *,
        epsilon: Number,
        delta: Number = 0,
        lower: Number,
        upper: Number,
        per_unit: int = 1,
        noise: Noise = "laplace",
        relation: Relation = "add_remove",
        grid: Grid | None = None,
    ) -> Self:
        """The least noise with which one release is (epsilon, delta)-differentially private."""
        limit = numbers.epsilon(epsilon)
        draft = cls(
            lower=lower,
            upper=upper,
            scale=NOISELESS,
            per_unit=per_unit,
            noise=noise,
            relation=relation,
            grid=grid,
        )
        if grid is None:
            draft = draft._for(limit)
        return calibrated(draft, epsilon=limit, delta=delta)

    def _for(self, epsilon: Fraction) -> Self:
        """The same on a grid for about the noise that this ε takes."""
        draft = self._room(epsilon)
        if draft is None:
            least = epsilon
            while self._room(least) is None:
                least *= 2
            raise InvalidArgument(
                "epsilon is too small: a grid for its noise has no step between lower and upper.",
                remedy=f"Choose epsilon={numbers.above(least)} or more, or fewer records per unit.",
            )
        return draft

    def _room(self, epsilon: Fraction) -> Self | None:
        try:
            return replace(self, scale=self.bound.need("l1") / epsilon, grid=None)
        except InvalidArgument:
            return None
