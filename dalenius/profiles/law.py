"""A law of the privacy loss on finitely many atoms, as arrays of enclosures.

H by the knots of its lower and upper ends (it grows with every loss and every mass under P), and
log E e^{tL} by expm1 where that is small. What a list leaves out of a law with more atoms is bounded by
`beyond`, its mass under P: it adds at most that to H.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dalenius.profiles.enclosure import ELEMENTARY, Interval, clip, spread
from dalenius.profiles.knots import Knots
from dalenius.profiles.pair import Complexes, Floats
from dalenius.profiles.rounding import U


@dataclass(frozen=True, eq=False)
class Law:
    """Losses and their masses under P, each as a row of lower and a row of upper ends."""

    losses: Floats
    masses: Floats
    infinite: Interval = (0.0, 0.0)
    beyond: float = 0.0

    def hockey(self, epsilon: Floats, *, top: float = math.inf) -> tuple[Floats, Floats]:
        """Enclose H(ε), which is 0 from `top` on."""
        lo = np.maximum(self._lower.at(epsilon)[0], self.infinite[0])
        hi = self._upper.at(epsilon)[1] + self.beyond * (1 + 4 * U)
        return clip(epsilon, lo, hi, top=top)

    def log_moment(self, order: float) -> Interval:
        """Enclose log E e^{tL} over the atoms; at least 0, as a divergence is.

        The lower end forgoes what lies beyond the atoms, the upper one supposes it adds nothing.
        """
        if self.infinite[0] > 0 or not self.losses.size:
            return (math.inf, math.inf)
        lo, hi = _log_mean_exp(order, self.losses, self.masses, self.infinite[1] + self.beyond)
        return (max(lo, 0.0), max(hi, 0.0))

    def transform(self, z: Complexes) -> tuple[Complexes, Floats]:
        """Σ p e^{zl} over the atoms from the middles of their enclosures, and a bound on its error.

        A loss off by r moves e^{zl} by a factor within |z|r e^{|z|r} of 1; its rounding counts 4|zl| times.
        """
        (low, high), (least, most) = self.losses, self.masses
        loss, mass = 0.5 * (low + high), 0.5 * (least + most)
        size, radius = np.abs(z)[:, None], 0.51 * (high - low) + 2 * U * np.abs(loss)
        terms = np.exp(z[:, None] * loss)
        moved = np.expm1(size * radius) * most + 0.51 * (most - least)
        units = 4 * ELEMENTARY + 16 + 2 * len(loss) + 8 * size * np.abs(loss)
        error = np.abs(terms) * (1.01 * moved + U * units * most)
        return terms @ mass, 1.01 * error.sum(axis=1)

    @cached_property
    def _lower(self) -> Knots:
        return Knots.through(self.losses[0], self.masses[0], self.infinite[0])

    @cached_property
    def _upper(self) -> Knots:
        return Knots.through(self.losses[1], self.masses[1], self.infinite[1])


def _log_mean_exp(order: float, losses: Floats, masses: Floats, rest: float) -> Interval:
    """Enclose log Σ p e^{tl} where Σ p = 1, but for a mass of at most `rest` that the lower end forgoes.

    A term p·expm1(tl) carries 2·ULPS + 2 roundings and that of tl, which counts 1 + |tl| times.
    """
    exponents = order * losses
    if float(exponents[1].max()) > 30:
        return _log_sum_exp(exponents, masses)
    terms = np.expm1(exponents) * np.where(exponents > 0, masses, masses[::-1])
    slack = np.abs(terms) * ((ELEMENTARY + 6 + np.abs(exponents)) * 2 * U)
    lo = math.fsum(terms[0]) - math.fsum(slack[0]) * 1.01 - rest * (1 + 4 * U)
    hi = math.fsum(terms[1]) + math.fsum(slack[1]) * 1.01
    return (_log1p(lo, -1), _log1p(hi, 1))


def _log_sum_exp(exponents: Floats, masses: Floats) -> Interval:
    """The same by the largest term: log p + tl − top, of which those 746 below vanish.

    So |tl| ≤ |top| + 1500 in the others, the masses being at least 2^−1074.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(masses) + exponents
    ends = []
    for side, row in zip((-1, 1), logs, strict=True):
        top = float(row.max())
        if not math.isfinite(top):
            return (0.0, math.inf)
        units = 2 * ELEMENTARY * 746 + 8 + len(row) + 4 * (abs(top) + 1500)
        total = spread(np.array([np.sum(np.exp(row - top))]), units)[max(side, 0)][0]
        size = math.log(total) if total > 0 else -math.inf
        ends.append(top + size + side * 16 * U * (abs(top) + abs(size) + 1))
    return (ends[0], ends[1])


def _log1p(value: float, side: int) -> float:
    if value <= -1:
        return -math.inf
    result = math.log1p(value)
    return result + side * 16 * U * abs(result)
