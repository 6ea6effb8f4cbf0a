"""One part of a composition on the contour Re z = c: its moments and all bounds on them.

An arm is a window tilted to the exponent s: M(y) = ∫ φ χ w^{s ± iy} dx over the grid. The bounds are
proved in docs/proofs/contour.md:
  Lemma 2  the midpoint rule:  |h Σ f(xⱼ) − ∫ f| ≤ 2 strip(t)/(e^{2πt/h} − 1) + sides;
  Lemma 3  decay: |M(y′)| ≤ U(y) for every |y′| ≥ y, by moving the x-contour to x + iθ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dalenius.profiles.cutoff import EDGE
from dalenius.profiles.nodes import FUNCTION, LOG_ROOT_TWO_PI
from dalenius.profiles.pair import Complexes, Floats
from dalenius.profiles.rounding import U, exp_bound
from dalenius.profiles.window import Window

BLOCK = 32
"""Angles are computed as sums of one of BLOCK small angles and one large angle."""
LOWER, NEGLIGIBLE = (0.3, 0.1), 1e-15
"""Shares of a strip's height, tried where all of it leaves an error that is not negligible."""
PIECES = np.arange(129) / 128
"""A vertical side is bounded piece by piece."""


@dataclass(frozen=True, eq=False)
class Arm:
    """A window tilted to the exponent `s`."""

    window: Window
    s: float

    @cached_property
    def weights(self) -> tuple[Floats, Floats]:
        """h φ χ wˢ at the nodes, and the relative error of each."""
        exponent, error = self.window.nodes.tilted(self.s)
        kept = self.window.log_inside
        lost = np.where(kept > 15 - EDGE * EDGE, 0.0, 0.5 / (EDGE * EDGE))
        return np.exp(exponent + kept), error + 4 * FUNCTION + 24 * U * np.abs(kept) + lost + self.window.blur

    @cached_property
    def mass(self) -> float:
        """h Σ φ χ wˢ, rounded; infinite where it overflows."""
        weights = self.weights[0]
        return math.fsum(weights) if float(weights.max()) < 1e290 else math.inf

    @cached_property
    def mass_error(self) -> float:
        """The relative round-off of `mass`."""
        weights, error = self.weights
        return 1.01 * float(weights @ error) / self.mass + 4 * U if self.mass > 0 else math.inf

    @cached_property
    def midpoint_zero(self) -> float:
        """Lemma 2 on the real axis."""
        return float(self.midpoint_error(np.zeros(1))[0])

    def midpoint_error(self, y: Floats) -> Floats:
        """Lemma 2: at least |h Σ f − ∫ f| for f = φ χ w^{s ± iy′} with any |y′| ≤ y, for each y.

        Any height serves; a lesser one where w turns fast at the grid's end, which hardly matters otherwise.
        """
        found = self._midpoint(y, self.window.height)
        for share in LOWER:
            if not float(found.max()) > NEGLIGIBLE * self.mass:
                break
            found = np.minimum(found, self._midpoint(y, share * self.window.height))
        return found

    def _midpoint(self, y: Floats, t: float) -> Floats:
        window = self.window
        log, turn = window.line(t)
        radius = window.line(0.0)[0][1:] if self.s > 0 else log[:-1]
        base = window.log_height + (t * t / 2 - 2 * math.pi * t / window.nodes.step) + self.s * radius
        base = base + window.log_most_inside(t)
        strip = np.array([sum_bound(base + one * turn[1:]) for one in y.tolist()])
        return 2.01 * strip / -math.expm1(-2 * math.pi * t / window.nodes.step) + self._sides(t, y)

    def _sides(self, t: float, y: Floats) -> Floats:
        """The vertical sides of the strip: |f(x+iτ)| e^{−2πτ/h} ≤ f(x) e^{−rτ} for 0 ≤ τ ≤ t."""
        window = self.window
        total = np.zeros(len(y))
        for end in (0, -1):
            log, plain = float(window.line(t)[0][end]), float(window.line(0.0)[0][end])
            slope = window.nodes.part.slope(float(window.nodes.edges[end])) * math.exp(plain - log)
            rate = 2 * math.pi / window.nodes.step - y * slope - t * (0.5 + window.width**-2)
            size = self._log_size(end, t) + window.log_kept(end)
            total += [
                2.01 * exp_bound(size + max(0.0, -r) * t) * (min(t, 1 / r) if r > 0 else t) for r in rate
            ]
        return total

    def _log_size(self, end: int, t: float) -> float:
        """At least log φ|w(x+iτ)|ˢ at an edge, for 0 ≤ τ ≤ t."""
        x = float(self.window.nodes.edges[end])
        log = float(self.window.line(0.0 if self.s > 0 else t)[0][end])
        return 1e-3 - x * x / 2 - LOG_ROOT_TWO_PI + self.s * log

    def decay(self, y: float, theta: float) -> float:
        """Lemma 3: at least |M(y′)| for all |y′| ≥ y."""
        window, nodes = self.window, self.window.nodes
        flat = self._flat(theta)
        log, turn = nodes.polar(theta, nodes.x[:flat])
        exponent = nodes.log_density[:flat] + theta * theta / 2 + self.s * log - y * turn
        far = abs(self.s) * (1 + float(np.abs(log).max())) + y * float(turn[-1])
        slack = 1 + 64 * U * (len(exponent) + far + 256)
        grown = (theta / window.cutoff.width) ** 2
        leak = 1 + exp_bound(grown + float(window.log_outside_edges[flat]))
        main = float(np.exp(exponent).sum()) * slack * leak
        most = window.log_most_inside(theta)
        rough = self._riemann(y, theta, 0, most)
        exact = main + self._flat_error(theta, flat) + self._riemann(y, theta, flat, most)
        kept = (
            math.log1p(exp_bound(grown + float(window.log_outside_edges[0]))),
            float(window.log_inside_edges[-1]),
        )
        return (
            min(rough, exact)
            + self._rise(0, y, theta, kept[0], 0.5)
            + self._rise(-1, y, theta, kept[1], 0.5 + window.cutoff.width**-2)
        )

    def _rise(self, end: int, y: float, theta: float, log_kept: float, bend: float) -> float:
        """At least ∫₀^θ kept·φ|w|ˢ e^{bend·τ² − y arg w(x+iτ)} dτ at an edge x: a side of the moved contour.

        An upper Riemann sum, since arg w(x+iτ) increases with τ.
        """
        heights = theta * PIECES
        turn = self.window.nodes.part.turn(float(self.window.nodes.edges[end]), heights[:-1])
        size = self._log_size(end, theta) + log_kept
        return 1.01 * theta / len(turn) * sum_bound(bend * heights[1:] ** 2 - y * turn + size)

    def _flat(self, theta: float) -> int:
        """The cell up to which χ is 1 on the moved contour, to within e^{−45}."""
        at = self.window.cutoff.middle - math.sqrt(theta * theta + 45 * self.window.cutoff.width**2)
        nodes = self.window.nodes
        return max(1, min(len(nodes.x), math.floor(at / nodes.step) - nodes.left))

    def _flat_error(self, theta: float, flat: int) -> float:
        """Lemma 2 for the modulus on the moved contour, which is analytic for a(θ + η) ≤ π/2."""
        window = self.window
        eta = min(math.pi / 2 / max(window.nodes.part.shifts) - theta, math.pi / window.nodes.step)
        log = window.line(0.0 if self.s > 0 else theta + eta)[0][: flat + 1]
        radius = self.s * (log[1:] if self.s > 0 else log[:-1])
        strip = sum_bound(window.log_height[:flat] + radius)
        ends = window.nodes.edges[[0, flat]]
        size = sum_bound(-ends * ends / 2 - LOG_ROOT_TWO_PI + self.s * log[[0, flat]])
        rate = 2 * math.pi / window.nodes.step - eta / 2
        return math.exp(theta * theta / 2) * 2.02 * (strip * math.exp(-eta * rate) + size / rate)

    def _riemann(self, y: float, theta: float, start: int, most: Floats) -> float:
        log, turn = (v[start:] for v in self.window.line(theta))
        if len(log) < 2:
            return 0.0
        exponent = self.window.log_height[start:] + theta * theta / 2 - y * turn[:-1]
        exponent += self.s * (log[1:] if self.s > 0 else log[:-1])
        return 1.001 * sum_bound(exponent + most[start:])

    def gap_decay(self, y: float, theta: float) -> float:
        """Lemma 3 for a gap between cutoffs: no power follows, so a Riemann sum is sharp enough."""
        bend = 0.5 + self.window.width**-2
        sides = sum(self._rise(end, y, theta, self.window.log_kept(end), bend) for end in (0, -1))
        return self._riemann(y, theta, 0, self.window.log_most_inside(theta)) + sides

    def ratios(self, turns: Turns) -> tuple[Complexes, Floats]:
        """h Σ φ χ w^{s}(w^{±iky} − 1) over `mass` for k < count and y = `step`, with round-off bounds."""
        (weights, error), (log, log_error) = self.weights, self.window.nodes.log
        total = turns.sums(weights)
        y, size = turns.step * np.arange(turns.count), np.abs(log)
        rounding = self.mass_error + 9 * turns.depth * U + turns.rounding
        near = float(weights @ (error * size)) + rounding * float(weights @ size)
        far = 8 * (float(weights @ error) + rounding * self.mass)
        moved = np.minimum(y * float(weights @ (log_error + 4 * U * size)), 2 * self.mass)
        return total / self.mass, 1.01 * (np.minimum(y * near, far) + moved) / self.mass


