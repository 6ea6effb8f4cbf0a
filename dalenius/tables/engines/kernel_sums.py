"""Sums of weighted amounts by group, exact whatever they are: 64-bit limbs, emptied before they can overflow.

An amount is cut into limbs of 31 bits, the uppermost with its sign. A limb times a weight is below 2^46 in
size, so 2^16 of them stay below 2^62; what has gathered is moved to Python's integers before that is passed.
How many limbs there are follows from the range, never from values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.privacy.quantized import MOST
from dalenius.tables.engines.engine import WEIGHT, Integers, Measure
from dalenius.tables.rows import Range

Places = NDArray[np.intp]
Amounts = NDArray[np.int64] | NDArray[np.object_]
_LIMB = 31
_ROOM = 2**62
_EXACT = 2**52
"""Up to here floats hold every whole number, and halves of them."""


@dataclass(frozen=True)
class Steps:
    """A range in whole steps."""

    range: Range

    def __post_init__(self) -> None:
        least, most = self.ends
        if least > most:
            raise InvalidArgument(
                "Between lower and upper lies no grid point.",
                remedy="Choose a finer grid, or ends further apart.",
            )

    @property
    def ends(self) -> tuple[int, int]:
        """The outermost grid points, the offset not taken off."""
        step = self.range.grid.step
        return math.ceil(self.range.lower / step), math.floor(self.range.upper / step)

    @property
    def bound(self) -> int:
        """The most that steps are from zero."""
        least, most = self.ends
        return max(abs(least - self.range.offset), abs(most - self.range.offset))

    def of(self, values: NDArray[np.float64]) -> Amounts:
        """The steps of values, none of which is NaN."""
        (least, most), offset, grid = self.ends, self.range.offset, self.range.grid
        if max(abs(least), abs(most), abs(offset)) > _EXACT:
            steps = grid.quantize(values, lower=self.range.lower, upper=self.range.upper)
            return steps.astype(object) - offset if max(self.bound, abs(offset)) >= MOST else steps - offset
        with np.errstate(all="ignore"):
            # A power of two is exact but where the result is below one step, or an infinity.
            held: NDArray[np.float64] = np.clip(values * 2.0**-grid.exponent, least, most)
            return held.astype(np.int64) - offset

    def leaves(self, values: NDArray[np.float64], levels: int) -> NDArray[np.intp]:
        """The leaves of a tree where values fall."""
        least, most = self.ends
        count, steps = most - least + 1, self.of(values)
        wide = steps.astype(object) if (self.bound + count) << levels >= _ROOM else steps
        leaves: Amounts = (wide - (least - self.range.offset)) * 2**levels // count
        return leaves.astype(np.intp)


class Sum:
    """One integer for each group."""

    def __init__(self, groups: int, bound: int) -> None:
        self._limbs = max(1, -(-bound.bit_length() // _LIMB))
        self._part = min(bound, 1 << _LIMB) * WEIGHT
        self._sums = np.zeros((self._limbs, groups), np.int64)
        self._whole = np.zeros(groups, object)
        self._gathered = 0

    def add(self, places: Places, weights: NDArray[np.int64], amounts: Amounts | None) -> None:
        """Add weighted amounts, or the weights alone."""
        if self._gathered + len(places) * self._part >= _ROOM:
            self._empty()
        self._gathered += len(places) * self._part
        for limb in range(self._limbs):
            parts = weights if amounts is None else weights * self._limb(amounts, limb)
            np.add.at(self._sums[limb], places, parts)

    def _limb(self, amounts: Amounts, limb: int) -> NDArray[np.int64]:
        if self._limbs == 1:
            return amounts.astype(np.int64, copy=False)
        part = amounts >> (_LIMB * limb)
        last = limb == self._limbs - 1
        return (part if last else part & ((1 << _LIMB) - 1)).astype(np.int64, copy=False)

    def _empty(self) -> None:
        for limb in range(self._limbs):
            self._whole += self._sums[limb].astype(object) * (1 << _LIMB * limb)
        self._sums[:], self._gathered = 0, 0

    def total(self) -> NDArray[np.object_]:
        """What has been added, for each group."""
        self._empty()
        return self._whole


class Plain:
    """Rows, or rows with a value, or steps, or squares of steps: one integer a group."""

    def __init__(self, measure: Measure, groups: int) -> None:
        self.measure = measure
        self._steps = None if measure.range is None else Steps(measure.range)
        self._sum = Sum(groups, self._bound())

    def _bound(self) -> int:
        if self._steps is None or self.measure.kind in ("rows", "present"):
            return 1
        bound = self._steps.bound
        return bound if self.measure.kind == "sum" else bound * bound >> self.measure.shift

    def add(self, places: Places, weights: NDArray[np.int64], values: NDArray[np.float64] | None) -> None:
        """Add rows with their weights; `values` has no NaN."""
        self._sum.add(places, weights, self._amounts(values))

    def _amounts(self, values: NDArray[np.float64] | None) -> Amounts | None:
        if values is None or self._steps is None or self.measure.kind in ("rows", "present"):
            return None
        steps = self._steps.of(values)
        if self.measure.kind == "sum":
            return steps
        wide = steps.astype(object) if self._steps.bound >= 1 << _LIMB else steps
        return wide * wide >> self.measure.shift

    def total(self) -> Integers:
        """A column."""
        return self._sum.total()[:, np.newaxis]


class Tree:
    """The nodes of a tree over the range, leaves first summed up."""

    def __init__(self, measure: Measure, groups: int) -> None:
        assert measure.range is not None
        self.measure, self._steps, self._groups = measure, Steps(measure.range), groups
        self._leaves = np.zeros(groups << measure.levels, np.int64)

    def add(self, places: Places, weights: NDArray[np.int64], values: NDArray[np.float64] | None) -> None:
        """Add rows with their weights; `values` has no NaN."""
        assert values is not None
        levels = self.measure.levels
        np.add.at(self._leaves, (places << levels) + self._steps.leaves(values, levels), weights)

    def total(self) -> Integers:
        """The nodes of level 1, then those of level 2, and so on."""
        shape = self._leaves.reshape(self._groups, -1)
        levels = range(1, self.measure.levels + 1)
        return np.concatenate([shape.reshape(self._groups, 1 << n, -1).sum(axis=2) for n in levels], axis=1)
