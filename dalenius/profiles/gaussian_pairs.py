"""Worst-case pairs of Gaussians: one shift, or a mixture of shifts against none.

For a mixture with ratio w(x) = Σ pᵢ exp(aᵢx − aᵢ²/2) to N(0, 1), which increases with x, the best event
against e^ε is x above (or, reversed, below) a threshold. Any threshold gives a lower bound on H(ε); one
where λ = log w misses ε by at most r gives an upper bound after adding e^ε φ r²/λ′, the most that the
strip between it and the best threshold can hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from dalenius.arithmetic import workprec
from dalenius.profiles.balls import BITS, ball
from dalenius.profiles.cutoff import FAR, log_half_erfc
from dalenius.profiles.enclosure import Interval, clip, interval
from dalenius.profiles.nodes import FUNCTION, Part
from dalenius.profiles.pair import Floats, Pair
from dalenius.profiles.rounding import TINY, U, ceiling

ROOT_HALF = math.sqrt(0.5)
ROOT_TWO_PI = math.sqrt(2 * math.pi)


def log_normal(x: Floats) -> tuple[Floats, Floats]:
    """log Φ(−x), and a bound on the relative error of its exponential when x is off by 4U·|x|."""
    z = x * ROOT_HALF
    log = log_half_erfc(z)
    return log, np.where(z > FAR, 1e-3, 2 * FUNCTION + 16 * U * (1 + x * x)) + FUNCTION * np.abs(log)


@dataclass(frozen=True)
class ShiftPair(Pair):
    """N(distance, 1) against N(0, 1)."""

    distance: Fraction

    @property
    def mu(self) -> float:
        """The distance, rounded."""
        return float(self.distance)

    @np.errstate(all="ignore")
    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
        ahead, ahead_error = log_normal(epsilon / self.mu - self.mu / 2)
        behind, behind_error = log_normal(epsilon / self.mu + self.mu / 2)
        moved = 8 * U * (np.abs(epsilon) / self.mu + self.mu) ** 2
        return clip(epsilon, *_difference(epsilon, ahead, ahead_error + moved, behind, behind_error + moved))

    def log_moment(self, order: float) -> tuple[float, float]:
        """t(t+1)μ²/2."""
        with workprec(BITS):
            return interval(ball(order) * (1 + ball(order)) * ball(self.distance) ** 2 / 2)

    @property
    def support(self) -> tuple[float, float]:
        """The whole line."""
        return (-math.inf, math.inf)

    def reversed(self) -> ShiftPair:
        """Itself, by reflection."""
        return self


@dataclass(frozen=True)
class MixturePair(Pair):
    """Σ pᵢN(aᵢ, 1) against N(0, 1), as (aᵢ, pᵢ) in order; or the reverse."""

    atoms: tuple[tuple[Fraction, Fraction], ...]
    backward: bool = False

    @cached_property
    def part(self) -> Part:
        """The mixture in floats, once."""
        return Part(tuple(float(p) for _, p in self.atoms), tuple(float(a) for a, _ in self.atoms), 1)

    @property
    def sign(self) -> int:
        """+1: L = λ under the mixture; −1: L = −λ under N(0, 1)."""
        return -1 if self.backward else 1

    @np.errstate(all="ignore")
    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """The best threshold, and what it may miss."""
        x, miss = self._threshold(self.sign * epsilon)
        plain = log_normal(self.sign * x)
        mixed = self._mixed(x)
        (p, p_error), (q, q_error) = (plain, mixed) if self.backward else (mixed, plain)
        lower, upper = _difference(epsilon, p, p_error, q, q_error)
        upper = upper + np.where(np.isnan(miss), 1.0, miss)
        # Where ε ≥ 0, H is at most the total variation, and that no more than the chance of any shift.
        upper = np.where(epsilon >= 0, np.minimum(upper, self._chance), upper)
        return clip(epsilon, lower, upper, top=self.support[1])

    @cached_property
    def _chance(self) -> float:
        return ceiling(sum((p for a, p in self.atoms if a), Fraction(0)))

    def _mixed(self, x: Floats) -> tuple[Floats, Floats]:
        """log of the mixture's mass on the better side of x, and its relative error."""
        tails = [log_normal(self.sign * (x - a)) for a in self.part.shifts]
        logs = [math.log(p) + log for p, (log, _) in zip(self.part.weights, tails, strict=True)]
        total = np.logaddexp.reduce(logs)
        return total, np.maximum.reduce([error for _, error in tails]) + 16 * U * len(
            logs
        ) + FUNCTION * np.abs(total)

    def _threshold(self, level: Floats) -> tuple[Floats, Floats]:
        """x with λ(x) near `level`, and at least e^ε times the mass between it and the exact one."""
        far = max(self.part.shifts)
        low, high = self._bracket(level, far)
        gap = (
            high
            - low
            + 8 * U * (np.abs(low) + far)
            + 64 * U * (1 + np.abs(level)) / np.maximum(self._slope(low), 1e-300)
        )
        density = np.exp(-0.5 * np.maximum(np.abs(low) - gap, 0.0) ** 2) / ROOT_TWO_PI
        apart = np.expm1(np.minimum(gap * far, 700.0)) * 1.01
        with np.errstate(over="ignore", invalid="ignore"):
            weight = np.exp(np.minimum(np.maximum(level, 0.0) if not self.backward else 0.0 * level, 700.0))
            miss = 2 * weight * np.minimum(density * gap, 1.0) * apart
        inside = (low > -40.0) & (high < 40.0 + far)
        return low, np.where(inside, miss, 1e-300)

    def _bracket(self, level: Floats, far: float) -> tuple[Floats, Floats]:
        """Where λ crosses the level, in [−40, 40 + a]: from the closed form for one shift, or by halving."""
        low, high = np.full_like(level, -40.0), np.full_like(level, 40.0 + far)
        if len(self.atoms) == 2 and self.atoms[0][0] == 0:
            guess = (
                np.log1p(np.expm1(np.minimum(level, 700.0)) / self.part.weights[1]) + far * far / 2
            ) / far
            near = 4e-13 * (1 + np.abs(guess))
            left, right = self.part.log(guess - near), self.part.log(guess + near)
            sure = (np.abs(guess) < 39) & (left <= level) & (level < right) & (level < 700)
            low, high = np.where(sure, guess - near, low), np.where(sure, guess + near, high)
            if sure.all():
                return low, high
        ends = self.part.log(np.array([-40.0, 40.0 + far]))
        margin = 1e-9 * (1 + np.abs(level))
        # λ grows, so that a level beyond its ends is crossed nowhere in between.
        under, over = (high > low) & (level < ends[0] - margin), (high > low) & (level > ends[1] + margin)
        low, high = np.where(over, 40.0 + far, low), np.where(under, -40.0, high)
        wide = np.flatnonzero(high - low > 1.0)
        a, b, aim = low[wide], high[wide], level[wide]
        for _ in range(70 if len(wide) else 0):
            middle = 0.5 * (a + b)
            above = self.part.log(middle) > aim
            a, b = np.where(above, a, middle), np.where(above, middle, b)
        low[wide], high[wide] = a, b
        return low, high

    def _slope(self, x: Floats) -> Floats:
        """λ′."""
        exponents = [a * x - a * a / 2 for a in self.part.shifts]
        top = np.maximum.reduce(exponents)
        grown = [p * np.exp(u - top) for p, u in zip(self.part.weights, exponents, strict=True)]
        raised = sum((g * a for g, a in zip(grown, self.part.shifts, strict=True)), np.zeros_like(x))
        return raised / sum(grown, np.zeros_like(x))

    def log_moment(self, order: float) -> tuple[float, float]:
        """log W(1 + order), or log W(−order) backward: by quadrature, or closed bounds at large orders."""
        return _log_moment(self, order)

    def closed_moment(self, order: float) -> Interval:
        """Convexity above, the largest single term below."""
        with workprec(BITS):
            t = -ball(order) if self.backward else 1 + ball(order)
            each = [(ball(p), ball(a)) for a, p in self.atoms]
            upper = sum((p * (t * (t - 1) * a * a / 2).exp() for p, a in each), ball(0.0)).log()
            lower = max(interval(p.log() * t + t * (t - 1) * a * a / 2)[0] for p, a in each)
            top = interval(upper)[1]
        return (0.0 if self.backward else max(0.0, lower), top)

    @property
    def support(self) -> tuple[float, float]:
        """From log p₀ upward, p₀ the weight at no shift; mirrored when backward."""
        first, weight = self.atoms[0]
        with workprec(BITS):
            least = interval(ball(weight).log())[0] if first == 0 else -math.inf
        return (-math.inf, -least) if self.backward else (least, math.inf)

    def reversed(self) -> MixturePair:
        """The other direction."""
        return MixturePair(self.atoms, not self.backward)


@lru_cache(maxsize=4096)
def _log_moment(pair: MixturePair, order: float) -> Interval:
    from dalenius.profiles.moments import line_moment

    s = -order if pair.backward else 1 + order
    return line_moment(pair.part, s, lambda: pair.closed_moment(order))


def _difference(
    epsilon: Floats, p: Floats, p_error: Floats, q: Floats, q_error: Floats
) -> tuple[Floats, Floats]:
    """Enclose P − e^ε Q from logarithms of P and Q and the relative errors of their exponentials."""
    first, second = np.exp(np.minimum(p, 0.0)), np.exp(np.minimum(epsilon + q, 700.0))
    slip = first * 1.01 * (p_error + FUNCTION)
    slip += second * 1.01 * (q_error + FUNCTION + 4 * U * (np.abs(epsilon) + np.abs(q))) + TINY
    lower, upper = first - second - slip, np.maximum(first - second + slip, TINY)
    return np.where(np.isnan(lower), 0.0, lower), np.where(np.isnan(upper), 1.0, upper)
