"""Sample and aggregate: any function on random blocks of the units, and a private mean of what it gives.

Each unit goes to one of `blocks` blocks, uniformly and by itself, whatever its values. A function, which need
not be private, is applied to each block; its result is rounded toward zero onto a grid and clipped between
`lower` and `upper`. What is no number, or an exception, counts as `default`, a public value. The sum of the
results gets the noise of `mechanism` and is divided by the number of blocks.

Theorem (Nissim, Raskhodnikova and Smith 2007; here for the mean). The loss is that of `mechanism` at the
sensitivity upper − lower, under add_remove, replace and zero_out alike. Proof. Each unit's block is chosen by
itself: let those of all other units be the same on both neighbours. Then one block's result differs, by at
most upper − lower, whatever the function does. Averaging over the choice keeps the bound, as hockey-stick
divergences are jointly convex. ∎ It is attained by a unit alone, whose result goes from one end to the other;
where units come and go and the default is between the ends, in the limit of blocks that others fill.

The function must depend on its block alone: one that keeps something from call to call, or draws on the
outside, is not covered. Its duration and what it prints are not protected. KeyboardInterrupt alone is passed
on, so that a release can be stopped by hand: a function that raises it by itself tells of its block.

The error bar is that of the noise, about the mean of the results; how far that is from what the function
would give on all units together depends on the data.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.losses.fields import Parameter, whole
from dalenius.losses.loss import Loss
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.blocks import Function, given, listed, parted
from dalenius.mechanisms.gridded import read_grid
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.mechanism import Law, Mechanism
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Relation, Unit
from dalenius.release import CONFIDENCE, Release

LISTED = 4096
"""Ways to fill the blocks up to which a law is listed."""


@dataclass(frozen=True)
class SampleAndAggregate(Mechanism, kind="sample_and_aggregate"):
    """The mean over `blocks` of a function from `lower` to `upper`, with the noise of `mechanism`."""

    _: KW_ONLY
    mechanism: Additive
    blocks: Parameter[int] = Parameter(whole)
    lower: Parameter[Fraction] = Parameter(numbers.exact)
    upper: Parameter[Fraction] = Parameter(numbers.exact)
    default: Parameter[Fraction] = Parameter(numbers.exact)

    def __post_init__(self) -> None:
        wide = numbers.positive(self.upper - self.lower, "upper − lower")
        inner = self.mechanism
        if not isinstance(inner, Additive) or not inner.exact or inner.sensitivity.need("linf") < wide:
            raise InvalidArgument(
                "mechanism must add noise to whole steps, for a sensitivity of at least upper − lower.",
                remedy="Use SampleAndAggregate.calibrate, or such a mechanism with exact=True.",
            )
        if not self.lower <= self.default <= self.upper:
            raise InvalidArgument("default must be from lower to upper.", remedy="Choose it between them.")

    @property
    def scale(self) -> Fraction:
        """Of the noise on the mean."""
        return Fraction(self.mechanism.scale) / self.blocks

    @property
    def loss(self) -> Loss:
        """That of one result."""
        return self.mechanism.loss

    def release(self, value: Any, *, function: Function = np.mean, unit: Unit | None = None) -> Release:
        """The mean of the function over blocks of units: an array or list with one entry for each unit."""
        units = listed(value)
        total = self._sum(units, noise.uniform(self.blocks, len(units)).tolist(), function)
        found = self.mechanism.release(total)
        ends = {
            f"value{end}": [float(found[f"value{end}"][0] / self.blocks)] for end in ("", "_low", "_high")
        }
        return self._released(ends, ("value",), unit)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Means over blocks of a few public numbers."""
        units = listed(value)
        if self.blocks ** len(units) > LISTED:
            raise InvalidArgument(
                f"There are over {LISTED} ways to fill the blocks.", remedy="Sample fewer units or blocks."
            )
        ways = list(product(range(self.blocks), repeat=len(units)))
        sums = np.array([self._sum(units, way, np.mean) for way in ways], dtype=np.int64)
        steps = sums[noise.uniform(len(ways), size)] + self.mechanism.draw(size)
        return np.asarray(steps * float(self.mechanism.step) / self.blocks)

    def worst_case(self) -> tuple[Any, Any]:
        """One unit that takes its block from one end to the other, or, where that is empty, from the default.

        Where units come and go and the default is at neither end, there are as many others as can be listed.
        """
        low, high = np.array([float(self.lower)]), np.array([float(self.upper)])
        relation, above = self.loss.relation, self.upper - self.default >= self.default - self.lower
        if relation == "replace":
            return low, high
        if relation == "zero_out":
            return np.full(1, np.nan), high if above else low
        others = 0 if self.default in (self.lower, self.upper) else self._others
        end, far = (low, high + others * (high - low)) if above else (high, low - others * (high - low))
        return np.repeat(end, others), np.append(np.repeat(end, others), far)

    @property
    def _others(self) -> int:
        """How many units besides one have a law that is listed; one block needs no more than one."""
        return max(0, int(math.log(LISTED + 0.5, self.blocks)) - 1) if self.blocks > 1 else 1

    def probabilities(self, value: Any) -> Law | None:
        """Summed over all ways to fill the blocks, for a few units."""
        units = listed(value)
        if self.blocks ** len(units) > LISTED:
            return None
        ways = product(range(self.blocks), repeat=len(units))
        masses: dict[Fraction, float] = {}
        rest = 0.0
        for total, count in Counter(self._sum(units, way, np.mean) for way in ways).items():
            law = self.mechanism.probabilities(total)
            assert law is not None, "a law of one number is closed"
            rest = max(rest, law.rest)
            for outcome, mass in zip(law.outcomes, law.masses.tolist(), strict=True):
                at = Fraction(outcome) / self.blocks
                masses[at] = masses.get(at, 0.0) + mass * count / self.blocks ** len(units)
        return Law(tuple(masses), np.array(list(masses.values())), rest)

    def error(self, alpha: Number = 1 - CONFIDENCE) -> float:
        """How far the noise takes the mean of the results."""
        return self.mechanism.error(alpha) / self.blocks

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number = 0,
        blocks: int,
        lower: Number,
        upper: Number,
        default: Number | None = None,
        relation: Relation = "add_remove",
        grid: Grid | None = None,
    ) -> SampleAndAggregate:
        """Laplace noise on the mean; the default is the middle of the bounds."""
        low, high = numbers.exact(lower, "lower"), numbers.exact(upper, "upper")
        wide = numbers.positive(high - low, "upper − lower")
        inner = Laplace.calibrate(
            epsilon=epsilon,
            delta=delta,
            sensitivity=Sensitivity(l0=1, linf=wide, relation=relation),
            grid=read_grid(grid, Grid.within(wide / 2**20)),
            exact=True,
        )
        middle = (low + high) / 2 if default is None else numbers.exact(default, "default")
        return SampleAndAggregate(mechanism=inner, blocks=blocks, lower=low, upper=high, default=middle)

    def _sum(self, units: Any, places: Sequence[int], function: Function) -> int:
        """The sum of the results, in steps."""
        return sum(self._result(units, block, function) for block in parted(places, self.blocks))

    def _result(self, units: Any, members: list[int], function: Function) -> int:
        """One block's result, in steps within the bounds."""
        found, grid = given(function, units, members), self.mechanism.grid
        assert grid is not None
        steps = grid.aggregate(self.default if math.isnan(found) else found)
        least, most = math.ceil(self.lower / grid.step), math.floor(self.upper / grid.step)
        return max(least, min(most, steps))