@dataclass(frozen=True, eq=False)
class Turns:
    """e^{iky·loss} − 1 for k < count, kept as small and large angles."""

    loss: Floats
    step: float
    count: int

    @property
    def few(self) -> bool:
        """Whether every angle is computed by itself."""
        return self.count <= BLOCK

    @cached_property
    def small(self) -> Complexes:
        """The small angles, one row for each."""
        if self.few:
            return turned(self.loss, self.step * np.arange(self.count, dtype=np.float64))
        return multiples(turned(self.loss, np.array([self.step]))[0], BLOCK)

    @cached_property
    def large(self) -> Complexes:
        """The large angles."""
        first = turned(self.loss, np.array([self.step * BLOCK]))[0]
        return multiples(first, -(-self.count // BLOCK))

    @property
    def depth(self) -> int:
        """How many additions a term goes through: all in a matrix product, few where numpy sums in pairs."""
        n = len(self.loss)
        return 24 + n.bit_length() if self.few else n

    @property
    def rounding(self) -> float:
        """The error of e^{iky·loss} − 1 over ky·|loss|, and an eighth of it where that is large."""
        if self.few:
            return 12 * FUNCTION + 80 * U
        rows = max(BLOCK, -(-self.count // BLOCK))
        return (12 + rows) * FUNCTION + (80 + 12 * rows.bit_length() + 2 * rows) * U

    def sums(self, weights: Floats) -> Complexes:
        """Σ weights (e^{iky·loss} − 1), a matrix product once count is large."""
        if self.few:
            paired: Complexes = (self.small * weights).sum(axis=1)
            return paired
        first = self.small @ weights
        large = self.large * weights
        total: Complexes = (large @ self.small.T + large.sum(axis=1)[:, None] + first).ravel()[: self.count]
        return total


def multiples(first: Complexes, count: int) -> Complexes:
    """e^{ikθ} − 1 for k < count from e^{iθ} − 1, doubling the rows: (1 + a)(1 + b) = 1 + a + b(1 + a)."""
    rows = np.zeros((count, len(first)), dtype=np.complex128)
    done, last = 1, first
    while done < count:
        more = min(done, count - done)
        rows[done : done + more] = rows[:more] + last * (1 + rows[:more])
        done, last = done + more, last + last * (1 + last)
    return rows


def turned(loss: Floats, y: Floats) -> Complexes:
    """e^{iyℓ} − 1 for every y (rows) and every loss (columns), accurate near zero."""
    half = np.outer(y, 0.5 * loss)
    sine = np.sin(half)
    result: Complexes = -2 * sine * sine + 2j * sine * np.cos(half)
    return result


def sum_bound(exponent: Floats) -> float:
    """Σ e^exponent as an upper bound: infinite rather than an overflow."""
    top = float(exponent.max())
    if top == -math.inf:
        return 0.0
    return exp_bound(top + math.log(float(np.exp(exponent - top).sum()))) if top < math.inf else math.inf
