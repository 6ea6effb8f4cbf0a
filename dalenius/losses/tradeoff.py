"""The trade-off curve: the least false-negative rate at a given false-positive rate.

Theorem (Dong, Roth and Su 2022; Wasserman and Zhou 2010). A test between Q (null) and P
with false-positive rate α has false-negative rate at least
    f(α) = sup over ε of  1 − δ_{P‖Q}(ε) − e^ε α,
and some test attains it. For ε < 0, δ_{P‖Q}(ε) = 1 − e^ε + e^ε δ_{Q‖P}(−ε). Both directions of the relation
are open to an attacker, so the lesser of the two curves counts.

Every ε gives a lower bound. In x = e^ε the supremum is of a concave function g with g(0) = 0 and slopes
from −α to 1 − α, which is at most 0 from x = 1/α on. So g between two knots lies below the chord of the
two before, extended, below the chord of the two after, and below lines of the extreme slopes. Where these
leave most open, more knots are laid. Any (ε, δ) that is known otherwise counts as well (`evaluate`):
    f(α) ≥ max(1 − δ − e^ε α, e^−ε (1 − δ − α)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dalenius.losses.bound import Bound
from dalenius.losses.evaluate import is_far
from dalenius.losses.loss import Loss
from dalenius.losses.renyi import RenyiProfile, golden
from dalenius.losses.routes import profiles
from dalenius.profiles.discrete import infinite_mass
from dalenius.profiles.pair import Floats
from dalenius.profiles.profile import Profile, sample, sketch
from dalenius.profiles.rounding import U, down, up

COARSE, FINE = 33, 11
"""Knots of the first look, and of each later one."""
LOOKS = 4
"""How often knots are laid where the curve is not known well, at most."""
NOTHING = 1e-9
"""Errors and advantages below this are next to nothing."""
LARGE = Fraction(1, 10**4)
"""Above this rate errors below 1e-6 are next to nothing."""
LOWEST = -40.0
"""The least ε that is looked at: before it the curve rises by next to nothing."""
CLOSE = 1e-6
"""How far apart the two sides of an answer may be before more knots are laid."""
NEAR = 1e-6
"""No more knots are laid between two that are closer than this."""
APART, SHARE = 1e-3, 0.01
"""How far apart the two sides of a tight answer may be, and as a share."""
KNOWN = tuple(Fraction(1, 10**k) for k in (1, 2, 3, 4, 6, 9))
"""The δ whose ε are asked for where the curve is not known well."""
APART_LOG = math.log(10)
"""How far from the best of these others are asked for, in logarithms."""


def least_error(loss: Loss, fpr: Fraction) -> Bound:
    """The least false-negative rate of any test at false-positive rate `fpr`."""
    if fpr in (0, 1):
        return _end(loss, fpr)
    apart = loss.delta(0).upper
    if apart <= NOTHING:
        # No test gains more than δ(0) over guessing.
        return Bound(
            max(0.0, down(1 - float(fpr) - apart, 4)), up(1 - float(fpr), 2), loss.tight, side="lower"
        )
    both = profiles(loss)
    level = 1e-6 if fpr > LARGE else float(fpr) / 100
    reach = math.inf if is_far(loss) else RenyiProfile.of(loss).reach(level)
    pairs = {(both[0], both[-1]), (both[-1], both[0])}
    ends = [_curve(ahead, back, float(fpr), reach, tight=loss.tight) for ahead, back in pairs]
    low, high = (min(values) for values in zip(*ends, strict=True))
    if _is_wide(low, high):
        low = max(low, min(_from_epsilons(loss, fpr, low), high))
    return Bound(low, high, loss.tight and not _is_wide(low, high), side="lower")


def _is_wide(low: float, high: float) -> bool:
    """Return whether the two sides of an answer are farther apart than in a tight one."""
    return not high - low <= min(APART, SHARE * high) and high > NOTHING


def _from_epsilons(loss: Loss, fpr: Fraction, known: float) -> float:
    """Return the greatest false-negative rate that a few (ε, δ) prove, of more than is `known`."""
    # As ε is at least 0, a large δ proves nothing more.
    worth = [float(delta) for delta in KNOWN if 1 - delta - fpr > known]
    proved = {math.log(delta): _proved(loss, fpr, delta) for delta in worth}
    if not proved:
        return 0.0
    best = max(proved, key=lambda log: proved[log])
    if proved[best] > known:
        least = golden(
            lambda log: -_proved(loss, fpr, math.exp(log)),
            best - APART_LOG,
            min(best + APART_LOG, -0.1),
            rounds=8,
        )
        proved[least] = _proved(loss, fpr, math.exp(least))
    return max(0.0, max(proved.values()) * (1 - 64 * U) - 64 * U)


def _proved(loss: Loss, fpr: Fraction, delta: float) -> float:
    """Return the false-negative rate that the ε of one δ proves."""
    epsilon = loss.epsilon(Fraction(delta)).upper
    if not epsilon < -LOWEST:
        return 0.0
    rest = 1 - delta - 4 * U
    return max(rest - math.exp(epsilon) * float(fpr), math.exp(-epsilon) * (rest - float(fpr)))


def _end(loss: Loss, fpr: Fraction) -> Bound:
    """At FPR 1 nothing is missed; at FPR 0 only infinite losses are caught."""
    if fpr == 1:
        return Bound(0.0, 0.0, loss.tight, side="lower")
    directions = loss.directions()
    caught = [max(ends) for ends in zip(*map(infinite_mass, directions or ()), strict=True)] or [0.0, 1.0]
    if directions is None or not loss.tight:
        most = caught[1] if caught[1] <= NOTHING else min(caught[1], loss.delta(700).upper)
        return Bound(max(0.0, down(1 - most)), 1.0, False, side="lower")
    return Bound(max(0.0, down(1 - caught[1])), min(1.0, up(1 - caught[0])), True, side="lower")


Read = Callable[[Profile, Floats], tuple[Floats, Floats]]
"""Encloses a profile at every ε of an array."""
Grid = tuple[Floats, Floats, Floats]
"""Real ε in increasing order, and an enclosure of δ there."""


def _curve(ahead: Profile, back: Profile, fpr: float, reach: float, *, tight: bool) -> tuple[float, float]:
    """Enclose f(fpr) for one direction.

    Args:
        ahead: Its profile.
        back: That of the reverse.
        fpr: The false-positive rate, in (0, 1).
        reach: An ε at which test errors are next to nothing.
        tight: Whether the sides meet. Otherwise knots are laid for the lower side alone.
    """
    grid = _first(ahead, back, max(-reach, LOWEST), min(reach, -math.log(fpr)))
    for _ in range(LOOKS):
        low, high = _lines(grid if tight else (grid[0], grid[2], grid[2]), fpr)
        best, tops = float(low.max()), _tops(grid, low, high, fpr)
        open_ = np.flatnonzero(tops > best + max(CLOSE, CLOSE * best))
        if not len(open_):
            break
        # The curve is concave, so that the cells where it may be higher are next to each other.
        ends = _place(grid, open_[0]), _place(grid, open_[-1] + 1)
        knots = np.setdiff1d(np.linspace(*ends, FINE), grid[0])
        if ends[1] - ends[0] < NEAR * (1 + abs(ends[1])) or not len(knots):
            break
        grid = _merged(grid, _values(ahead, back, knots))
    low, high = _lines(grid, fpr)
    best, most = max(0.0, float(low.max())), float(_tops(grid, low, high, fpr).max())
    return best, min(up(1 - fpr * (1 - 4 * U)), max(best, most * (1 + 64 * U) + 64 * U))


def _place(grid: Grid, edge: np.int64) -> float:
    """Return the ε at an edge of a cell, counted from x = 0 on."""
    return float(grid[0][min(max(int(edge) - 1, 0), len(grid[0]) - 1)])


def _merged(one: Grid, other: Grid) -> Grid:
    """Return the knots of both in order."""
    order = np.argsort(np.concatenate([one[0], other[0]]), kind="stable")
    epsilon, low, high = (np.concatenate(ends)[order] for ends in zip(one, other, strict=True))
    return epsilon, low, high


@lru_cache(maxsize=64)
def _first(ahead: Profile, back: Profile, first: float, last: float) -> Grid:
    """A first look between two ε."""
    knots = np.append(np.linspace(first, max(last, 0.0), COARSE), 0.0)
    return _values(ahead, back, np.unique(knots), sketch)


def _values(ahead: Profile, back: Profile, epsilon: Floats, read: Read = sample) -> Grid:
    """δ at real ε, from the two profiles at ε ≥ 0."""
    low, high = np.empty_like(epsilon), np.empty_like(epsilon)
    right, left = epsilon >= 0, epsilon < 0
    if right.any():
        low[right], high[right] = read(ahead, epsilon[right])
    if left.any():
        ends = read(back, -epsilon[left][::-1])
        rest, share = -np.expm1(epsilon[left]), np.exp(epsilon[left])
        low[left], high[left] = rest + share * ends[0][::-1] - 16 * U, rest + share * ends[1][::-1] + 16 * U
    return epsilon, low, high


def _lines(grid: Grid, fpr: float) -> tuple[Floats, Floats]:
    """Enclose g = 1 − δ − e^ε α at the knots."""
    epsilon, low, high = grid
    cost = np.exp(epsilon) * fpr
    slip = 64 * U * (1 + cost * (1 + np.abs(epsilon)))
    return 1 - high - cost - slip, 1 - low - cost + slip


@np.errstate(over="ignore")
def _tops(grid: Grid, low: Floats, high: Floats, fpr: float) -> Floats:
    """At least the supremum of g on each cell: before the first knot, between knots, and after the last."""
    x = np.concatenate([[0.0], np.exp(grid[0])])
    low, high = np.append(0.0, low), np.append(0.0, high)
    gaps = np.diff(x)
    # No slope after a cell is above the steepest rise in it, and none before it below the steepest fall.
    least = np.maximum(gaps, 1e-300)
    inverse = np.where(gaps > 64 * U * x[1:], (1 + 32 * U * x[1:] / least) / least, np.inf)
    rises = np.minimum(np.maximum(high[1:] - low[:-1], 4 * U) * inverse, 1 - fpr)
    falls = np.minimum(np.maximum(high[:-1] - low[1:], 4 * U) * inverse, fpr)
    before, after = np.append(1 - fpr, rises[:-1]), np.append(falls[1:], fpr)
    total = np.maximum(before + after, 1e-300)
    along = np.clip((high[1:] + after * gaps - high[:-1]) / total, 0.0, gaps)
    tops = np.minimum(high[:-1] + before * along, high[1:] + after * (gaps - along))
    beyond = min(high[-1] + rises[-1] * max(1 / fpr - x[-1], 0.0), max(1 - fpr * x[-1], high[-1]))
    return np.append(tops, beyond)
