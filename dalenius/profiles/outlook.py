"""Choosing a contour without cutoffs. Nothing here is a claim: `plain` checks what is chosen.

For each c the saddle point formula names the ε whose contour crosses the real axis there, and δ(ε):
    ε(c) = K′(c) − 1/c − 1/(1+c),   δ ≈ e^{K − cε} / (c (1+c) √(2π(K″ + c⁻² + (1+c)⁻²))).
Both are read off a few c; no equation is solved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dalenius.profiles.pair import Floats, Indices, Transformed
from dalenius.profiles.rows import Rows, Table

COARSE = 0.25
"""The step of the first look at a mixture."""
WIDE, THEN = np.geomspace(0.04, 6.0, 22), np.linspace(0, 1, 6)
"""Where c is looked for, in two rounds, the first over its value for a normal law."""
FARTHEST = 48.0
"""The largest product of c and a shift that is looked at."""
BATCH = 1 << 18
"""How many numbers a table of the first look may have at once."""
Cumulants = tuple[Floats, Floats, Floats]


@dataclass(frozen=True)
class Point:
    """Where a contour crosses the real axis: K(c), K″(c), the ε it is for, and log δ there."""

    c: float
    epsilon: float
    log_delta: float
    k: float
    k2: float

    @property
    def loose(self) -> float:
        """By how much the integrand exceeds δ, in logarithms."""
        return self.k - self.c * self.epsilon - self.log_delta


@dataclass(frozen=True, eq=False)
class Outlook:
    """A composition on coarse grids: mixtures as rows, Gaussians with μ² = `squared`, other transforms."""

    rows: Rows
    sign: int
    squared: float
    others: tuple[tuple[Transformed, int], ...] = ()

    @cached_property
    def table(self) -> Table:
        """All rows on one coarse grid that reaches as far as any tilt looked at."""
        right = 9.0 + FARTHEST + self.widest if self.sign > 0 else 9.0
        return Table(self.rows, COARSE, -math.ceil(9.0 / COARSE), math.ceil(right / COARSE))

    @cached_property
    def widest(self) -> float:
        """The largest shift."""
        return float(self.rows.shift.max(initial=0.0))

    def exponent(self, c: Floats) -> Floats:
        """The exponent of w at z = c."""
        return 1 + c if self.sign > 0 else -c

    def each(self, c: Floats) -> Cumulants:
        """K, K′ and K″ of every row, one column for each c."""
        if not len(self.rows.times):
            return np.zeros((0, len(c))), np.zeros((0, len(c))), np.zeros((0, len(c)))
        numbers = np.arange(len(self.rows.times))
        found = [self._slice(c, rows) for rows in np.array_split(numbers, self._cuts(c))]
        k, k1, k2 = (np.concatenate([one[i] for one in found]) for i in range(3))
        return k, k1, k2

    def _cuts(self, c: Floats) -> int:
        return 1 + len(self.rows.times) * len(c) * len(self.table.x) // BATCH

    def _slice(self, c: Floats, rows: Indices) -> Cumulants:
        log = self.table.log[0][rows]
        exponent = self.table.log_density + self.exponent(c)[:, None] * log[:, None, :]
        top = exponent.max(axis=2, keepdims=True)
        p = np.exp(exponent - top)
        moments = np.matmul(p, np.stack([np.ones_like(log), log, log * log], axis=2))
        mass, mean = moments[..., 0], moments[..., 1] / moments[..., 0]
        square = np.maximum(moments[..., 2] / mass - mean * mean, 0.0)
        return top[..., 0] + np.log(mass), self.sign * mean, square

    def cumulants(self, c: Floats) -> Cumulants:
        """K, K′ and K″ of the composition."""
        k, k1, k2 = (self.rows.times @ one for one in self.each(c))
        k, k1, k2 = k + self.squared * c * (c + 1) / 2, k1 + self.squared * (c + 0.5), k2 + self.squared
        for pair, times in self.others:
            one = _differences(pair, c)
            k, k1, k2 = k + times * one[0], k1 + times * one[1], k2 + times * one[2]
        return k, k1, k2

    def point(self, *, log_delta: float | None = None, epsilon: float | None = None) -> Point | None:
        """The crossing for a δ, or for an ε; None where it lies outside of what is looked at."""
        c = self._first(log_delta, epsilon)
        for _ in range(2):
            k, k1, k2 = self.cumulants(c)
            at = k1 - 1 / c - 1 / (1 + c)
            spread = k2 + c**-2.0 + (1 + c) ** -2.0
            log = k - c * at - np.log(c) - np.log1p(c) - 0.5 * np.log(2 * math.pi * spread)
            value, wanted = (at, epsilon) if epsilon is not None else (-log, -float(log_delta or 0.0))
            above = np.flatnonzero(value >= wanted)
            if not len(above) or above[0] == 0:
                return None
            i = int(above[0])
            ends = float(c[i - 1]), float(c[i])
            share = (wanted - float(value[i - 1])) / float(value[i] - value[i - 1])
            rows = (at, log, k, k2)
            found = Point(
                ends[0] * (ends[1] / ends[0]) ** share,
                *(float(row[i - 1] + share * (row[i] - row[i - 1])) for row in rows),
            )
            c = ends[0] * (ends[1] / ends[0]) ** THEN
            c[0], c[-1] = c[0] * (1 - 1e-9), c[-1] * (1 + 1e-9)
        return found

    def _first(self, log_delta: float | None, epsilon: float | None) -> Floats:
        """Around the c of a normal law with the same mean and variance, within reach of the grid."""
        _, k1, k2 = (float(v[0]) for v in self.cumulants(np.array([1e-6])))
        if epsilon is None:
            likely = math.sqrt(-2 * float(log_delta or 0.0) / k2)
        else:
            likely = max(epsilon - k1, math.sqrt(k2)) / k2
        most = FARTHEST / self.widest if self.sign > 0 and self.widest else math.inf
        c = likely * WIDE
        return np.asarray(c[c < most] if float(c[1]) < most else c[:2])


def _differences(pair: Transformed, c: Floats) -> Cumulants:
    """K, K′ and K″ from the transform a little off the real axis."""
    h = np.full_like(c, 0.02 / max(map(abs, pair.support)))
    value, _ = pair.transform(np.concatenate([c + 0j, c + 1j * h]))
    log = np.log(value)
    on, off = log[: len(c)].real, log[len(c) :]
    return on, off.imag / h, np.maximum(2 * (on - off.real) / (h * h), 0.0)
