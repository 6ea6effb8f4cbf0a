"""A bound that follows a quantile of the norms of gradients, found privately as training goes on.

In every step the examples whose gradient is within the bound C are counted, with noise, and C is moved toward
the `quantile` of all (Andrew, Thakkar, McMahan and Ramaswamy 2021): C ← C·exp(−rate·(share − quantile)).

Theorem. Count each example as +1 or −1, and let the noise on the count have the standard deviation s, that on
gradients z' times C. A unit moves the pair (sum/C, count) by at most (1, 1), which costs what one Gaussian of
noise multiplier z costs where 1/z² = 1/z'² + 1/s². So for a charge of z gradients get z' = (1/z² − 1/s²)^−½,
rounded up: a little more noise than z, and the count is paid for.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.learn.clipping import Flat
from dalenius.losses.fields import Parameter
from dalenius.noise.bits import Bits
from dalenius.noise.narrow import fill_rounded_gaussian
from dalenius.privacy import numbers


@dataclass(frozen=True)
class Quantile(Flat):
    """Starts at `clip`; `count_scale` is s, in examples."""

    _: KW_ONLY
    quantile: Parameter[Fraction] = Parameter(numbers.probability, default=Fraction(1, 2))
    rate: Parameter[Fraction] = Parameter(numbers.positive, default=Fraction(1, 5))
    count_scale: Parameter[Fraction] = Parameter(numbers.positive, default=Fraction(20))

    def noise_multiplier(self, charged: Fraction) -> Fraction:
        """z' for a charge of z."""
        left = 1 / charged**2 - 1 / self.count_scale**2
        if left <= 0:
            raise InvalidArgument(
                f"count_scale must be larger than noise_multiplier, {float(charged):g}.",
                remedy=f"Choose count_scale={math.ceil(4 * charged)}.",
            )
        # The square root of a fraction, rounded up at 2⁻³² of it.
        bits = 2**32
        return Fraction(math.isqrt(math.ceil(bits**2 / left)) + 1, bits)

    def next(self, clip: float, count: int, expected: Fraction, bits: Bits) -> float:
        """The bound of the step that follows."""
        noise = np.empty(1, np.int32)
        fill_rounded_gaussian(noise, self.count_scale, bits)
        share = (count + int(noise[0])) / float(expected) / 2 + 0.5
        return clip * math.exp(-float(self.rate) * (share - float(self.quantile)))

    @property
    def how(self) -> str:
        """Its start and what it follows."""
        return (
            f"each example's gradient is clipped to a bound that starts at L2 norm {float(self.clip):g} and "
            f"follows the {float(self.quantile):g} quantile of norms, counted with noise of "
            f"{float(self.count_scale):g}"
        )
