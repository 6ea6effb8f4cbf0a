"""Compositions of Gaussian mixtures: certified quadrature of the contour integral.

    δ(ε) = (1/2πi) ∫ exp(K(z) − zε) / (z(z+1)) dz   over Re z = c > 0,   K(z) = Σ Tᵢ log E_P[e^{zLᵢ}].

Theorem (docs/proofs/contour.md). With step h in Im z and Λ = 2π/h, the trapezoid rule equals
Σₖ e^{ckΛ} δ(ε + kΛ): aliasing only adds, at most e^{−cΛ}/(1 − e^{−cΛ}) from below and, for any c′ > c,
κ(c′) e^{K(c′) − c′ε − (c′−c)Λ}/(1 − e^{−(c′−c)Λ}) from above, κ(c) = c^c/(1+c)^{1+c}. Large values of a
release are cut off smoothly and their share of δ is added in closed form (`Shares`); what is left
decays fast in Im z. Each error term is evaluated and added to the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dalenius.profiles.arm import Arm, Turns
from dalenius.profiles.moments import log_moment
from dalenius.profiles.nodes import FUNCTION
from dalenius.profiles.pair import Complexes, Floats
from dalenius.profiles.rounding import TINY, U


@dataclass(frozen=True, eq=False)
class Contour:
    """The trapezoid rule for one direction, ready to be read at any ε near the one it was laid for."""

    log_scale: float
    scale_error: float
    c: float
    step: float
    terms: Complexes
    errors: Floats
    log_truncation: float
    alias: tuple[float, float]

    def read(self, epsilon: float) -> tuple[float, float]:
        """Enclose the integral at ε."""
        low, high = self.reads(np.array([epsilon]))
        return float(low[0]), float(high[0])

    @np.errstate(over="ignore")
    def reads(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose the integral at every ε of an array: no less than 0, no more than Chernoff's bound."""
        low, high = self._summed(epsilon)
        c, k = self.alias
        most = 1.01 * np.exp(log_kappa(c) + k - c * epsilon)
        return np.fmax(low - 16 * TINY, 0.0), np.fmin(high, most) + 16 * TINY

    def _summed(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """The sum over the nodes, with all that it may be off."""
        exponent = self.log_scale - self.c * epsilon
        if not (float(exponent.max()) + math.log(1 + self._size) < 600 and float(exponent.min()) > -690):
            return np.full_like(epsilon, -math.inf), np.full_like(epsilon, math.inf)
        scale = np.exp(exponent) * (self.step / math.pi)
        y, far = self.step * np.arange(len(self.terms)), np.abs(epsilon)
        turned = np.exp(-1j * np.outer(epsilon, y)) @ self._halved
        size = np.abs(self.terms)
        moved = (
            float(self.errors.sum())
            + 4 * U * float(size @ y) * far
            + (2 * FUNCTION + 3 * len(y) * U) * float(size.sum())
        )
        relative = np.expm1(self.scale_error + 4 * U * (abs(self.log_scale) + self.c * far + 8) + FUNCTION)
        value = scale * turned.real
        error = 1.01 * (scale * moved * (1 + relative) + np.abs(value) * relative)
        cut = np.exp(self.log_truncation - self.c * epsilon)
        return value - error - cut - self._aliased(epsilon), value + error + cut

    @cached_property
    def _halved(self) -> Complexes:
        """The terms, the one on the real axis counted half: those below it are conjugates."""
        weights = np.ones(len(self.terms))
        weights[0] = 0.5
        halved: Complexes = self.terms * weights
        return halved

    @cached_property
    def _size(self) -> float:
        """The sum of all terms and errors; infinite where the contour failed."""
        size = float(np.abs(self.terms).sum() + self.errors.sum())
        return size if size < math.inf else math.inf

    def _aliased(self, epsilon: Floats) -> Floats:
        """At least what aliasing adds; `alias` is c′ and an upper bound on K(c′)."""
        wave, (c, k) = 2 * math.pi / self.step, self.alias
        if not c > self.c:
            return np.full_like(epsilon, math.inf)
        below = math.exp(-self.c * wave)
        above = np.exp(log_kappa(c) + k - c * epsilon - (c - self.c) * wave)
        return 1.01 * (below / (1 - below) + above / -math.expm1(-(c - self.c) * wave))


def log_kappa(c: float) -> float:
    """log κ(c): (1 − e^{−x})₊ ≤ κ(c) e^{cx} for every x."""
    return c * math.log(c) - (1 + c) * math.log1p(c)


@dataclass(frozen=True, eq=False)
class Logs:
    """∏ (Mᵢ(y)/Mᵢ(0))^Tᵢ at the nodes in logarithms, and Σ Tᵢ log Mᵢ(0) with its error.

    `relative` bounds the error of the logarithm, `most` that of the modulus where the former is large.
    """

    size: Floats
    angle: Floats
    swept: Floats
    relative: Floats
    most: Floats
    scale: float
    scale_error: float

    @staticmethod
    def of(ratio: Complexes, error: Floats, times: Floats, moment: Floats, moment_error: Floats) -> Logs:
        """From Mᵢ(y)/Mᵢ(0) − 1 and log Mᵢ(0) with their errors: rows, or columns, for the factors."""
        size, log, turned = polar(ratio)
        rounding = 12 * U * np.minimum(np.abs(ratio), 1.0) + 2 * FUNCTION * (np.abs(log) + np.abs(turned))
        relative = np.where(size > 2 * error, error / np.maximum(size - error, 1e-300) + rounding, np.inf)
        return Logs(
            times @ log,
            times @ turned,
            times @ np.abs(turned),
            times @ relative,
            times @ np.log(size + error),
            math.fsum(times * moment.ravel()),
            1.01 * float(times @ moment_error.ravel()) + 2 * U * float(times @ np.abs(moment.ravel())),
        )

    @staticmethod
    def one(ratio: Complexes, error: Floats, times: int, moment: float, moment_error: float) -> Logs:
        """The same from one factor."""
        scale = np.array([[moment], [moment_error]])
        return Logs.of(ratio[None], error[None], np.array([float(times)]), scale[0], scale[1])

    @staticmethod
    def product(factors: Sequence[Logs]) -> Logs:
        """All together."""
        rows = ("size", "angle", "swept", "relative", "most", "scale", "scale_error")
        first, *others = ([getattr(f, row) for f in factors] for row in rows)
        found = [sum(row[1:], row[0]) for row in (first, *others)]
        return Logs(*found)

    def values(self, additions: int) -> tuple[Complexes, Floats]:
        """The product and its error, a sum having gone through so many additions."""
        relative = self.relative + 4 * U * additions * (np.abs(self.size) + self.swept) + 4 * FUNCTION
        size = np.exp(self.size)
        fine = relative < 0.01
        missed = size + np.exp(np.minimum(self.most, 0.0))
        error = np.where(fine, 1.01 * size * np.where(fine, relative, 0.0), missed)
        return size * np.exp(1j * self.angle), error


def lay(
    arms: list[tuple[Arm, int]],
    *,
    sign: int,
    c: float,
    step: float,
    count: int,
    squared: float,
) -> tuple[float, float, Complexes, Floats]:
    """The integrand without e^{−zε} at c + iky, k < count, over its size at c."""
    turns = [Turns(sign * arm.window.nodes.log[0], step, count) for arm, _ in arms]
    return over_kernel(product(arms, turns), len(arms), c=c, step=step, squared=squared)


def over_kernel(
    logs: Logs, additions: int, *, c: float, step: float, squared: float
) -> tuple[float, float, Complexes, Floats]:
    """The product over z(z+1); Gaussians with μ² = `squared` multiply it by e^{μ²z(z+1)/2}."""
    whole, error = logs.values(additions)
    scale, scale_error = logs.scale, logs.scale_error
    y = step * np.arange(len(whole))
    z = c + 1j * y
    kernel = z * (z + 1)
    if squared:
        shrunk = np.exp(-0.5 * squared * y * y)
        turn = squared * (c + 0.5) * y
        slip = 4 * U * (squared * y * y + np.abs(turn)) + 4 * FUNCTION
        error = shrunk * (error + np.abs(whole) * slip)
        whole = whole * shrunk * np.exp(1j * turn)
        gained = squared * c * (c + 1) / 2
        scale, scale_error = scale + gained, scale_error + 8 * U * gained
    return scale, scale_error, whole / kernel, (error + np.abs(whole) * 8 * U) / np.abs(kernel)


def product(arms: list[tuple[Arm, int]], turns: list[Turns]) -> Logs:
    """∏ (Mᵢ(y)/Mᵢ(0))^Tᵢ at the nodes; Σ Tᵢ log Mᵢ(0)."""
    found = []
    for (arm, times), turn in zip(arms, turns, strict=True):
        ratio, error = arm.ratios(turn)
        error = error + 4.04 * midpoint(arm, turn.step * (turn.count - 1), turn.count) / arm.mass
        moment, moment_error = log_moment(arm)
        found.append(Logs.one(ratio, error, times, moment, moment_error))
    return Logs.product(found)


def polar(ratio: Complexes) -> tuple[Floats, Floats, Floats]:
    """|1 + ratio|, its logarithm and the angle of 1 + ratio, accurate for small ratios and near −1."""
    real, imaginary = 1 + ratio.real, ratio.imag
    square = 2 * ratio.real + ratio.real**2 + imaginary**2
    size = np.hypot(real, imaginary)
    log = np.where(
        np.abs(square) < 0.5, 0.5 * np.log1p(np.maximum(square, -0.5)), np.log(np.maximum(size, 1e-300))
    )
    return size, log, np.arctan2(imaginary, real)


def midpoint(arm: Arm, extent: float, count: int) -> Floats:
    """Lemma 2 at every node, by quarters of the range."""
    levels = arm.midpoint_error(extent * np.array([0.25, 0.5, 0.75, 1.0]))
    quarter = np.minimum(np.ceil(np.arange(count) * (4 / max(1, count - 1))), 4).astype(int) - 1
    return np.asarray(levels[np.maximum(quarter, 0)])
