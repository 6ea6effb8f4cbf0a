"""Gaussian weights: the discrete Gaussian, and the continuous one rounded to the nearest integer.

The rounded law is f(k) = ∫ e^{−(k+x)²/2s²} dx over −½ < x < ½, which is s√(2π) times the difference of
Φ((k ± ½)/s). With h = 1/s, z = kh, c = hz it is e^{−z²/2} ∫ cosh(cx) e^{−h²x²/2} dx, and for h ≤ 1
    |∫ cosh(cx) e^{−h²x²/2} dx − 1 − h²(z² − 1)/24| ≤ (cosh(c/2)·c⁴/20 + c²h²/3 + h⁴/8)/80,
by the first terms of both series. It is log-concave as the convolution of log-concave functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dalenius.arithmetic import arb, precision
from dalenius.noise.law import RELATIVE, Floats, Ints, Law, exponentials
from dalenius.noise.lazy import ball

STEEPEST = Fraction(2**400)
"""A narrower law than 1/STEEPEST is zero to a double, off the mode, all the same."""


@lru_cache(maxsize=64)
def _units(scale: Fraction, precision: int) -> tuple[arb, arb]:
    """1/(2s√2), which half-integers are counted in, and √(π/2)·max(s, 1), at a precision."""
    return 1 / (2 * ball(scale) * arb(2).sqrt()), (arb.pi() / 2).sqrt() * ball(max(scale, Fraction(1)))


def forget() -> None:
    """Drop the constants of all scales, where one of them is private: met again it would take less time."""
    _units.cache_clear()


@dataclass(frozen=True)
class DiscreteGaussian(Law):
    """f(k) = e^{−k²/2scale²}."""

    scale: Fraction

    @property
    def spread(self) -> float:
        """The scale."""
        return float(self.scale)

    def weight(self, k: int) -> arb:
        """e^{−k²/2scale²}."""
        return (-ball(k * k / (2 * self.scale**2))).exp()

    def drop(self, k: int, step: int) -> arb:
        """((k + step)² − k²)/2scale²."""
        return ball(step * (2 * k + step) / (2 * self.scale**2))

    def estimate(self, k: Ints) -> tuple[Floats, Floats]:
        """By one exponential of a square."""
        z = k * float(min(1 / self.scale, STEEPEST))
        return exponentials(0.5 * z * z)


@dataclass(frozen=True)
class RoundedGaussian(Law):
    """f(k) = s√(2π)·(Φ((k + ½)/s) − Φ((k − ½)/s)), s the scale; below scale 1, without the factor s."""

    scale: Fraction

    @property
    def spread(self) -> float:
        """The scale."""
        return float(self.scale)

    def weight(self, k: int) -> arb:
        """By erfc on the far side of zero, where nothing is lost to 1 − Φ."""
        half, factor = _units(self.scale, precision())
        near, far = arb(2 * abs(k) - 1) * half, arb(2 * abs(k) + 1) * half
        area = near.erfc() - far.erfc() if k else 2 * far.erf()
        return area * factor

    def drop(self, k: int, step: int) -> arb:
        """Under the integral at every x: ((k + step + x)² − (k + x)²)/2s² is least at the end near zero."""
        away = abs(step) * (2 * abs(k) - 1 + abs(step))
        return ball(away / (2 * self.scale**2))

    def estimate(self, k: Ints) -> tuple[Floats, Floats]:
        """By the first terms of the series, with the module's bound on the rest."""
        if self.scale < 1:
            return super().estimate(k)
        h = float(1 / self.scale)
        z = np.abs(k) * h
        value, off = exponentials(0.5 * z * z)
        square = (h * z) ** 2
        rest = np.cosh(0.5 * h * z) * square**2 / 20 + square * h * h / 3 + h**4 / 8
        series = 1 + (square - h * h) / 24
        return value * series, 2 * series * off + value * (rest / 79 + RELATIVE)
