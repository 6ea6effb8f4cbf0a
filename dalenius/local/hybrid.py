"""The hybrid mechanism for the mean of numbers: the piecewise one with some probability, else Duchi's.

Theorem (Wang, Xiao, Yang and others 2019). With probability β = 1 − e^{−ε/2} for ε above about 0.61, and 0
below, the report is the piecewise mechanism's, else Duchi's. It is ε-private and unbiased, as both are. The
first has a variance that grows with t², the second one that falls: with this β the sum is the same for every
value, 4.289 at ε = 1, and never above that of either.

On the grid of `piecewise` let E y² be A + B·t² for the first and C² for the second. The sum is βA + (1 −
β)C² + (βB − 1)t², so β = 1/B makes it flat, and is best where A < C²; else β = 0. It is kept as `blend`,
rounded to 2^−32, exact in the coin that is thrown. A report says which of the two it is from: 0 and 1 are
Duchi's bits, the others the piecewise mechanism's, so all of them are told apart exactly as their parts are.
Where β is 0 or 1, there are only reports of the one part.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.local.crowds import binomials
from dalenius.local.piecewise import STEPS, best_width, read_steps
from dalenius.local.randomizer import Floats, Ints, ratio_of
from dalenius.local.reals import NumberRandomizer, placed, rounded
from dalenius.local.reports import Rows
from dalenius.local.windows import Window
from dalenius.losses.fields import Parameter
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number


@dataclass(frozen=True)
class HybridResponse(NumberRandomizer, kind="hybrid_response"):
    """Piecewise with probability `blend`, on a grid of `steps` and with pieces of `width` reports."""

    _: KW_ONLY
    blend: Parameter[Fraction] = Parameter(numbers.probability)
    steps: Parameter[int] = Parameter(read_steps)
    width: Parameter[int] = Parameter(read_steps)

    @cached_property
    def parts(self) -> tuple[tuple[Fraction, Window], ...]:
        """Duchi's first."""
        return (
            (1 - self.blend, Window(1, 1, self.ratio)),
            (self.blend, Window(self.steps, self.width, self.ratio)),
        )

    @property
    def places(self) -> int:
        """Of the finer grid."""
        return self.steps

    @property
    def apart(self) -> tuple[Fraction, Fraction]:
        """Each part with its probability."""
        (c, bit), (d, piece) = self.parts
        return c * bit.apart[0] + d * piece.apart[0], c * bit.apart[1] + d * piece.apart[1]

    @property
    def square(self) -> tuple[Fraction, Fraction]:
        """C² for the bit; A and B for the piece."""
        (c, bit), (d, piece) = self.parts
        level, bend = piece.square
        return c * (bit.grain / 2) ** 2 + d * level, d * bend

    @cached_property
    def points(self) -> Floats:
        """Of the bits, then of the pieces."""
        return np.concatenate([part.points for weight, part in self.parts if weight])

    def masses(self, place: int) -> Floats:
        """The bit's are between those of the ends."""
        (c, bit), (d, piece) = self.parts
        share = place / self.steps
        ends = (1 - share) * bit.masses(0) + share * bit.masses(1)
        return self._sent(float(c) * ends, float(d) * piece.masses(place))

    def _sent(self, bits: NDArray[Any], pieces: NDArray[Any]) -> NDArray[Any]:
        """Numbers for the reports of both parts, without those of one that is never drawn."""
        both = zip(self.parts, (bits, pieces), strict=True)
        return np.concatenate([each for (weight, _), each in both if weight])

    def randomize(self, values: Ints) -> Rows:
        """Both are drawn, and one is sent."""
        (_, bit), (chance, piece) = self.parts
        chosen = noise.bernoulli(chance, values.size)
        bits = bit.randomize(rounded(values, 1))
        first = bit.reports if chance < 1 else 0
        return np.where(chosen, first + piece.randomize(rounded(values, self.steps)), bits)

    def crowd(self, units: Ints, people: Ints) -> Ints:
        """Each part by its own people."""
        (_, bit), (chance, piece) = self.parts
        chosen = binomials(people, chance)
        bits = bit.crowd(placed(units, people - chosen, 1))
        return self._sent(bits, piece.crowd(placed(units, chosen, self.steps)))

    @staticmethod
    def calibrate(*, lower: Number, upper: Number, epsilon: Number, steps: int = STEPS) -> HybridResponse:
        """The one whose reports are epsilon-private, of the least worst variance."""
        ratio, many = ratio_of(epsilon), read_steps(steps, "steps")
        width = best_width(many, epsilon)
        return HybridResponse(
            lower=lower, upper=upper, ratio=ratio, steps=many, width=width, blend=_blend(many, width, ratio)
        )


def _blend(steps: int, width: int, ratio: Fraction) -> Fraction:
    """1/B, not above it; or 0 where the piecewise mechanism is the worse one everywhere."""
    level, bend = Window(steps, width, ratio).square
    if level >= ((ratio + 1) / (ratio - 1)) ** 2:
        return Fraction(0)
    return Fraction(int(min(1 / bend, Fraction(1)) * 2**32), 2**32)
