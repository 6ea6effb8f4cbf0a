"""The contour where the law has a narrow bulk and rare jumps: the bulk alone is taken out.

With χ₁ ≤ χ₂, A(z) = ∫φχ₁w^{s(z)} and B(z) = ∫φ(χ₂ − χ₁)w^{s(z)}, the measure to be read is
    G = (A + B)ᵀ − Aᵀ = Aᵀ((1 + B/A)ᵀ − 1),      |G| ≤ T |B| (A(c) + B(c))^{T−1}:
paths with at least one jump (docs/proofs/contour.md, Section 5). B decays fast in Im z, and its own
grid, fine as it must be, covers the jumps only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dalenius.profiles.arm import Arm, Turns
from dalenius.profiles.contour import midpoint, polar
from dalenius.profiles.moments import log_moment, log_most
from dalenius.profiles.nodes import FUNCTION
from dalenius.profiles.pair import Complexes, Floats
from dalenius.profiles.rounding import U, exp_bound
from dalenius.profiles.window import Gap, Window

FEW = 256
"""Up to so many releases the sum of products is formed where A is too small to divide by."""


@dataclass(frozen=True, eq=False)
class Jumps:
    """The bulk and the jumps of one part composed `times` times, at the exponent s of z = c."""

    bulk: Window
    jumps: Gap
    times: int
    s: float

    @cached_property
    def arms(self) -> tuple[Arm, Arm]:
        """A and B."""
        return Arm(self.bulk, self.s), Arm(self.jumps, self.s)

    @cached_property
    def sizes(self) -> tuple[float, float, float]:
        """log A(c), log B(c), and a bound on the error of their difference."""
        (a, b) = self.arms
        log_a, error_a = log_moment(a)
        error_b = b.mass_error + 1.02 * b.midpoint_zero / b.mass
        log_b = math.log(b.mass)
        return log_a, log_b, error_a + 1.02 * error_b + 8 * U * (abs(log_a) + abs(log_b) + 4)

    def log_most(self) -> float:
        """At least log of T B(c) (A(c) + B(c))^{T−1}."""
        return math.log(self.times) + log_most(self.arms[1]) + (self.times - 1) * self.log_whole

    @cached_property
    def log_whole(self) -> float:
        """At least log of A(c) + B(c)."""
        bulk, more = (log_most(arm) for arm in self.arms)
        return float(np.logaddexp(bulk, more)) + 4 * FUNCTION * (1 + abs(bulk))

    def log_far(self, extent: float, theta: float, calm: float) -> float:
        """At least log|G| for |Im z| ≥ extent: jumps on an x-contour moved by θ, the bulk by `calm`."""
        log_a, log_b, error = self.sizes
        whole = float(np.logaddexp(log_a, log_b)) + error
        gap = self.arms[1].gap_decay(extent, theta) + 1e-300
        bulk = min(self.arms[0].decay(extent, share * calm) for share in (1.0, 0.7, 0.45))
        rest = min(whole, math.log(bulk + gap) + FUNCTION)
        return math.log(self.times * gap) + (self.times - 1) * rest

    def lay(self, *, c: float, step: float, count: int) -> tuple[float, float, Complexes, Floats]:
        """G(z)/(z(z+1)) at the nodes over A(c)ᵀ: T log A(c), its error, the terms and their errors."""
        (one_a, error_a), (one_b, error_b) = (self._ratio(arm, step, count) for arm in self.arms)
        log_a, log_b, drift = self.sizes
        share, n = exp_bound(log_b - log_a), self.times
        size_a = np.abs(one_a)
        room = np.maximum(size_a - error_a, 1e-300)
        beta = share * one_b / np.where(size_a > 0, one_a, 1.0)
        slip = 1.01 * share * (error_b + np.abs(one_b) * error_a / room) / room + np.abs(beta) * 1.01 * (
            drift + 8 * U
        )
        value, error = self._powers(one_a, beta, n * error_a / room, slip)
        small = (size_a > 2 * error_a) & (n * error_a / room < 0.01) & (error < math.inf)
        bad = ~small if drift < 0.01 else np.ones_like(small)
        more = share * (np.abs(one_b) + error_b)
        rest = np.minimum(np.log(size_a + error_a + more), math.log1p(share))
        most = 1.02 * n * more * np.exp((n - 1) * rest + n * (drift + 4 * U))
        value, error = np.where(bad, 0.0, value), np.where(bad, most, error)
        if n <= FEW and drift < 0.01 and bad.any():
            off = 1.01 * share * error_b + np.abs(share * one_b) * 1.02 * drift
            other, slack = _summed(one_a[bad], share * one_b[bad], error_a[bad], off[bad], n)
            better = slack < most[bad]
            value[bad], error[bad] = np.where(better, other, 0.0), np.where(better, slack, most[bad])
        z = c + 1j * step * np.arange(count)
        kernel = z * (z + 1)
        scale_error = n * log_moment(self.arms[0])[1]
        return n * log_a, scale_error, value / kernel, (error + np.abs(value) * 8 * U) / np.abs(kernel)

    def _ratio(self, arm: Arm, step: float, count: int) -> tuple[Complexes, Floats]:
        """M(y)/M(0) at the nodes, with an error bound."""
        ratio, error = arm.ratios(Turns(arm.window.nodes.log[0], step, count))
        return 1 + ratio, error + 4.04 * midpoint(arm, step * (count - 1), count) / arm.mass + 2 * U

    def _powers(
        self, one_a: Complexes, beta: Complexes, relative: Floats, slip: Floats
    ) -> tuple[Complexes, Floats]:
        """(A/A(c))ᵀ((1 + β)ᵀ − 1), β known to within `slip` and the first factor to within `relative`."""
        n = self.times
        _, log, turn = polar(one_a - 1)
        size, log_more, turn_more = polar(beta)
        real, imaginary = n * log_more, n * turn_more
        grown = (
            np.expm1(real) * np.cos(imaginary)
            - 2 * np.sin(imaginary / 2) ** 2
            + 1j * np.exp(real) * np.sin(imaginary)
        )
        first = np.exp(n * log)
        rounding = n * 12 * U * np.minimum(np.abs(beta), 1.0) + 4 * FUNCTION * (
            np.abs(real) + np.abs(imaginary)
        )
        moved = n * slip * np.exp((n - 1) * np.log(size + slip)) + np.exp(real) * rounding
        error = 1.01 * (relative + FUNCTION * n * (np.abs(log) + np.abs(turn)) + 16 * FUNCTION)
        return first * np.exp(1j * n * turn) * grown, 1.01 * first * (moved + np.abs(grown) * error)


def _summed(
    a: Complexes, b: Complexes, error_a: Floats, error_b: Floats, times: int
) -> tuple[Complexes, Floats]:
    """(a + b)ᵀ − aᵀ = b Σ (a + b)ᵏ a^{T−1−k}, term by term, with a bound on its error.

    With R = |a| + |b| and the errors, the sum is at most T R^{T−1} and moves by at most T(T−1)R^{T−2} times
    the two errors; each of its 3T operations rounds by at most 4U of that.
    """
    total, power, whole = np.ones_like(a), a.copy(), a + b
    for _ in range(times - 1):
        total = total * whole + power
        power = power * a
    most = np.abs(a) + np.abs(b) + error_a + error_b
    grown = times * most ** (times - 1)
    moved = (np.abs(b) + error_b) * (times * (times - 1) * most ** max(times - 2, 0)) * (error_a + error_b)
    return b * total, 1.01 * (error_b * grown + moved + 24 * U * times * np.abs(b) * grown)
