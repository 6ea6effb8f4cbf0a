"""Rényi divergence, zCDP, and the way from moments to (ε, δ).

D_α(P‖Q) = K(t)/t with t = α − 1 and K(t) = log E_P e^{tL}; D₁ is the Kullback–Leibler divergence.

Theorem (Canonne, Kamath and Steinke 2020, Proposition 12). For every t > 0,
    δ(ε) ≤ e^{K(t) − tε} · t^t/(1+t)^{1+t},
so log(1/δ) ≥ tε − K(t) − t·log t + (1+t)·log(1+t), and ε follows by solving. Any t gives a bound; the best is
looked for in plain floats and then evaluated in balls. Events of probability f that were set aside
(approximate zCDP, Bun and Steinke 2016) make it f + (1−f)·δ(ε), and f of several releases is
1 − Π(1 − fᵢ). Not tight: a bound on moments does not fix the profile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
from typing import Protocol, runtime_checkable

import numpy as np

from dalenius.arithmetic import arb, workprec
from dalenius.errors import InvalidArgument
from dalenius.losses import concentration
from dalenius.losses import divergence as divergences
from dalenius.losses.bound import Bound
from dalenius.losses.composition import Composition, compose
from dalenius.losses.group import MOST_TERMS, Group, chained
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate, Pure
from dalenius.profiles.balls import BITS, ball, upper
from dalenius.profiles.enclosure import below
from dalenius.profiles.pair import Floats
from dalenius.profiles.rounding import U

MOST_ALPHA = 10**9
"""The largest order answered."""
LEAST_ALPHA = 1 + Fraction(1, 10**6)
"""The least order above 1 answered."""
COARSE = tuple(2.0**k for k in range(-12, 31, 2))
"""Orders t = α − 1 that are tried first."""
NARROW, NEGLIGIBLE = 0.01, 1e-12
"""How far apart the sides of a tight answer may be, as a share, and below what that does not matter."""
USUAL = 10.0
"""log 1/δ for which an order is looked for where a first look proves nothing."""
ROUNDS = 4
"""How often the best order for a δ is looked for anew at the δ that it gives."""
HOPE = 0.75
"""Where an order within a factor of √2 of the best proves so much less, no order proves more."""
FINE = 4
"""How many orders are tried for each doubling next to the best of these, where many ε share them."""
FEW = 8
"""In groups smaller than this the moments of one unit are added up as they are."""
STEEP = 0.5
"""By how much a divergence may grow between two of these orders before it is not drawn but evaluated."""
LEAST_STEP = 0.125
"""The last step, in doublings, in which orders are looked at before the best is read off a parabola."""
PARABOLAS = 4
"""How many parabolas are laid through the three best orders at most."""
FLAT = 1e-7
"""How close to its parabola a function is known to be smooth, as a share."""


@runtime_checkable
class Spared(Protocol):
    """A kind that sets events aside."""

    def spared(self) -> tuple[Fraction, Loss]:
        """Their probability, and the loss that holds otherwise."""
        ...


@runtime_checkable
class Ordered(Protocol):
    """A kind that says something at certain orders only."""

    def orders(self) -> tuple[float, ...]:
        """The orders worth trying."""
        ...


def divergence(loss: Loss, alpha: Fraction) -> Bound:
    """The Rényi divergence of order `alpha` in the worse direction; at 1, Kullback–Leibler's."""
    if alpha != 1 and not LEAST_ALPHA <= alpha <= MOST_ALPHA:
        raise InvalidArgument(
            "alpha must be 1, or from 1.000001 to 1e9.", remedy="Choose alpha in that range."
        )
    return _bound(loss, divergences.enclose(loss, alpha))


def zcdp(loss: Loss) -> Bound:
    """The least ρ with ρ-zero-concentrated privacy."""
    return _bound(loss, concentration.enclose(loss))


def _bound(loss: Loss, ends: tuple[float, float]) -> Bound:
    """Return an enclosure, which is tight where the loss is and both sides are close."""
    low, high = ends
    return Bound(
        low, high, loss.tight and (high <= low * (1 + NARROW) or high <= NEGLIGIBLE or low == math.inf)
    )


