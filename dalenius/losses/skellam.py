"""The Skellam mechanism: the difference of two Poisson variables of mean v/2 each, of variance v.

Theorem (Agarwal, Kairouz and Liu 2021; Skellam 1946). P(x) = e^{−v} I_|x|(v), with the modified Bessel
function I. The law is log-concave, so with integer sensitivity Δ the worst pair for a scalar is the law
and its shift by Δ: attained, and its own reverse. The loss at x, log P(x)/P(x−Δ), falls as x grows.

Evaluation in balls. r_k = I_k/I_{k−1} obeys r_k = 1/(2k/v + r_{k+1}) and 0 < r_k < v/2k (Amos 1974);
started from that interval beyond the atoms needed, the recursion contracts. P(k) = P(0)·r₁…r_k, and the
total is 1. Where P falls below 2^−1030 the list ends; r_k decreases, so beyond lies a geometric tail.

Moments beyond the list, the better of two bounds. Since r_k ≥ 1/(1 + 2k/v), e^L ≤ (1 + 2(|x|+Δ)/v)^Δ ≤
e^{2Δ(|x|+Δ)/v}; by Cauchy and Schwarz, and E e^{s|X|} ≤ 2e^{v(cosh s − 1)}, what lies beyond adds to
E e^{tL} at most √(P(beyond) · 2e^{sΔ + v(cosh s − 1)}) with s = 4tΔ/v. Or: at −n, by v/2k > r_k >
1/(2k/v + v/(2k+2)), the next term is at most ρ_n = v/2m · ((m+Δ)/m + v²/(4m(m+Δ+1)))^t times this one,
m = n + 1, which falls with n: a geometric series. On the other side e^{tL} < 1.

A scalar release: a vector has one such loss for every coordinate that may change. `variance` is v, and
`sensitivity` is that under the stated relation, in the same units.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dalenius.arithmetic import arb, workprec
from dalenius.errors import InvalidArgument
from dalenius.losses.fields import Described, Parameter, ratio, whole
from dalenius.privacy.unit import Relation
from dalenius.profiles.balls import BITS, ball, upper
from dalenius.profiles.enclosure import interval
from dalenius.profiles.law import Law
from dalenius.profiles.pair import Floats, Pair, Worst
from dalenius.profiles.rounding import up

MOST_ATOMS = 100_000
"""How many integers on one side are listed at most."""


@dataclass(frozen=True)
class SkellamPair(Pair):
    """Skellam laws of one variance, `sensitivity` apart."""

    variance: Fraction
    sensitivity: int

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """By the knots of its atoms."""
        return _law(self.variance, self.sensitivity).hockey(epsilon)

    def log_moment(self, order: float) -> tuple[float, float]:
        """Over the atoms, and the module's bound on what lies beyond them."""
        law = _law(self.variance, self.sensitivity)
        lo, hi = law.log_moment(order)
        with workprec(BITS):
            return (lo, up(hi + up(min(self._by_cauchy(law, order), self._by_ratio(law, order)))))

    def _by_cauchy(self, law: Law, order: float) -> float:
        v, s = ball(self.variance), 4 * ball(order) * self.sensitivity / ball(self.variance)
        square = 2 * ball(law.beyond) * (s * self.sensitivity + v * (s.cosh() - 1)).exp()
        return upper(square.sqrt())

    def _by_ratio(self, law: Law, order: float) -> float:
        v, shift, m = ball(self.variance), self.sensitivity, (law.losses.shape[1] - 1) // 2 + 1
        grown = ball(Fraction(m + shift, m)) + v**2 / (4 * m * (m + shift + 1))
        rate = v / (2 * m) * grown ** ball(order)
        if not rate < 1:
            return math.inf
        last = ball(float(law.masses[1, -1])) * (ball(order) * ball(float(law.losses[1, -1]))).exp()
        return upper(last * rate / (1 - rate) + ball(law.beyond))

    @property
    def support(self) -> tuple[float, float]:
        """All reals are within reach."""
        return (-math.inf, math.inf)

    def reversed(self) -> SkellamPair:
        """Itself, by reflection."""
        return self


def _reach(variance: Fraction) -> int:
    """Where P has fallen below 2^−1030, by the saddle point; only the length of the list depends on it."""
    v, k = float(variance), 8
    while math.sqrt(v * v + k * k) - v - k * math.asinh(k / v) > -760:
        k = k + k // 8
    return k


@lru_cache(maxsize=16)
def _ratios(variance: Fraction, most: int) -> list[arb]:
    """r₁ … r_most, backwards from an interval that the recursion forgets."""
    extra = 64 + 8 * math.isqrt(math.ceil(variance))
    v = ball(variance)
    step, found = 2 / v, []
    r = (v / (2 * (most + extra))).union(arb(0))
    for k in range(most + extra - 1, 0, -1):
        r = 1 / (step * k + r)
        found.append(r)
    return found[: -most - 1 : -1]


@lru_cache(maxsize=16)
def _law(variance: Fraction, sensitivity: int) -> Law:
    reach = _reach(variance)
    with workprec(BITS):
        ratios = _ratios(variance, reach + sensitivity + 1)
        relative, logs = [arb(1)], [arb(0)]
        for r in ratios:
            relative.append(relative[-1] * r)
            logs.append(logs[-1] + r.log())
        rest = relative[reach] * ratios[reach] / (1 - ratios[reach])
        total = 1 + 2 * (sum(relative[1 : reach + 1], arb(0)) + rest.union(arb(0)))
        masses = [interval(relative[k] / total) for k in range(reach + 1)]
        points = range(reach, -reach - 1, -1)
        losses = [interval(logs[abs(x)] - logs[abs(x - sensitivity)]) for x in points]
        beyond = upper(2 * rest / total)
    rows = np.array([masses[abs(x)] for x in points]).T
    return Law(np.array(losses).T, rows, beyond=beyond)


@dataclass(frozen=True, repr=False)
class Skellam(Described, kind="skellam"):
    """Skellam noise of `variance` on an integer of `sensitivity`."""

    variance: Parameter[Fraction] = Parameter(ratio)
    _: KW_ONLY
    sensitivity: Parameter[int] = Parameter(whole, 1)
    relation: Relation = "add_remove"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variance > 10**7 or _reach(self.variance) + self.sensitivity > MOST_ATOMS:
            raise InvalidArgument(
                "variance must be from 1e-6 to about 4e6, and sensitivity at most about 1e5.",
                remedy="Use a coarser grid.",
            )

    def directions(self) -> tuple[Worst, ...]:
        """One direction, as the pair is its own reverse."""
        return (((SkellamPair(self.variance, self.sensitivity), 1),),)

    def enlarged(self, size: int) -> Skellam:
        """A group of k has k times the sensitivity."""
        return Skellam(self.variance, sensitivity=self.sensitivity * size, relation=self.relation)
