"""The trade-off curve: the least false-negative rate at a given false-positive rate.

Theorem (Dong, Roth and Su 2022; Wasserman and Zhou 2010). A test between Q (null) and P
with false-positive rate α has false-negative rate at least
    f(α) = sup over ε of  1 − δ_{P‖Q}(ε) − e^ε α,
and some test attains it. For ε < 0, δ_{P‖Q}(ε) = 1 − e^ε + e^ε δ_{Q‖P}(−ε). Both directions of the relation
are open to an attacker, so the lesser of the two curves counts.

Every ε gives a lower bound. In x = e^ε the supremum is of a concave function g, so with three points
a < b < c around the best, g is at most what the chords of neighbouring points, extended, allow.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dalenius.losses.bound import Bound
from dalenius.losses.loss import Loss
from dalenius.losses.routes import profiles
from dalenius.profiles.discrete import infinite_mass
from dalenius.profiles.pair import Floats
from dalenius.profiles.profile import Profile, sample
from dalenius.profiles.rounding import U, down, up

COARSE, FINE = 129, 21
"""Knots of the first and of the second look."""


def least_error(loss: Loss, fpr: Fraction) -> Bound:
    """The least false-negative rate of any test at false-positive rate `fpr`."""
    if fpr in (0, 1):
        return _end(loss, fpr)
    both = profiles(loss)
    ends = [_curve(p, q, float(fpr)) for p, q in {(both[0], both[-1]), (both[-1], both[0])}]
    low, high = (min(values) for values in zip(*ends, strict=True))
    return Bound(low, high, loss.tight, side="lower")


def _end(loss: Loss, fpr: Fraction) -> Bound:
    """At FPR 1 nothing is missed; at FPR 0 only infinite losses are caught."""
    if fpr == 1:
        return Bound(0.0, 0.0, loss.tight, side="lower")
    directions = loss.directions()
    if directions is None or not loss.tight:
        return Bound(max(0.0, down(1 - loss.delta(700).upper)), 1.0, False, side="lower")
    caught = [max(ends) for ends in zip(*map(infinite_mass, directions), strict=True)]
    return Bound(max(0.0, down(1 - caught[1])), min(1.0, up(1 - caught[0])), True, side="lower")


def _curve(ahead: Profile, back: Profile, fpr: float) -> tuple[float, float]:
    """Enclose f(fpr) for one direction: `ahead` is its profile, `back` that of the reverse."""
    grid = _knots(ahead, back, 1e-6 if fpr > 1e-4 else 0.01 * fpr)
    at = int(np.argmax(_lines(grid, fpr)[0]))
    near = (float(grid[0][max(at - 1, 0)]), float(grid[0][min(at + 1, len(grid[0]) - 1)]))
    fine = _values(ahead, back, np.linspace(*near, FINE))
    low, high = _lines(fine, fpr)
    return max(0.0, float(low.max())), min(up(1 - fpr * (1 - 4 * U)), max(0.0, _most(fine, low, high)))


Grid = tuple[Floats, Floats, Floats]
"""Real ε, and an enclosure of δ there."""


@lru_cache(maxsize=64)
def _knots(ahead: Profile, back: Profile, level: float) -> Grid:
    """A first look, from where one test error vanishes to where the other does."""
    ends = [min(profile.epsilon(level)[1], 600.0) for profile in (back, ahead)]
    return _values(ahead, back, np.linspace(-ends[0], ends[1], COARSE))


def _values(ahead: Profile, back: Profile, epsilon: Floats) -> Grid:
    """δ at real ε, from the two profiles at ε ≥ 0."""
    low, high = np.empty_like(epsilon), np.empty_like(epsilon)
    right, left = epsilon >= 0, epsilon < 0
    if right.any():
        low[right], high[right] = sample(ahead, epsilon[right])
    if left.any():
        ends = sample(back, -epsilon[left][::-1])
        rest, share = -np.expm1(epsilon[left]), np.exp(epsilon[left])
        low[left], high[left] = rest + share * ends[0][::-1] - 16 * U, rest + share * ends[1][::-1] + 16 * U
    return epsilon, low, high


def _lines(grid: Grid, fpr: float) -> tuple[Floats, Floats]:
    """Enclose g = 1 − δ − e^ε α at the knots."""
    epsilon, low, high = grid
    cost = np.exp(epsilon) * fpr
    slip = 64 * U * (1 + cost * (1 + np.abs(epsilon)))
    return 1 - high - cost - slip, 1 - low - cost + slip


def _most(fine: Grid, low: Floats, high: Floats) -> float:
    """At least sup g: chords next to an interval, extended over it; infinite unless g rises, then falls."""
    x = np.exp(fine[0])
    best = float(high.max())
    if not (np.diff(x) > 0).all():
        return math.inf
    for i in range(1, len(x) - 2):
        rise = (high[i] - low[i - 1]) / (x[i] - x[i - 1])
        fall = (low[i + 2] - high[i + 1]) / (x[i + 2] - x[i + 1])
        reach = x[i + 1] - x[i]
        best = max(best, float(min(high[i] + max(rise, 0.0) * reach, high[i + 1] + max(-fall, 0.0) * reach)))
    return best if high[1] < low[2] and high[-2] < low[-3] else math.inf
