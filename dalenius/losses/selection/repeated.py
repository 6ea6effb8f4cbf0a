"""A random number of runs, never revealed, and what releasing the best of them costs.

K runs of one release are made, each on a candidate drawn at random, and the one with the greatest score is
shown. Outcomes are ordered totally. Let δ₀ be the profile of one run and D⁰ its Rényi divergences.

`Geometrics`. K ≥ 1 has the truncated negative binomial law, shape η in (−1, 1], stop γ in (0, 1): P(K = k)
is proportional to (1 − γ)^k Π_{l<k} (l + η)/(l + 1), geometric at η = 1, logarithmic at η = 0. E[K] is
η(1 − γ)/(γ − γ^{1+η}), at η = 0 (1 − γ)/(γ·log(1/γ)).
    Profile (Liu and Talwar 2019; Koskela, Redberg and Wang 2024). For x ≥ 0, δ(x + (1 + η)τ) ≤ E[K]·δ₀(x),
    where τ is the least number with δ₀(τ) ≤ (e^τ − 1)γ/(1 − γ). The proof serves for x < 0 ≤ x + (1 + η)τ as
    well, with 1 − e^x + e^x·δ₀(−x) for δ₀(x); so does that for Poisson runs.
    Rényi (Papernot and Steinke 2022, Theorem 2). For every β ≥ 1,
    D_α ≤ D⁰_α + (1 + η)(1 − 1/β)D⁰_β + (1 + η)·log(1/γ)/β + log E[K]/(α − 1).

`Poissons`. K is Poisson of mean μ; with probability e^{−μ} nothing is shown.
    Profile. δ(x + μδ₀(0)) ≤ μδ₀(x) for x ≥ 0.
    Rényi (Papernot and Steinke 2022, Theorem 6, but for the term of no run). With e^ε̂ = α/(α − 1), δ̂ = δ₀(ε̂),
    e^{(α−1)D_α} ≤ e^{−μ} + μ·e^{(α−1)(D⁰_α + μδ̂)}.

The proofs are in docs/mechanisms/private_selection.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dalenius.arithmetic import arb, workprec
from dalenius.errors import InvalidArgument
from dalenius.losses import divergence
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.profiles.balls import BITS, ball, lower, upper

LEAST, NEAR = 2.0**-40, 2.0**-36
"""The least τ that is stated, and how near the search for it comes, as a share of where it starts."""
Orders = tuple[Fraction, ...]
COARSE: Orders = tuple(1 + Fraction(2) ** k for k in range(-4, 21))
FINE: Orders = tuple(1 + Fraction(2.0 ** (k / 8)) for k in range(-32, 161))
"""Second orders tried for Rényi privacy; the order 1 needs nothing of one run."""
MOST = 10_000
"""The largest mean."""
SMALL = Fraction(1, 10**12)
"""The least size of a shape that is not 0: below, E[K] is beyond the working precision."""


def a_stop(value: object, name: str) -> Fraction:
    """A probability from 10^−6 to below 1."""
    found = numbers.exact(value, name)
    if not Fraction(1, 10**6) <= found < 1:
        raise InvalidArgument(f"{name} must be from 1e-6 to below 1.", remedy=f"Choose {name} such as 0.1.")
    return found


def a_shape(value: object, name: str) -> Fraction:
    """A number above −1, at most 1, that is 0 or not too near to it."""
    found = numbers.exact(value, name)
    if 0 < abs(found) < SMALL:
        raise InvalidArgument(f"{name} must be 0 or at least 1e-12 from it.", remedy=f"Choose {name} as 0.")
    if not -1 < found <= 1:
        raise InvalidArgument(
            f"{name} must be above -1 and at most 1.",
            remedy=f"Choose {name} as 1 for a geometric number of runs, 0 for a logarithmic one.",
        )
    return found


def a_mean(value: object, name: str) -> Fraction:
    """A positive number of runs."""
    found = numbers.positive(value, name)
    if found > MOST:
        raise InvalidArgument(f"{name} must be at most {MOST}.", remedy=f"Choose {name} such as 20.")
    return found


class Repeated(ABC):
    """The law of a number of runs, by its price."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """E[K], rounded up."""

    @abstractmethod
    def shift(self, base: Loss) -> Fraction:
        """A number c with δ(x + c) ≤ E[K]·δ₀(x) for all x ≥ 0, δ₀ the profile of one run."""

    @abstractmethod
    def renyi(self, base: Loss, alpha: Fraction, orders: Orders = COARSE) -> float:
        """The Rényi divergence of order α of the best run, rounded up; `orders` are the β tried."""


@dataclass(frozen=True)
class Geometrics(Repeated):
    """Truncated negative binomial, by γ = `stop` and η = `shape`."""

    stop: Fraction
    shape: Fraction

    @property
    def mean(self) -> float:
        """E[K], rounded up."""
        with workprec(BITS):
            return upper(self._mean())

    def _mean(self) -> arb:
        stop, shape = ball(self.stop), ball(self.shape)
        if self.shape == 0:
            return (1 - stop) / (stop * (1 / stop).log())
        return shape * (1 - stop) / (stop * (1 - (shape * stop.log()).exp()))

    def shift(self, base: Loss) -> Fraction:
        """(1 + η)τ."""
        return (1 + self.shape) * Fraction(_shift(base, self.stop))

    def renyi(self, base: Loss, alpha: Fraction, orders: Orders = COARSE) -> float:
        """The theorem of Papernot and Steinke, with the best of several second orders."""
        first, more = divergence.upper(base, alpha), _second(base, self.stop, orders)
        if first == math.inf:
            return math.inf
        with workprec(BITS):
            rest = self._mean().log() / ball(alpha - 1)
            return upper(ball(first) + ball(1 + self.shape) * ball(more) + rest)


@dataclass(frozen=True)
class Poissons(Repeated):
    """Poisson, by its `number` on average."""

    number: Fraction

    @property
    def mean(self) -> float:
        """μ, rounded up."""
        with workprec(BITS):
            return upper(ball(self.number))

    def shift(self, base: Loss) -> Fraction:
        """μδ₀(0)."""
        return self.number * Fraction(base.delta(0).upper)

    def renyi(self, base: Loss, alpha: Fraction, orders: Orders = COARSE) -> float:
        """The theorem; ε̂ is rounded down."""
        once = divergence.upper(base, alpha)
        if once == math.inf:
            return math.inf
        with workprec(BITS):
            near = Fraction(max(lower((1 / ball(alpha - 1)).log1p()), 0.0))
        failure = base.delta(near).upper
        with workprec(BITS):
            mean, rest = ball(self.number), ball(alpha - 1)
            # e^{(α−1)D} = μe^x(1 + e^{−μ−x}/μ), whose logarithm does not overflow.
            x = rest * (ball(once) + mean * ball(failure))
            return upper((x + mean.log() + ((-mean - x).exp() / mean).log1p()) / rest)


@lru_cache(maxsize=256)
def _second(base: Loss, stop: Fraction, orders: Orders) -> float:
    """The least (1 − 1/β)D⁰_β + log(1/γ)/β over the orders tried, rounded up."""
    with workprec(BITS):
        wide = -ball(stop).log()
        choices = [upper(wide)]
    for order in orders:
        known = divergence.upper(base, order)
        with workprec(BITS):
            if known < math.inf:
                choices.append(upper((1 - 1 / ball(order)) * ball(known) + wide / ball(order)))
    return min(choices)


@lru_cache(maxsize=256)
def _shift(base: Loss, stop: Fraction) -> float:
    """τ, rounded up: the root is found in floats, and what is returned serves by directed rounding."""
    from scipy.optimize import brentq

    odds = stop / (1 - stop)

    def spare(shift: float) -> float:
        with workprec(BITS):
            allowed = lower(ball(shift).expm1() * ball(odds))
        return allowed - base.delta(Fraction(shift)).upper

    # No δ exceeds that at 0, so where (e^τ − 1)γ/(1 − γ) reaches it τ serves; so does what makes δ vanish.
    most = max(LEAST, min(math.log1p(base.delta(0).upper / float(odds)), base.epsilon(0).upper))
    while spare(most) < 0:
        most *= 2
    if spare(LEAST) >= 0:
        return LEAST
    shift, more = float(brentq(spare, LEAST, most, xtol=most * NEAR, rtol=NEAR)), NEAR
    while spare(shift) < 0:
        shift, more = shift + more * most, 2 * more
    return shift
