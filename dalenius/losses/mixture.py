"""A mixture of losses: one release of several, chosen by public chance and known to all.

Theorem (joint with the index; the converse of joint convexity). If release i is made with probability wᵢ,
whatever the data, and i is published, then the pairs are those of i with probability wᵢ:
H = Σ wᵢHᵢ in each direction, and E e^{tL} = Σ wᵢ E e^{tLᵢ}. Tight where every part is. If i is kept secret
the same is an upper bound. Under replace each part may have either order, as in a composition.

Where a part is a composition without a finite form, or known by its moments alone, only moments are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from dalenius.arithmetic import arb, workprec
from dalenius.errors import InvalidArgument
from dalenius.losses.composition import turning
from dalenius.losses.fields import a_loss, listed
from dalenius.losses.loss import Loss, same_relation
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation
from dalenius.profiles.atoms import Atom, Atoms, join
from dalenius.profiles.balls import BITS, ball
from dalenius.profiles.enclosure import Interval, around, between, clip, interval, mass, product, products
from dalenius.profiles.pair import Floats, Pair, Worst
from dalenius.profiles.product import collapse
from dalenius.profiles.rounding import LEAST, U

Parts = tuple[tuple[Fraction, Pair], ...]


@dataclass(frozen=True)
class MixedPair(Pair):
    """Pairs with their weights, the index published."""

    parts: Parts

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """The weighted mean."""
        lo, hi = np.zeros_like(epsilon), np.zeros_like(epsilon)
        for (low, high), (_, pair) in zip(self._weights, self.parts, strict=True):
            ends = products((low, high), *pair.hockey(epsilon))
            lo, hi = lo + ends[0], hi + ends[1]
        margin = 2 * U * (len(self.parts) + 4)
        top = self.support[1] if self.infinite_mass[1] == 0.0 else math.inf
        most = np.where(hi > 0, hi * (1 + margin) + LEAST, 0.0)
        return clip(epsilon, np.maximum(lo * (1 - margin) - LEAST, 0.0), most, top=top)

    def log_moment(self, order: float) -> tuple[float, float]:
        """The logarithm of the weighted mean."""
        ends = [pair.log_moment(order) for _, pair in self.parts]
        weights = [weight for weight, _ in self.parts]
        lo, hi = (log_mean(weights, side) for side in zip(*ends, strict=True))
        return (lo[0], hi[1])

    @property
    def support(self) -> tuple[float, float]:
        """From the least to the greatest of all."""
        ends = [pair.support for _, pair in self.parts]
        return (min(low for low, _ in ends), max(high for _, high in ends))

    @property
    def infinite_mass(self) -> tuple[float, float]:
        """The weighted mean."""
        masses = (pair.infinite_mass for _, pair in self.parts)
        parts = [product(w, mass, 2) for w, mass in zip(self._weights, masses, strict=True)]
        lo, hi = (math.fsum(side) for side in zip(*parts, strict=True))
        return (max(lo * (1 - 4 * U) - LEAST, 0.0), hi * (1 + 4 * U) + (LEAST if hi > 0 else 0.0))

    def reversed(self) -> MixedPair:
        """Part by part."""
        return MixedPair(tuple((weight, pair.reversed()) for weight, pair in self.parts))

    @cached_property
    def _weights(self) -> tuple[Interval, ...]:
        return tuple(around(weight) for weight, _ in self.parts)


@dataclass(frozen=True, init=False)
class Mixture(Loss, kind="mixture"):
    """One of `losses`, chosen with the probabilities `weights` whatever the data, and published."""

    losses: tuple[Loss, ...]
    weights: tuple[Fraction, ...]
    relation: Relation = field(init=False, repr=False)

    def __init__(self, losses: Iterable[Loss], weights: Iterable[Number]) -> None:
        chances = tuple(numbers.probability(weight, "weights") for weight in listed(weights, "weights"))
        parts = tuple(a_loss(loss, "losses") for loss in listed(losses, "losses"))
        if len(parts) != len(chances) or sum(chances) != 1:
            raise InvalidArgument(
                "weights must be as many as losses and add up to exactly 1.",
                remedy="Pass Fractions, or floats whose printed decimals add up to 1.",
            )
        object.__setattr__(self, "relation", same_relation(parts))
        object.__setattr__(self, "losses", parts)
        object.__setattr__(self, "weights", chances)

    @property
    def tight(self) -> bool:
        """Tight when every part is, and has a pair, and parts are not turned independently of each other."""
        return all(loss.tight for loss in self.losses) and not self._turns and self.directions() is not None

    @property
    def _turns(self) -> bool:
        """Whether several parts have two directions each, without a common order (`Loss.either_way`)."""
        return self.relation == "replace" and turning((loss, 1) for loss in self.losses) > 1

    def directions(self) -> tuple[Worst, ...] | None:
        """Direction by direction, the parts together; None where some part has no single pair."""
        known: list[tuple[Worst, ...]] = []
        for loss in self.losses:
            case = loss.either_way() if self._turns else None
            side = loss.directions() if case is None else (case,)
            if side is None or (self._turns and case is None):
                return None
            known.append(side)
        merged: list[Worst] = []
        for i in range(max(len(side) for side in known)):
            pairs = [collapse(side[min(i, len(side) - 1)]) for side in known]
            found = [pair for pair in pairs if pair is not None]
            if len(found) < len(pairs):
                return None
            merged.append(((mixed(tuple(zip(self.weights, found, strict=True))), 1),))
        return tuple(dict.fromkeys(merged))

    def moment(self, order: float) -> float:
        """The logarithm of the weighted mean, in the worse direction of each part."""
        return log_mean(self.weights, [loss.moment(order) for loss in self.losses])[1]

    def enlarged(self, size: int) -> Mixture:
        """The choice is the same for all neighbours, so part by part."""
        return Mixture([loss.group(size) for loss in self.losses], self.weights)


def mixed(parts: Parts) -> Pair:
    """The pairs as one; finite ones stay finite."""
    there = tuple((weight, pair) for weight, pair in parts if weight > 0)
    finite = [(weight, pair) for weight, pair in there if isinstance(pair, Atoms)]
    return _finite(finite) if len(finite) == len(there) else MixedPair(there)


def _finite(parts: list[tuple[Fraction, Atoms]]) -> Atoms:
    with workprec(BITS):
        atoms = [_scaled(atom, weight) for weight, pair in parts for atom in pair.atoms]
        infinite = sum((ball(weight) * between(pair.infinite) for weight, pair in parts), arb(0))
        missing = sum((ball(weight) * between(pair.missing) for weight, pair in parts), arb(0))
        return Atoms(join(atoms), mass(infinite), mass(missing))


def _scaled(atom: Atom, weight: Fraction) -> Atom:
    p, q = (mass(ball(weight) * between(part)) for part in (atom.p, atom.q))
    return Atom(atom.loss, p, q, atom.exact, atom.ratio)


def log_mean(weights: Iterable[Fraction], logs: Iterable[float]) -> Interval:
    """Enclose log Σ w e^k; infinite where a weighted term is."""
    rows = [(weight, log) for weight, log in zip(weights, logs, strict=True) if weight > 0]
    if any(math.isinf(log) for _, log in rows):
        return (math.inf, math.inf)
    with workprec(BITS):
        mean = sum((ball(weight) * ball(log).expm1() for weight, log in rows), arb(0))
        lo, hi = interval(mean.log1p())
        return (max(lo, 0.0), hi)
