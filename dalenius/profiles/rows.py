"""Many mixtures at once, without cutoffs: rows of tables, one row for each, on one grid.

M(y) = ∫ φ w^{s ± iy} over the whole line. Bounds proved in docs/proofs/contour.md, Section 7:
  Lemma 4  the midpoint rule on the whole line errs by at most 2 M(0) e^{t²/2 + |y|at} ω/(e^{2πt/h} − 1),
           ω = 1 for s > 0 and cos(at/2)ˢ for s < 0, for any t with at ≤ π/2;
  Lemma 5  what the sum over the grid leaves out is below `spill`;
  Lemma 6  |M(y′)| ≤ U(y) for every |y′| ≥ y, by moving the x-contour to x + iθ, with the same two errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dalenius.profiles.nodes import (
    FUNCTION,
    LOG_ROOT_TWO_PI,
    Column,
    Moving,
    Part,
    excess_at,
    log_at,
    normal_tail,
    polar_at,
)
from dalenius.profiles.pair import Complexes, Floats
from dalenius.profiles.rounding import U

STRIP = math.pi / 2
"""a·t is at most this, so that w(x + it) stays in a quarter of the plane."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Parts as rows: weights and shifts by component, each a column."""

    moving: Moving
    still: Floats
    shift: Floats
    times: Floats

    @staticmethod
    def of(parts: Sequence[Part]) -> Rows:
        """Components that a part lacks have no weight."""
        if not parts:
            return Rows([], np.zeros((0, 1)), np.zeros((0, 1)), np.zeros(0))
        most = max(len(part.moving) for part in parts)
        filled = [[*part.moving, *[(0.0, 0.0)] * (most - len(part.moving))] for part in parts]
        columns = np.array(filled, dtype=np.float64).transpose(1, 2, 0)[..., None]
        return Rows(
            [(p, a) for p, a in columns],
            np.array([[part.still] for part in parts]),
            columns[:, 1].max(axis=0),
            np.array([float(part.times) for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class Table:
    """Rows at the midpoints of the cells number `left` to `right` − 1 of width `step`, a short float."""

    rows: Rows
    step: float
    left: int
    right: int

    @cached_property
    def x(self) -> Floats:
        """The nodes, exact."""
        return np.asarray((np.arange(self.left, self.right) + 0.5) * self.step, dtype=np.float64)

    @property
    def ends(self) -> tuple[float, float]:
        """The outer edges, exact."""
        return self.left * self.step, self.right * self.step

    @cached_property
    def log_density(self) -> Floats:
        """log(h φ(x)) at the nodes."""
        return -0.5 * self.x * self.x + (math.log(self.step) - LOG_ROOT_TWO_PI)

    @cached_property
    def excess(self) -> tuple[Floats, Floats]:
        """w − 1, and a bound on its error."""
        return excess_at(self.rows.moving, self.x)

    @cached_property
    def log(self) -> tuple[Floats, Floats]:
        """λ, and a bound on its error."""
        return log_at(self.rows.moving, self.rows.still, self.x)

    @cached_property
    def log_right(self) -> Floats:
        """λ at the right end, as a column."""
        return log_at(self.rows.moving, self.rows.still, np.array([self.ends[1]]))[0]

    @property
    def step_error(self) -> float:
        """The error of log(h) in `log_density`."""
        return FUNCTION * abs(math.log(self.step))

    @property
    def depth(self) -> int:
        """How many additions a term goes through where numpy sums in pairs."""
        return 24 + len(self.x).bit_length()


@dataclass(frozen=True, eq=False)
class Tilted:
    """A table tilted to the exponent `s`. What belongs to a row is a column."""

    table: Table
    s: float

    @cached_property
    def weights(self) -> tuple[Floats, Floats]:
        """h φ wˢ at the nodes, and the relative error of each."""
        table, s = self.table, self.s
        log, log_error = table.log
        moved = U * (2 * table.x * table.x + 64 + 4 * np.abs(s * log)) + abs(s) * log_error + table.step_error
        return np.exp(table.log_density + s * log), 1.01 * moved + 2 * FUNCTION

    @cached_property
    def mass(self) -> Floats:
        """h Σ φ wˢ, rounded."""
        return np.asarray(self.weights[0].sum(axis=1, keepdims=True))

    @cached_property
    def mass_error(self) -> Floats:
        """The relative round-off of `mass`."""
        weights, error = self.weights
        return 1.01 * _dot(weights, error) / self.mass + self.table.depth * U

    @cached_property
    def spill(self) -> Floats:
        """Lemma 5: at least h Σ φ wˢ over all cells off the grid, which must hold 0 and the shifts."""
        s, table, (left, right) = self.s, self.table, self.table.ends
        if left + table.step / 2 > 0 or right - table.step / 2 < float(table.rows.shift.max()):
            return np.full_like(table.rows.shift, math.inf)
        before, after = (normal_tail(v - table.step / 2) for v in (-left, right))
        if s < 0:
            return 1.001 * (before * table.rows.still**s + after * np.exp(s * table.log_right))
        room = right - s * table.rows.shift
        beyond = np.exp(s * table.log_right - right * right / 2 - LOG_ROOT_TWO_PI) / np.maximum(room, 1e-300)
        return 1.001 * (before + np.where(room > 0, beyond, math.inf))

    @cached_property
    def height(self) -> Floats:
        """t of Lemma 4: near the best for an error of e^{−45}."""
        bend = 1.0 if self.s > 0 else 1 - self.s * self.table.rows.shift**2 / 4
        return np.minimum(np.sqrt(90.0 / bend), 0.9 * STRIP / self.table.rows.shift)

    def midpoint(self, y: float) -> Floats:
        """Lemma 4, over M(0)."""
        t, a = self.height, self.table.rows.shift
        grown = t * t / 2 + y * a * t - 2 * math.pi * t / self.table.step
        if self.s < 0:
            grown = grown + self.s * np.log(np.cos(a * t / 2))
        return 2.02 * np.exp(np.where(2 * math.pi * t > 5 * self.table.step, grown, math.inf))

    @cached_property
    def most(self) -> Floats:
        """At least M(0)."""
        share = self.midpoint(0.0)
        grown = (self.mass * (1 + self.mass_error) + self.spill) * (1 + 1.01 * share / (1 - share))
        return np.where(share < 0.25, grown, math.inf)

    @cached_property
    def log_moment(self) -> tuple[Floats, Floats]:
        """log M(0), and a bound on its error: the better of two summations."""
        slip = self.mass_error + 1.01 * (self.midpoint(0.0) * self.most + self.spill) / self.mass
        log = np.log(self.mass)
        direct = np.where(slip < 0.01, 1.02 * slip + FUNCTION * (1 + np.abs(log)), math.inf)
        other, error = self._around_one()
        near = error < direct
        return np.where(near, other, log), np.where(near, error, direct)

    def _around_one(self) -> tuple[Floats, Floats]:
        """From 1 + ∫ φ (wˢ − 1 − s(w − 1)), which keeps its digits where w is close to 1."""
        table, s = self.table, self.s
        (v, v_error), (log, log_error) = table.excess, table.log
        density = np.exp(table.log_density)
        grown = np.expm1(np.minimum(s * log, 600.0))
        terms = density * (grown - s * v)
        error = (grown + 1) * (1.01 * abs(s) * log_error + FUNCTION + 4 * U * np.abs(s * log))
        error += np.abs(grown) * FUNCTION + abs(s) * (v_error + 4 * U * np.abs(v))
        relative = U * (2 * table.x * table.x + 24 + table.depth) + 2 * FUNCTION + table.step_error
        slip = 1.01 * (density * error + np.abs(terms) * relative).sum(axis=1, keepdims=True)
        # A density that underflows is below TINY, and wˢ below e^600 where this serves.
        slip += len(table.x) * 1e-46
        slip += self._beyond() + 1.01 * self.midpoint(0.0) * (self.most + 1 + 2 * abs(s))
        value = terms.sum(axis=1, keepdims=True)
        fine = (1 + value > 2 * slip) & ((s * log).max(axis=1, keepdims=True) < 600)
        moment = np.log1p(np.where(fine, value, 0.0))
        spread = 1.01 * slip / np.where(fine, 1 + value - slip, 1.0) + FUNCTION * np.abs(moment)
        return moment, np.where(fine, spread, math.inf)

    def _beyond(self) -> Floats:
        """At least h Σ φ |wˢ − 1 − s(w − 1)| over all cells off the grid."""
        size, (left, right), half = abs(self.s), self.table.ends, self.table.step / 2
        plain = (1 + 2 * size) * normal_tail(-left - half) + (1 + size) * normal_tail(right - half)
        raised = sum((p * _tails(right - half - a) for p, a in self.table.rows.moving), np.zeros(1))
        return self.spill + 1.001 * (plain + size * (raised + normal_tail(right - half)))

    def log_decay(self, extents: Floats, theta: Floats) -> Floats:
        """Lemma 6: at least log |M(y)| for all |y| from each of the extents on, one column for each."""
        table, s, a = self.table, self.s, self.table.rows.shift
        log, turn = polar_at(table.rows.moving, table.rows.still, theta, table.x)
        base = table.log_density + theta * theta / 2 + s * log
        reach = (a * max(map(abs, table.ends)) + a * a)[:, 0]
        far = abs(s) * (1 + np.abs(log).max(axis=1) + reach) + extents[-1] * (turn[:, -1] + reach)
        main = np.stack([np.exp(base - y * turn).sum(axis=1) for y in extents.tolist()], axis=1)
        main *= (1 + 64 * U * (len(table.x) + far + 256))[:, None]
        eta = np.minimum(0.95 * STRIP / a - theta, math.pi / table.step)
        bend = [s * np.log(np.cos(a * t / 2)) if s < 0 else 0.0 for t in (theta + eta, theta)]
        strip = (eta * eta + theta * theta) / 2 + bend[0] - 2 * math.pi * eta / table.step
        strip = np.where((eta > 0) & (2 * math.pi * eta > 5 * table.step), strip, math.inf)
        rest = 2.02 * np.exp(strip) * self.most + 1.01 * np.exp(theta * theta / 2 + bend[1]) * self.spill
        return np.log(main + rest)

    def ratios(self, sign: int, step: float, count: int) -> tuple[Complexes, Floats]:
        """M(y)/M(0) − 1 at y = k·step, k < count, one row each, with a bound on the error."""
        (weights, error), (log, log_error) = self.weights, self.table.log
        y, size = step * np.arange(count), np.abs(log)
        depth = len(self.table.x)
        rounding = self.mass_error + (9 * depth + 80) * U + 12 * FUNCTION
        near = _dot(weights, error * size) + rounding * _dot(weights, size)
        far = 8 * (_dot(weights, error) + rounding * self.mass)
        moved = np.minimum(y * _dot(weights, log_error + 4 * U * size), 2 * self.mass)
        off = 4.04 * (self.midpoint(step * (count - 1)) * self.most + self.spill) / self.mass
        total = _turned_sums(sign * log, weights / self.mass, step, count)
        return total, 1.01 * (np.minimum(y * near, far) + moved) / self.mass + off + 2 * U * np.abs(total)


def _dot(a: Floats, b: Floats) -> Floats:
    return np.asarray((a * b).sum(axis=1, keepdims=True))


def _tails(values: Column) -> Floats:
    """Φ(−x) of a column, rounded up."""
    return np.array([[normal_tail(v)] for v in np.ravel(values).tolist()])


def _turned_sums(loss: Floats, weights: Floats, step: float, count: int) -> Complexes:
    """Σ weights (e^{iky·loss} − 1) for k < count, row by row: small and large angles, then a product."""
    block = math.isqrt(count - 1) + 1
    small = _turned(loss, step * np.arange(block, dtype=np.float64))
    large = _turned(loss, step * block * np.arange(-(-count // block), dtype=np.float64)) * weights[:, None]
    first = (small * weights[:, None]).sum(axis=2)
    both = np.matmul(large, small.transpose(0, 2, 1))
    total: Complexes = both + large.sum(axis=2)[:, :, None] + first[:, None, :]
    return total.reshape(len(loss), -1)[:, :count]


def _turned(loss: Floats, y: Floats) -> Complexes:
    """e^{iyℓ} − 1, accurate near zero: rows, then y, then losses."""
    half = y[:, None] * (0.5 * loss)[:, None, :]
    sine = np.sin(half)
    result: Complexes = -2 * sine * sine + 2j * sine * np.cos(half)
    return result
