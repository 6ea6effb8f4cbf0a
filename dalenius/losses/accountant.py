"""The moments accountant: log-moments of the privacy loss add up, and convert to (ε, δ) at the end.

Let m(λ) bound log E_P[e^{λL}] for one release in both directions; m(λ) = λ·D_{λ+1}, with D the Rényi
divergence. Under adaptive composition the m(λ) add (Abadi et al. 2016; Mironov 2017,
Proposition 1). For a Gaussian step on a Poisson sample, at whole orders α = λ + 1
(Mironov, Talwar and Zhang 2019, Section 3.3, under add_remove, both directions),

    m(λ) = log Σ_{k=0}^{α} C(α, k) (1 − q)^{α−k} q^k e^{(k² − k)/(2σ²)}.

Every figure is the upper end of a ball, rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from dalenius.arithmetic import arb, workprec
from dalenius.losses.guarantee import Guarantee
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.profiles.balls import BITS, ball, upper

Moment = Callable[[int], float]
"""λ ↦ an upper bound on log E_P[e^{λL}]."""
Conversion = Callable[[int, arb, arb], arb]
"""(λ, m(λ), log(1/δ)) ↦ ε."""

PUBLISHED_ORDERS = range(1, 33)
"""Those that Abadi et al. 2016 use."""


def tail_bound(order: int, moment: arb, log_inverse_delta: arb) -> arb:
    """ε = (m(λ) + log(1/δ))/λ. Abadi et al. 2016; Mironov 2017, Proposition 3."""
    return (moment + log_inverse_delta) / order


def canonne_kamath_steinke(order: int, moment: arb, log_inverse_delta: arb) -> arb:
    """ε = (m(λ) + log(1/δ) + λ log(1 − 1/α) − log α)/λ, α = λ + 1.

    Canonne, Kamath and Steinke 2020, Proposition 12: never above `tail_bound`.
    """
    alpha = arb(order + 1)
    return (moment + log_inverse_delta + order * (-1 / alpha).log1p() - alpha.log()) / order


def moments(
    moment: Moment,
    *,
    delta: Number,
    count: int = 1,
    orders: Iterable[int] = PUBLISHED_ORDERS,
    conversion: Conversion = tail_bound,
) -> Guarantee:
    """The least ε over `orders` for `count` releases with the given log-moments."""
    total, times = numbers.delta(delta), numbers.count(count, "count")
    with workprec(BITS):
        epsilon = min((_epsilon(moment(k), k, times, total, conversion) for k in orders), default=math.inf)
    reference = "CKS 2020" if conversion is canonne_kamath_steinke else "ACGMMTZ 2016"
    return Guarantee("moments", epsilon, total, "upper bound", reference)


def _epsilon(moment: float, order: int, count: int, delta: Fraction, conversion: Conversion) -> float:
    if delta == 0 or not math.isfinite(moment):
        return math.inf
    return max(0.0, upper(conversion(order, count * arb(moment), -ball(delta).log())))


def sampled_gaussian(noise_multiplier: Number, *, sampling_rate: Number) -> Moment:
    """The log-moments of one Gaussian step on a Poisson sample, at whole orders λ ≥ 1."""
    sigma = numbers.positive(noise_multiplier, "noise_multiplier")
    rate = numbers.rate(sampling_rate, "sampling_rate")

    def moment(order: int) -> float:
        alpha = numbers.count(order, "order", most=10_000) + 1
        with workprec(BITS):
            q, rest, half = ball(rate), ball(1 - rate), ball(1 / (2 * sigma**2))
            terms = (
                math.comb(alpha, k) * rest ** (alpha - k) * q**k * (k * (k - 1) * half).exp()
                for k in range(alpha + 1)
            )
            return upper(sum(terms, arb(0)).log())

    return moment
