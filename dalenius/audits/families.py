"""What a claim says of every event, and the same with more or with less noise.

An event E is drawn with probability p on one of two neighbouring inputs and q on the other. A claim bounds it
by lines, p ≤ s·q + d: an (ε, δ) claim by one, s = e^ε and d = δ; a claim of a whole curve δ(ε), which is that
of a trade-off function (Dong, Roth and Su 2022), by one for every ε. Events that a curve forbids may be far
likelier than those that any one of its points forbids, so that far fewer draws show a violation.

A claim is one of a family that is ordered by a number, the larger the less private: the ε of a point, or for
a curve how many times less noise its loss has (`losses.shrinking`). To reject all members up to one is to
show that none of them is kept. For a point that is a lower bound on ε, whatever the mechanism; for a curve it
is one for mechanisms of the claim's kind, whose noise alone is in doubt.

A claim whose noise is not a parameter is rejected or not, by a family that only serves to choose bets: all
its ε stretched. There δ is evaluated at few ε and laid out by chords in e^ε. As a function of e^ε it is
convex, being the largest of the lines p − e^ε q, so that chords are upper bounds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.losses.composition import Composition
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate
from dalenius.losses.routes import profiles
from dalenius.losses.shrinking import shrunk
from dalenius.profiles.profile import sample

Floats = NDArray[np.float64]

WIDEST = 1024.0
"""Members with up to so many times more or less noise are looked at."""
LARGEST = 512.0
"""No ε above this is told apart from none at all."""
HAIR = 1e-12
"""A slope is rounded up by this, which is more than its last digits."""
RARE = Fraction(1, 10**4)
"""Lines are laid to the curve as far as events of this probability decide."""
KNOTS = 28
"""At how many ε a curve is evaluated that has no noise to change."""
ANCHORS, NEAR = 32, 12
"""How many lines of a curve are looked at, and at how many members, to choose one."""


@dataclass(frozen=True)
class Lines:
    """Lines of a family: slopes and intercepts, one row for each anchor, one column for each member."""

    anchors: Floats
    members: Floats
    slopes: Floats
    intercepts: Floats

    def at(self, row: int, members: Floats) -> tuple[Floats, Floats]:
        """Slopes and intercepts of one anchor between the members."""
        where = np.log(members), np.log(self.members)
        slopes = np.exp(np.interp(*where, np.log(self.slopes[row])))
        return slopes, np.interp(*where, self.intercepts[row])


def read_claim(claim: object) -> Loss:
    """A claim is a loss."""
    if not isinstance(claim, Loss):
        raise InvalidArgument("A claim is a loss.", remedy="Pass a loss, such as dalenius.losses.Pure(1).")
    return claim


class Family(ABC):
    """Claims ordered by a number. Lines of the claim itself are those of `own`."""

    own: float
    least: float
    most: float
    among: str
    """Of which mechanisms a member says something, in words."""
    tells: bool = True
    """Whether members say how large ε is."""

    @abstractmethod
    def line(self, member: float, anchor: float) -> tuple[float, float]:
        """The slope and the intercept that bound every event by the claim of a member, rounded up."""

    @abstractmethod
    def epsilon(self, member: float, delta: Fraction) -> float:
        """The ε of a member at δ, rounded down."""

    @abstractmethod
    def lines(self) -> Lines:
        """Some of them, by which to choose one."""


class Point(Family):
    """(ε, δ) for one δ; a member is its ε."""

    least, most = 0.0, LARGEST
    among = "any mechanism"

    def __init__(self, claim: Loss, delta: Fraction) -> None:
        self.own, self.delta = claim.epsilon(delta).upper, float(delta)

    def line(self, member: float, anchor: float) -> tuple[float, float]:
        """See `Family`; there is only one."""
        return math.exp(min(member, LARGEST)) * (1 + HAIR), self.delta

    def epsilon(self, member: float, delta: Fraction) -> float:
        """The member itself."""
        return member

    def lines(self) -> Lines:
        """The only one, of many members."""
        top = min(max(2 * self.own, self.own + 4, 1.0), LARGEST / 2) if math.isfinite(self.own) else 16.0
        members = np.linspace(top / 64, top, 64)
        return Lines(
            np.zeros(1), members, np.exp(members)[None, :], np.full((1, len(members)), float(self.delta))
        )


class Curve(Family):
    """δ(ε) for all ε; a member has so many times less noise, or all its ε larger."""

    own, least, most = 1.0, 1 / WIDEST, WIDEST
    among = "mechanisms of the claim's kind"

    def __init__(self, claim: Loss) -> None:
        self.claim = claim
        ends = [_with_noise(claim, Fraction(int(WIDEST))), _with_noise(claim, Fraction(1, int(WIDEST)))]
        self.noisy = self.tells = None not in ends and ends[0] != ends[1]

    def line(self, member: float, anchor: float) -> tuple[float, float]:
        """See `Family`; the anchor is an ε."""
        place = _short(anchor)
        slope = math.exp(place) * (1 + HAIR)
        if not self.noisy:
            return slope, _chord(self.claim, float(place) / member)
        return slope, _delta(self._member(member), place)

    def deltas(self, member: float, anchors: Floats) -> Floats:
        """The δ of its lines at many anchors."""
        if not self.noisy:
            return np.array([_chord(self.claim, anchor / member) for anchor in anchors.tolist()])
        return _deltas(self._member(member), anchors)

    def epsilon(self, member: float, delta: Fraction) -> float:
        """The ε of a member at δ, rounded down; nothing where noise is not a parameter."""
        return self._member(member).epsilon(delta).lower if self.noisy else 0.0

    def lines(self) -> Lines:
        """By anchors up to where events are rare, of members around the claim."""
        return _lines(self)

    def _member(self, member: float) -> Loss:
        found = _with_noise(self.claim, 1 / _short(member)) if member != 1 else self.claim
        assert found is not None, "both ends of the family were found"
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Curve) and self.claim == other.claim

    def __hash__(self) -> int:
        return hash(self.claim)


def _with_noise(claim: Loss, factor: Fraction) -> Loss | None:
    """The claim with so many times the noise; a claim of one (ε, δ) with so many times less ε.

    None where there is no such parameter, and for noises of several scales, which take long to evaluate.
    """
    if isinstance(claim, Composition) and len({_noise_of(term) for term, _ in claim.terms}) > 1:
        return None
    if isinstance(claim, Approximate) and claim.limit:
        return Approximate(claim.limit / factor, delta=claim.failure, relation=claim.relation)
    return shrunk(claim, factor)


def _noise_of(term: Loss) -> tuple[type[Loss], object]:
    return type(term), getattr(term, "scale", None)


@lru_cache(maxsize=64)
def _lines(curve: Curve) -> Lines:
    far = _far(curve.claim)
    anchors = np.concatenate([np.linspace(0.0, 1.02, ANCHORS - 6) * far, np.linspace(1.2, 3.5, 6) * far])
    members = np.exp(np.linspace(math.log(0.25), math.log(4.0), NEAR))
    slopes = np.repeat(np.exp(anchors)[:, None] * (1 + HAIR), NEAR, axis=1)
    return Lines(anchors, members, slopes, np.array([curve.deltas(each, anchors) for each in members]).T)


def _far(claim: Loss) -> float:
    """Up to here events decide that are not too rare, and not those that give all away."""
    ends = (claim.epsilon(RARE * 10**k).upper for k in range(4))
    rare = next((end for end in ends if end < math.inf), math.inf)
    return max(min(claim.epsilon(0).upper, rare, LARGEST / 4), 0.01)


def _chord(claim: Loss, epsilon: float) -> float:
    """An upper bound on δ at ε: it is convex in e^ε, and falls."""
    places, values = _knots(claim)
    return float(np.interp(math.exp(min(epsilon * (1 - HAIR), 700.0)), places, values))


@lru_cache(maxsize=64)
def _knots(claim: Loss) -> tuple[Floats, Floats]:
    epsilons = np.linspace(0.0, 1.02, KNOTS) * _far(claim)
    return np.exp(epsilons) * (1 + HAIR), _deltas(claim, epsilons)


def _deltas(loss: Loss, epsilons: Floats) -> Floats:
    """Upper bounds on δ at increasing ε, all at once, which some profiles do with less work."""
    upper: Floats = np.maximum.reduce([sample(profile, epsilons)[1] for profile in profiles(loss)])
    return np.minimum(upper, 1.0)


@lru_cache(maxsize=65536)
def _delta(loss: Loss, epsilon: Fraction) -> float:
    return min(1.0, loss.delta(epsilon).upper)


def _short(number: float) -> Fraction:
    """A number as a fraction of few digits, for losses are exact in their parameters."""
    return Fraction(f"{number:.9e}")
