"""Error bars of sums of noisy numbers, of their ratios and of their squares, for many groups at once.

Everything is by test inversion: a value is within its bar unless a test of that very value rejects it, which
happens with probability at most α whatever the true totals are. How far sums of noise reach is told by
`deviations`.

A ratio θ = S/K (Fieller 1954): S − θK = 0, and its noisy counterpart has the standard deviation
√(σ_S² + θ²σ_K²). The θ for which |S − θK| is within z of these solve a quadratic inequality: an interval if
K stands out of its noise, and else all numbers, or all outside of an interval. What is known of θ, here that
it is an average of values in a range, bounds it in every case. Rounding adds ½(1 + |θ|), which is at most
(1/√2)/min(σ_S, σ_K) of these standard deviations more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.gaussian import Gaussian
from dalenius.privacy.quantized import MOST, TOTAL
from dalenius.tables.planning.budgeting import Additive
from dalenius.tables.planning.deviations import ROUNDING, Floats, gaussian_reach, laplace_reach, normal


@dataclass(frozen=True)
class Noisy:
    """Totals of one measure with their noise, a number for each group, and the law of that noise."""

    totals: NDArray[Any]
    law: Additive

    @staticmethod
    def drawn(totals: NDArray[Any], law: Additive) -> Noisy:
        """Totals with noise of their own: exact, or held at 2^62, at 2^127 where they are Python's integers.

        Holding moves neighbours no further apart.
        """
        noise = law.draw(totals.size).reshape(totals.shape)
        if totals.dtype == object:
            summed: NDArray[Any] = np.clip(totals, -TOTAL, TOTAL) + noise.astype(object)
        else:
            summed = np.clip(totals, -MOST, MOST) + np.clip(noise, -MOST, MOST - 1)
        return Noisy(summed.reshape(-1) if totals.shape[1] == 1 else summed, law)

    @property
    def values(self) -> Floats:
        """As floats."""
        return self.totals.astype(np.float64)


@dataclass(frozen=True)
class Bars:
    """Estimates with the ends of their error bars."""

    value: Floats
    low: Floats
    high: Floats

    def scaled(self, factor: float, shift: float = 0.0) -> Bars:
        """For a positive factor, the ends rounded outward."""
        return Bars(
            self.value * factor + shift, self.low * factor + shift, self.high * factor + shift
        ).wider()

    def held(self, least: float, most: float = math.inf) -> Bars:
        """Within what is known."""
        return Bars(*(np.clip(each, least, most) for each in (self.value, self.low, self.high)))

    def beyond(self, below: Floats | float, above: Floats | float) -> Bars:
        """With so much more on either side, of what the noise is not the reason of."""
        return Bars(self.value, self.low - below, self.high + above).wider()

    def around(self, value: Floats) -> Bars:
        """The same bars, made to hold another estimate."""
        return Bars(value, np.minimum(self.low, value), np.maximum(self.high, value))

    def wider(self) -> Bars:
        """The ends moved outward by more than rounding can have moved them."""
        by = ROUNDING * np.maximum(np.abs(self.low), np.abs(self.high))
        by = np.where(np.isfinite(by), by, 0.0)
        return Bars(self.value, self.low - by, self.high + by)


@lru_cache(maxsize=4096)
def reach(terms: tuple[tuple[float, Additive], ...], alpha: Fraction) -> float:
    """How far Σ cᵢ·noiseᵢ is from 0 with probability at most alpha."""
    if len(terms) == 1:
        return abs(terms[0][0]) * terms[0][1].reach(alpha) * (1 + ROUNDING)
    chance = float(alpha) / 2
    if isinstance(terms[0][1], Gaussian):
        spread = math.hypot(*(c * float(law.scale) for c, law in terms))
        return (normal(chance) * spread + sum(abs(c) for c, _ in terms) / 2) * (1 + ROUNDING)
    return chernoff([abs(c) * float(law.scale) for c, law in terms if c], chance) * (1 + ROUNDING)


def spread_reach(coefficients: Floats, law: Additive, alpha: Fraction) -> Floats:
    """The same on one side for many sums of noise of one law: their coefficients are columns."""
    if isinstance(law, Gaussian):
        return gaussian_reach(coefficients, float(law.scale), 1.0, float(alpha))
    return laplace_reach(coefficients, float(law.scale), float(alpha))


def chernoff(scales: Sequence[float], chance: float) -> float:
    """The least t with inf over s of e^{−st} Π 1/(1 − b²s²) ≤ chance: (log(1/chance) − Σ log(1 − b²s²))/s."""
    if not scales:
        return 0.0
    s = np.linspace(0.02, 0.995, 400) / max(scales)
    logs = sum(np.log1p(-np.square(b * s)) for b in scales)
    return float(np.min((-math.log(chance) - logs) / s))


def linear(terms: Sequence[tuple[float, Noisy]], alpha: Fraction) -> Bars:
    """Σ cᵢ·totalᵢ."""
    middle = np.asarray(sum(c * noisy.values for c, noisy in terms))
    off = reach(tuple((c, noisy.law) for c, noisy in terms), alpha)
    return Bars(middle, middle - off, middle + off).wider()


def ratio(top: Noisy, bottom: Noisy, alpha: Fraction, ends: tuple[float, float]) -> Bars:
    """S/K, known to be within `ends`."""
    s, k = top.values, bottom.values
    with np.errstate(all="ignore"):
        value = np.where(k > 0, s / k, sum(ends) / 2)
        fieller = isinstance(top.law, Gaussian)
        low, high = (_fieller if fieller else _rectangle)(top, bottom, alpha, ends)
    found = Bars(value, low, high).wider().held(*ends)
    return Bars(np.clip(found.value, found.low, found.high), found.low, found.high)


def _fieller(top: Noisy, bottom: Noisy, alpha: Fraction, ends: tuple[float, float]) -> tuple[Floats, Floats]:
    s, k = top.values, bottom.values
    a, b = float(top.law.scale), float(bottom.law.scale)
    z = normal(float(alpha) / 2) + 0.7072 / min(a, b)
    leading = k * k - (z * b) ** 2
    inside = (a * k) ** 2 + (b * s) ** 2 - (z * a * b) ** 2
    root = z * np.sqrt(np.maximum(inside, 0.0)) * (1 + ROUNDING)
    first, second = (s * k - root) / leading, (s * k + root) / leading
    bounded = leading > ROUNDING * k * k
    low = np.where(bounded, first, ends[0])
    high = np.where(bounded, second, ends[1])
    # All outside of an interval: what is left of the known range, where the interval covers one end of it.
    outside = (leading < -ROUNDING * k * k) & (inside > 0)
    lower, upper = np.minimum(first, second), np.maximum(first, second)
    low = np.where(outside & (lower < ends[0]) & (upper < ends[1]), np.maximum(upper, ends[0]), low)
    high = np.where(outside & (upper > ends[1]) & (lower > ends[0]), np.minimum(lower, ends[1]), high)
    return low, high


def _rectangle(
    top: Noisy, bottom: Noisy, alpha: Fraction, ends: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Each of the two within its own bar of half the risk."""
    s, k = linear([(1.0, top)], alpha / 2), linear([(1.0, bottom)], alpha / 2)
    low = np.minimum(s.low / k.low, s.low / k.high)
    high = np.maximum(s.high / k.low, s.high / k.high)
    sure = k.low > 0
    return np.where(sure, low, ends[0]), np.where(sure, high, ends[1])
