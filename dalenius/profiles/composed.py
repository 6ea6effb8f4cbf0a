"""δ(ε) of a composition of lattice laws, from one tilted convolution, on both sides.

Theorem (docs/proofs/lattice.md). Let S be the sum of the true losses, and S′ that of the split ones,
with variance proxy v = Σ n·spread. Then, for 0 < v ≤ 1 and θ = 1/√v,
    δ_{S′}(ε) ≥ δ_S(ε) ≥ δ_{S′}(ε) − C·E[e^{−θ|S′−ε|}],   C = √v·exp((1 + √v)/2 − 1 + √(1 + v/4)).
Splitting keeps E[e^{−L}], so it moves (1 − e^{ε−S})₊ only where it carries S across ε, and each
splitting variable ξ has log E[e^{tξ}] ≤ t(t+1)·step²/8 outside −1 < t < 0. The gap is of second order.

With U ≼ (1 + loose)V + excess + above (see `lattice`), one factor at a time, the convolution of the
laws U exceeds that of the V by a factor Π(1 + loose)^n, and by at most
    m·e^{K(λ)−λε}·Σ n·E_excess[e^{λL}]/E_U[e^{λL}] + M·Σ n·(above + excess·Σ n·infinite),
K the logarithmic moment of the convolution, M its total mass, and m = min(1, 1/(eλ)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dalenius.profiles.convolution import FINITE, Window, growth, surplus
from dalenius.profiles.lattice import Lattice, shift
from dalenius.profiles.pair import Floats
from dalenius.profiles.rounding import TINY, U, ceiling

TERM = 800 * U
"""Relative error of a weighted sum here: exponents of at most 745, exp, expm1, product, pairwise sum."""

NORM = 1e-8
"""Relative error of an ℓ² norm of at most 2²² numbers, summed in any order."""
FAR = 80.0
"""Weights are followed down to e^{−80}; what lies beyond is bounded."""


@dataclass(frozen=True)
class Slack:
    """What the laws leave open, composed: see the module."""

    error: float
    looseness: float
    excess: float
    above: float
    infinite: tuple[float, float]
    spread: float

    @staticmethod
    def of(terms: Sequence[tuple[Lattice, int]], window: Window) -> Slack:
        """All of it rounded up, but the lower end of the infinite mass, which is rounded down."""
        error = sum(n * law.error for law, n in terms)
        loose = sum(n * (law.error + law.looseness) for law, n in terms)
        masses = [float(law.masses.sum()) * (1 + law.error) * (1 + 64 * U) + TINY for law, _ in terms]
        logs = (n * max(0.0, math.log(m)) for m, (_, n) in zip(masses, terms, strict=True))
        infinite = sum(n * law.infinite[1] for law, n in terms)
        leftover = sum(n * (law.above + float(law.excess.sum()) * infinite) for law, n in terms)
        tilted = sum(n * _tilted_excess(law, window.tilt) for law, n in terms if len(law.excess))
        return Slack(
            error=surplus(error * (1 + 64 * U)),
            looseness=surplus(loose * (1 + 64 * U)),
            excess=tilted * (1 + 1e-9) * (1 + window.relative),
            above=growth(sum(logs) + 64 * U) * leftover * (1 + 64 * U),
            infinite=(_surely([(law.infinite[0], n) for law, n in terms]), _at_most(terms, masses)),
            spread=sum(n * law.spread for law, n in terms) * (1 + 64 * U),
        )


def _surely(infinite: Sequence[tuple[float, int]]) -> float:
    """1 − Π(1 − p)^n, rounded down."""
    if any(p >= 1 for p, _ in infinite):
        return 1.0
    return max(0.0, -math.expm1(sum(n * math.log1p(-p) for p, n in infinite)) * (1 - 128 * U))


def _at_most(terms: Sequence[tuple[Lattice, int]], masses: Sequence[float]) -> float:
    """Π(m + p)^n − Πm^n, which grows with m and p, rounded up."""
    counted = [(m, law.infinite[1], n) for m, (law, n) in zip(masses, terms, strict=True)]
    finite = sum(n * math.log(m) for m, _, n in counted)
    drift = sum(n * abs(math.log(m)) for m, _, n in counted) * 16 * U
    more = sum(n * math.log1p(p / m) for m, p, n in counted) * (1 + 64 * U)
    if more > 1:
        rest = math.exp(finite - drift) * (1 - 64 * U) if finite - drift < FINITE else 0.0
        return growth(finite + drift + more) * (1 + 64 * U) - rest
    return growth(finite + drift) * math.expm1(more) * (1 + 64 * U)


def _tilted_excess(law: Lattice, tilt: float) -> float:
    """E_excess[e^{λL}]/E_U[e^{λL}]."""
    exponents = tilt * np.arange(len(law.masses))
    with np.errstate(divide="ignore", over="ignore"):
        logs, more = np.log(law.masses) + exponents, np.log(law.excess) + exponents
        top = float(logs.max())
        return float(np.sum(np.exp(more - top)) / np.sum(np.exp(logs - top)))


@dataclass(frozen=True, eq=False)
class Composed:
    """One window with its slack: encloses δ at any ε, most sharply where the window was planned for."""

    window: Window
    slack: Slack

    @staticmethod
    def of(terms: Sequence[tuple[Lattice, int]], window: Window) -> Composed:
        """The composition of these laws, as far as the window shows it."""
        return Composed(window, Slack.of(terms, window))

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε). With g the first gap above ε, 1 − e^{−g−t} = 1 − e^{−g} + e^{−g}(1 − e^{−t})."""
        first, radius, at = self._gap(epsilon)
        decay, rise = self._decay[: len(self.window.values) - at], self._rise[: len(self.window.values) - at]
        values = self.window.values[at : at + len(decay)]
        near, shrink = -math.expm1(-first), math.exp(-first)
        mass = _sum(decay, values)
        found = near * mass + shrink * _sum(rise, values)
        noise = radius * (mass + self._edge(at, radius)) + self._rest(at)
        noise += self._noise(near * self._norms[0] + shrink * self._norms[1], first, self._most)
        return self._assemble(epsilon, found, noise, at, radius, first)

    def _assemble(
        self, epsilon: float, found: float, noise: float, at: int, radius: float, first: float
    ) -> tuple[float, float]:
        scale, slack, relative = self._scale(at), self.slack, self.window.relative + TERM
        upper = scale[1] * (found + noise) * (1 + relative) * (1 + slack.error) + slack.infinite[1]
        split = scale[0] * (found - noise) * (1 - relative)
        excess = scale[1] * slack.excess * self._reach(first) * self._most
        split = (split - excess - slack.above) / (1 + slack.looseness)
        lower = 0.0
        if split > 0:
            gap = upper - slack.infinite[0] - split
            lower = max(0.0, split - self._crossing(first, at, radius, scale[1], gap))
        return _clip(epsilon, (lower + slack.infinite[0]) * (1 - 8 * U), upper * (1 + 8 * U))

    @cached_property
    def _decay(self) -> Floats:
        """e^{−tilt·j}, as far as it matters."""
        reach = min(len(self.window.values), int(FAR / max(self.window.tilt, 1e-9)) + 2)
        return np.asarray(np.exp(-self.window.tilt * np.arange(reach)))

    @cached_property
    def _rise(self) -> Floats:
        return np.asarray(self._decay * -np.expm1(-float(self.window.step[0]) * np.arange(len(self._decay))))

    @cached_property
    def _norms(self) -> tuple[float, float]:
        return float(np.linalg.norm(self._decay)), float(np.linalg.norm(self._rise))

    @cached_property
    def _all(self) -> float:
        """The tilted mass, rounding and all."""
        return float(self.window.values.sum()) + math.sqrt(len(self.window.values)) * self.window.distance

    def _rest(self, at: int) -> float:
        """What lies beyond the weights that were kept."""
        return self._all * math.exp(-FAR) if at + len(self._decay) < len(self.window.values) else 0.0

    def _crossing(self, first: float, at: int, radius: float, scale: float, gap: float) -> float:
        """C·E[e^{−θ|S′−ε|}] over the V laws, from the U laws: the difference adds 2θ times theirs in δ."""
        v, tilt, step = self.slack.spread, self.window.tilt, float(self.window.step[0])
        if v == 0.0:
            return 0.0
        root = math.sqrt(v)
        if root > 1 or tilt * root > 0.9 * step:
            return math.inf
        reach = int(FAR / (step / root - tilt)) + 2
        indices = np.arange(max(at - reach, 0), min(at + reach, len(self.window.values)))
        weights = np.exp(-tilt * (indices - at) - np.abs(first + step * (indices - at)) / root)
        total = _sum(weights, self.window.values[indices[0] : indices[-1] + 1]) if len(indices) else 0.0
        total += self._noise(float(np.linalg.norm(weights)), first + step, 1.0)
        total += self._all * growth(tilt * (first / step + 1) - FAR)
        kernel = scale * total * (1 + self.window.relative + TERM) * growth(radius / root)
        constant = root * math.exp((1 + root) / 2 - 1 + math.sqrt(1 + v / 4)) * (1 + 64 * U)
        return constant * (kernel + 2 / root * max(gap, 0.0))

    def _gap(self, epsilon: float) -> tuple[float, float, int]:
        """The least l − ε > 0 within a radius that holds for all of them, and its place in the window."""
        window = self.window
        low, high = shift(window.offset, window.step, window.first)
        step = window.step[0]
        at = min(max(math.floor((Fraction(epsilon) - low) / step) + 1, 0), len(window.values))
        first = float(low + at * step - Fraction(epsilon))
        width = ceiling(high - low) + len(window.values) * ceiling(window.step[1] - step)
        radius = 8 * U * (abs(first) + float(step) * len(window.values)) + width
        return max(first, 0.0), radius * (1 + 8 * U), at

    def _edge(self, at: int, radius: float) -> float:
        """The mass below ε that the radius may carry above it."""
        many = min(int(radius / float(self.window.step[0])) + 2, at)
        return float(self.window.values[at - many : at].sum()) * growth(self.window.tilt * many)

    def _noise(self, norm: float, first: float, most: float) -> float:
        """Cauchy–Schwarz on the transform's error, and the mass outside the window at its largest weight."""
        return norm * self.window.distance * (1 + NORM) + self.window.outside * self._reach(first) * most

    @cached_property
    def _most(self) -> float:
        """Bounds (1 − e^{−y})e^{−λy}, y > 0, by 1/(eλ)."""
        return min(1.0, float(self.window.step[1]) / max(math.e * self.window.tilt, TINY) * (1 + 64 * U))

    def _reach(self, first: float) -> float:
        """The weight at ε itself, which is above one where ε lies before the window."""
        return growth(self.window.tilt * first / float(self.window.step[0])) * (1 + TERM)

    def _scale(self, at: int) -> tuple[float, float]:
        """e^{log_scale − tilt·(index at − centre)}, enclosed."""
        shifted = self.window.tilt * (self.window.first + at - self.window.centre)
        exponent = self.window.log_scale - shifted
        slack = 1 + (4 * (abs(self.window.log_scale) + abs(shifted)) + 16) * U
        return math.exp(min(exponent, FINITE)) / slack, growth(exponent) * slack


def _sum(a: Floats, b: Floats) -> float:
    """Σ ab, summed in pairs: its relative error grows with the logarithm of the length."""
    return float(np.sum(a * b))


def _clip(epsilon: float, lower: float, upper: float) -> tuple[float, float]:
    """A profile lies between 1 − e^ε and 1."""
    least = max(0.0, -math.expm1(epsilon) * (1 - 16 * U)) if epsilon < 0 else 0.0
    low = min(max(lower, least), 1.0) if lower == lower else least
    high = min(max(upper, low), 1.0) if upper == upper else 1.0
    return low, high
