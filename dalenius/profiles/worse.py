"""The worst of several pairs, which may differ to the right and to the left of ε = 0.

A profile is the H of some pair where it is convex and falls in y = e^ε, is 1 at y = 0 and at least
(1 − y)₊ (Zhu, Dong and Wang 2022). The greater of two such is another. One that is bounded by `ahead` for
ε ≥ 0 and by `behind` for ε < 0 lies below the convex envelope of the two together, which is the H of a
pair too: what is stated here is never below that one.

Moments. By Sason and Verdú (see `integrals`), with α = 1 + t,
    E e^{tL} = 1 + t(1+t)·(∫₀^∞ e^{tε}H(ε) dε + ∫₀^∞ e^{−αε}H_{Q‖P}(ε) dε),
where the first integral needs `ahead` alone and the second `behind` reversed; the greatest of several is at
most their sum. Each integral is part of a whole moment, so Σ(E e^{tLᵢ} − 1) over all pairs is enough as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dalenius.arithmetic import arb, workprec
from dalenius.profiles.atoms import Atom, Atoms, join, rational
from dalenius.profiles.balls import BITS, ball, upper
from dalenius.profiles.enclosure import between, clip, mass
from dalenius.profiles.integrals import CELLS, integral
from dalenius.profiles.pair import Floats, Pair, Worst
from dalenius.profiles.product import collapse

Pairs = tuple[Pair, ...]


def worst(*pairs: Pair) -> Pair:
    """One pair that dominates each of these."""
    several = tuple(dict.fromkeys(pairs))
    return several[0] if len(several) == 1 else Worse(several, several)


def merged(directions: tuple[Worst, ...]) -> Worst | None:
    """Return one worst case that dominates each of these; None where they have no common form.

    Args:
        directions: Worst cases of the same releases, such as those of adding and of removing a unit.
    """
    if len(directions) == 1:
        return directions[0]
    if len({tuple(times for _, times in releases) for releases in directions}) == 1:
        rows = zip(*directions, strict=True)
        return tuple((worst(*(pair for pair, _ in row)), row[0][1]) for row in rows)
    whole = [collapse(releases) for releases in directions]
    known = [pair for pair in whole if pair is not None]
    return ((worst(*known), 1),) if len(known) == len(whole) else None


def envelope(*pairs: Iterable[tuple[Fraction, Fraction]]) -> Atoms:
    """Return the least pair that dominates each of these finite ones, given by exact masses under P and Q.

    The power of the best tests between P and Q is a concave function of their level, through the points
    (Q(E), P(E)) with E = {L > l}. H(y) is the greatest P(E) − y·Q(E) on that curve, so that the greatest of
    several H is that of the concave hull of all their points together.

    Args:
        pairs: For each pair the masses (under P, under Q) of its outcomes.
    """
    points = {(Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))}
    for masses in pairs:
        under_q = under_p = Fraction(0)
        rows = sorted(masses, key=lambda row: _slope(*row), reverse=True)
        for p, q in rows:
            under_q, under_p = under_q + q, under_p + p
            points.add((under_q, under_p))
    hull: list[tuple[Fraction, Fraction]] = []
    for x, y in sorted(points):
        while hull and (hull[-1][0] == x or (len(hull) > 1 and _below(hull[-2], hull[-1], (x, y)))):
            hull.pop()
        hull.append((x, y))
    first = [(hull[0][1], Fraction(0))]
    return rational(
        first + [(after[1] - before[1], after[0] - before[0]) for before, after in pairwise(hull)]
    )


def _slope(p: Fraction, q: Fraction) -> tuple[bool, Fraction]:
    """Return the likelihood ratio as something to sort by, infinite ones last."""
    return (q == 0, p / q if q else Fraction(0))


def _below(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction], c: tuple[Fraction, Fraction]) -> bool:
    """Return whether b lies on or below the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) <= (c[1] - a[1]) * (b[0] - a[0])


def both_ways(*pairs: Pair) -> Pair:
    """One pair, its own reverse, that has the greatest H of these at every ε ≥ 0."""
    several = tuple(dict.fromkeys(pairs))
    if len(several) == 1 and isinstance(several[0], Atoms):
        finite = _mirrored(several[0])
        if finite is not None:
            return finite
    return Worse(several, tuple(pair.reversed() for pair in several))


