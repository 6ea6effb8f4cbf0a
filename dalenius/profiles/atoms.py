"""Finite discrete pairs: outcomes with their masses under P and Q, and so their losses.

An atom's loss and masses are enclosed, and exact where its maker knows them as rationals. H(ε) is
evaluated by its knots (see `law` and `knots`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from dalenius.arithmetic import workprec
from dalenius.profiles.balls import BITS, ball
from dalenius.profiles.enclosure import Interval, around, interval
from dalenius.profiles.lattice import Lattice, point
from dalenius.profiles.law import Law
from dalenius.profiles.pair import Complexes, Floats, Pair
from dalenius.profiles.rounding import U, down, up
from dalenius.profiles.spacing import common_root, common_step, spaced

NONE: Interval = (0.0, 0.0)
"""The mass of nothing."""


@dataclass(frozen=True)
class Atom:
    """One outcome, or several of the same loss: its loss and its masses, enclosed; 0 < p and 0 < q.

    `exact` is the loss where it is known as a rational, `ratio` the likelihood ratio where that is.
    """

    loss: Interval
    p: Interval
    q: Interval
    exact: Fraction | None = None
    ratio: Fraction | None = None

    @staticmethod
    def of_loss(loss: Fraction, p: Interval, q: Interval) -> Atom:
        """An outcome of a known loss."""
        return Atom(around(loss), p, q, loss)

    @staticmethod
    def of_ratio(ratio: Fraction, p: Interval, q: Interval) -> Atom:
        """An outcome of a known likelihood ratio."""
        return Atom.of_loss(Fraction(0), p, q) if ratio == 1 else Atom(log_of(ratio), p, q, None, ratio)

    def reversed(self) -> Atom:
        """The same outcome of the pair (Q, P)."""
        exact = None if self.exact is None else -self.exact
        ratio = None if self.ratio is None else 1 / self.ratio
        return Atom((-self.loss[1], -self.loss[0]), self.q, self.p, exact, ratio)


@dataclass(frozen=True)
class Atoms(Pair):
    """A finite pair: atoms in order of loss, P's mass where Q has none, and Q's where P has none.

    `exact` are these two where they are known as rationals.
    """

    atoms: tuple[Atom, ...]
    infinite: Interval = NONE
    missing: Interval = NONE
    exact: tuple[Fraction, Fraction] | None = None

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """By the knots of the law of its loss."""
        return self._law.hockey(epsilon, top=self.support[1] if self.infinite[1] == 0.0 else math.inf)

    def log_moment(self, order: float) -> tuple[float, float]:
        """Infinite where a loss is."""
        lo, hi = self._law.log_moment(order)
        return (lo, hi if self.infinite[1] == 0.0 else math.inf)

    def transform(self, z: Complexes) -> tuple[Complexes, Floats]:
        """The sum over the atoms."""
        return self._law.transform(z)

    def log_beyond(self, c: float, y: Floats) -> Floats:
        """Nothing better is known than M(c)."""
        value, error = self._law.transform(np.array([c + 0j]))
        return np.full_like(y, math.log(float(value[0].real + error[0])) + 8 * U * (1 + c))

    def mean(self) -> Interval:
        """Enclose E L, for a pair without infinite losses; at least 0, as a divergence is."""
        lo = math.fsum(a.loss[0] * a.p[0 if a.loss[0] > 0 else 1] for a in self.atoms)
        hi = math.fsum(a.loss[1] * a.p[1 if a.loss[1] > 0 else 0] for a in self.atoms)
        slack = 4 * U * math.fsum(max(map(abs, a.loss)) * a.p[1] for a in self.atoms)
        return (max(lo - slack, 0.0), max(hi + slack, 0.0))

    @property
    def support(self) -> tuple[float, float]:
        """The extreme losses."""
        return (self.atoms[0].loss[0], self._top) if self.atoms else (0.0, 0.0)

    @cached_property
    def _top(self) -> float:
        """The largest upper end: enclosures in order of their lower ends may overlap."""
        return max(atom.loss[1] for atom in self.atoms)

    @property
    def largest(self) -> Fraction | None:
        """The largest loss, where it is known as a rational and no outcome is infinite."""
        last = self.atoms[-1] if self.atoms and self.infinite[1] == 0.0 else None
        return last.exact if last is not None and self._top == last.loss[1] else None

    @property
    def infinite_mass(self) -> tuple[float, float]:
        """P's mass where Q has none."""
        return self.infinite

    @property
    def infinite_exact(self) -> Fraction | None:
        """The same as a rational, where that is known."""
        return Fraction(0) if self.infinite == NONE else self.exact and self.exact[0]

    def reversed(self) -> Atoms:
        """The pair (Q, P)."""
        atoms = tuple(atom.reversed() for atom in reversed(self.atoms))
        return Atoms(atoms, self.missing, self.infinite, self.exact and self.exact[::-1])

    def lattice(self) -> Lattice | None:
        """The law on a lattice, where all losses are rational or powers of one ratio; else None."""
        exact = [atom.exact for atom in self.atoms if atom.exact is not None]
        ratios = [Fraction(1) if atom.exact == 0 else atom.ratio for atom in self.atoms]
        rational_ratios = [ratio for ratio in ratios if ratio is not None]
        if not self.atoms:
            return None
        masses = [atom.p for atom in self.atoms]
        if len(exact) == len(self.atoms) and (found := common_step(exact)):
            return spaced(point(found[0]), point(exact[0]), found[1], masses, self.infinite)
        if len(rational_ratios) == len(self.atoms) and (found := common_root(rational_ratios)):
            lo, hi = log_of(found[0])
            return spaced((Fraction(lo), Fraction(hi)), point(0), found[1], masses, self.infinite)
        return None

    @cached_property
    def _law(self) -> Law:
        rows = [[atom.loss + atom.p for atom in self.atoms]]
        table = np.array(rows, dtype=np.float64).reshape(-1, 4).T
        return Law(table[:2], table[2:], self.infinite)


