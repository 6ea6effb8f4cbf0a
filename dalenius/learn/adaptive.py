"""A bound that follows a quantile of the norms of gradients, found privately as training goes on.

In every step it is counted, with noise, how many examples have a gradient within the bound C, and C is moved
toward the `quantile` of all (Andrew, Thakkar, McMahan and Ramaswamy 2021): C ← C·exp(−rate·(share −
quantile)). A count that jumps at C would jump for all examples at once where many norms are C but for
rounding, which differs from batch to batch. So an example counts (C − ‖g‖)/(C/5), between −1 and +1, in whole
steps of 2⁻¹⁶.

Theorem. Let the noise on the count have the standard deviation s, that on gradients z' times C. A unit moves
the pair (sum/C, count) by at most (1, 1 + e), e = n(5·2⁻¹⁸ + 2⁻¹⁶) for what rounding does to the norms of n
examples, each by at most 2⁻¹⁸ of itself, and to whole steps; n is twice the expected batch, as in `numerics`.
This costs what one Gaussian of noise multiplier z costs where 1/z² = 1/z'² + (1 + e)²/s². So for a charge of
z gradients get z' = (1/z² − (1 + e)²/s²)^−½, rounded up: a little more noise than z, and the count is paid
for. The bound stays within 2³² times its start, either way.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from dalenius.errors import InvalidArgument
from dalenius.learn.clipping import Flat
from dalenius.losses.fields import Parameter
from dalenius.noise.bits import Bits
from dalenius.noise.narrow import fill_rounded_gaussian
from dalenius.privacy import numbers

RAMP, STEPS, FARTHEST = 5, 2**16, 2.0**32
"""A count goes from −1 to +1 over 2/5 of the bound, in steps of this; how far the bound may go."""


@dataclass(frozen=True)
class Quantile(Flat):
    """Starts at `clip`; `count_scale` is s, in examples."""

    _: KW_ONLY
    quantile: Parameter[Fraction] = Parameter(numbers.probability, default=Fraction(1, 2))
    rate: Parameter[Fraction] = Parameter(numbers.positive, default=Fraction(1, 5))
    count_scale: Parameter[Fraction] = Parameter(numbers.positive, default=Fraction(20))

    def noise_multiplier(self, charged: Fraction, expected: Fraction) -> Fraction:
        """z' for a charge of z."""
        moved = 1 + 2 * expected * (Fraction(RAMP, 2**18) + Fraction(1, STEPS))
        left = 1 / charged**2 - (moved / self.count_scale) ** 2
        if left <= 0:
            raise InvalidArgument(
                f"count_scale must be larger than {float(charged * moved):g} for this noise_multiplier.",
                remedy=f"Choose count_scale={math.ceil(4 * charged * moved)}.",
            )
        # The square root of a fraction, rounded up at 2⁻³² of it.
        bits = 2**32
        return Fraction(math.isqrt(math.ceil(bits**2 / left)) + 1, bits)

    def inside(self, norms: Tensor, clip: float) -> Tensor:
        """How far each gradient is within the bound, in steps."""
        return ((clip - norms) * (RAMP / clip)).clamp_(-1, 1).mul_(STEPS).to(torch.int64)

    def next(self, clip: float, count: int, expected: Fraction, bits: Bits) -> float:
        """The bound of the step that follows."""
        noise = np.empty(1, np.int32)
        fill_rounded_gaussian(noise, self.count_scale * STEPS, bits)
        share = (count + int(noise[0])) / STEPS / float(expected) / 2 + 0.5
        start = float(self.clip)
        asked = clip * math.exp(-float(self.rate) * (share - float(self.quantile)))
        return min(max(asked, start / FARTHEST), start * FARTHEST)

    @property
    def how(self) -> str:
        """Its start and what it follows."""
        return (
            f"each example's gradient is clipped to a bound that starts at L2 norm {float(self.clip):g} and "
            f"follows the {float(self.quantile):g} quantile of norms, counted with noise of "
            f"{float(self.count_scale):g}"
        )