@dataclass(frozen=True)
class Worse(Pair):
    """H is the greatest of `ahead` for ε ≥ 0, and of `behind` for ε < 0."""

    ahead: Pairs
    behind: Pairs

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """The greatest of all, on either side."""
        right, left = _greatest(self.ahead, np.maximum(epsilon, 0.0)), _greatest(self.behind, epsilon)
        lo, hi = (np.where(epsilon >= 0, a, b) for a, b in zip(right, left, strict=True))
        top = self.support[1] if self.infinite_mass[1] == 0.0 else math.inf
        return clip(epsilon, lo, hi, top=top)

    def log_moment(self, order: float) -> tuple[float, float]:
        """Nothing below; above, by whole moments where they say as much, else by the integrals."""
        if self.ahead == self.behind:
            return (0.0, _whole(self.ahead, order))
        t = Fraction(order)
        parts = [integral(Tabulated(pair), t)[1] for pair in self.ahead]
        parts += [integral(Tabulated(pair.reversed()), -1 - t)[1] for pair in self.behind]
        if not all(map(math.isfinite, parts)):
            return (0.0, _whole(self.ahead + self.behind, order))
        with workprec(BITS):
            excess = ball(t) * ball(1 + t) * sum(map(ball, parts), arb(0))
            return (0.0, upper(excess.log1p()))

    @property
    def support(self) -> tuple[float, float]:
        """The lowest of those behind, the highest of those ahead, and 0 between."""
        low = min(min(pair.support[0] for pair in self.behind), 0.0)
        return (low, max(max(pair.support[1] for pair in self.ahead), 0.0))

    @property
    def infinite_mass(self) -> tuple[float, float]:
        """The greatest of those ahead, as H is far out."""
        masses = [pair.infinite_mass for pair in self.ahead]
        return (max(lo for lo, _ in masses), max(hi for _, hi in masses))

    def reversed(self) -> Worse:
        """The two sides change places."""
        return Worse(tuple(p.reversed() for p in self.behind), tuple(p.reversed() for p in self.ahead))


@dataclass(frozen=True)
class Tabulated(Pair):
    """A pair that keeps its H on even grids from 0, as integrals of many orders ask for the same ones."""

    pair: Pair

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """From the table of the grid's step."""
        if not 2 <= len(epsilon) <= CELLS + 1:
            return self.pair.hockey(epsilon)
        lo, hi = _table(self.pair, float(epsilon[1]))
        return lo[: len(epsilon)], hi[: len(epsilon)]

    def log_moment(self, order: float) -> tuple[float, float]:
        """As it is."""
        return self.pair.log_moment(order)

    @property
    def support(self) -> tuple[float, float]:
        """As it is."""
        return self.pair.support

    @property
    def infinite_mass(self) -> tuple[float, float]:
        """As it is."""
        return self.pair.infinite_mass

    def reversed(self) -> Tabulated:
        """The other way round."""
        return Tabulated(self.pair.reversed())


@lru_cache(maxsize=128)
def _table(pair: Pair, step: float) -> tuple[Floats, Floats]:
    return pair.hockey(np.arange(CELLS + 1, dtype=np.float64) * np.float64(step))


def _whole(pairs: Pairs, order: float) -> float:
    """log(1 + Σ(E e^{tLᵢ} − 1)), rounded up."""
    logs = [pair.log_moment(order)[1] for pair in pairs]
    if not all(map(math.isfinite, logs)):
        return math.inf
    with workprec(BITS):
        return upper(sum((ball(log).expm1() for log in logs), arb(0)).log1p())


def _greatest(pairs: Pairs, epsilon: Floats) -> tuple[Floats, Floats]:
    ends = [pair.hockey(epsilon) for pair in pairs]
    return np.maximum.reduce([lo for lo, _ in ends]), np.maximum.reduce([hi for _, hi in ends])


def _mirrored(pair: Atoms) -> Atoms | None:
    """The atoms of positive loss, each with its mirror image, and the rest of the mass at loss 0.

    None where a sign is in doubt, or where the two sides together have more mass than there is.
    """
    if any(atom.loss[0] <= 0 < atom.loss[1] for atom in pair.atoms):
        return None
    gains = [atom for atom in pair.atoms if atom.loss[0] > 0]
    with workprec(BITS):
        used = sum((between(atom.p) + between(atom.q) for atom in gains), between(pair.infinite))
        if not used < 1:
            return None
        rest = mass(1 - used)
    still = Atom.of_loss(Fraction(0), rest, rest)
    atoms = join([*(atom.reversed() for atom in gains), still, *gains])
    return Atoms(atoms, pair.infinite, pair.infinite, pair.exact and (pair.exact[0], pair.exact[0]))
