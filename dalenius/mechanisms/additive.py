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
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.losses.calibration import calibrate
from dalenius.mechanisms.gridded import (
    default_grid,
    read_flag,
    read_grid,
    real,
    steps_of,
    whole_steps,
)
from dalenius.mechanisms.mechanism import Floats, Law, risk
from dalenius.mechanisms.moves import furthest, in_turn
from dalenius.mechanisms.step_noise import StepNoise
from dalenius.privacy import numbers, records
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import MOST, Steps
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Unit
from dalenius.release import AGGREGATE, CONFIDENCE, EXACT, Cell, Release

Kind = TypeVar("Kind", bound="Additive")


class Additive(StepNoise):
    """Noise of `scale` on values of `sensitivity`, in steps of `grid`."""

    scale: Any
    sensitivity: Any
    exact: bool
    norm: ClassVar[str]
    fineness: ClassVar[int]

    def __post_init__(self) -> None:
        default = default_grid(self.sensitivity, self.norm, self.fineness, self.scale)
        object.__setattr__(self, "grid", read_grid(self.grid, default))
        read_flag(self.exact, "exact")
        _ = self.loss

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
        reach = self.reach(risk(1 - numbers.confidence(confidence)))
        if self.sensitivity.of_one_number and is_vector(value):
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
        return found if is_vector(value) else found[:, 0]

    def worst_case(self) -> tuple[Any, Any]:
        """Nothing, and all of the sensitivity."""
        return self.cases()[0]

    def cases(self) -> list[tuple[Any, Any]]:
        """All of the sensitivity in the first entries of a vector, and in later ones; or in one number."""
        unit = 1 if self.exact else self.step
        move = furthest(self.charged, self.norm)
        if self.charged.l0 == 1:
            return [(0, move[0] * unit)]
        return [([0] * len(steps), [k * unit for k in steps]) for steps in in_turn(move, self.charged.l0)]

    def log_ratio(self, draws: NDArray[Any], pair: tuple[Any, Any]) -> Floats:
        """The sum over entries, whose noise is independent."""
        found = np.rint(draws.reshape(len(draws), -1) / float(self.step)).astype(np.int64)
        return self.log_ratios(found, *(self.steps(value) for value in pair))

    def probabilities(self, value: Any) -> Law | None:
        """The noise's law, moved; of a number, and where the grid is not too fine to list it."""
        if is_vector(value):
            return None
        # As far beyond as neighbours may be apart, so that what one law leaves out the other lists.
        return self.listed(int(self.steps(value)[0]), math.floor(self.charged.need("linf")))

    def steps(self, value: Any) -> Steps:
        """The value in steps, saturated."""
        if self.exact:
            return whole_steps(value)
        assert self.grid is not None
        if not is_vector(value):
            value = real(value[()] if isinstance(value, np.ndarray) else value)
        # A cell of a vector that is no number counts as 0: no entry is refused.
        flat = np.ravel(np.asarray(value, dtype=object)).tolist()
        return np.array([records.steps(cell, self.grid) for cell in flat], dtype=np.int64)

    def values(self, steps: Steps) -> list[Cell]:
        """Steps as numbers: whole ones on a grid of whole numbers."""
        whole = self.step.denominator == 1
        return [int(k * self.step) if whole else float(k * self.step) for k in steps.tolist()]


def is_vector(value: object) -> bool:
    """Whether a value has entries, ragged or not."""
    return np.asarray(value, dtype=object).ndim > 0


def least_noise(draft: Kind, *, epsilon: Number, delta: Number) -> Kind:
    """The draft with the least scale that makes one release (epsilon, delta)-differentially private."""
    norm = draft.charged.need(draft.norm) * draft.step

    def scaled(ratio: Fraction) -> Kind:
        return cast(Kind, replace(cast(Any, draft), scale=ratio * norm))

    return scaled(calibrate(lambda ratio: scaled(ratio).loss, epsilon=epsilon, delta=delta, name="scale"))
