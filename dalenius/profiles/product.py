"""The pair of several releases made together, as one pair, where its profile is a finite sum.

H of a product is E[H₂(ε − L₁)]. With L₁ on finitely many atoms that is a sum of enclosures; two finite
pairs multiply to a finite one. This is needed where a composition as a whole is subsampled, grouped
or mixed: those act on one pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np

from dalenius.profiles.atoms import Atom, Atoms, join
from dalenius.profiles.enclosure import Interval, clip
from dalenius.profiles.pair import Floats, Pair, Worst
from dalenius.profiles.rounding import U, down, up

MOST_ATOMS = 20_000
"""How many atoms a product may have before merging."""
MOST_RELEASES = 200
"""How many releases are multiplied out."""


def collapse(worst: Worst) -> Pair | None:
    """All the releases of one direction as one pair; None where that has no finite form."""
    if sum(times for _, times in worst) > MOST_RELEASES:
        return None
    powers = [power(pair, times) for pair, times in worst if isinstance(pair, Atoms)]
    others = [pair for pair, times in worst if not isinstance(pair, Atoms) for _ in range(times)]
    finite = reduce(times_atoms, powers) if powers else None
    if len(others) > 1 or (powers and finite is None):
        return None
    if not others:
        return finite
    return others[0] if finite is None else Shifted(finite, others[0])


def power(pair: Atoms, times: int) -> Atoms | None:
    """The same pair several times over; None where that would be too large."""
    total: Atoms | None = pair
    for _ in range(times - 1):
        total = times_atoms(total, pair)
    return total


def times_atoms(a: Atoms | None, b: Atoms | None) -> Atoms | None:
    """The product of two finite pairs; None where it would be too large."""
    if a is None or b is None or len(a.atoms) * len(b.atoms) > MOST_ATOMS:
        return None
    atoms = join(_both(x, y) for x in a.atoms for y in b.atoms)
    return Atoms(atoms, _either(a.infinite, b.infinite), _either(a.missing, b.missing))


def _both(x: Atom, y: Atom) -> Atom:
    p, q = _times(x.p, y.p), _times(x.q, y.q)
    if x.exact is not None and y.exact is not None:
        return Atom.of_loss(x.exact + y.exact, p, q)
    ratios = (x.ratio if x.exact != 0 else Fraction(1), y.ratio if y.exact != 0 else Fraction(1))
    if ratios[0] is not None and ratios[1] is not None:
        return Atom.of_ratio(ratios[0] * ratios[1], p, q)
    return Atom((down(x.loss[0] + y.loss[0]), up(x.loss[1] + y.loss[1])), p, q)


@dataclass(frozen=True)
class Shifted(Pair):
    """The product of a finite pair and any other."""

    finite: Atoms
    other: Pair

    @np.errstate(over="ignore")
    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Σ p H(ε − l) over the atoms, and all of what is infinite."""
        lo, hi = (np.full_like(epsilon, mass) for mass in self.finite.infinite)
        for atom in self.finite.atoms:
            lo += atom.p[0] * self.other.hockey(np.nextafter(epsilon - atom.loss[0], np.inf))[0]
            hi += atom.p[1] * self.other.hockey(np.nextafter(epsilon - atom.loss[1], -np.inf))[1]
        margin = 2 * U * (len(self.finite.atoms) + 4)
        top = self.support[1] if self.infinite_mass[1] == 0.0 else math.inf
        return clip(epsilon, lo * (1 - margin), hi * (1 + margin), top=top)

    def log_moment(self, order: float) -> tuple[float, float]:
        """Moments of independent losses add."""
        a, b = self.finite.log_moment(order), self.other.log_moment(order)
        return (max(down(a[0] + b[0]), 0.0), up(a[1] + b[1]))

    @property
    def support(self) -> tuple[float, float]:
        """The sums of the extremes."""
        a, b = self.finite.support, self.other.support
        return (down(a[0] + b[0]), up(a[1] + b[1]))

    @property
    def infinite_mass(self) -> tuple[float, float]:
        """Infinite where either is."""
        return _either(self.finite.infinite, self.other.infinite_mass)

    def reversed(self) -> Shifted:
        """Factor by factor."""
        return Shifted(self.finite.reversed(), self.other.reversed())


def _times(a: Interval, b: Interval) -> Interval:
    return (max(down(a[0] * b[0]), 0.0), up(a[1] * b[1]))


def _either(a: Interval, b: Interval) -> Interval:
    """a + b − ab, which is a + (1 − a)b and grows with both."""
    lo, hi = (x + (1 - x) * y for x, y in zip(a, b, strict=True))
    return (max(lo * (1 - 8 * U), 0.0), hi * (1 + 8 * U))