@dataclass(frozen=True)
class RenyiProfile:
    """The profile that moments prove, from above; from below, nothing but 1 − e^ε."""

    evaluate: Callable[[float], float]
    failure: float = 0.0
    tried: tuple[float, ...] = ()
    sighted: Callable[[float], float] | None = None
    about: Callable[[float], float] | None = None
    largest: float = math.inf
    known: dict[float, float] = field(default_factory=dict, repr=False, compare=False)
    seen: dict[float, float] = field(default_factory=dict, repr=False, compare=False)
    near: dict[float, float] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    @lru_cache(maxsize=512)
    def of(loss: Loss) -> RenyiProfile:
        """From the moments of a loss, with the events that its parts set aside."""
        failure, rest = set_aside(loss)
        orders = tuple(sorted(set(_orders(rest))))
        top = divergences.largest(rest)
        return RenyiProfile(rest.moment, failure, orders, partial(one_way, rest), about(rest), top)

    def moment(self, order: float) -> float:
        """Return the logarithmic moment of an order, which is evaluated once."""
        if order not in self.known:
            self.known[order] = min(self.evaluate(order), self._most(order))
        return self.known[order]

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose δ(ε)."""
        least = float(below(np.array([epsilon]))[0][0])
        best = self._best(lambda t: _rough(t, self._about(t)) - t * epsilon)
        bound = self._at(best, epsilon)
        for _ in range(ROUNDS):
            if not self.failure < bound:
                break
            # The order that is best for ε at this δ, or at a usual one, which may be another one.
            need = max(-math.log(bound), USUAL)
            other = self._at(self._best(partial(self._needed, need)), epsilon)
            bound, before = min(bound, other), bound
            if not bound < before * 0.999:
                break
        return (least, max(least, min(bound, 1.0)))

    def sketch(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose δ at every ε of an array, with orders that all of them share."""
        best = self._shared(epsilon)
        least = below(epsilon)[0]
        bounds = np.array([self._at(t, e) for t, e in zip(best.tolist(), epsilon.tolist(), strict=True)])
        return least, np.maximum(least, np.minimum(bounds, 1.0))

    def least_delta(self, epsilon: float, known: float) -> float:
        """Return the lesser of a `known` bound on δ(ε) and what moments prove, where they may prove less."""
        if 0 < known < 1 and epsilon > 0:
            start = self._walk(lambda t: self._sight(t) - t * epsilon, -2 * math.log(known) / epsilon)
            if self._sight(start) - start * epsilon > HOPE * math.log(known):
                return known
        return min(known, self.delta(epsilon)[1])

    def least_epsilon(self, delta: float, known: float) -> float:
        """Return the lesser of a `known` bound on ε and what moments prove, where they may prove less."""
        if self.failure < delta < 1 and 0 < known < math.inf:
            need = -math.log(delta)
            start = self._walk(lambda t: (self._sight(t) + need) / t, 2 * need / known)
            if (self._sight(start) + need) / start * HOPE > known:
                return known
        return min(known, self.epsilon(delta)[1])

    def _needed(self, need: float, order: float) -> float:
        """Return about the ε that an order proves for a δ of e^−need."""
        return (_rough(order, self._about(order)) + need) / order

    def _about(self, order: float) -> float:
        """Return about the logarithmic moment of an order, for looking around."""
        if self.about is None:
            return self.moment(order)
        if order not in self.near:
            self.near[order] = min(self.about(order), self._most(order))
        return self.near[order]

    def _most(self, order: float) -> float:
        """Return the moment that the largest loss leaves."""
        return order * self.largest * (1 + 4 * U)

    def _sight(self, order: float) -> float:
        """Return the exponent of an order by the first direction alone, for looking around."""
        if order not in self.seen:
            self.seen[order] = _rough(order, min((self.sighted or self.moment)(order), self._most(order)))
        return self.seen[order]

    def _walk(self, cost: Callable[[float], float], near: float) -> float:
        """Return the best of the named orders and of powers of two downhill from one that is near."""
        place = round(min(max(math.log2(near), -12.0), 30.0)) if near > 0 else 0
        ways = [cost(2.0 ** (place + way)) for way in (-1, 0, 1)]
        way = 1 if ways[2] < ways[1] else -1
        while -12 < place < 30 and cost(2.0 ** (place + way)) < cost(2.0**place):
            place += way
        return min([2.0**place, *(t for t in self.tried if t > 0)], key=cost)

    def reach(self, delta: float) -> float:
        """Return an ε with δ(ε) ≤ `delta`, by one of a few orders; or infinity."""
        if not delta > self.failure:
            return math.inf
        with workprec(BITS):
            left = (ball(delta) - ball(self.failure)) / (1 - ball(self.failure))
            need = float((1 / left).log())
            best = self._walk(lambda t: (self._sight(t) + need) / t, 8.0)
            orders = [best * 2.0 ** (k / FINE) for k in range(-FINE, FINE + 1)]
            best = min(orders, key=lambda t: (_rough(t, self.moment(t)) + need) / t)
            bound = upper((_exponent(best, self.moment(best)) - left.log()) / ball(best))
        return math.inf if math.isnan(bound) else max(bound, 0.0)

    def _shared(self, epsilon: Floats) -> Floats:
        """Return a good order for each ε: a power of two, or one that is next to the best of these."""
        orders = np.array(sorted({*COARSE, *(t for t in self.tried if t > 0)}))
        rough = np.array([self._sight(t) for t in orders.tolist()])
        logs = rough[:, None] - orders[:, None] * epsilon[None, :]
        # Where not even the first direction proves anything, no other order is looked at.
        best = orders[np.argmin(logs, axis=0)[np.min(logs, axis=0) < 0]]
        near = {t * 2.0 ** (k / FINE) for t in set(best.tolist()) for k in range(-FINE, FINE + 1)}
        return self._least(np.array(sorted(near or {1.0})), epsilon)

    def _least(self, orders: Floats, epsilon: Floats) -> Floats:
        """Return for each ε the one of these orders with the least bound."""
        rough = np.array([_rough(t, self.moment(t)) for t in orders.tolist()])
        chosen = np.argmin(rough[:, None] - orders[:, None] * epsilon[None, :], axis=0)
        return np.asarray(orders[chosen])

    def _at(self, order: float, epsilon: float) -> float:
        """Return the bound on δ(ε) of one order; 1 where there is none."""
        with workprec(BITS):
            power = _exponent(order, self.moment(order)) - ball(order) * ball(epsilon)
            failure = ball(self.failure)
            bound = upper(failure + (1 - failure) * power.exp())
        return 1.0 if math.isnan(bound) else bound

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Enclose the least ε for `delta`."""
        if not delta > self.failure:
            return (0.0, math.inf)
        with workprec(BITS):
            left = (ball(delta) - ball(self.failure)) / (1 - ball(self.failure))
            need = float((1 / left).log())
            best = self._best(partial(self._needed, need))
            bound = upper((_exponent(best, self.moment(best)) - left.log()) / ball(best))
        return (0.0, max(bound, 0.0) if not math.isnan(bound) else math.inf)

    def _best(self, cost: Callable[[float], float]) -> float:
        """Return the order of least cost: by powers of two and those named, then by ever smaller steps.

        The steps are the same for every question, so that these share the moments that they look at.
        """
        start = min([*COARSE, *(t for t in self.tried if t > 0)], key=cost)
        log = lowest(lambda x: cost(start * 2.0**x))
        near = start * math.exp2(log)
        # Some moments are known best at whole orders.
        return min((start, near, max(math.floor(near), start / 16), math.ceil(near)), key=cost)


def lowest(cost: Callable[[float], float]) -> float:
    """Return near which number from −4 to 4 a function with one minimum there is least.

    In steps that are halved, then by parabolas; where these do not fit, as beside a jump, by golden section.
    """
    known: dict[float, float] = {}

    def at(x: float) -> float:
        if x not in known:
            known[x] = cost(x)
        return known[x]

    best, step = 0.0, 1.0
    while step >= LEAST_STEP:
        for way in (-step, step):
            while abs(best + way) <= 4 and at(best + way) < at(best):
                best += way
        step /= 2
    low, high = best - 2 * step, best + 2 * step
    for _ in range(PARABOLAS):
        there = sorted(x for x in known if low <= x <= high)
        middle = there.index(best)
        if not 0 < middle < len(there) - 1:
            break
        low, high = there[middle - 1], there[middle + 1]
        vertex, height = _vertex([(x, at(x)) for x in (low, best, high)])
        if not low < vertex < high:
            break
        if abs(at(vertex) - height) <= FLAT * abs(height):
            return min((best, vertex), key=at)
        best = min((best, vertex), key=at)
    near = golden(at, low, high, rounds=24)
    return min((best, near), key=at)


def _vertex(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the lowest point of the parabola through three points; no number where it is not bent upward."""
    (a, fa), (b, fb), (c, fc) = points
    left, right = (fb - fa) / (b - a), (fc - fb) / (c - b)
    bend = (right - left) / (c - a)
    if not 0 < bend < math.inf:
        return math.nan, math.nan
    x = (a + b) / 2 - left / (2 * bend)
    return x, fa + left * (x - a) + bend * (x - a) * (x - b)


