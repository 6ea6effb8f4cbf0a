"""How many values of each unit COUNT(DISTINCT x) counts, by counts for several such numbers.

Let f(k) be the number of different values (over all groups) where each unit keeps k of its own. f grows with
k, as those kept by k are among those kept by more, and so does the noise. Noisy f(k) for k = 1, 2, 4, 16, 64
tell where more is not worth its noise: k is that of the largest f(k) less the noise that comes with it
(Knop and Steinke 2023 choose so with a generalized sparse vector).

**What k leaves out.** More cannot be known: one unit by itself may hold any number of values. It is assumed
that each doubling of k beyond the next rung adds at most half of what the doubling before added. So what is
missing is at most (f(k′) − f(k))/(1 − k/k′), with k′ the next rung, at most as noise allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dalenius.mechanisms.gaussian import Gaussian
from dalenius.tables.planning.budgeting import Additive
from dalenius.tables.planning.deviations import laplace_reach, normal

RUNGS = (1, 2, 4, 16, 64)
DOUBT = 3.0
"""Deviations of its noise that are taken from the count of a rung, where it is chosen."""


@dataclass(frozen=True)
class Ladder:
    """Noisy counts for each rung."""

    counts: tuple[float, ...]
    laws: tuple[Additive, ...]
    noise: float
    """What noise costs a count for each value that a unit keeps."""
    most: int | None = None
    """The most values that a unit can have, where that is known."""

    @cached_property
    def rung(self) -> int:
        """The rung that is chosen: of a count that noise hardly made so large."""
        scores = [
            count - DOUBT * float(law.scale) - self.noise * pairs
            for count, law, pairs in zip(self.counts, self.laws, RUNGS, strict=True)
        ]
        return int(np.argmax(scores))

    @property
    def pairs(self) -> int:
        """How many values of each unit count."""
        return RUNGS[self.rung] if self.most is None else min(RUNGS[self.rung], max(self.most, 1))

    def missing(self, alpha: float) -> float:
        """Return how many values are left out of all groups, at most, at risk alpha."""
        here = self.rung
        if self.most is not None and RUNGS[here] >= self.most:
            return 0.0
        if here + 1 == len(RUNGS):
            return float("inf")
        first, second = self.laws[here], self.laws[here + 1]
        scales = np.array([[float(first.scale)], [float(second.scale)]])
        if isinstance(first, Gaussian):
            reach = normal(alpha) * float(np.hypot(*scales[:, 0])) + 1
        else:
            reach = float(laplace_reach(scales, 1.0, alpha)[0])
        more = max(self.counts[here + 1] - self.counts[here] + reach, 0.0)
        return more / (1 - RUNGS[here] / RUNGS[here + 1])
