"""Unary encodings: a bit for each item, 1 for the person's own, each flipped by itself.

Theorem (Wang, Blocki, Li and Jha 2017). The own bit is sent as 1 with probability p, every
other one with q < p. Two items differ in two bits, so a report is ε-private with e^ε = p(1 − q)/((1 − p)q),
and no more.

Symmetric (SUE, basic RAPPOR of Erlingsson, Pihur and Korolova 2014): p = e^{ε/2}/(e^{ε/2} + 1), q = 1 − p;
for a rare item n·variance is e^{ε/2}/(e^{ε/2} − 1)². Optimized (OUE): p = 1/2, q = 1/(e^ε + 1), n·variance
4e^ε/(e^ε − 1)², which is the limit for large domains. A report has as many bits as there are items.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.local import tallies
from dalenius.local.frequency import LISTED, FrequencyOracle
from dalenius.local.randomizer import Estimates, Ints, ratio_of
from dalenius.local.reports import Rows
from dalenius.losses.fields import Parameter
from dalenius.mechanisms.mechanism import Law
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number


@dataclass(frozen=True)
class UnaryEncoding(FrequencyOracle, kind="unary_encoding"):
    """The bit of the person's item is 1 with probability `own`, every other one with `other`."""

    _: KW_ONLY
    own: Parameter[Fraction] = Parameter(numbers.probability)
    other: Parameter[Fraction] = Parameter(numbers.probability)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.other < self.own < 1:
            raise InvalidArgument(
                "other must be below own, and both between 0 and 1.",
                remedy="Use optimized(...) or symmetric(...), which choose them.",
            )

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """By the item's own bit."""
        return self.own, self.other

    @property
    def apart(self) -> tuple[Fraction, Fraction]:
        """By the bits of the two items."""
        return self.own * (1 - self.other), self.other * (1 - self.own)

    @property
    def shape(self) -> tuple[int, int]:
        """A bit for each item."""
        return 2, self.domain

    @property
    def cells(self) -> int:
        """One for each bit."""
        return self.domain

    def randomize(self, values: Ints) -> Rows:
        """All bits by one law, then the own ones by theirs."""
        bits = noise.bernoulli(self.other, values.size * self.domain).reshape(values.size, self.domain)
        bits[np.arange(values.size), values] = noise.bernoulli(self.own, values.size)
        return bits.view(np.uint8)

    def adds_up(self, tally: Ints, count: int) -> bool:
        """Each bit at most once a report."""
        return tallies.between(tally, 0, count)

    def tally(self, rows: Rows) -> Ints:
        """How often each bit is 1."""
        return np.asarray(rows.sum(axis=0, dtype=np.int64))

    def supporters(self, tally: Ints) -> Ints:
        """The ones of its bit."""
        return tally

    def probabilities(self, value: Any) -> Law | None:
        """Of all rows of bits, where they can be listed."""
        if 2**self.domain > LISTED:
            return None
        item = int(self.read([value])[0])
        rows = np.array(list(product((0, 1), repeat=self.domain)))
        chances = np.full(self.domain, float(self.other))
        chances[item] = float(self.own)
        return Law(tuple(map(tuple, rows.tolist())), np.where(rows, chances, 1 - chances).prod(axis=1))

    def simulated(self, true: Ints) -> tuple[Estimates, bool]:
        """Bits are drawn by themselves, so the law is joint."""
        return super().simulated(true)[0], True

    @staticmethod
    def optimized(*, domain: int, epsilon: Number) -> UnaryEncoding:
        """OUE: the least variance for rare items."""
        return UnaryEncoding(domain=domain, own=Fraction(1, 2), other=1 / (ratio_of(epsilon) + 1))

    @staticmethod
    def symmetric(*, domain: int, epsilon: Number) -> UnaryEncoding:
        """SUE: both kinds of bits are flipped alike."""
        root = ratio_of(numbers.epsilon(epsilon) / 2)
        return UnaryEncoding(domain=domain, own=root / (root + 1), other=1 / (root + 1))