def rational(masses: Iterable[tuple[Fraction, Fraction]]) -> Atoms:
    """The pair with these exact masses (under P, under Q), outcomes of one likelihood ratio as one."""
    rows = tuple(masses)
    ratios: dict[Fraction, Fraction] = defaultdict(Fraction)
    for p, q in rows:
        if p > 0 and q > 0:
            ratios[p / q] += q
    infinite = sum((p for p, q in rows if q == 0), Fraction(0))
    missing = sum((q for p, q in rows if p == 0), Fraction(0))
    atoms = tuple(Atom.of_ratio(r, around(r * q), around(q)) for r, q in sorted(ratios.items()))
    return Atoms(atoms, around(infinite), around(missing), (infinite, missing))


@lru_cache(maxsize=4096)
def log_of(ratio: Fraction) -> Interval:
    """Enclose the logarithm of a rational."""
    with workprec(BITS):
        return interval(ball(ratio).log())


def join(atoms: Iterable[Atom]) -> tuple[Atom, ...]:
    """In order of loss, with those of one enclosure of the loss as one: their bounds are the same."""
    merged: dict[Interval, Atom] = {}
    for atom in atoms:
        merged[atom.loss] = _merge(merged[atom.loss], atom) if atom.loss in merged else atom
    return tuple(sorted(merged.values(), key=lambda atom: atom.loss))


def _merge(a: Atom, b: Atom) -> Atom:
    p, q = (_sum(x, y) for x, y in ((a.p, b.p), (a.q, b.q)))
    exact = a.exact if a.exact == b.exact else None
    return Atom(a.loss, p, q, exact, a.ratio if a.ratio == b.ratio else None)


def _sum(a: Interval, b: Interval) -> Interval:
    return (max(down(a[0] + b[0]), 0.0), up(a[1] + b[1]))
