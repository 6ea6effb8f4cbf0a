"""The variance of bounded values, by three noisy sums of squares and products.

Theorem. A record of t steps above the least, of W, contributes t² to B₀, 2t(W − t) to B₁ and (W − t)² to B₂:
never negative, in sum exactly W² (the Bernstein polynomials of degree two). So a unit with k records moves
(B₀, B₁, B₂) by at most kW² in L1 and in L2 under add_remove, attained by records at an end; by 2kW² in L1 and
√2·kW² in L2 under replace. With N = B₀ + B₁ + B₂ the variance, with the number of records as its divisor, is
    (upper − lower)²·(B₀B₂ − B₁²/4)/N²,
and the number of records and the mean are known from the same sums. What noise makes negative becomes 0, and
what is above (upper − lower)²/4, the most a variance can be, becomes that (Popoviciu 1935).

Error bars: each sum is within `reach` of the truth except with a third of the risk (Bonferroni). On that
cube the formula falls with B₁; along B₀ it first rises and then falls, with the top at B₁ + B₂ + B₁²/(2B₂),
and so along B₂. Hence its least value is at a corner, and its largest at a corner or at such a top on an
edge: inside the square both slopes vanish only where B₁ = 0 and B₀ = B₂, a line that meets the edges. The
bars hold the variance of the clipped values on the grid at least as often as stated; they depend on the
released sums, so `error` is None.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import isqrt
from typing import Any, ClassVar

import numpy as np

from dalenius.mechanisms.ranged import Ranged
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Unit
from dalenius.release import CONFIDENCE, Release


class Variance(Ranged, kind="variance"):
    """Noise of `scale`, in squared units, on sums of squares of values within [lower, upper]."""

    bits: ClassVar[int] = 30

    @property
    def quantum(self) -> Fraction:
        """2⁻¹⁶ of the range: squares leave room for 2^28 records."""
        return (self.upper - self.lower) * isqrt(self.per_unit) / 2**16

    @property
    def bound(self) -> Sensitivity:
        """W² for each record."""
        least, most = self.ends
        norm = self.per_unit * (most - least) ** 2 * self.step
        return Sensitivity.of_sum(l0=3, l1=norm, nonnegative=True, relation=self.relation)

    @property
    def sums_grid(self) -> Grid:
        """That of the squares."""
        return Grid(2 * self.values_grid.exponent)

    def vectors(self, value: Any) -> Steps:
        """(t², 2t(W − t), (W − t)²)."""
        steps, present = self.quantized(value)
        least, most = self.ends
        above, below = steps - least, most - steps
        return np.where(present, [above * above, 2 * above * below, below * below], 0).T

    def cases(self) -> list[tuple[Any, Any]]:
        """Records at one end, at the other, and in the middle, which is in all three sums."""
        least, most = (float(end * self.values_grid.step) for end in self.ends)
        middle, low = (np.full(self.per_unit, place) for place in ((least + most) / 2, least))
        if self.relation == "replace":
            return [self.worst_case(), (middle, low)]
        return [self.worst_case(), *((np.append(least, unit), np.array([least])) for unit in (low, middle))]

    def release(
        self,
        value: Any,
        *,
        ids: Any = None,
        name: str = "variance",
        unit: Unit | None = None,
        confidence: Number = CONFIDENCE,
    ) -> Release:
        """Draw once on private records; `ids` says whose each is, where a unit may have several."""
        alpha = 1 - numbers.confidence(confidence)
        sums = self.noisy(self.rows(value, ids))
        least, most = self.ends
        parts = spread(sums, self.additive.reach(alpha / 3))
        held = [min(max(part, Fraction(0)), Fraction(1, 4)) for part in parts]
        found = [float(part * (most - least) ** 2 * self.step) for part in held]
        made = self.one(name, found, ids=ids, unit=unit, alpha=alpha)
        note = "the variance of the noisy sums, held between 0 and the largest possible"
        return made.postprocess(note, made.columns)


def spread(sums: list[int], reach: int) -> tuple[Fraction, Fraction, Fraction]:
    """The variance of shares, and its range while each sum is within `reach` of the truth."""
    first, middle, last = ((max(part - reach, 0), max(part + reach, 0)) for part in sums)
    corners: list[tuple[int | Fraction, int | Fraction]] = [*product(first, last)]
    tops = [(_top(middle[0], y, first), y) for y in last] + [(x, _top(middle[0], x, last)) for x in first]
    low = min(_formula(x, middle[1], y) for x, y in corners)
    high = max(_formula(x, middle[0], y) for x, y in [*corners, *tops])
    return _formula(*(max(part, 0) for part in sums)), low, high


def _formula(first: int | Fraction, middle: int, last: int | Fraction) -> Fraction:
    total = Fraction(first + middle + last)
    return (first * last - Fraction(middle) ** 2 / 4) / total**2 if total else Fraction(0)


def _top(middle: int, other: int, ends: tuple[int, int]) -> Fraction:
    """Where along one sum the variance is largest."""
    top = middle + other + Fraction(middle**2, 2 * other) if other else Fraction(ends[1])
    return min(max(top, Fraction(ends[0])), Fraction(ends[1]))
