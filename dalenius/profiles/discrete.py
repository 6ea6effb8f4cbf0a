"""The discrete routes: which one answers for a composition.

    one release               its own divergence, inverted
    n of one two-point pair   the binomial sum (`binomial`)
    laws on one lattice       one convolution, exactly on that lattice (`lattice`, `convolution`)
    a few finite pairs        all outcomes, multiplied out (`product`)
    anything else             every pair on a common lattice (`dots`, `grid`), then one convolution

Whatever the route, δ(ε) at or above the largest sum of losses is the mass of infinite loss, and with
δ = 0 the answer is that largest sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dalenius.profiles.atoms import Atoms
from dalenius.profiles.binomial import two_point
from dalenius.profiles.composed import Composed
from dalenius.profiles.convolution import Window, convolve
from dalenius.profiles.grid import Grid, Terms, Unknown, levels
from dalenius.profiles.inverse import invert
from dalenius.profiles.lattice import Lattice, OnLattice
from dalenius.profiles.pair import Floats, Pair
from dalenius.profiles.product import collapse
from dalenius.profiles.profile import Profile
from dalenius.profiles.rounding import U, ceiling, floor
from dalenius.profiles.saddle import Plan, Sketch, plan


def discrete_profile(terms: Terms) -> Profile:
    """The sharpest discrete route for the composition of these pairs, in one direction."""
    return Capped(_route(terms), terms)


def _route(terms: Terms) -> Profile:
    if len(terms) == 1:
        pair, count = terms[0]
        if count == 1:
            return Alone(pair)
        binomial = two_point(pair, count)
        if binomial is not None:
            return binomial
    laws = _laws(terms)
    if laws is not None:
        return Laws(laws, terms)
    whole = collapse(terms) if _few(terms) else None
    return Grid(terms) if whole is None else Alone(whole)


def _few(terms: Terms) -> bool:
    """Whether all pairs are finite, and have few outcomes together."""
    finite = [(len(pair.atoms), n) for pair, n in terms if isinstance(pair, Atoms)]
    return len(finite) == len(terms) and sum(n * math.log(max(size, 1)) for size, n in finite) <= math.log(
        FEW
    )


def _laws(terms: Terms) -> tuple[tuple[Lattice, int], ...] | None:
    """The pairs' own laws where all have one and their step is the same."""
    laws = [(pair.lattice() if isinstance(pair, OnLattice) else None, n) for pair, n in terms]
    known = tuple((law, n) for law, n in laws if law is not None)
    return known if len(known) == len(terms) and len({law.step for law, _ in known}) == 1 else None


Reader = Callable[[float], tuple[Composed | Unknown, float]]
"""A convolution for an ε, and how far from it it may be read."""
FEW = 4096
"""Up to so many outcomes finite pairs that are on no lattice are multiplied out."""
MOST_EXACT = 4096
"""Up to so many releases their infinite mass is compared exactly."""


@dataclass(frozen=True)
class Alone:
    """One release: the divergence its pair states."""

    pair: Pair

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε)."""
        lower, upper = self.pair.hockey(np.array([epsilon]))
        return float(lower[0]), float(upper[0])

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose the least ε ≥ 0 with δ(ε) ≤ delta, delta > 0, from where H first falls that low."""
        nodes = np.geomspace(1e-9, 1e6, 400)
        place = int(np.argmax(levels(self.pair, nodes) <= delta))
        return invert(self.delta, delta, guess=float(nodes[place]), scale=float(nodes[place]) / 64)


@dataclass(frozen=True, eq=False)
class Laws:
    """Laws on one lattice, convolved there; on a coarser one where the window would be too long."""

    laws: tuple[tuple[Lattice, int], ...]
    terms: Terms

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε)."""
        return self.reader(epsilon)[0].delta(epsilon)

    def reader(self, epsilon: float) -> tuple[Composed | Unknown, float]:
        """A convolution for ε, and how far from it it may be read without loss."""
        planned = plan(self._sketches(), epsilon=epsilon)
        window = convolve(self.laws, planned)
        return (
            Grid(self.terms).reader(epsilon) if window is None else (self._composed(window), _scale(planned))
        )

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose the least ε ≥ 0 with δ(ε) ≤ delta, delta > 0."""
        planned = plan(self._sketches(), log_delta=math.log(delta))
        window = convolve(self.laws, planned)
        if window is None:
            return Grid(self.terms).epsilon(delta)
        return invert(
            self._composed(window).delta, delta, guess=max(planned.epsilon, 0.0), scale=_scale(planned)
        )

    def _sketches(self) -> Sequence[Sketch]:
        return [Sketch.of(law.estimates, law.masses, n) for law, n in self.laws]

    def _composed(self, window: Window) -> Composed:
        return Composed.of(self.laws, window)


def _scale(planned: Plan) -> float:
    return 1 / (planned.tilt + 1 / planned.deviation)


