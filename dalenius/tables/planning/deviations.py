"""How far sums of noise are from zero, with which probability.

A rounded Gaussian is within half a step of a Gaussian, so Σcᵢzᵢ exceeds z_α·√Σcᵢ²σᵢ² + ½·step·Σ|cᵢ| with
probability at most α. The moments of discrete Laplace noise of scale b are at most those of the continuous
one, E e^{sz} ≤ 1/(1 − b²s²), as sinh x/sinh y ≤ x/y for 0 ≤ x ≤ y; so Chernoff's bound for the latter holds.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ROUNDING = 1e-12
"""More than all floating-point rounding here, relative."""


def normal(chance: float) -> float:
    """Return a number that a standard Gaussian exceeds with probability at most `chance`."""
    return -NormalDist().inv_cdf(chance) * (1 + ROUNDING) + ROUNDING


def gaussian_reach(coefficients: Floats, scale: float, step: float, alpha: float) -> Floats:
    """Return what sums of rounded Gaussian noise exceed with probability at most alpha.

    Args:
        coefficients: A column for each sum.
        scale: The standard deviation of the noise.
        step: What the noise is rounded to.
        alpha: The probability.
    """
    spread = scale * np.sqrt(np.square(coefficients).sum(axis=0))
    rounding = np.abs(coefficients).sum(axis=0) * step / 2
    return np.asarray((normal(alpha) * spread + rounding) * (1 + ROUNDING))


def laplace_reach(coefficients: Floats, scale: float, alpha: float) -> Floats:
    """Return what sums of Laplace noise of a scale exceed with probability at most alpha.

    −log(1 − x) is convex: a sum is at most that of so many of its largest terms as have the same squares.

    Args:
        coefficients: A column for each sum.
        scale: The scale of the noise.
        alpha: The probability.
    """
    squares = np.square(coefficients).sum(axis=0)
    largest = np.where(squares > 0, np.abs(coefficients).max(axis=0), 1.0)
    s = np.linspace(0.02, 0.995, 400)[:, None]
    logs = squares / np.square(largest) * np.log1p(-np.square(s))
    found = np.min((-math.log(alpha) - logs) / s, axis=0) * scale * largest
    return np.asarray(np.where(squares > 0, found, 0.0) * (1 + ROUNDING))
