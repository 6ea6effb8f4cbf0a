"""What each decision on a key may cost beside Gaussian noise: looked for by a formula, and then certified.

Let m decisions be (ε₀, δ₀)-private each, and μ = 1/k for noise of multiplier k. The decisions are dominated
by m-fold randomized response that gives everything away with probability δ₀ each time (Kairouz, Oh and
Viswanath 2015), so all together, with H the profile of N(μ, 1) against N(0, 1) and p = e^{ε₀}/(1 + e^{ε₀}),

    δ(ε) = 1 − (1 − δ₀)^m (1 − Σⱼ C(m, j) p^{m−j} (1 − p)^j H(ε − (m − 2j) ε₀)).

In floats this only says where to look, in microseconds. What is returned was evaluated by the loss itself.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dalenius.losses.composition import compose
from dalenius.losses.gauges import round_down
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate

DIGITS = 9
"""Of the answer, a decimal rounded down."""
MARGIN = Fraction(1, 10**8)
"""How far below the formula's answer a first try is; each further one is twice as far."""


def decision_epsilon(
    noise: Gaussian, failure: Fraction, decisions: int, *, epsilon: Fraction, delta: Fraction
) -> Fraction:
    """About the largest ε₀ such that all together is (epsilon, delta)-private; that it is was evaluated."""
    found, margin = Fraction(_root(noise, failure, decisions, float(epsilon), float(delta))), MARGIN
    while True:
        tried = round_down(found * (1 - margin), DIGITS)
        loss = together(noise, tried, failure, decisions)
        if loss.delta(epsilon).upper <= delta and loss.epsilon(delta).upper <= epsilon:
            return tried
        margin *= 2


def together(noise: Gaussian, epsilon: Fraction, failure: Fraction, decisions: int) -> Loss:
    """The loss of all noise and all decisions."""
    return compose([noise, Approximate(epsilon, delta=failure) * decisions])


def _root(noise: Gaussian, failure: Fraction, decisions: int, epsilon: float, delta: float) -> float:
    """Where the formula meets delta, by halving between nothing and epsilon."""
    mu, low, high = 1 / float(noise.noise_multiplier), epsilon * 1e-9, epsilon
    while high > low * (1 + 1e-12):
        middle = math.sqrt(low * high)
        fits = _delta(mu, middle, float(failure), decisions, epsilon) <= delta
        low, high = (middle, high) if fits else (low, middle)
    return low


def _delta(mu: float, each: float, failure: float, decisions: int, epsilon: float) -> float:
    p = 1 / (1 + math.exp(-each))
    mixed = sum(
        math.comb(decisions, j) * p ** (decisions - j) * (1 - p) ** j
        * _gaussian(mu, epsilon - (decisions - 2 * j) * each)
        for j in range(decisions + 1)
    )  # fmt: skip
    leaked = -math.expm1(decisions * math.log1p(-failure))
    return leaked + (1 - leaked) * mixed


def _gaussian(mu: float, epsilon: float) -> float:
    """H: the profile of a Gaussian."""
    above, below = (epsilon / mu - mu / 2) / math.sqrt(2), (epsilon / mu + mu / 2) / math.sqrt(2)
    return (math.erfc(above) - math.exp(epsilon) * math.erfc(below)) / 2
