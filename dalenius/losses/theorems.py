"""The classical theorems by name, for teaching and comparison; for an answer, ask a `Loss`.

    >>> from dalenius.losses.theorems import Step, advanced, basic, optimal
    >>> hundred = Step(epsilon=0.1, count=100)
    >>> print(basic(hundred))
    10
    >>> print(advanced(hundred, delta=1e-6))
    6.308230951
    >>> print(optimal(hundred, delta=1e-6))
    4.774567588

Each takes what its authors take and returns a `Guarantee`: ε at the total δ, rounded up in ball
arithmetic (`balls`), with its status. All but `parallel` hold for adaptively chosen releases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from dalenius.arithmetic import workprec
from dalenius.errors import InvalidArgument
from dalenius.losses.accountant import (
    canonne_kamath_steinke,
    moments,
    sampled_gaussian,
    tail_bound,
)
from dalenius.losses.guarantee import Guarantee, Step
from dalenius.losses.murtagh_vadhan import optimal_heterogeneous
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation
from dalenius.profiles import rounding
from dalenius.profiles.balls import BITS, ball, upper


def basic(steps: Step | Iterable[Step]) -> Guarantee:
    """Releases that are (ε_i, δ_i)-private are together (Σε_i, Σδ_i)-private.

    Dwork, Kenthapadi, McSherry, Mironov and Naor 2006; Dwork and Roth 2014, Theorem 3.16.
    For pure releases (δ_i = 0) nothing smaller holds at δ = 0.
    """
    listed = _listed(steps)
    epsilon = sum((step.count * step.epsilon for step in listed), Fraction(0))
    return Guarantee("basic", rounding.ceiling(epsilon), _spent(listed), "upper bound", "DKMMN 2006")


def advanced(steps: Step | Iterable[Step], *, delta: Number) -> Guarantee:
    """ε = √(2 ln(1/δ′) Σε_i²) + Σ ε_i (e^{ε_i} − 1), at the total delta = Σδ_i + δ′.

    Dwork, Rothblum and Vadhan 2010, Theorem III.3; Dwork and Roth 2014, Theorem 3.20, for equal ε_i.
    The proof bounds the mean of each loss by ε_i(e^{ε_i} − 1) and the deviation of their sum by
    Azuma's inequality with |L_i| ≤ ε_i, which holds for unequal ε_i as well.
    """
    listed, total = _listed(steps), numbers.delta(delta)
    slack = total - _spent(listed)
    if slack <= 0:
        return Guarantee("advanced", math.inf, total, "upper bound", "DRV 2010")
    with workprec(BITS):
        squares = ball(sum((step.count * step.epsilon**2 for step in listed), Fraction(0)))
        drift = sum(
            (step.count * ball(step.epsilon) * ball(step.epsilon).expm1() for step in listed), ball(0)
        )
        epsilon = upper((-2 * ball(slack).log() * squares).sqrt() + drift)
    return Guarantee("advanced", epsilon, total, "upper bound", "DRV 2010")


def optimal(step: Step, *, delta: Number) -> Guarantee:
    """The least ε that holds for every k-fold composition of (ε₀, δ₀)-private releases.

    Kairouz, Oh and Viswanath 2015, Theorem 3.3; Murtagh and Vadhan 2016, Theorem 1.4: with
    δ̃ = 1 − (1 − delta)/(1 − δ₀)^k, it solves
    Σ_l C(k, l) (e^{(k−l)ε₀} − e^{ε + lε₀})₊ = (1 + e^{ε₀})^k δ̃. Attained by randomized response.
    """
    from dalenius.losses.pure import Approximate

    total = numbers.delta(delta)
    one = Approximate(step.epsilon, delta=step.delta)
    return Guarantee("optimal", (one * step.count).epsilon(total).upper, total, "exact", "KOV 2015")


def parallel(steps: Step | Iterable[Step], *, relation: Relation = "add_remove") -> Guarantee:
    """Releases from disjoint parts of the data cost a unit only what its own part costs.

    McSherry 2009: max ε_i under add_remove and zero_out, where a unit is in one part.
    Under replace the new record may fall into another part: two releases change, and the
    two largest costs add up.
    """
    listed = _listed(steps)
    parts = 2 if relation == "replace" else 1
    epsilons = sorted((step.epsilon for step in listed for _ in range(min(step.count, parts))), reverse=True)
    deltas = sorted((step.delta for step in listed for _ in range(min(step.count, parts))), reverse=True)
    epsilon = rounding.ceiling(sum(epsilons[:parts], Fraction(0)))
    return Guarantee("parallel", epsilon, sum(deltas[:parts], Fraction(0)), "upper bound", "McSherry 2009")


def zcdp(rho: Number, *, delta: Number) -> Guarantee:
    """ρ-zero-concentrated privacy gives ε = ρ + 2√(ρ ln(1/delta)).

    Bun and Steinke 2016, Proposition 1.3. The ρ of several releases add up.
    """
    cost, total = ball(numbers.non_negative(rho, "rho")), numbers.delta(delta)
    if total == 0:
        return Guarantee("zcdp", math.inf if cost > 0 else 0.0, total, "upper bound", "BS 2016")
    with workprec(BITS):
        epsilon = upper(cost + 2 * (-cost * ball(total).log()).sqrt())
    return Guarantee("zcdp", epsilon, total, "upper bound", "BS 2016")


def gdp_clt(noise_multiplier: Number, *, sampling_rate: Number, count: int, delta: Number) -> Guarantee:
    """A limit, NOT a bound: μ = q√(T(e^{1/σ²} − 1)), read as μ-Gaussian privacy.

    Bu, Dong, Long and Su 2020 (their μ_CLT): T Poisson-sampled Gaussian steps tend to μ-GDP while q√T
    converges. At a finite T the answer may lie below the truth, and often does.
    """
    from dalenius.losses.gaussian import GaussianDP

    total = numbers.delta(delta)
    sigma = float(numbers.positive(noise_multiplier, "noise_multiplier"))
    rate = float(numbers.rate(sampling_rate, "sampling_rate"))
    mu = rate * math.sqrt(numbers.count(count, "count") * math.expm1(sigma**-2))
    epsilon = GaussianDP(mu).epsilon(total)
    return Guarantee("gdp_clt", (epsilon.lower + epsilon.upper) / 2, total, "approximation", "BDLS 2020")


def _listed(steps: Step | Iterable[Step]) -> tuple[Step, ...]:
    listed = (steps,) if isinstance(steps, Step) else tuple(steps)
    if not listed:
        raise InvalidArgument("A composition needs at least one step.", remedy="Pass a Step.")
    return listed


def _spent(steps: tuple[Step, ...]) -> Fraction:
    return sum((step.count * step.delta for step in steps), Fraction(0))


__all__ = [
    "Guarantee",
    "Step",
    "advanced",
    "basic",
    "canonne_kamath_steinke",
    "gdp_clt",
    "moments",
    "optimal",
    "optimal_heterogeneous",
    "parallel",
    "sampled_gaussian",
    "tail_bound",
    "zcdp",
]