def about(loss: Loss) -> Callable[[float], float] | None:
    """Return a function that is about the logarithmic moment; None where that itself takes little time.

    The moment of a group adds up those of one unit at as many orders as it has units.
    """
    if isinstance(loss, Composition):
        rows = [(about(term), term.moment, n) for term, n in loss.terms]
        if all(rough is None for rough, _, _ in rows):
            return None
        return lambda order: sum(n * (rough or exact)(order) for rough, exact, n in rows)
    path = getattr(loss, "path", loss)
    if not isinstance(path, Group) or not FEW <= path.size <= MOST_TERMS:
        return None
    return partial(_along, Interpolated(about(path.loss) or path.loss.moment), path.size)


@dataclass(frozen=True)
class Interpolated:
    """A function of an order, drawn between a few orders for each doubling, where it is evaluated once."""

    evaluate: Callable[[float], float]
    known: dict[float, float] = field(default_factory=dict, repr=False, compare=False)

    def at(self, orders: Floats) -> Floats:
        """Return about the function at each of these orders."""
        places = np.log2(orders) * FINE
        ends = np.arange(math.floor(float(places.min())), math.floor(float(places.max())) + 2)
        heights = np.array([self._value(place) for place in ends.tolist()])
        first = np.floor(places).astype(np.int64) - int(ends[0])
        left, right = heights[first], heights[first + 1]
        with np.errstate(invalid="ignore"):
            values = left + (right - left) * (places - np.floor(places))
            steep = np.flatnonzero(~(np.abs(right - left) <= STEEP * np.abs(left)))
        for i in steep.tolist():
            values[i] = self._value(float(places[i]))
        return np.asarray(values)

    def _value(self, place: float) -> float:
        """Return the function over its order: a divergence, which is about even."""
        if place not in self.known:
            order = 2.0 ** (place / FINE)
            self.known[place] = self.evaluate(order) / order
        return self.known[place]


