"""Noise on a grid: what the mechanisms that add noise to numbers and vectors share.

A value enters as whole steps of a power-of-two grid, a whole number of steps of exact noise is added, and
the sum leaves as a multiple of the step. Two ways in, told apart by the mechanism and not by the value:

    exact=False   the value is a number, or a vector, computed by the caller; it is rounded toward zero onto
                  the grid, which is charged: ⌈Δ/g⌉ steps for a number (see `privacy.quantized` for vectors)
    exact=True    the value is a whole number of steps, every record having been rounded by itself

Steps saturate at 2^62 on the way in, which brings neighbours no further apart; NaN counts as zero. What the
grid's arithmetic does to the output is post-processing.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.losses.fields import Field
from dalenius.mechanisms.mechanism import Law, Mechanism, risk
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import MOST, Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Unit
from dalenius.release import AGGREGATE, CONFIDENCE, EXACT, Cell, Release

MOST_LISTED = 1 << 21
"""How far from its centre a law is listed."""
LEFT_OUT = 1e-18
"""How much of a law `probabilities` may leave out."""


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
        instance.__dict__["of_one_number"] = not isinstance(value, Sensitivity)


def _read(value: object, name: str) -> Sensitivity:
    return value if isinstance(value, Sensitivity) else Sensitivity(l0=1, linf=numbers.positive(value, name))


def read_sensitivity(value: Sensitivity | Number) -> Sensitivity:
    """A sensitivity, or a number as that of one number."""
    return _read(value, "sensitivity")


class Additive(Mechanism):
    """Noise of `scale` on values of `sensitivity`, in steps of `grid`."""

    scale: Any
    sensitivity: Any
    grid: Grid | None
    exact: bool
    of_one_number: bool
    norm: ClassVar[str]
    fineness: ClassVar[int]

    def __post_init__(self) -> None:
        default = default_grid(self.sensitivity, self.norm, self.fineness)
        object.__setattr__(self, "grid", read_grid(self.grid, default))
        read_flag(self.exact, "exact")
        _ = self.loss

    # What each of them says.

    @abstractmethod
    def draw(self, size: int) -> Steps:
        """Noise, in steps."""

    @abstractmethod
    def masses(self, steps: Steps) -> NDArray[np.float64]:
        """P(noise = k) for each k, as floats."""

    @abstractmethod
    def beyond(self, steps: int) -> float:
        """At least P(|noise| > k)."""

    # What follows from it.

    @property
    def step(self) -> Fraction:
        """The distance between grid points."""
        assert self.grid is not None
        return self.grid.step

    @cached_property
    def charged(self) -> Sensitivity:
        """The sensitivity in steps, rounding onto the grid included."""
        assert self.grid is not None
        return steps_of(self.sensitivity, self.grid, exact=self.exact)

    @property
    def numerics(self) -> str:
        """Whether the caller's own arithmetic is covered."""
        return EXACT if self.exact else AGGREGATE

    def release(
        self, value: Any, *, name: str = "value", unit: Unit | None = None, confidence: Number = CONFIDENCE
    ) -> Release:
        """Draw once on a private number or vector."""
        reach = self.reach(risk(1 - _confidence(confidence)))
        if self.of_one_number and np.ndim(value) > 0:
            raise InvalidArgument(
                "sensitivity was stated for one number, and value is a vector.",
                remedy="Pass sensitivity=Sensitivity(l0=…, linf=…): how many entries one unit can change, "
                "and by how much.",
            )
        steps = self.steps(value)
        noisy = steps + np.clip(self.draw(steps.size), -MOST, MOST - 1)
        columns = {
            name: self.values(noisy),
            f"{name}_low": self.values(noisy - reach),
            f"{name}_high": self.values(noisy + reach),
        }
        return replace(
            self._released(columns, (name,), unit), confidence=numbers.exact(confidence, "confidence")
        )

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Independent draws on a public value, one row each."""
        steps = self.steps(value)
        draws = steps + np.clip(self.draw(size * steps.size), -MOST, MOST - 1).reshape(size, steps.size)
        found = np.array(draws * float(self.step))
        return found[:, 0] if np.ndim(value) == 0 else found

    def worst_case(self) -> tuple[Any, Any]:
        """Nothing, and the whole sensitivity in one number."""
        far = math.floor(min(self.charged.need(self.norm), self.charged.need("linf")))
        return (0, far) if self.exact else (0, far * self.step)

    def probabilities(self, value: Any) -> Law | None:
        """The noise's law, moved; of a number, and where the grid is not too fine to list it."""
        if np.ndim(value) != 0:
            return None
        # As far beyond as neighbours may be apart, so that what one law leaves out the other lists.
        reach = self.reach(Fraction(LEFT_OUT)) + math.floor(self.charged.need("linf"))
        if reach > MOST_LISTED:
            return None
        steps = np.arange(-reach, reach + 1)
        place = int(self.steps(value)[0])
        outcomes = tuple((place + k) * self.step for k in steps.tolist())
        return Law(outcomes, self.masses(steps), LEFT_OUT)

    def error(self, alpha: Number = 1 - CONFIDENCE) -> float:
        """The half-width of a number's error bar: P(|noise| > error) ≤ alpha, as near as the grid allows."""
        return float(self.reach(risk(alpha)) * self.step)

    def reach(self, alpha: Fraction) -> int:
        """The least k with P(|noise| > k) ≤ alpha, in steps."""
        if alpha not in self._reaches:
            self._reaches[alpha] = self._reach(alpha)
        return self._reaches[alpha]

    @cached_property
    def _reaches(self) -> dict[Fraction, int]:
        """Those already asked for: they depend on public parameters only."""
        return {}

    def _reach(self, alpha: Fraction) -> int:
        low, high = -1, 1
        while self.beyond(high) > alpha:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.beyond(middle) > alpha else (low, middle)
        return high

    def steps(self, value: Any) -> Steps:
        """The value in steps, saturated."""
        if self.exact:
            return _whole(value)
        assert self.grid is not None
        flat = np.ravel(np.asarray(value, dtype=object)).tolist()
        found = [max(-MOST, min(MOST, self.grid.aggregate(_real(v)))) for v in flat]
        return np.array(found, dtype=np.int64)

    def values(self, steps: Steps) -> list[Cell]:
        """Steps as numbers: whole ones on a grid of whole numbers."""
        whole = self.step.denominator == 1
        return [int(k * self.step) if whole else float(k * self.step) for k in steps.tolist()]


