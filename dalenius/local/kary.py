"""k-ary randomized response: the item itself, or with the rest of the probability any other one.

Theorem (Warner 1965; Kairouz, Bonawitz and Ramage 2016). A report is the item with p = e^ε/(e^ε + k − 1),
each other one with q = 1/(e^ε + k − 1): ε-private, ⌈log₂ k⌉ bits. For a rare item n·variance is (e^ε + k −
2)/(e^ε − 1)², which grows with k; the best of all oracles for k up to about 3e^ε + 2 (Wang, Blocki, Li and
Jha 2017).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.local.crowds import binomials, uniform_counts
from dalenius.local.frequency import SetResponse
from dalenius.local.randomizer import Estimates, Ints, ratio_of
from dalenius.local.reports import Rows
from dalenius.privacy.numbers import Number


@dataclass(frozen=True)
class KaryResponse(SetResponse, kind="kary_response"):
    """The set of an item is the item."""

    @property
    def reports(self) -> int:
        """The items."""
        return self.domain

    @property
    def size(self) -> int:
        """One."""
        return 1

    @property
    def differing(self) -> int:
        """One."""
        return 1

    def within(self, reports: Rows, item: int) -> NDArray[np.bool_]:
        """The item itself."""
        return np.equal(reports[:, 0], item)

    def randomize(self, values: Ints) -> Rows:
        """The item, or one of the others."""
        others = np.asarray(noise.uniform(self.domain - 1, values.size), dtype=np.int64)
        return np.where(self.coins(values.size), values, others + (others >= values))

    def supporters(self, tally: Ints) -> Ints:
        """The reports themselves."""
        return tally

    def simulated(self, true: Ints) -> tuple[Estimates, bool]:
        """Who lies names any item, the own one too: so lies are uniform, and the law is joint."""
        lies = binomials(true, self.support[1] * self.domain)
        counts = true - lies + uniform_counts(lies.sum(keepdims=True), self.domain)[0]
        return self.shares(counts, int(true.sum())), True

    @staticmethod
    def calibrate(*, domain: int, epsilon: Number) -> KaryResponse:
        """The one whose reports are epsilon-private."""
        return KaryResponse(domain=domain, ratio=ratio_of(epsilon))
