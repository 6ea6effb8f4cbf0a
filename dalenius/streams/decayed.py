"""`DecayedSum`: sums in which a step is worth `decay` of what it was a step ago.

Let g be `decay` and C_g(x) = C(gx) for the encoder C of `sums`: its decays and scales times g. At step t

    x_t + R_t,   R_t = round(y_t·2^shift)/2^shift,   y = C_g⁻¹N,

is released, and D_t = Σ_k g^k (x_{t−k} + R_{t−k}) is made of that, which is free, floats or not.

Theorem. As in `sums`, all outputs together are dominated by N(μ, 1) against N(0, 1), μ = sens_π(C_g)·Δ/scale:
C_g⁻¹(C_g x + N) = x + y is a function of C_g x + N, x_t is a multiple of the grid 2^−shift, and rounding a
multiple of the grid plus y_t onto it gives x_t + R_t, which is added up in whole numbers of the grid.

Error. Σ g^k y_{t−k} is Gaussian of deviation scale·‖(g^k b_k)‖, b the decoder of C; rounding adds at most
2^−shift/(2(1 − g)), which `shift` keeps below a thousandth of scale. For g near 1 the factor is that of a
stream of 1/(1 − g) steps, about 1 + ln(1/(1 − g))/π, at any length. Of the data nothing is kept but D_t.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property, partial

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.losses.fields import Numbers, Parameter, whole
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.loss import Loss
from dalenius.losses.streams.buffered import BufferedToeplitz
from dalenius.mechanisms.mechanism import Floats
from dalenius.noise.buffered import Buffers, Running
from dalenius.noise.stream import StreamKey
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.streams.continual import Continual, fitted
from dalenius.streams.sums import design, quantile
from dalenius.streams.tallies import Faded, Ints, Tally

DIGITS = 30
"""Decimal places of decays and scales."""


@dataclass(frozen=True)
class DecayedSum(Continual, kind="decayed_sum"):
    """Sums with `decay` for `horizon` steps, by Gaussians of `scale` filtered with `decays` and `scales`."""

    _: KW_ONLY
    horizon: Parameter[int] = Parameter(whole)
    decay: Parameter[Fraction] = Parameter(numbers.positive)
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    decays: Numbers = Numbers(numbers.non_negative)
    scales: Numbers = Numbers(numbers.positive)
    largest: Parameter[int] = Parameter(whole, 1)
    categories: int | None = None
    separation: Parameter[int] = Parameter(whole, 1)
    most: int | None = None

    def __post_init__(self) -> None:
        if not self.decay <= 1 - Fraction(1, 10**5):
            raise InvalidArgument(
                "decay must be below 1, by 1e-5 at least.", remedy="Use ContinualSum for no decay."
            )
        _ = self._buffers.floats
        self._check()

    @cached_property
    def encoder(self) -> BufferedToeplitz:
        """C_g."""
        return BufferedToeplitz(self.horizon, self.decays, self.scales)

    @cached_property
    def loss(self) -> Loss:
        """Of all outputs together."""
        return self.encoder.loss(self.scale / self.largest, self.participation)

    @cached_property
    def shift(self) -> int:
        """The grid, from public numbers."""
        return max(0, math.ceil(10 - math.log2((1 - self.decay) * self.scale)))

    @cached_property
    def _buffers(self) -> Buffers:
        return Buffers(self.decays, self.scales, summed=False)

    def blocks(self, key: StreamKey, width: int) -> Running:
        """Filtered noise of single steps."""
        return Running(self._buffers, self.scale, key, width, self.shift)

    def tally(self, width: int) -> Tally:
        """The decayed sums, with noise."""
        return Faded(width, float(self.decay), self.shift)

    def reach(self, steps: Ints, alpha: Fraction) -> Floats:
        """By the law of the noise, and what rounding can do."""
        last = int(steps.max()) if len(steps) else 1
        spread = np.sqrt(np.cumsum(self._decoder(min(last, self._memory)) ** 2)) * (1 + 1e-9)
        found = quantile(alpha) * float(self.scale) * spread[np.minimum(steps, len(spread)) - 1]
        return np.asarray(found + 2.0**-self.shift / float(2 * (1 - self.decay)))

    @property
    def _memory(self) -> int:
        """Steps after which next to nothing is left."""
        return math.ceil(40 / float(1 - self.decay))

    def _decoder(self, length: int) -> Floats:
        """g^k b_k."""
        from scipy.signal import lfilter

        poles, gains, _ = self._buffers.floats
        single = np.concatenate([[1.0], gains @ poles[:, None] ** np.arange(length - 1.0)])
        found: Floats = lfilter([1.0], [1.0, -float(self.decay)], single)
        return found

    @staticmethod
    def designed(
        *,
        horizon: int,
        decay: Number,
        scale: Number,
        largest: int = 1,
        categories: int | None = None,
        separation: int = 1,
        most: int | None = None,
    ) -> DecayedSum:
        """With the buffers of a sum over about as many steps as the decay leaves."""
        rate, steps = numbers.positive(decay, "decay"), numbers.count(horizon, "horizon")
        long = max(2, min(steps, math.ceil(4 / float(max(1 - rate, Fraction(1, 10**5))))))
        pairs = zip(*design(long, None), strict=True)
        faded = [(_rounded(rate * d), _rounded(rate * s)) for d, s in pairs]
        return DecayedSum(
            horizon=steps,
            decay=rate,
            scale=scale,
            decays=[d for d, _ in faded],
            scales=[s for _, s in faded],
            largest=largest,
            categories=categories,
            separation=separation,
            most=most,
        )

    @staticmethod
    def calibrate(
        *,
        horizon: int,
        decay: Number,
        epsilon: Number,
        delta: Number,
        largest: int = 1,
        categories: int | None = None,
        separation: int = 1,
        most: int | None = None,
    ) -> DecayedSum:
        """The least noise with which all outputs together are (epsilon, delta)-differentially private."""
        make = partial(
            DecayedSum.designed,
            horizon=horizon,
            decay=decay,
            largest=largest,
            categories=categories,
            separation=separation,
            most=most,
        )
        draft = make(scale=1000 * largest)
        sensitivity = draft.encoder.sensitivity(draft.participation).upper
        multiplier = Gaussian.calibrate(epsilon=epsilon, delta=delta).noise_multiplier
        return fitted(lambda scale: make(scale=scale), multiplier, sensitivity, largest)


def _rounded(number: Fraction) -> Fraction:
    """Toward zero: any decays and scales have their exact loss."""
    return Fraction(math.floor(number * 10**DIGITS), 10**DIGITS)
