"""`ContinualSum`: running sums with correlated Gaussian noise, for a known number of steps.

    >>> from dalenius.streams import ContinualSum
    >>> mechanism = ContinualSum.calibrate(horizon=1000, epsilon=1, delta=1e-6)
    >>> f"{mechanism.factor:.2f} {mechanism.loss.epsilon(delta=1e-6).upper:.4f}"
    '3.27 1.0000'

At step t the sum S_t, a whole number, is released as S_t + R_t, R_t = round(Z_t) half up, Z = A·C⁻¹·N, with A
the prefix sums, C the buffered Toeplitz encoder of `decays` and `scales` (`losses.streams.buffered`), and N
real Gaussians of deviation `scale`.

Theorem. If one unit takes part at steps of a participation π, and moves a step by at most Δ = `largest` (one
category by 1, with categories), all outputs together are dominated by N(μ, 1) against N(0, 1),
μ = sens_π(C)·Δ/scale, also where the numbers of a step depend on what was released before.
Proof. Cx + N is that by the theorem of `losses.streams.factorization`. AC⁻¹(Cx + N) = Ax + Z is a function of
it, and S_t is whole, so that rounding S_t + Z_t half up gives S_t + R_t: a function of it again. N are real
numbers, and `noise.buffered` draws R_t as if they were known to the last digit: with integers, or floats, in
their place outputs would tell more (see `learn.correlated`).

Error. Z_t is Gaussian of deviation scale·‖b‖, b the first t coefficients of AC⁻¹; rounding adds ½. With
⌈log₂(n)/4⌉ + 1 buffers, chosen numerically, `factor` = sens(C)·‖b‖ is within 0.2 % of that of the square
root, 1.0663 + ln(n)/π at most. The memory is that of the buffers, of a block of noise, and of the sums.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial

import numpy as np

from dalenius.losses.fields import Numbers, Parameter, whole
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.loss import Loss
from dalenius.losses.streams.buffered import BufferedToeplitz
from dalenius.losses.streams.participation import Participation
from dalenius.mechanisms.mechanism import Floats
from dalenius.noise.buffered import Buffers, Running
from dalenius.noise.stream import StreamKey
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.streams.continual import Continual, fitted
from dalenius.streams.tallies import Ints, Tally, Total


@dataclass(frozen=True)
class ContinualSum(Continual, kind="continual_sum"):
    """Running sums for `horizon` steps, by Gaussians of `scale` filtered with `decays` and `scales`."""

    _: KW_ONLY
    horizon: Parameter[int] = Parameter(whole)
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    decays: Numbers = Numbers(numbers.non_negative)
    scales: Numbers = Numbers(numbers.positive)
    largest: Parameter[int] = Parameter(whole, 1)
    categories: int | None = None
    separation: Parameter[int] = Parameter(whole, 1)
    most: int | None = None

    def __post_init__(self) -> None:
        _ = self._buffers.floats
        self._check()

    @cached_property
    def encoder(self) -> BufferedToeplitz:
        """C."""
        return BufferedToeplitz(self.horizon, self.decays, self.scales)

    @cached_property
    def loss(self) -> Loss:
        """Of all outputs together."""
        return self.encoder.loss(self.scale / self.largest, self.participation)

    @cached_property
    def factor(self) -> float:
        """The largest deviation of an output, by that of one Gaussian release of the same cost."""
        norm = float(deviations(self._buffers, np.array([self.horizon]))[0])
        return norm * self.encoder.sensitivity(self.participation).upper

    @cached_property
    def _buffers(self) -> Buffers:
        return Buffers(self.decays, self.scales)

    def blocks(self, key: StreamKey, width: int) -> Running:
        """Filtered noise."""
        return Running(self._buffers, self.scale, key, width)

    def tally(self, width: int) -> Tally:
        """The sums."""
        return Total(width)

    def reach(self, steps: Ints, alpha: Fraction) -> Floats:
        """By the law of Z, and ½ for rounding."""
        return quantile(alpha) * float(self.scale) * deviations(self._buffers, steps) + 0.5

    @staticmethod
    def designed(
        *,
        horizon: int,
        scale: Number,
        largest: int = 1,
        categories: int | None = None,
        separation: int = 1,
        most: int | None = None,
    ) -> ContinualSum:
        """With buffers of the least largest error."""
        pattern = None if most is None else Participation(separation, most)
        decays, scales = design(numbers.count(horizon, "horizon"), pattern)
        return ContinualSum(
            horizon=horizon,
            scale=scale,
            decays=decays,
            scales=scales,
            largest=largest,
            categories=categories,
            separation=separation,
            most=most,
        )

    @staticmethod
    def calibrate(
        *,
        horizon: int,
        epsilon: Number,
        delta: Number,
        largest: int = 1,
        categories: int | None = None,
        separation: int = 1,
        most: int | None = None,
    ) -> ContinualSum:
        """The least noise with which all outputs together are (epsilon, delta)-differentially private."""
        make = partial(
            ContinualSum.designed,
            horizon=horizon,
            largest=largest,
            categories=categories,
            separation=separation,
            most=most,
        )
        draft = make(scale=1000 * largest)
        sensitivity = draft.encoder.sensitivity(draft.participation).upper
        multiplier = Gaussian.calibrate(epsilon=epsilon, delta=delta).noise_multiplier
        return fitted(lambda scale: make(scale=scale), multiplier, sensitivity, largest)


@lru_cache(64)
def design(horizon: int, pattern: Participation | None) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Decays and scales for a number of steps, O(log n) of them."""
    buffers = max(2, math.ceil(math.log2(max(horizon, 2)) / 4) + 1)
    found = BufferedToeplitz.optimized(horizon, buffers, pattern)
    pairs = [(d, s) for d, s in zip(found.decays, found.scales, strict=True) if s > 0]
    pairs = sorted(pairs or [(Fraction(0), Fraction(1, 2))])
    return tuple(d for d, _ in pairs), tuple(s for _, s in pairs)


def deviations(buffers: Buffers, steps: Ints) -> Floats:
    """‖b‖ of the first so many coefficients, for each number of steps: sums of geometric sequences."""
    poles, gains, _ = buffers.floats
    total = np.zeros(len(steps))
    for i, one in enumerate(poles):
        for j, two in enumerate(poles):
            ratio = one * two
            terms = steps.astype(np.float64) if ratio == 1 else (1 - ratio**steps) / (1 - ratio)
            total += gains[i] * gains[j] * terms
    return np.asarray(np.sqrt(total) * (1 + 1e-9))


def quantile(alpha: Fraction) -> float:
    """How many deviations a Gaussian is within, but for `alpha`."""
    from scipy.special import ndtri

    return float(-ndtri(float(alpha) / 2)) * (1 + 1e-12)
