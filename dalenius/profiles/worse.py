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
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dalenius.arithmetic import arb, workprec
from dalenius.profiles.atoms import Atom, Atoms, join
from dalenius.profiles.balls import BITS, ball, upper
from dalenius.profiles.enclosure import between, clip, mass
from dalenius.profiles.integrals import CELLS, integral
from dalenius.profiles.pair import Floats, Pair

Pairs = tuple[Pair, ...]


def worst(*pairs: Pair) -> Pair:
    """One pair that dominates each of these."""
    several = tuple(dict.fromkeys(pairs))
    return several[0] if len(several) == 1 else Worse(several, several)


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
