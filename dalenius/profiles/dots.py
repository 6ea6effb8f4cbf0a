"""Connect the dots: any pair as a law on a lattice of losses, through its hockey-stick divergence alone.

Theorem (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022). Among pairs with losses
on a lattice, the one whose H is the chord, in x = e^ε, of h(x) = H(ε) between neighbouring lattice
points is the least that dominates (P, Q). It is the law of L with every value split between the lattice
points around it, keeping the masses under P and Q.

Here the lattice is {k·log(1 + c)}, c a float, so that neighbouring x differ by the factor 1 + c exactly.
With u_k ≥ h(x_k) non-increasing, d_k = u_k − u_{k+1}, the masses to the right of x = 1 are
    p_k = ((d_{k−1} − d_k) + c·d_{k−1})/c,    k ≥ 1,
and the last u is infinite loss. To the left the same holds of the reversed pair, which gives masses
under Q, and p = xq; the mass at x = 1 completes the total to one. Every H keeps its relative accuracy in
its own tail, so every mass does. Negative masses, made by round-off or by bounds that are not convex, are
raised to zero; on the left without making up for it at x = 1.
docs/proofs/dots.md proves (1) and (2) of `lattice` for the floats so computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.profiles.lattice import Interval, Lattice, point
from dalenius.profiles.pair import Floats, Pair
from dalenius.profiles.rounding import TINY, ULPS, U

MASS = 8 * U
"""Relative error, in the profile they add up to, of masses computed from the u."""

HOPELESS = 1e100
"""More than this no looseness needs to be: the lower side is empty long before."""
COMMON = 1e-6
"""The largest share of H that may be unknown in common; where more is, it becomes a mass."""
LAST = 4
"""Points at the right end where what is unknown of H counts as a mass at the end."""


@dataclass(frozen=True)
class Mesh:
    """The lattice {k·log(1 + ratio)}, −left ≤ k ≤ right; below the level `negligible` H need not be sharp."""

    ratio: float
    left: int
    right: int
    negligible: float

    @property
    def step(self) -> Interval:
        """Encloses log(1 + ratio)."""
        middle = Fraction(math.log1p(self.ratio))
        slack = middle * Fraction(2 * ULPS * U)
        return (middle - slack, middle + slack)

    @property
    def position(self) -> float:
        """Bounds the relative error that e^{fl(k·log1p(ratio))} has as (1 + ratio)^k, over the mesh."""
        reach = max(self.left, self.right) * math.log1p(self.ratio)
        return (reach + 1) * (2 * ULPS + 4) * U


@dataclass(frozen=True, eq=False)
class Side:
    """Bounds on H at the lattice points 0, 1, 2, … of a pair, and the masses at 1, 2, … they give.

    `infinite` bounds the mass of infinite loss from above.
    """

    lower: Floats
    upper: Floats
    masses: Floats
    clipped: Floats
    infinite: float

    @property
    def finite_lower(self) -> Floats:
        """What finite losses contribute to H, at least."""
        return np.asarray(np.maximum(self.lower - self.infinite, 0.0))

    @property
    def finite_upper(self) -> Floats:
        """The profile of the masses, up to rounding."""
        return np.asarray(self.upper - self.upper[-1])


def law(pair: Pair, mesh: Mesh) -> Lattice:
    """The pair's law on the mesh."""
    ahead, back = _bounds(pair, mesh, mesh.right), _bounds(pair.reversed(), mesh, mesh.left)
    middle = (max(ahead[0][0], back[0][0]), min(ahead[1][0], back[1][0]))
    right = _side(*ahead, middle, mesh.ratio, pair.infinite_mass[1])
    left = _side(*back, middle, mesh.ratio, 0.0)
    tilt = np.exp(-math.log1p(mesh.ratio) * np.arange(1, mesh.left + 1))
    inflation = 1 + 4 * (MASS + mesh.position)
    infinite = float(right.upper[-1]) * inflation
    above, below = right.masses * inflation, (left.masses * tilt)[::-1]
    total = math.fsum([*above.tolist(), *below.tolist(), infinite])
    # What was raised on the left comes on top: taken from the middle it would lower H for ε < 0.
    raised = float((left.clipped * tilt).sum()) * (1 + 8 * mesh.position + 1e-9)
    masses = np.concatenate([below, [max(4 * U, 1 - total + raised + 4 * U)], above])
    excess = np.concatenate([(left.clipped * tilt)[::-1], [0.0], right.clipped]) * (1 + 8 * mesh.position)
    shares, highest, leftover = _doubt(right, mesh)
    common = min(float(shares[-1]), COMMON)
    looseness = _looseness(right, left, tilt, mesh, max(0.0, total - 1) + raised + 8 * U, common)
    excess[mesh.left + 1 :] += np.where(shares > common, shares, 0.0) * above * (1 + 16 * U)
    excess[0] += _lowest(pair, left, mesh) * (1 + looseness)
    excess[-1] += highest
    return Lattice(
        step=mesh.step,
        offset=point(0),
        start=-mesh.left,
        masses=masses,
        infinite=(pair.infinite_mass[0], infinite),
        looseness=looseness,
        excess=excess if excess.any() else np.zeros(0),
        above=leftover,
        spread=math.log1p(mesh.ratio) ** 2 / 4 * (1 + 32 * U),
    )


