"""Values within [lower, upper] on a grid: what the sum, the mean and the variance of a column share.

Each value is clipped into the bounds and rounded toward zero onto the grid, by itself. The default grid has
2^fineness steps to how far a unit may move the sum, so that rounding is lost in the noise.
"""

from __future__ import annotations

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
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import MOST, Grid, Steps
from dalenius.privacy.unit import Relation, Unit
from dalenius.release import Cell, Release


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
            object.__setattr__(self, "grid", Grid.within(self.quantum))
        if not isinstance(self.grid, Grid):
            raise InvalidArgument(
                "grid must be a Grid.", remedy="Pass Grid(0) for whole numbers, or leave it out."
            )
        least, most = self.ends
        if not (-MOST <= least < most <= MOST and most - least <= 2**self.bits):
            raise InvalidArgument(
                "The grid has too few or too many steps between lower and upper.",
                remedy="Leave grid out, or choose a step below upper minus lower.",
            )

    @property
    def quantum(self) -> Fraction:
        """The largest step of a default grid."""
        raise NotImplementedError

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
        draft = cls(
            lower=lower, upper=upper, scale=1, per_unit=per_unit, noise=noise, relation=relation, grid=grid
        )
        return calibrated(draft, epsilon=epsilon, delta=delta)
