"""The mean of bounded values, by two noisy sums: how far the values are above `lower`, and below `upper`.

Theorem. A record of t steps above the least, of W, contributes t to A and W − t to B: never negative, in
sum exactly W. So a unit with k records moves (A, B) by at most kW in L1 and in L2, attained by records at an
end, whatever the values are; the number of records is A + B over W, and costs nothing more. The mean is
    lower + (upper − lower)·A/(A + B),
whose error near p = A/(A + B) is the noise (1 − p)a − pb over the number of records. With Laplace noise its
variance is half that of a centred sum over a count, each paid with half the budget; Kulesza, Suresh and Wang
2024 show this transformation to be optimal, in the leading constant, for small ε. Under replace the number of
records is public, and A alone is noisy, with sensitivity W.

Error bars are those of `shares`: they hold the mean of the clipped values on the grid with the stated
probability, on fine grids hardly more often, and are within [lower, upper]. They depend on the released sums,
so `error` is None. Without any record there is no mean, and the bars mean nothing.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dalenius.errors import NotSound
from dalenius.mechanisms.ranged import Ranged
from dalenius.mechanisms.shares import share
from dalenius.mechanisms.tally import outward
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Steps
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Unit
from dalenius.release import CONFIDENCE, Release


class BoundedMean(Ranged, kind="bounded_mean"):
    """Noise of `scale` on how far values within [lower, upper] are from either end, summed up."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.relation == "replace" and self.per_unit > 1:
            raise NotSound(
                "Under replace a mean needs a public number of records: one of each unit.",
                remedy="Take one record of each unit (per_unit=1), or state it for relation='add_remove'.",
            )

    @property
    def quantum(self) -> Fraction:
        """2⁻³⁰ of the sensitivity."""
        return self.per_unit * (self.upper - self.lower) / 2**30

    @property
    def bound(self) -> Sensitivity:
        """W for each record."""
        least, most = self.ends
        return Sensitivity(l0=2, l1=self.per_unit * (most - least) * self.step, relation=self.relation)

    def vectors(self, value: Any) -> Steps:
        """(t, W − t); t alone under replace."""
        steps, present = self.quantized(value)
        least, most = self.ends
        both = np.where(present, [steps - least, most - steps], 0).T
        return both[:, :1] if self.relation == "replace" else both

    def release(
        self,
        value: Any,
        *,
        ids: Any = None,
        name: str = "mean",
        unit: Unit | None = None,
        confidence: Number = CONFIDENCE,
    ) -> Release:
        """Draw once on private records; `ids` says whose each is, where a unit may have several."""
        alpha = 1 - numbers.confidence(confidence)
        least, most = self.ends
        rows = self.rows(value, ids)
        sums = self.noisy(rows)
        if self.relation == "replace":
            shares = _public(sums[0], len(rows) * (most - least), self.additive.reach(alpha))
        else:
            shares = share(sums[0], sums[1], self.additive, alpha)
        found = outward(*((least + Fraction(part) * (most - least)) * self.step for part in shares))
        made = self.one(name, found, ids=ids, unit=unit, alpha=alpha)
        return made.postprocess("the mean of the noisy sums", made.columns)


def _public(part: int, whole: int, reach: int) -> tuple[float, float, float]:
    """A share of a public whole, with its bar; anything where there is no record."""
    if whole == 0:
        return 0.5, 0.0, 1.0
    middle, low, high = (min(max(end, 0), whole) / whole for end in (part, part - reach, part + reach))
    return middle, low, high