def _confidence(value: Number) -> Fraction:
    """Of an error bar, strictly between 0 and 1."""
    found = numbers.exact(value, "confidence")
    if not 0 < found < 1:
        raise InvalidArgument("confidence must be between 0 and 1.", remedy="Choose confidence such as 0.95.")
    return found


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


def default_grid(sensitivity: Sensitivity, norm: str, fineness: int) -> Grid:
    """So fine that rounding onto it costs a share of at most 2^−fineness."""
    return Grid.within(sensitivity.need(norm) / 2**fineness)


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


def _whole(value: Any) -> Steps:
    """Whole steps. That they are integers is a fact of their type, not of their values."""
    listed = value if isinstance(value, list | tuple) else [value]
    if all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in listed):
        return np.array([max(-MOST, min(MOST, int(v))) for v in listed], dtype=np.int64)
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise InvalidArgument(
            "value must be whole grid steps, of an integer type.",
            remedy="Quantize each record first, or make the mechanism with exact=False.",
        )
    if array.dtype.kind == "u":
        array = np.minimum(
            array, np.asarray(MOST, dtype=array.dtype if array.dtype.itemsize == 8 else np.uint64)
        )
    return np.clip(np.ravel(array).astype(np.int64), -MOST, MOST)


def _real(value: object) -> int | float | Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | np.integer | np.floating):
        raise InvalidArgument(
            "value must be a number or an array of numbers.", remedy="Convert it to float64 first."
        )
    if isinstance(value, int | Fraction):
        return value
    if isinstance(value, np.longdouble) and np.isfinite(value):
        return Fraction(*value.as_integer_ratio())
    return int(value) if isinstance(value, np.integer) else float(value)
