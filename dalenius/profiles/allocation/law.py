"""The law of a likelihood ratio X = dP/dQ under Q on equally spaced points, with what is certified of it.

Write c(y) = E(X − y)₊ and p(y) = E(y − X)₊. They are hockey-stick divergences,
    c(y) = H_{P‖Q}(log y) − P(L = ∞),    p(y) = y·H_{Q‖P}(−log y),
so each keeps its relative accuracy in its own tail. X is first held between the ends of the grid, then
every value is split between the grid points around it, keeping the mean: that law V has the chords of c
and of p, and is larger in convex order. The floats U so computed have, for the side they are made for,
    c_X ≤ c_U    and    c_U ≤ (1 + looseness)·c_V + above                  (calls),
    p_X ≤ p_U + short    and    p_U ≤ (1 + looseness)·p_V + above          (puts),
everywhere, X being the held value. docs/proofs/allocation.md has the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dalenius.profiles.pair import Floats, Pair
from dalenius.profiles.rounding import TINY, ULPS, U

MASS = 8 * U
"""Relative error, in the c or p that they add up to, of masses computed from differences."""
MOST_GROWTH = 1e-7
"""The most by which masses are raised, as a share, to cover what is unknown at the center."""
PLACE = (2 * ULPS + 8) * U
"""Relative error of a float as the exponential of a computed logarithm, for each unit of its size."""


@dataclass(frozen=True)
class Spacing:
    """The points k·step, first ≤ k ≤ last: the step has so few digits that all are floats."""

    step: float
    first: int
    last: int

    @property
    def points(self) -> Floats:
        """All of them."""
        return np.arange(self.first, self.last + 1, dtype=np.float64) * np.float64(self.step)


@dataclass(frozen=True, eq=False)
class Ends:
    """Bounds on a function at the grid points, `low` ≤ truth ≤ `high`, `high` monotone."""

    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class SplitLaw:
    """Masses at the points but the last, the mass at the last or beyond, and the slack of the module.

    `beyond` bounds E(X − last)₊ and `under` bounds E(first − X)₊, from above.
    """

    spacing: Spacing
    masses: Floats
    top: float
    beyond: float
    under: float
    looseness: float
    above: float
    short: float
    open_top: bool


def split_law(pair: Pair, spacing: Spacing, *, calls: bool, negligible: float, open_top: bool) -> SplitLaw:
    """The law for calls or for puts; `open_top` keeps what lies beyond the last point there."""
    points = spacing.points
    center = min(max(math.floor(1 / spacing.step) - spacing.first, 0), len(points) - 1)
    right = _calls(pair, points[center:], spacing.step)
    left = _mirrored(_puts(pair, points[: center + 1], spacing.step))
    own, other = (right, left) if calls else (left, right)
    alone = len(other.high) == 1
    other_masses, other_raised = _differences(other.high, spacing.step)
    doubt = float(other.high[0] - other.low[0] + 4 * MASS * other.high[0] + other_raised[0])
    off = 0.0 if alone else 2 * doubt
    held = float(own.high[-1]) if not (calls and open_top) else 0.0
    covered = alone or (off < MOST_GROWTH * own.high[0] and 2 * held < own.high[0])
    growth = 1 + 8 * MASS + (2 * off / float(own.high[0]) if covered and off else 0.0)
    own_masses, own_raised = (side * growth for side in _differences(own.high, spacing.step))
    rest = 1 - math.fsum([*own_masses.tolist(), *other_masses.tolist()])
    before, after = (other_masses, own_masses) if calls else (own_masses, other_masses)
    masses = np.concatenate([before[::-1], [max(4 * U, rest + 4 * U)], after])
    more = max(8 * U, 8 * U - rest)
    upper = (own.high - held) * growth * (1 + 2 * MASS) + own_raised
    lower = np.maximum(own.low - held, 0.0)
    away = (points[:center][::-1] if calls else points[center + 1 :]) - points[center]
    across = _across(float(upper[0]), float(lower[0]), other, other_raised, np.abs(away), more)
    looseness, above = _slack(np.append(upper, across.high), np.append(lower, across.low), negligible)
    return SplitLaw(
        spacing=spacing,
        masses=masses[:-1],
        top=float(masses[-1]),
        beyond=float(right.high[-1]) * growth,
        under=float(left.high[-1]),
        looseness=max(looseness, more),
        above=above,
        short=0.0 if covered else off,
        open_top=open_top,
    )


def _mirrored(ends: Ends) -> Ends:
    return Ends(ends.low[::-1], ends.high[::-1])


def _calls(pair: Pair, points: Floats, step: float) -> Ends:
    """c at the points, asked for a little below each; there it is more, by no more than the drop before."""
    there = points > 0
    logs = np.log(np.where(there, points, 1.0))
    slack = PLACE * (1 + np.abs(logs))
    low, high = _hockey(pair, logs - slack)
    infinite = pair.infinite_mass
    high = np.where(there, high - infinite[0], 1 - infinite[0]) * (1 + 2 * U)
    low = np.where(there, low - infinite[1], 1 - infinite[1]) * (1 - 2 * U)
    high = np.minimum.accumulate(np.maximum(high, 0.0))
    steep = np.append(1.0, np.minimum(np.maximum(high[:-1] - low[1:], 0.0) / step, 1.0))
    low = low - 2.1 * slack * points * steep
    return Ends(np.maximum(np.maximum.accumulate(low[::-1])[::-1], 0.0), high)


def _puts(pair: Pair, points: Floats, step: float) -> Ends:
    """p at the points, asked for a little above each; there it is more, by no more than the rise after."""
    there = points > 0
    logs = np.log(np.where(there, points, 1.0))
    slack = PLACE * (1 + np.abs(logs))
    low, high = _hockey(pair.reversed(), -logs - slack)
    high = np.where(there, points * high * (1 + 4 * U), 0.0)
    low = np.where(there, points * low * (1 - 4 * U), 0.0)
    high = np.minimum.accumulate(high[::-1])[::-1]
    steep = np.append(np.minimum(np.maximum(high[1:] - low[:-1], 0.0) / step, 1.0), 1.0)
    low = low - 2.1 * slack * points * (steep + high / np.maximum(points, TINY))
    return Ends(np.maximum(np.maximum.accumulate(low), 0.0), high)


def _hockey(pair: Pair, epsilon: Floats) -> tuple[Floats, Floats]:
    with np.errstate(all="ignore"):
        low, high = pair.hockey(epsilon)
    return np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)


def _differences(values: Floats, step: float) -> tuple[Floats, Floats]:
    """Masses at all points but the first that make up `values` less the last, and what raising them adds.

    Σ_{j>k} (j − k)·mass_j is `values` at k; masses below zero, which only round-off makes, become zero.
    """
    drops = np.append(values[:-1] - values[1:], 0.0)
    masses = (drops[:-1] - drops[1:]) / step
    raised = np.append(np.cumsum(np.maximum(-masses, 0.0)[::-1])[::-1], 0.0)
    added = np.cumsum(raised[::-1])[::-1] * (step * (1 + 4 * U * len(values)))
    return np.maximum(masses, 0.0), np.asarray(added)


def _across(up: float, low: float, other: Ends, raised: Floats, away: Floats, more: float) -> Ends:
    """The same function at the points on the other side of the center, by parity: c(y) − p(y) = E X − y."""
    slack = 16 * U * (1 + away)
    fall = (other.high[0] - other.high[-1]) * (1 - 2 * MASS)
    there = (other.high[1:] - other.high[-1]) * (1 + 2 * MASS) + raised[1:]
    high = up + away * (1 + more) - fall + there + slack
    return Ends(np.asarray(low + away - other.high[0] + other.low[1:] - slack), np.asarray(high))


def _slack(upper: Floats, lower: Floats, negligible: float) -> tuple[float, float]:
    """The largest ratio where there is something, and the largest difference elsewhere."""
    there = (upper > negligible) & (lower > 0)
    ratios = np.where(there, upper / np.where(there, lower, 1.0) - 1, 0.0)
    differences = np.where(there, 0.0, upper - np.maximum(lower, 0.0))
    return (
        max(0.0, float(ratios.max(initial=0.0))) * (1 + 8 * U) + 4 * U,
        max(0.0, float(differences.max(initial=0.0))) * (1 + 8 * U),
    )
