"""The covariance of bounded columns, by noisy sums of products.

Theorem. Column i, centred at the middle of its bounds and divided by half their distance, is a whole number
yᵢ of steps from −M to M; let y₀ = M. A record contributes the products yᵢyⱼ, 0 ≤ i ≤ j ≤ d, each within ±M²,
so a unit with k records moves the w = (d + 1)(d + 2)/2 sums by at most kwM² in L1 and k√w·M² in L2, attained
by records at the ends. Gaussian noise on all of them is that of Dwork, Talwar, Thakurta and Zhang 2014; it is
the better choice from a few columns on. With n the sum of y₀y₀ over M²,
    covariance = Σyᵢyⱼ/n − (Σyᵢ/n)(Σyⱼ/n),   in units of the two half-distances,
projected onto the nearest positive semidefinite matrix (negative eigenvalues become 0), which is free.

Error bars: the four sums behind an entry are within `reach` of the truth except with a quarter of the risk
each (Bonferroni), and interval arithmetic carries that through the formula; an entry is at most the product
of the half-distances. They hold the covariance of the clipped values on the grid, each entry by itself, at
least as often as stated, and are widened to hold the projected entry. `error` is None, as they depend on
what was released. Under replace no tight bound is stated here: two steps of add_remove make one of replace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.fields import Numbers, Parameter
from dalenius.mechanisms import contributions
from dalenius.mechanisms.laplace_ratio import MOST_NOISE
from dalenius.mechanisms.products import Floats, entries, projected, ranges
from dalenius.mechanisms.tally import Noise, Tally, calibrated, check_bounds, per_unit_count
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid, Steps
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Relation, Unit
from dalenius.release import CONFIDENCE, Release


def _bits(value: object, name: str) -> int:
    return numbers.count(value, name, most=30)


@dataclass(frozen=True)
class Covariance(Tally, kind="covariance"):
    """Noise of `scale`, relative to half the distance of the bounds, on sums of products of columns."""

    _: KW_ONLY
    lower: Numbers = Numbers(numbers.exact)
    upper: Numbers = Numbers(numbers.exact)
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    per_unit: Parameter[int] = Parameter(per_unit_count, 1)
    noise: Noise = "gaussian"
    relation: Relation = "add_remove"
    bits: Parameter[int] = Parameter(_bits, 14)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.lower) != len(self.upper) or not 1 <= len(self.lower) <= 1000:
            raise InvalidArgument(
                "lower and upper must be equally long, from 1 to 1000.", remedy="Give each column its bounds."
            )
        for least, most in zip(self.lower, self.upper, strict=True):
            check_bounds(least, most)
        if self.relation == "replace":
            raise NotSound(
                "No tight bound on products is known here under replace.",
                remedy="State it for relation='add_remove': two such steps make one of replace.",
            )

    @property
    def bound(self) -> Sensitivity:
        """Every product at its end."""
        d = len(self.lower)
        return Sensitivity(l0=(d + 1) * (d + 2) // 2, linf=self.per_unit, relation=self.relation)

    @property
    def sums_grid(self) -> Grid:
        """Products of two numbers of `bits` bits."""
        return Grid(-2 * self.bits)

    def vectors(self, value: Any) -> Steps:
        """The products of a record, the pairs in order of rows."""
        values = contributions.table(value, len(self.lower))
        most = 2**self.bits
        middle, half = self._places
        with np.errstate(all="ignore"):
            steps = np.trunc((values - middle) / half * most)
        present = ~np.isnan(steps).any(axis=1)
        whole = np.clip(np.where(present[:, np.newaxis], steps, 0), -most, most).astype(np.int64)
        first, second = np.triu_indices(len(self.lower) + 1)
        full = np.concatenate([np.full((len(whole), 1), most), whole], axis=1)
        return np.where(present[:, np.newaxis], full[:, first] * full[:, second], 0)

    @property
    def missing(self) -> Steps:
        """Nothing."""
        return self.vectors(np.full((1, len(self.lower)), np.nan))

    def release(
        self, value: Any, *, ids: Any = None, unit: Unit | None = None, confidence: Number = CONFIDENCE
    ) -> Release:
        """Draw once on a private table: one row for each entry of the matrix."""
        alpha = 1 - numbers.confidence(confidence)
        d = len(self.lower)
        sums = np.zeros((d + 1, d + 1))
        sums[np.triu_indices(d + 1)] = np.array(self.noisy(self.rows(value, ids)), dtype=float)
        sums = sums + np.triu(sums, 1).T
        units = np.outer(self._places[1], self._places[1])
        found = projected(entries(sums))
        low, high = ranges(sums, self.additive.reach(alpha / 4))
        ends = np.minimum(low, found) * units, found * units, np.maximum(high, found) * units
        columns: dict[str, Any] = {
            "row": np.repeat(np.arange(d), d).tolist(),
            "column": np.tile(np.arange(d), d).tolist(),
        }
        for name, matrix in zip(("covariance_low", "covariance", "covariance_high"), ends, strict=True):
            columns[name] = matrix.ravel().tolist()
        clipped = f"{d} columns clipped to the stated bounds"
        made = self._released(columns, ("covariance",), unit).bounded(clipped, *self.promises(ids))
        note = "the covariance of the noisy sums, projected onto the positive semidefinite matrices"
        return replace(made, confidence=1 - alpha).postprocess(note, columns)

    def worst_case(self) -> tuple[Any, Any]:
        """A record in the middle, and with it as many beyond the upper ends as a unit may have."""
        middle, half = self._places
        return np.array([middle]), np.array([middle] + [middle + 2 * half] * self.per_unit)

    @property
    def _places(self) -> tuple[Floats, Floats]:
        ends = list(zip(self.lower, self.upper, strict=True))
        middle, half = ([float((u + s * v) / 2) for v, u in ends] for s in (1, -1))
        return np.array(middle), np.array(half)

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number,
        lower: Sequence[Number],
        upper: Sequence[Number],
        per_unit: int = 1,
        noise: Noise = "gaussian",
        relation: Relation = "add_remove",
    ) -> Covariance:
        """The least noise with which one release is (epsilon, delta)-differentially private."""
        limit = numbers.epsilon(epsilon)
        draft = Covariance(
            lower=lower, upper=upper, scale=1, per_unit=per_unit, noise=noise, relation=relation
        )
        # As many bits as leave noise that can be counted in steps.
        room = int(MOST_NOISE * limit / draft.bound.need("l1")).bit_length() - 1
        draft = replace(draft, bits=min(draft.bits, max(1, room // 2)))
        return calibrated(draft, epsilon=limit, delta=delta)
