"""The pair ((1−q)Q + qP, Q) of a Poisson sample, for any pair (P, Q), and its reverse.

With M = (1−q)Q + qP and x(ε) = (e^ε − 1)/q,
    H_{M‖Q}(ε) = q·H_{P‖Q}(log(1 + x(ε)))                              where x(ε) > −1, else 1 − e^ε,
    H_{Q‖M}(ε) = q·e^ε·(1 + x(−ε))·H_{Q‖P}(−log(1 + x(−ε)))            where x(−ε) > −1, else 0,
by collecting the terms of sup M(E) − e^ε Q(E). The weight is also 1 − e^ε + q·e^ε, used for ε < 0. The
inner argument is enclosed, which is enough since H decreases.

Moments. At whole orders, E_Q[(M/Q)^α] = Σ_j C(α,j) (1−q)^{α−j} q^j E_Q[(P/Q)^j]; between them K is
convex and K(t)/t grows. Past MOST_ORDER, and for the reverse, convexity gives E_Q φ(M/Q) ≤
(1−q)φ(1) + q·E_Q φ(P/Q); and the reverse is at most −t·log(1−q), since M ≥ (1−q)Q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from dalenius.arithmetic import arb, fmpz, workprec
from dalenius.profiles import integrals
from dalenius.profiles.balls import BITS, ball, lower, upper
from dalenius.profiles.enclosure import (
    ELEMENTARY,
    Interval,
    around,
    below,
    between,
    clip,
    interval,
    product,
    products,
    spread,
)
from dalenius.profiles.pair import Floats, Pair
from dalenius.profiles.rounding import LEAST, U

MOST_ORDER = 256
"""Up to which order the binomial expansion of a moment is summed."""
MOST_EXPONENT = 100.0
"""Up to which t times the top loss a moment is taken from the profile."""
FAR = 700.0
"""Beyond ±FAR nothing is asked of the inner pair: H is taken as 0 below or 1 above."""


@dataclass(frozen=True)
class Sampled(Pair):
    """The mixture against Q, or `backward`, Q against the mixture."""

    pair: Pair
    rate: Fraction
    backward: bool = False

    def hockey(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """By the identities of the module, the inner argument rounded either way."""
        lo, hi = self._back(epsilon) if self.backward else self._ahead(epsilon)
        top = self.support[1] if self.infinite_mass[1] == 0.0 else math.inf
        return clip(epsilon, lo, hi, top=top)

    def log_moment(self, order: float) -> tuple[float, float]:
        """Exact at whole orders ahead; elsewhere from the profile where losses are bounded, or by bounds."""
        expanded = order <= MOST_ORDER and order == math.floor(order)
        if order * self.support[1] < MOST_EXPONENT and (self.backward or not expanded):
            return integrals.log_moment(self, order)
        if self.backward:
            return (0.0, _back_moment(self.pair.reversed(), self.rate, order))
        if order > MOST_ORDER:
            least = _whole(self.pair, self.rate, MOST_ORDER)[0]
            return (least, _mixed(self.rate, self.pair.log_moment(order)[1]))
        floor, ceil = math.floor(order), math.ceil(order)
        before, after = (_whole(self.pair, self.rate, whole) for whole in (floor, ceil))
        share = order - floor
        least = before[0] * (order / floor) * (1 - 8 * U) if floor else 0.0
        most = after[1] if share == 0 else before[1] * (1 - share) + after[1] * share
        return (max(least, 0.0), most * (1 + 8 * U))

    @property
    def support(self) -> tuple[float, float]:
        """log(1−q+q·e^L) at the extremes; log(1−q) where Q has mass that P has not."""
        bare = self.pair.reversed().infinite_mass[1] > 0
        low, high = self.pair.support
        with workprec(BITS):
            ends = (lower(self._loss(-math.inf if bare else low)), upper(self._loss(high)))
        return (-ends[1], -ends[0]) if self.backward else ends

    @property
    def infinite_mass(self) -> tuple[float, float]:
        """q times P's; the mixture covers all of Q."""
        return (0.0, 0.0) if self.backward else product(self._rate, self.pair.infinite_mass, 2)

    def reversed(self) -> Sampled:
        """The other way round."""
        return Sampled(self.pair, self.rate, not self.backward)

    @cached_property
    def _rate(self) -> Interval:
        return around(self.rate)

    def _loss(self, loss: float) -> arb:
        q = ball(self.rate)
        if loss == -math.inf:
            return (1 - q).log()
        return arb.pos_inf() if loss == math.inf else (q * ball(loss).expm1()).log1p()

    def _ahead(self, epsilon: Floats) -> tuple[Floats, Floats]:
        x_lo, x_hi = self._x(epsilon)
        lo, hi = _inside(self.pair, _log1p(x_lo, -1), _log1p(x_hi, 1))
        lo, hi = products(self._rate, lo, hi)
        most = np.where(hi > 0, hi * (1 + 8 * U) + LEAST, 0.0)
        return np.maximum(lo * (1 - 8 * U) - LEAST, 0.0), np.maximum(most, below(epsilon)[1])

    def _back(self, epsilon: Floats) -> tuple[Floats, Floats]:
        x_lo, x_hi = self._x(-epsilon)
        lo, hi = _inside(self.pair.reversed(), -_log1p(x_hi, 1), -_log1p(x_lo, -1))
        grown = np.exp(np.minimum(epsilon, 700.0))
        rest, units = -np.expm1(np.minimum(epsilon, 0.0)), 3 * ELEMENTARY + 8
        left = (np.where(epsilon < 0, 1.0, np.maximum(1 + x, 0.0)) for x in (x_lo, x_hi))
        weight = [rest + q * grown * more for q, more in zip(self._rate, left, strict=True)]
        return spread(lo * weight[0], units)[0], np.where(x_hi <= -1, 0.0, spread(hi * weight[1], units)[1])

    def _x(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Enclose (e^ε − 1)/q: an expm1, a quotient and q's own rounding are within half this slack."""
        with np.errstate(over="ignore", invalid="ignore"):
            x = np.expm1(epsilon) / self._rate[1]
            slack = np.abs(x) * ((ELEMENTARY + 6) * 2 * U)
            return np.where(np.isinf(x), 1e308, x - slack), x + slack


def _log1p(x: Floats, side: int) -> Floats:
    """log(1 + x) rounded to one side; −∞ from −1 down."""
    with np.errstate(divide="ignore"):
        z = np.log1p(np.maximum(x, -1.0))
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(z), z + side * np.abs(z) * (2 * ELEMENTARY * U), z)


