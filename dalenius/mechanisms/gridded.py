"""How a value and its sensitivity enter a grid: what every mechanism on steps reads the same way.

That a value is a number, or a whole number, is a fact of its type. Its size is not: steps saturate at 2^62,
which brings neighbours no further apart.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, overload

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.losses.fields import Field
from dalenius.privacy import numbers, records
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity


class Bounded(Field):
    """A field for a sensitivity: a number is that of one number, in every norm."""

    def __init__(self) -> None:
        super().__init__(_read, None, None)

    @overload
    def __get__(self, instance: None, owner: type) -> Bounded: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Sensitivity: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        return self.fetch(instance)

    def __set__(self, instance: object, value: Sensitivity | Number) -> None:
        self.store(instance, value)


def _read(value: object, name: str) -> Sensitivity:
    return value if isinstance(value, Sensitivity) else Sensitivity.of_number(numbers.positive(value, name))


def read_sensitivity(value: Sensitivity | Number) -> Sensitivity:
    """A sensitivity, or a number as that of one number."""
    return _read(value, "sensitivity")


def read_grid(grid: object, default: Grid) -> Grid:
    """A grid, or the default where there is none."""
    if grid is not None and not isinstance(grid, Grid):
        raise InvalidArgument(
            "grid must be a Grid.", remedy="Pass Grid(0) for whole numbers, or leave it out."
        )
    return grid if isinstance(grid, Grid) else default


def read_flag(value: object, name: str) -> bool:
    """True or False, and nothing that is merely taken for one."""
    if not isinstance(value, bool):
        raise InvalidArgument(f"{name} must be True or False.", remedy=f"Pass {name} as a bool.")
    return value


def default_grid(sensitivity: Sensitivity, norm: str, fineness: int, scale: Fraction = Fraction(0)) -> Grid:
    """So fine that rounding onto it costs a share of at most 2^−fineness.

    Where noise of `scale` would then have more than 2^39 steps it is coarser, by no more than costs 2^−6.
    """
    least = sensitivity.need(norm) / 2**fineness
    return Grid.within(max(least, min(scale / 2**38, sensitivity.need("linf") / 2**6)))


def steps_of(sensitivity: Sensitivity, grid: Grid, *, exact: bool) -> Sensitivity:
    """The sensitivity in grid steps: as it is where values are whole steps, rounding included elsewhere."""
    if not exact:
        charged = grid.charge(sensitivity)
        if sensitivity.l0 == 1:
            most = math.ceil(sensitivity.linf / grid.step) if sensitivity.linf is not None else None
            return Sensitivity(l0=1, linf=most, relation=sensitivity.relation)
        return charged
    l1, l2, linf = (
        None if bound is None else bound / grid.step
        for bound in (sensitivity.l1, sensitivity.l2, sensitivity.linf)
    )
    whole = (None if bound is None else Fraction(math.floor(bound)) for bound in (l1, linf))
    l1, linf = whole
    if linf is not None and linf < 1:
        raise InvalidArgument(
            "The sensitivity is below one grid step.", remedy="Choose a grid no coarser than the sensitivity."
        )
    return Sensitivity(l0=sensitivity.l0, l1=l1, l2=l2, linf=linf, relation=sensitivity.relation)


def whole_steps(value: Any) -> Steps:
    """Return an aggregate as whole steps. That it holds integers is a fact of its type, not of its values.

    A number alone is refused by its type, and so is an array. A list has cells of any type, each of which is
    read by itself: rounded toward zero, and 0 where it is no number.
    """
    if isinstance(value, list | tuple):
        return records.whole_steps(np.ravel(np.asarray(value, dtype=object)))
    array = np.asarray(value, dtype=object if isinstance(value, int) else None)
    alone: Any = 0 if array.ndim else array[()]
    if isinstance(alone, bool) or not isinstance(alone, int | np.integer):
        raise InvalidArgument(
            "value must be whole grid steps, of an integer type.",
            remedy="Quantize each record first, or make the mechanism with exact=False.",
        )
    return records.whole_steps(value)


def real(value: object) -> int | float | Fraction:
    """A number by its type, as exact as that is."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | np.integer | np.floating):
        raise InvalidArgument(
            "value must be a number or an array of numbers.", remedy="Convert it to float64 first."
        )
    if isinstance(value, int | Fraction):
        return value
    if isinstance(value, np.longdouble) and np.isfinite(value):
        return Fraction(*value.as_integer_ratio())
    return int(value) if isinstance(value, np.integer) else float(value)
