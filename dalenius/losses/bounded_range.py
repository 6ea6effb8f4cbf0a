"""Bounded range: the exponential mechanism and its kin, whose loss spans an interval of length ε.

Theorem (Durfee and Rogers 2019; Dong, Durfee and Rogers 2020). The exponential mechanism e^{εu/2Δ} is
ε-bounded-range: for neighbours there is a t in [0, ε] with L in [t − ε, t]. Each such release is dominated
by the two outcomes with losses t and t − ε, where Q(L = t) = (e^{−t} − e^{−ε})/(1 − e^{−ε}).

Adaptive composition. t may depend on what was seen, so per release the worst over all t is needed:
    profile   sup_t H_t(x) = (1 − e^{(x−ε)/2})²/(1 − e^{−ε}) for |x| ≤ ε, attained at t = (x + ε)/2. It is the
              profile of a pair with Q-density (c/2)y^{−3/2}/(1−c²) of y = e^L, c = e^{−ε/2}, its own reverse,
              with E e^{tL} = sinh(ε(t+½))/((2t+1)·sinh(ε/2)). Dominating pairs compose (Zhu, Dong and Wang
              2022), so powers of it bound adaptive composition; exact for one release.
    moments   sup_t E e^{λL} = λ^λ (1+λ)^{−1−λ} A^{1+λ} B^{−λ}, with c = e^{−λε}, B = (1−c)/(e^ε − 1) and
              A = c + e^ε B: s^λ(A − Bs) at its top in s = e^t, inside [1, e^ε] since it is 1 at both ends.
              Its log is at most λ(1+λ)ε²/8: bounded range is ε²/8-zCDP (Cesar and Rogers 2021).
Both are valid, so the lesser counts. From below the answer is bounded by t = ε/2 throughout, which is
randomized response with ε/2. A group of k has the range kε.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dalenius.arithmetic import workprec
from dalenius.losses.fields import Described, Parameter, ratio
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation
from dalenius.profiles.balls import BITS, ball, lower, upper
from dalenius.profiles.enclosure import Interval, around, below, clip, interval, spread
from dalenius.profiles.pair import Floats, Pair, Worst


@dataclass(frozen=True)
class RangePair(Pair):
    """The pair whose profile is the worst of all ranges of length `largest`."""

    largest: Fraction

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """(1 − e^{(x−ε)/2})² over 1 − e^{−ε}."""
        (lo, _), (_, hi) = (below((epsilon - end) / 2) for end in self._ends)
        with workprec(BITS):
            scale = 1 - (-ball(self.largest)).exp()
            least, most = 1 / upper(scale), 1 / lower(scale)
        # Below −ε no range is that low: there H is 1 − e^x, which `clip` supplies.
        lo, hi = np.where(epsilon <= -self._ends[0], 0.0, lo), np.where(epsilon < -self._ends[1], 0.0, hi)
        return clip(epsilon, spread(lo * lo * least, 4)[0], spread(hi * hi * most, 4)[1], top=self._ends[1])

    def log_moment(self, order: float) -> tuple[float, float]:
        """The closed form, in balls."""
        with workprec(BITS):
            half, steps = ball(self.largest) / 2, 2 * ball(order) + 1
            ratio_ = (1 - (-2 * half * steps).exp()) / (1 - (-2 * half).exp()) / steps
            lo, hi = interval(ratio_.log() + half * (steps - 1))
            return (max(lo, 0.0), hi)

    @property
    def support(self) -> tuple[float, float]:
        """±ε, rounded outward."""
        return (-self._ends[1], self._ends[1])

    def reversed(self) -> RangePair:
        """Itself."""
        return self

    @cached_property
    def _ends(self) -> Interval:
        return around(self.largest)


@dataclass(frozen=True, init=False, repr=False)
class BoundedRange(Described, kind="bounded_range"):
    """A release whose loss spans at most `epsilon`, kept as `limit`."""

    limit: Parameter[Fraction] = Parameter(ratio, argument="epsilon")
    relation: Relation = "add_remove"

    def __init__(self, epsilon: Number, *, relation: Relation = "add_remove") -> None:
        self._keep(limit=epsilon, relation=relation)

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        return (((RangePair(self.limit), 1),),)

    @property
    def tight(self) -> bool:
        """The pair is the worst of many, and no one release attains its powers."""
        return False

    def moment(self, order: float) -> float:
        """The worst over the position of the range."""
        with workprec(BITS):
            t, e = ball(order), ball(self.limit)
            rest = -(-t * e).expm1()
            b = rest / e.expm1()
            a = 1 - rest + e.exp() * b
            return max(upper(t * t.log() - (1 + t) * t.log1p() + (1 + t) * a.log() - t * b.log()), 0.0)

    def attained(self) -> Loss:
        """Randomized response with half the range: its loss is ±ε/2."""
        return Pure(self.limit / 2, relation=self.relation)

    def concentration(self) -> tuple[Fraction, Fraction]:
        """ε²/8; and D_α/α tends to 0, the loss being bounded."""
        return (self.limit**2 / 8, Fraction(0))

    def enlarged(self, size: int) -> BoundedRange:
        """Ranges add along a path of neighbours."""
        return BoundedRange(self.limit * size, relation=self.relation)