@dataclass(frozen=True)
class Capped:
    """A route, and what the largest losses say."""

    route: Profile
    terms: Terms

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε): no more than the infinite mass from the largest sum on."""
        if Fraction(epsilon) >= self.top():
            return self._infinite
        return self._capped(epsilon, self.route.delta(epsilon))

    def deltas(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose δ at every ε of an increasing array, each convolution serving all ε near it."""
        if not isinstance(self.route, Grid | Laws):
            ends = np.array([self.delta(e) for e in epsilon.tolist()])
            return ends[:, 0], ends[:, 1]
        return self._read(epsilon, self.route.reader)

    def sketch(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose δ at every ε of an increasing array on coarser lattices, each for more ε."""
        if not isinstance(self.route, Grid):
            return self.deltas(epsilon)
        return self._read(epsilon, self.route.sketcher)

    def _read(self, epsilon: Floats, reader: Reader) -> tuple[Floats, Floats]:
        rows: list[tuple[float, float]] = []
        while len(rows) < len(epsilon):
            composed, reach = reader(float(epsilon[len(rows)]))
            stop = max(len(rows) + 1, int(np.searchsorted(epsilon, epsilon[len(rows)] + reach)))
            rows += [self._capped(e, composed.delta(e)) for e in epsilon[len(rows) : stop].tolist()]
        low, high = np.array(rows).T
        return low, high

    def _capped(self, epsilon: float, ends: tuple[float, float]) -> tuple[float, float]:
        infinite = self._infinite
        if Fraction(epsilon) >= self.top():
            return infinite
        most = min(ends[1], self._apart) if epsilon >= 0 else ends[1]
        return (min(max(ends[0], infinite[0]), most), max(most, infinite[0]))

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose the least ε ≥ 0 with δ(ε) ≤ delta."""
        infinite = self._infinite
        if infinite[0] > math.nextafter(delta, 1.0):
            return (math.inf, math.inf)
        if self._apart <= delta:
            return (0.0, 0.0)
        top = self.top()
        cap = math.inf if infinite[1] > delta or math.isinf(top) else ceiling(Fraction(max(top, 0)))
        lower, upper = self.route.epsilon(delta) if delta > 0 else (self._bottom(), cap)
        return min(lower, cap), min(upper, cap)

    @cached_property
    def _infinite(self) -> tuple[float, float]:
        return infinite_mass(self.terms)

    @cached_property
    def _apart(self) -> float:
        """At least δ(0): total variation is subadditive under composition."""
        zero = np.zeros(1)
        return math.fsum(n * float(pair.hockey(zero)[1][0]) for pair, n in self.terms) * (1 + 4 * U)

    def top(self) -> Fraction | float:
        """An upper bound on the largest sum of finite losses."""
        return self._top

    @cached_property
    def _top(self) -> Fraction | float:
        tops = [(_largest(pair)[1], n) for pair, n in self.terms]
        if any(math.isinf(top) for top, _ in tops):
            return math.inf
        return sum((n * Fraction(top) for top, n in tops), Fraction(0))

    def _bottom(self) -> float:
        """A lower bound on the same: where every H is known to be positive, so is that of the composition."""
        bottoms = [(_largest(pair)[0], n) for pair, n in self.terms]
        if any(math.isinf(bottom) for bottom, _ in bottoms):
            return 0.0 if any(bottom < 0 for bottom, _ in bottoms) else math.inf
        return max(0.0, floor(sum((n * Fraction(bottom) for bottom, n in bottoms), Fraction(0))))


def infinite_mass(terms: Terms) -> tuple[float, float]:
    """Enclose 1 − Π(1 − p)^n, the mass of infinite losses."""
    masses = [(pair.infinite_mass, n) for pair, n in terms]
    ends = []
    for side, widen in ((0, 1 - 64 * U), (1, 1 + 64 * U)):
        logs = [n * math.log1p(-mass[side]) if mass[side] < 1 else -math.inf for mass, n in masses]
        ends.append(min(1.0, max(0.0, -math.expm1(math.fsum(logs)) * widen)))
    return ends[0], ends[1]


def largest_sum(terms: Terms, delta: Fraction) -> float:
    """The largest sum of finite losses, rounded up, if infinite ones are known to have no more than `delta`.

    It is then at least the ε of the composition, exactly at this δ; else nothing is known.
    """
    masses = [(pair.infinite_exact, n) for pair, n in terms]
    left = Fraction(1)
    for mass, n in masses:
        if mass is None or (mass and n > MOST_EXACT):
            return math.inf
        left *= (1 - mass) ** (n if mass else 1)
    top = Capped(Alone(terms[0][0]), terms).top()
    return ceiling(Fraction(max(top, 0))) if 1 - left <= delta and top < math.inf else math.inf


def _largest(pair: Pair) -> tuple[Fraction | float, Fraction | float]:
    """Encloses the largest finite loss: exactly where the pair knows it."""
    exact = getattr(pair, "largest", None)
    if isinstance(exact, Fraction):
        return exact, exact
    top = pair.support[1]
    if math.isinf(top):
        return (math.inf, math.inf) if top > 0 else (-math.inf, -math.inf)
    tried = np.asarray(top - abs(top) * np.ldexp(1.0, -np.arange(53)))
    positive = tried[pair.hockey(tried)[0] > pair.infinite_mass[1]]
    return (float(positive[-1]) if len(positive) else -math.inf), top
