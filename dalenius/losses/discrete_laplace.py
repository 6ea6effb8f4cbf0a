"""The discrete Laplace (two-sided geometric) mechanism: P(x) ∝ e^{−|x|/b} on the integers.

Theorem (Ghosh, Roughgarden and Sundararajan 2009; Canonne, Kamath and Steinke 2020, Section 5). With
integer sensitivity s and a = e^{−1/b} the worst pair is the law and its shift by s. The loss takes the
values (s − 2j)/b, j = 0 … s; testing for x ≤ j gives
    H(ε) = max_j [1 − a^j + (1 − e^{ε−(s−2j)/b}) a^j/(1+a)],
the best j being one of the two integers around (s − bε)/2. It is attained and its own reverse, and
    E e^{tL} = (e^{ts/b} + a^s e^{−ts/b} + (1−a)(r − r^s)/(1−r)·e^{ts/b})/(1+a),   r = e^{−(1+2t)/b}.
With s = 1 it is randomized response, the pair of `Pure`. A lesser shift is no worse, as the law is
log-concave: the best test is a threshold m, and P(x ≤ m) − e^ε P(x ≤ m − u) grows with u. At the values
of the loss 1 − H is that of the continuous mechanism, e^{(ε−s/b)/2}, and between them it is the chord in
e^ε: so the argument of `laplace` shows that vectors of integers are no worse either.

`scale` is b, and `sensitivity` the L1 sensitivity under the stated relation, in the same units.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dalenius.arithmetic import workprec
from dalenius.losses.fields import Described, Parameter, check_distance, ratio, whole
from dalenius.losses.pure import four_points
from dalenius.privacy.unit import Relation
from dalenius.profiles.balls import BITS, ball, upper
from dalenius.profiles.enclosure import ELEMENTARY, Interval, around, clip, interval
from dalenius.profiles.lattice import Lattice, point
from dalenius.profiles.pair import Floats, Pair, Worst
from dalenius.profiles.rounding import TINY, U
from dalenius.profiles.spacing import on_lattice

MOST_POINTS = 2**20
"""Up to which sensitivity the law is written out on its lattice."""


@dataclass(frozen=True)
class DiscreteLaplacePair(Pair):
    """Two-sided geometric laws `sensitivity` apart."""

    scale: Fraction
    sensitivity: int

    @property
    def largest(self) -> Fraction:
        """The largest loss, s/b."""
        return self.sensitivity / self.scale

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """The best of the thresholds around (s − bε)/2: any of them is a test, so none is too much."""
        middle = (self.sensitivity - float(self.scale) * epsilon) / 2
        first = np.floor(np.clip(middle, 0.0, float(self.sensitivity)))
        tests = [self._test(epsilon, np.clip(first + k, 0, self.sensitivity)) for k in (-1, 0, 1)]
        lo, hi = (np.maximum.reduce([test[i] for test in tests]) for i in (0, 1))
        return clip(epsilon, lo, hi, top=self.support[1])

    def _test(self, epsilon: Floats, j: Floats) -> tuple[Floats, Floats]:
        """1 − a^j + (1 − e^{ε−l})·a^j/(1+a), with an absolute error for its one difference.

        l = (s − 2j)/b has three roundings and the gap one more, which move e^gap by a factor e^±moved.
        """
        inverse = float(1 / self.scale)
        loss = (self.sensitivity - 2 * j) * inverse
        gap = np.minimum(epsilon - loss, 700.0)
        rise, weight = -np.expm1(-j * inverse), np.exp(-j * inverse) / (1 + np.exp(-inverse))
        value = rise - np.expm1(gap) * weight
        apart = np.minimum(2 * U * (3 * np.abs(epsilon) + 5 * np.abs(loss)), 700.0)
        with np.errstate(over="ignore"):
            moved = np.expm1(apart) * weight * np.exp(gap)
        units = 3 * ELEMENTARY + 6 + 4 * j * inverse
        slack = moved + 2 * U * (units * (rise + np.abs(np.expm1(gap) * weight)) + np.abs(value)) + TINY
        return np.maximum(value - slack, 0.0), np.maximum(value + slack, 0.0)

    def log_moment(self, order: float) -> tuple[float, float]:
        """The closed form, in balls."""
        with workprec(BITS):
            t, b, s = ball(order), ball(self.scale), self.sensitivity
            a, r = (-1 / b).exp(), (-(1 + 2 * t) / b).exp()
            middle = (1 - a) * (r - r**s) / (1 - r)
            total = (1 + a**s * (-2 * t * s / b).exp() + middle) / (1 + a)
            lo, hi = interval(total.log() + t * s / b)
            return (max(lo, 0.0), hi)

    @property
    def support(self) -> tuple[float, float]:
        """±s/b, rounded outward."""
        return (-self._top[1], self._top[1])

    def reversed(self) -> DiscreteLaplacePair:
        """Itself, by reflection."""
        return self

    def lattice(self) -> Lattice | None:
        """The losses (s − 2j)/b in increasing order: j counts down from s."""
        if self.sensitivity > MOST_POINTS:
            return None
        with workprec(BITS):
            a = (-1 / ball(self.scale)).exp()
            first, inner = upper(1 / (1 + a)), upper((1 - a) / (1 + a))
            last = upper(a**self.sensitivity / (1 + a))
        j = np.arange(self.sensitivity - 1, 0, -1, dtype=np.float64) * float(1 / self.scale)
        masses = np.concatenate([[last], inner * np.exp(-j), [first]])
        units = 2 * ELEMENTARY + 8 + 2 * min(float(self.largest), 746.0)
        return on_lattice(point(2 / self.scale), point(-self.largest), 0, masses, units)

    @cached_property
    def _top(self) -> Interval:
        return around(self.largest)


@dataclass(frozen=True, repr=False)
class DiscreteLaplace(Described, kind="discrete_laplace"):
    """Two-sided geometric noise of `scale` on integers of L1 `sensitivity`: ε₀ = sensitivity/scale."""

    scale: Parameter[Fraction] = Parameter(ratio)
    _: KW_ONLY
    sensitivity: Parameter[int] = Parameter(whole, 1)
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_distance(self.scale, self.sensitivity)

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        if self.sensitivity == 1:
            return (((four_points(1 / self.scale, Fraction(0)), 1),),)
        return (((DiscreteLaplacePair(self.scale, self.sensitivity), 1),),)

    def enlarged(self, size: int) -> DiscreteLaplace:
        """A group of k has k times the sensitivity."""
        return DiscreteLaplace(self.scale, sensitivity=self.sensitivity * size, relation=self.relation)
