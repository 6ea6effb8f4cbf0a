"""The sum of bounded values: each record clipped and rounded by itself, exact integer sums, then noise.

Theorem. Clipped into [l, u] and rounded toward zero onto the grid, a record is a whole number of steps from
⌈l/g⌉ to ⌊u/g⌋, a function of itself alone. A unit with at most k records moves the exact sum by at most
    k·max(|l|, |u|)              under add_remove and zero_out (a null record adds nothing),
    u − l                        under replace, where each unit has exactly one record,
    k·(max(u, 0) − min(l, 0))    under replace, where k > 1: how many records a unit has may change too;
each bound is attained by grid points. Noise follows `laplace` or `gaussian`. Rounding adds nothing to the
sensitivity (compare Casacuberta, Shoemate, Vadhan and Wagaman 2022, who break sums of floats).

The error bars are the noise's law: they hold the sum of the clipped values on the grid, however large it is,
their ends rounded outward. Rounding onto the grid may lower its magnitude by at most g a record: on the
default grid 2⁻³⁰ of the sensitivity, or 2⁻³⁸ of the noise's scale where that is more; on Grid(0), which has
to be asked for, nothing for whole numbers. What clipping removes depends on the data and is in no bar.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.mechanism import Law
from dalenius.mechanisms.ranged import Ranged
from dalenius.mechanisms.tally import cells, outward
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Steps
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Unit
from dalenius.release import CONFIDENCE, Release


class BoundedSum(Ranged, kind="bounded_sum"):
    """Noise of `scale` on the sum of values within [lower, upper]."""

    @property
    def quantum(self) -> Fraction:
        """2⁻³⁰ of the sensitivity."""
        return self._reach(self.lower, self.upper) / 2**30

    @property
    def bound(self) -> Sensitivity:
        """See the module."""
        least, most = (end * self.step for end in self.ends)
        return Sensitivity(l0=1, linf=self._reach(least, most), relation=self.relation)

    def vectors(self, value: Any) -> Steps:
        """Steps; above the least where the number of records is public, which is added in the end."""
        steps, present = self.quantized(value)
        return np.where(present, steps - self._base, 0).reshape(-1, 1)

    def release(
        self,
        value: Any,
        *,
        ids: Any = None,
        name: str = "sum",
        unit: Unit | None = None,
        confidence: Number = CONFIDENCE,
    ) -> Release:
        """Draw once on private records; `ids` says whose each is, where a unit may have several."""
        alpha = 1 - numbers.confidence(confidence)
        reach = self.additive.reach(alpha)
        rows = self.rows(value, ids)
        total = self.noisy(rows)[0] + len(rows) * self._base
        ends = [total, total - reach, total + reach]
        whole = self.step.denominator == 1
        found = cells(ends, self.step) if whole else outward(*(end * self.step for end in ends))
        return self.one(name, found, ids=ids, unit=unit, alpha=alpha)

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Independent draws on public records."""
        return np.array(super().sample(value, size) + float(self._offset(value)))

    def probabilities(self, value: Any) -> Law | None:
        """The noise's law, moved."""
        law, offset = super().probabilities(value), self._offset(value)
        if law is None:
            return None
        return Law(tuple(outcome + offset for outcome in law.outcomes), law.masses, law.rest)

    def worst_case(self) -> tuple[Any, Any]:
        """The least and the most that a unit can add, beside one record as near zero as may be."""
        least, most = (float(end * self.step) for end in self.ends)
        if self.relation != "replace":
            near, far = min(max(least, 0.0), most), max(least, most, key=abs)
            return np.array([near]), np.array([near] + [far] * self.per_unit)
        one = self.per_unit == 1
        return (
            np.array([least] * self.per_unit if least < 0 or one else []),
            np.array([most] * self.per_unit if most > 0 or one else []),
        )

    def error(self, alpha: Number = 1 - CONFIDENCE) -> float:
        """The half-width of the error bar, by the noise's law."""
        found = self.additive.error(alpha)
        assert found is not None
        return found

    @property
    def _base(self) -> int:
        """The least step, where each of a public number of records has at least so much."""
        return self.ends[0] if self.relation == "replace" and self.per_unit == 1 else 0

    def _offset(self, value: Any) -> Fraction:
        return len(self.vectors(value)) * self._base * self.step

    def _reach(self, lower: Fraction, upper: Fraction) -> Fraction:
        """How far one unit moves the sum of values between these."""
        if self.relation != "replace":
            return self.per_unit * max(abs(lower), abs(upper))
        if self.per_unit == 1:
            return upper - lower
        return self.per_unit * (max(upper, Fraction(0)) - min(lower, Fraction(0)))