def _bounds(pair: Pair, mesh: Mesh, points: int) -> tuple[Floats, Floats]:
    """H at k·log(1 + c), from floats a little lower: H is convex, so it falls by a share of its last drop."""
    indices = np.arange(points + 1, dtype=np.float64)
    exact = (2 * ULPS + 4) * U
    with np.errstate(all="ignore"):
        lower, upper = pair.hockey(indices * (math.log1p(mesh.ratio) * (1 - exact)))
    lower, upper = np.nan_to_num(lower, nan=0.0), np.nan_to_num(upper, nan=1.0)
    drops = np.maximum(np.append(0.0, upper[:-1] - lower[1:]), 0.0)
    moved = indices * (2.02 * exact * math.log1p(mesh.ratio) / mesh.ratio * (1 + mesh.ratio))
    return lower - drops * moved, upper


def _side(lower: Floats, upper: Floats, middle: tuple[float, float], ratio: float, infinite: float) -> Side:
    """H does not increase, so an earlier upper bound or a later lower bound may be the better one."""
    lower[0], upper[0] = middle
    upper = np.minimum.accumulate(upper)
    lower = np.maximum(np.maximum.accumulate(lower[::-1])[::-1], 0.0)
    drops = np.append(upper[:-1] - upper[1:], 0.0)
    masses = ((drops[:-1] - drops[1:]) + ratio * drops[:-1]) / ratio
    return Side(lower, upper, np.maximum(masses, 0.0), np.maximum(-masses, 0.0), infinite)


def _looseness(right: Side, left: Side, tilt: Floats, mesh: Mesh, over: float, common: float) -> float:
    """`looseness` of the law: the right side's common share, the left side's, and any surplus."""
    units = 8 * (MASS + mesh.position)
    least = np.maximum(1 - tilt + tilt * left.lower[1:] - right.infinite, TINY)
    beyond = max(0.0, right.infinite - float(right.upper[-1]))
    with np.errstate(over="ignore"):
        gaps = (over + beyond + tilt * (left.upper[1:] - left.lower[1:] + units * left.upper[0])) / least
    loose = min(over + units + common / (1 - common) + float(gaps.max(initial=0.0)), HOPELESS)
    return loose * (1 + loose) * (1 + 64 * U)


def _doubt(right: Side, mesh: Mesh) -> tuple[Floats, float, float]:
    """What the right side's bounds on H leave open: shares of its masses, a mass at its end, one above.

    At the point k the profile of the masses beyond k exceeds the truth by a share of itself; the largest
    share up to k, of every mass beyond, makes up for it. Near the end, where the largest loss may lie, H
    is small and its share large, and a mass at the end is cheaper.
    """
    gaps = np.maximum(right.finite_upper - right.finite_lower, 0.0) * (1 + 8 * (MASS + mesh.position))
    body, end = slice(0, max(mesh.right - LAST, 1)), np.arange(max(mesh.right - LAST, 1), mesh.right + 1)
    shares = np.zeros(mesh.right)
    shares[body] = np.maximum.accumulate(gaps[body] / np.maximum(right.finite_upper[body], TINY))
    shares[body.stop :] = shares[body.stop - 1]
    tiny = (right.finite_upper[end] <= mesh.negligible) | (end == mesh.right)
    steps = -np.expm1(-math.log1p(mesh.ratio) * (mesh.right - end[~tiny])) * (1 - 8 * mesh.position)
    highest, above = (gaps[end][~tiny] / steps).max(initial=0.0), gaps[end][tiny].max(initial=0.0)
    return shares, float(highest), float(above)


def _lowest(pair: Pair, left: Side, mesh: Mesh) -> float:
    """P(L < l) for the lowest lattice point l: at most E_P[(x/X − 1)₊]/c one point above it."""
    step = math.log1p(mesh.ratio)
    if pair.support[0] >= -mesh.left * step * (1 - 2 * mesh.position):
        return 0.0
    share = float(left.upper[-2]) * math.exp(-(mesh.left - 1) * step) / mesh.ratio
    return min(1.0, share) * (1 + 8 * mesh.position)
