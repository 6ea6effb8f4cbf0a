"""How far the data, given all answers, may have drifted from the population they were drawn from.

Theorem (a sharper form of Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi and Shenfeld 2020, who have e^ε − 1
+ 2δ/β). Let S be n independent draws from P, and let what is released of S have the profile δ(ε) where one
record is replaced. With probability at least 1 − β over S and the release π, every query q with values in
[0, 1] that π determines has, for every ε ≥ 0 with v = δ(ε)/β < 1,

    |E[q(S) | π] − q(P)| ≤ x,    x = (e^ε − 1)(1 − x)²/4 + v = 1 − 2(1 − v)/(1 + √(1 + (e^ε − 1)(1 − v))).

Proof. Let q be the worst query for π, or 1 − q where q is too low, a = E[q(S) | π] and b = q(P), and let E
be the event that a − b > x. Draw two records y and z from P and put y in place i of the sample; then z in
its place. For g = q(y)(1 − q(z)) on E, privacy says E g(π with y) ≤ e^ε E g(π with z) + δ. The record that
is not in the sample is independent of π; averaged over i, E[a(1 − b); E] ≤ e^ε E[b(1 − a); E] + δ. For a −
b = x the difference a(1 − b) − e^ε b(1 − a) is least at b = (1 − x)/2, where it is x − (e^ε − 1)(1 − x)²/4,
and this grows with x. So P(E)·(x − (e^ε − 1)(1 − x)²/4) < δ unless P(E) = 0, and P(E) < β for the x above.
∎

At δ = 0 it is tanh(ε/4), and tight: one record that is 1 with odds e^{−ε/2}, in randomized response.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dalenius.arithmetic import workprec
from dalenius.errors import RelationMismatch
from dalenius.losses import renyi
from dalenius.losses.fields import a_loss
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.profiles.balls import BITS, ball, upper

ROUNDS = 24
"""Of a search; wherever it ends, what is evaluated there holds."""


@dataclass(frozen=True)
class Drift:
    """How far expectations may have drifted, and the (ε, δ) by which it was found."""

    size: float
    epsilon: float
    delta: float


def drift(loss: Loss, failure: Number) -> Drift:
    """The theorem, with the best ε found; it fails with probability at most `failure`."""
    loss, rare = of_replacing(loss), numbers.delta(numbers.rate(failure, "failure"), "failure")
    tops = [loss.epsilon(rare * Fraction(1, 10**k)).upper for k in range(7)]
    places = [0.0, *(top for top in tops if 0 < top < math.inf)]
    found = min((at(loss, x, rare) for x in places), key=lambda one: one.size)
    span = max(places)
    if span == 0:
        return found
    near = golden(lambda x: at(loss, x, rare).size, *_around(found.epsilon, span))
    return min(found, at(loss, near, rare), key=lambda one: one.size)


def at(loss: Loss, epsilon: float, failure: Fraction) -> Drift:
    """The theorem at one ε, rounded up."""
    delta = loss.delta(Fraction(epsilon)).upper
    with workprec(BITS):
        rest = 1 - ball(delta) / ball(failure)
        if not rest > 0:
            return Drift(1.0, epsilon, delta)
        size = 1 - 2 * rest / (1 + (1 + ball(epsilon).expm1() * rest).sqrt())
        return Drift(min(upper(size), 1.0), epsilon, delta)


def of_replacing(loss: Loss) -> Loss:
    """The loss, where it is stated for a sample of fixed size of which one record is replaced."""
    if a_loss(loss, "loss").relation != "replace":
        raise RelationMismatch(
            f"A sample has a fixed size, and this loss is for {loss.relation} neighbours.",
            remedy='State the loss for replace, or pass loss.under("replace").',
        )
    return loss


def _around(epsilon: float, span: float) -> tuple[float, float]:
    return (epsilon / 2, 2 * epsilon) if epsilon else (0.0, span / 64)


def golden(cost: Callable[[float], float], low: float, high: float) -> float:
    """Near a least cost between two numbers."""
    return renyi.golden(cost, low, high, rounds=ROUNDS)