def _along(moment: Interpolated, size: int, order: float) -> float:
    """Return about what `chained` bounds."""
    last = size * (1 + order)
    steps = np.arange(size, dtype=np.float64)
    return order * float(np.sum(last / (last - steps) * moment.at(np.asarray(last - steps - 1))))


def one_way(loss: Loss, order: float) -> float:
    """Return the logarithmic moment of the first direction, which is no more than that of the worse one.

    It serves to look around, as it takes less time where the directions differ.
    """
    if isinstance(loss, Composition):
        return sum(n * one_way(term, order) for term, n in loss.terms)
    if isinstance(path := getattr(loss, "path", loss), Group):
        return chained(partial(one_way, path.loss), path.size, order)
    directions = loss.directions()
    if directions is None or len(directions) == 1:
        return loss.moment(order)
    return sum(n * pair.log_moment(order)[1] for pair, n in directions[0])


def set_aside(loss: Loss) -> tuple[float, Loss]:
    """The probability of the events that a loss sets aside, rounded up, and what holds otherwise."""
    terms = loss.terms if isinstance(loss, Composition) else ((loss, 1),)
    parts = [(*_spared(part), n) for part, n in terms]
    with workprec(BITS):
        log = sum((n * (-ball(failure)).log1p() for failure, _, n in parts), arb(0))
        failure = upper(-log.expm1())
    if not any(part[0] for part in parts):
        return 0.0, loss
    return failure, compose(part * n for _, part, n in parts)


def _spared(loss: Loss) -> tuple[Fraction, Loss]:
    if isinstance(loss, Approximate):
        return loss.failure, Pure(loss.limit, relation=loss.relation)
    return loss.spared() if isinstance(loss, Spared) else (Fraction(0), loss)


def _orders(loss: Loss) -> Iterator[float]:
    for part, _ in loss.terms if isinstance(loss, Composition) else ((loss, 1),):
        if isinstance(part, Ordered):
            yield from part.orders()


def _rough(t: float, moment: float) -> float:
    return moment + t * math.log(t) - (1 + t) * math.log1p(t)


def _exponent(t: float, moment: float) -> arb:
    x = ball(t)
    return ball(moment) + x * x.log() - (1 + x) * x.log1p()


def golden(cost: Callable[[float], float], low: float, high: float, *, rounds: int = 40) -> float:
    """Near a local minimum of a function of one variable, which need not be told apart from others."""
    share = (math.sqrt(5) - 1) / 2
    a, b = high - share * (high - low), low + share * (high - low)
    left, right = cost(a), cost(b)
    for _ in range(rounds):
        if left < right:
            high, b, right = b, a, left
            a = high - share * (high - low)
            left = cost(a)
        else:
            low, a, left = a, b, right
            b = low + share * (high - low)
            right = cost(b)
    return a if left < right else b
