"""The Rényi divergence of a whole loss, enclosed, in the worse of its directions.

Divergences of independent releases add. D_α grows with α, so a float order on the safe side of α − 1 gives a
bound. Where the worst pairs are not attained the upper side may come from moments as well, and the lower
side comes from a mechanism that meets the description.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dalenius.losses.attained import attained
from dalenius.losses.loss import Loss
from dalenius.profiles.enclosure import Interval
from dalenius.profiles.integrals import kullback_leibler
from dalenius.profiles.pair import Pair, Worst
from dalenius.profiles.rounding import U, ceiling, floor

NEAR_ONE = 1e-6
"""The order at which moments stand in for the Kullback–Leibler divergence, which is no greater."""


def enclose(loss: Loss, alpha: Fraction) -> Interval:
    """Enclose D_α of the loss, for α ≥ 1."""
    return (lower(loss, alpha), upper(loss, alpha))


def upper(loss: Loss, alpha: Fraction) -> float:
    """D_α of every mechanism that meets the description is at most this."""
    directions = loss.directions()
    from_pairs = math.inf if directions is None else max(_sum(worst, alpha)[1] for worst in directions)
    # No divergence exceeds the largest loss.
    from_pairs = min(from_pairs, largest(loss))
    if directions is not None and loss.tight:
        return from_pairs
    order = max(ceiling(alpha - 1), NEAR_ONE)
    return min(from_pairs, loss.moment(order) / order * (1 + 4 * U))


def largest(loss: Loss) -> float:
    """Return the largest loss in either direction, rounded up; infinite where it is not known."""
    directions = loss.directions()
    return math.inf if directions is None else max(map(_largest, directions))


def _largest(worst: Worst) -> float:
    """Return the largest sum of losses in one direction, rounded up; infinite where an outcome is."""
    tops = [(n, math.inf if pair.infinite_mass[1] > 0 else max(pair.support[1], 0.0)) for pair, n in worst]
    return math.fsum(n * top for n, top in tops) * (1 + 4 * U)


def lower(loss: Loss, alpha: Fraction) -> float:
    """D_α of some mechanism that meets the description is at least this."""
    witness = attained(loss)
    directions = None if witness is None else witness.directions()
    return max((_sum(worst, alpha)[0] for worst in directions or ()), default=0.0)


def _sum(worst: Worst, alpha: Fraction) -> Interval:
    parts = [(n, _single(pair, alpha)) for pair, n in worst]
    margin = 2 * U * (len(parts) + 4)
    lo, hi = (sum(n * ends[i] for n, ends in parts) for i in (0, 1))
    return (lo * (1 - margin), hi * (1 + margin))


def _single(pair: Pair, alpha: Fraction) -> Interval:
    if pair.infinite_mass[1] > 0:
        return (math.inf if pair.infinite_mass[0] > 0 else 0.0, math.inf)
    if alpha == 1:
        return kullback_leibler(pair)
    before, after = floor(alpha - 1), ceiling(alpha - 1)
    lo, hi = pair.log_moment(before)[0] / before, pair.log_moment(after)[1] / after
    return (max(lo * (1 - 4 * U), 0.0), hi * (1 + 4 * U))
