"""Tables of a Gaussian mixture on a grid: the ground under the contour route.

Notation of docs/proofs/contour.md: φ is the standard normal density, w(x) = Σ pᵢ exp(aᵢx − aᵢ²/2) the
ratio of the mixture Σ pᵢN(aᵢ, 1) to N(0, 1), and λ = log w. Cells are [jh, (j+1)h] with h a power
of two, and nodes are their midpoints, so every node and edge is an exact float.

Facts used (Lemma 1 there), for 0 ≤ t with (max a)·t ≤ π/2: |w(x+it)| ≤ w(x); |w(x+it)| and
arg w(x+it) increase with x; |w(x+it)| decreases and arg w(x+it) increases with t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dalenius.profiles.pair import Floats
from dalenius.profiles.rounding import TINY, ULPS, U

FUNCTION = 2 * ULPS * U
"""Relative error of an elementary function."""
LOG_ROOT_TWO_PI = 0.9189385332046727


def normal_tail(x: float) -> float:
    """Φ(−x), rounded up."""
    return 0.5 * math.erfc(x / math.sqrt(2)) * (1 + 4 * FUNCTION * (1 + x * x)) + 1e-300


Column = float | Floats
"""One number, or a column of numbers: one for each row of a table."""
Moving = Sequence[tuple[Column, Column]]
"""Weights and shifts of the components that are shifted."""


def excess_at(moving: Moving, x: Floats) -> tuple[Floats, Floats]:
    """w − 1 at x, and a bound on its error."""
    value = error = np.zeros(1)
    for p, a in moving:
        growth = np.expm1(a * x - a * a / 2)
        value = value + p * growth
        moved = (growth + 1) * (np.abs(a * x) + a * a) * (5 * U)
        error = error + p * (np.abs(growth) * (FUNCTION + (9 + len(moving)) * U) + moved)
    return value, 1.001 * error + TINY


def log_at(moving: Moving, still: Column, x: Floats) -> tuple[Floats, Floats]:
    """λ at x, and a bound on its error: from w − 1, or where w is small from w itself."""
    excess, error = excess_at(moving, x)
    value = np.log1p(np.maximum(excess, -0.75))
    spread = 1.001 * error / np.maximum(1 + excess - error, 0.1)
    small = excess < -0.5
    if small.any():
        other = _log_small(moving, still, x)
        value, spread = np.where(small, other[0], value), np.where(small, other[1], spread)
    return value, spread + FUNCTION * np.abs(value) + TINY


def _log_small(moving: Moving, still: Column, x: Floats) -> tuple[Floats, Floats]:
    """λ and its error from w = Σ pᵢ exp(aᵢx − aᵢ²/2), whose terms are all positive."""
    total = still + np.zeros(1)
    error = total * (2 * FUNCTION + (1 + len(moving)) * U)
    for p, a in moving:
        grown = p * np.exp(a * x - a * a / 2)
        total = total + grown
        error = error + grown * ((np.abs(a * x) + a * a) * (5 * U) + 2 * FUNCTION + (1 + len(moving)) * U)
    return np.log(total), 1.001 * error / total


def polar_at(moving: Moving, still: Column, t: Column, x: Floats) -> tuple[Floats, Floats]:
    """log|w| and arg w at x + it, in plain floating point."""
    exponents = [a * x - a * a / 2 for _, a in moving]
    top = np.maximum.reduce([np.maximum(u, 0.0) for u in exponents])
    real, imaginary = still * np.exp(-top), np.zeros(1)
    for (p, a), u in zip(moving, exponents, strict=True):
        growth = p * np.exp(u - top)
        real = real + growth * np.cos(a * t)
        imaginary = imaginary + growth * np.sin(a * t)
    return top + np.log(np.hypot(real, imaginary)), np.arctan2(imaginary, real)


@dataclass(frozen=True)
class Part:
    """The mixture Σ pᵢN(aᵢ, 1) against N(0, 1), composed `times` times. Some a is 0, the others above."""

    weights: tuple[float, ...]
    shifts: tuple[float, ...]
    times: int

    @cached_property
    def moving(self) -> Moving:
        """The shifted components."""
        return [(p, a) for p, a in zip(self.weights, self.shifts, strict=True) if a]

    @cached_property
    def still(self) -> float:
        """The weight at no shift."""
        return math.fsum(p for p, a in zip(self.weights, self.shifts, strict=True) if not a)

    def log(self, x: Floats) -> Floats:
        """λ(x), in plain floating point: by log1p near w = 1, from the sum of exponentials elsewhere."""
        exponents = [a * x - a * a / 2 for a in self.shifts]
        top = np.maximum.reduce(exponents)
        grown = sum(
            (p * np.exp(u - top) for p, u in zip(self.weights, exponents, strict=True)), np.zeros_like(x)
        )
        pairs = zip(self.weights, exponents, strict=True)
        excess = sum((p * np.expm1(np.minimum(u, 1.0)) for p, u in pairs), np.zeros_like(x))
        return np.where(
            (top < 1.0) & (excess > -0.5), np.log1p(np.maximum(excess, -0.5)), top + np.log(grown)
        )

    def slope(self, x: float) -> float:
        """λ′(x), in plain floating point."""
        exponents = [a * x - a * a / 2 for a in self.shifts]
        top = max(exponents)
        grown = [p * math.exp(u - top) for p, u in zip(self.weights, exponents, strict=True)]
        return sum(g * a for g, a in zip(grown, self.shifts, strict=True)) / sum(grown)

    def turn(self, x: float, t: Floats) -> Floats:
        """arg w(x + it), in plain floating point."""
        exponents = [a * x - a * a / 2 for a in self.shifts]
        top = max(exponents)
        real, imaginary = np.zeros_like(t), np.zeros_like(t)
        for p, a, u in zip(self.weights, self.shifts, exponents, strict=True):
            growth = p * math.exp(u - top)
            real += growth * np.cos(a * t)
            imaginary += growth * np.sin(a * t)
        return np.arctan2(imaginary, real)

    def tail(self, x: float, s: int) -> float:
        """∫ φ wˢ above x for s = 0 or 1, rounded up."""
        return 1.001 * sum(p * normal_tail(x - s * a) for p, a in zip(self.weights, self.shifts, strict=True))

    def beyond(self, x: float) -> tuple[float, float]:
        """The masses of the mixture and of N(0, 1) above x, in plain floating point."""
        tails = [
            (p, 0.5 * math.erfc((x - a) / math.sqrt(2)))
            for p, a in zip(self.weights, self.shifts, strict=True)
        ]
        return sum(p * tail for p, tail in tails), 0.5 * math.erfc(x / math.sqrt(2))


@dataclass(frozen=True, eq=False)
class Nodes:
    """A part tabulated at the midpoints of the cells number `left` to `right` − 1 of width `step`."""

    part: Part
    step: float
    left: int
    right: int

    def __post_init__(self) -> None:
        if self.right <= self.left:
            # A window beyond all that matters: the contour is not laid there (`reading.read_at`).
            raise ValueError("The grid has no cells.")

    @cached_property
    def x(self) -> Floats:
        """The nodes, exact."""
        return np.asarray((np.arange(self.left, self.right) + 0.5) * self.step, dtype=np.float64)

    @cached_property
    def edges(self) -> Floats:
        """The cell edges, exact."""
        return np.asarray(np.arange(self.left, self.right + 1) * self.step, dtype=np.float64)

    @cached_property
    def excess(self) -> tuple[Floats, Floats]:
        """w − 1 at the nodes, and a bound on its error."""
        return excess_at(self.part.moving, self.x)

    @cached_property
    def log(self) -> tuple[Floats, Floats]:
        """λ at the nodes, and a bound on its error."""
        return log_at(self.part.moving, self.part.still, self.x)

    @cached_property
    def log_density(self) -> Floats:
        """log(h φ(x)) at the nodes."""
        return -0.5 * self.x * self.x + (math.log(self.step) - LOG_ROOT_TWO_PI)

    @property
    def step_error(self) -> float:
        """The error of log(h) in `log_density`."""
        return FUNCTION * abs(math.log(self.step))

    def tilted(self, s: float) -> tuple[Floats, Floats]:
        """log(h φ wˢ) at the nodes, and a bound on the relative error of its exponential."""
        log, log_error = self.log
        exponent = self.log_density + s * log
        moved = U * (2 * self.x * self.x + 64 + 4 * np.abs(s * log)) + abs(s) * log_error + self.step_error
        return exponent, 1.01 * moved + 2 * FUNCTION

    def polar(self, t: float, at: Floats) -> tuple[Floats, Floats]:
        """log|w| and arg w at `at` + it, in plain floating point."""
        return polar_at(self.part.moving, self.part.still, t, at)
