"""Where to look: the tilt, the ε and the window that matter for one question about a sum of losses.

With K(λ) = Σ n log E_P[e^{λL}], the tilted sum has mean K'(λ) and variance V = K''(λ), and by the
normal approximation δ(K'(λ)) ≈ e^{K(λ)−λK'(λ)}·(R(λ√V) − R((λ+1)√V)), R(z) = ½·erfcx(z/√2). The
window is Chernoff's: the tilted sum exceeds B with probability at most e^{K(λ+s)−K(λ)−sB}.

Everything here chooses parameters. What is certified is certified later, whatever they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dalenius.profiles.pair import Floats

OUTSIDE = 39.0
"""−log of the tilted mass that a window may miss, on either side: about 1e-17."""
DEVIATIONS = (0.1, 0.3, 1.0, 2.0, 4.0, 6.0, 9.0, 14.0)
"""Chernoff exponents that are tried, in standard deviations of the tilted sum."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """A law roughly: losses, the logarithms of their masses, and how often it occurs."""

    losses: Floats
    logs: Floats
    count: int

    @staticmethod
    def of(losses: Floats, masses: Floats, count: int) -> Sketch:
        """Only where there is mass."""
        there = masses > 0
        return Sketch(losses[there], np.log(masses[there]), count)

    def cumulants(self, tilt: float) -> tuple[float, float, float]:
        """K, K', K'' of all occurrences together."""
        exponents = self.logs + tilt * self.losses
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        mean = float(weights @ self.losses) / total
        variance = float(weights @ (self.losses - mean) ** 2) / total
        return (self.count * (top + math.log(total)), self.count * mean, self.count * variance)

    def top(self, tilt: float) -> float:
        """The logarithm of the tilted probability that every loss is the largest."""
        exponents = self.logs + tilt * self.losses
        highest = float(exponents.max())
        total = highest + math.log(float(np.sum(np.exp(exponents - highest))))
        return self.count * (float(exponents[-1]) - total)


@dataclass(frozen=True)
class Plan:
    """The tilt λ, the ε where the answer should lie, log δ there, the window, and Chernoff's exponents.

    `aimed` says that ε was given and not estimated.
    """

    tilt: float
    epsilon: float
    log_delta: float
    deviation: float
    window: tuple[float, float]
    exponents: tuple[float, float]
    aimed: bool


def plan(sketches: Sequence[Sketch], *, log_delta: float | None = None, epsilon: float = 0.0) -> Plan:
    """For δ near e^log_delta, or else for δ(epsilon); a tilt that makes the largest sum likely is enough."""

    def beyond(tilt: float) -> bool:
        total = _total(sketches, tilt)
        if sum(sketch.top(tilt) for sketch in sketches) > -1:
            return True
        return total[1] > epsilon if log_delta is None else _log_delta(tilt, *total) < log_delta

    deviation = max(math.sqrt(_total(sketches, 0.0)[2]), 1e-150)
    tilt = _least(beyond, 1.0 / deviation)
    cumulants = _total(sketches, tilt)
    deviation = math.sqrt(max(cumulants[2], 1e-300))
    aimed = log_delta is None
    target = epsilon if aimed else cumulants[1]
    found = Plan(tilt, target, _log_delta(tilt, *cumulants), deviation, (0.0, 0.0), (0.0, 0.0), aimed)
    return windowed(found, sketches, deviation)


def windowed(found: Plan, sketches: Sequence[Sketch], deviation: float) -> Plan:
    """The plan with its window, where the tilted sum will have this standard deviation or less."""
    low, down = _edge(sketches, found.tilt, -1, deviation)
    high, upward = _edge(sketches, found.tilt, 1, deviation)
    return replace(found, deviation=deviation, window=(low, high), exponents=(down, upward))


def _total(sketches: Sequence[Sketch], tilt: float) -> tuple[float, float, float]:
    parts = [sketch.cumulants(tilt) for sketch in sketches]
    return (sum(p[0] for p in parts), sum(p[1] for p in parts), sum(p[2] for p in parts))


def _log_delta(tilt: float, value: float, mean: float, variance: float) -> float:
    root = math.sqrt(max(variance, 1e-300))
    gap = _mills(tilt * root) - _mills((tilt + 1) * root)
    return value - tilt * mean + math.log(max(gap, 1e-300))


def _mills(z: float) -> float:
    """About R(z)."""
    return 1 / (math.sqrt(math.pi / 2) * z + math.sqrt(math.pi * z * z / 2 + 4))


def _least(beyond: Callable[[float], bool], unit: float) -> float:
    """The least tilt that reaches as far as asked, to 1 %; zero where none is needed."""
    if beyond(0.0):
        return 0.0
    low, high = unit * 1e-6, unit
    while not beyond(high) and high < unit * 1e4:
        low, high = high, 4 * high
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return high


def _edge(sketches: Sequence[Sketch], tilt: float, side: int, deviation: float) -> tuple[float, float]:
    """The nearest edge of the window that Chernoff allows, and the exponent that shows it."""
    here = _total(sketches, tilt)[0]
    tried = []
    heavy = (tilt, tilt / 2) if side < 0 < tilt else ()  # a heavy lower tail has no moments beyond these
    for size in (*(d / deviation for d in DEVIATIONS), *heavy):
        tried.append(((_total(sketches, tilt + side * size)[0] - here + OUTSIDE) / size, side * size))
    reach, s = min(tried)
    return side * reach, s