def _inside(pair: Pair, z_lo: Floats, z_hi: Floats) -> tuple[Floats, Floats]:
    """Enclose H at a point between z_lo and z_hi; beyond ±FAR it is not asked of the pair."""
    lo = np.where(z_hi > FAR, 0.0, pair.hockey(np.clip(z_hi, -FAR, FAR))[0])
    hi = np.where(z_lo < -FAR, 1.0, pair.hockey(np.clip(z_lo, -FAR, FAR))[1])
    return lo, hi


@lru_cache(maxsize=4096)
def _moment(pair: Pair, order: int) -> Interval:
    return pair.log_moment(float(order))


@lru_cache(maxsize=4096)
def _whole(pair: Pair, rate: Fraction, order: int) -> Interval:
    """The binomial expansion at α = order + 1, in expm1 form; its terms below j = 2 are 0."""
    with workprec(BITS):
        q, alpha, total = ball(rate), order + 1, arb(0)
        for j in range(2, alpha + 1):
            lo, hi = _moment(pair, j - 1)
            if math.isinf(hi):
                return (0.0, math.inf)
            weight = arb(fmpz(math.comb(alpha, j))) * q**j * (1 - q) ** (alpha - j)
            total += weight * between((lo, hi)).expm1()
        lo, hi = interval(total.log1p())
        return (max(lo, 0.0), hi)


def _mixed(rate: Fraction, log_moment: float) -> float:
    """log(1 − q + q·e^K), rounded up."""
    if math.isinf(log_moment):
        return math.inf
    with workprec(BITS):
        return upper((ball(rate) * ball(log_moment).expm1()).log1p())


def _back_moment(back: Pair, rate: Fraction, order: float) -> float:
    with workprec(BITS):
        most = upper(-ball(order) * (1 - ball(rate)).log())
    return min(most, _mixed(rate, back.log_moment(order)[1]))
