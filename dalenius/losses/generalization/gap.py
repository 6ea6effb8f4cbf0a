"""From a loss and a sample size, how far the sample's value of a query may be from the population's.

The queries are means of numbers in [0, 1] over n independent records, `queries` of them, chosen with sight
of what was released under the loss (one record replaced). With probability at least `confidence` = 1 − β no
|q(S) − q(P)| exceeds the gap. Two theorems are evaluated, and the lesser gap counts.

Max-information (Dwork, Feldman, Hardt, Pitassi, Reingold and Roth 2015), for pure losses. Let φ be the
log-likelihood ratio of (S, π) to independent S and π. log P(π | S) moves by ε with one record, so it is
subgaussian and P(φ > K) ≤ e^{K − 2K²/(nε²)}, which is β₂ at K = (v + √(v² + 8v·log(1/β₂)))/4, v = nε². By
Hoeffding's inequality

    gap = √((log(2·queries/β₁) + K)/(2n)),    β₁ + β₂ = β.

Monitor (Bassily, Nissim, Smith, Steinke, Stemmer and Ullman 2016, with other constants). Suppose a gap
above τ has probability β. Of T independent samples, each with its release, the exponential mechanism with
weights e^{ηn·error} picks a sample, a query and a sign, or nothing, of which the error is 0. With the pick
a sample's release is (ε + 2η, δ)-private for a record. Let A and B be the means over the picks of that
sample of the picked query on its records and on the population. A record and a fresh one may change places:
A ≤ e^{ε+2η}B + δ, and for what is left to 1, u − B ≤ e^{ε+2η}(u − A) + δ, u the chance of the pick. So the
expected error is at most tanh(ε/2 + η) + 2Tδ/(1 + e^{ε+2η}) in all; and it falls short of the greatest by
log(2·queries·T + 1)/(ηn). So

    gap = (tanh(ε/2 + η) + 2Tδ(ε)/(1 + e^{ε+2η}) + log(2·queries·T + 1)/(ηn)) / (1 − (1 − β)^T)

for any ε, η and T. Both are about ε/2 for a large sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dalenius.arithmetic import workprec
from dalenius.losses.generalization.posterior import golden, of_replacing
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.profiles.balls import BITS, ball, upper

SHARES = tuple(Fraction(1, 2**k) for k in range(1, 12))
"""Shares of β that pay for a large likelihood ratio."""
COPIES = (1, 2, 3, 4, 6, 8)
"""T as multiples of 1/β."""


@dataclass(frozen=True)
class Gap:
    """|q(S) − q(P)| of every query is at most `gap`, with probability at least `confidence`."""

    gap: float
    confidence: float
    theorem: str

    def __float__(self) -> float:
        return self.gap


def generalization(loss: Loss, *, size: int, confidence: Number = 0.95, queries: int = 1) -> Gap:
    """The gap of `queries` queries chosen by what was released of a sample of `size` under `loss`."""
    sure = numbers.confidence(confidence)
    many, asked = numbers.count(size, "size"), numbers.count(queries, "queries")
    found, pure = [(1.0, "trivial")], of_replacing(loss).epsilon(0).upper
    for times in COPIES:
        monitor = Monitor(loss, many, 1 - sure, asked, math.ceil(times / (1 - sure)))
        found.append((monitor.least(), "monitor"))
    if pure < math.inf:
        found.append((_max_information(Fraction(pure), many, 1 - sure, asked), "max-information"))
    gap, theorem = min(found)
    return Gap(gap, float(sure), theorem)


def _max_information(epsilon: Fraction, size: int, failure: Fraction, queries: int) -> float:
    with workprec(BITS):
        v = ball(size * epsilon**2)
        ends = []
        for share in SHARES:
            rare = -ball(failure * share).log()
            spread = (v + (v**2 + 8 * v * rare).sqrt()) / 4
            wide = (2 * queries / ball(failure * (1 - share))).log()
            ends.append(upper(((wide + spread) / (2 * size)).sqrt()))
    return min(ends)


@dataclass(frozen=True)
class Monitor:
    """The second theorem, for one T."""

    loss: Loss
    size: int
    failure: Fraction
    queries: int
    copies: int

    def least(self) -> float:
        """With the best ε found."""
        tops = [self.loss.epsilon(self.failure / 10**k).upper for k in range(0, 10, 2)]
        places = [0.0, *(top for top in tops if 0 < top < math.inf)]
        near = min(places, key=self.gap)
        low, high = (near / 2, 2 * near) if near else (0.0, max(places) / 64)
        return min(self.gap(near), self.gap(golden(self.gap, low, high)) if high else math.inf)

    def gap(self, epsilon: float) -> float:
        """At one ε, rounded up; η is about the best, and any serves."""
        delta, options = self.loss.delta(Fraction(epsilon)).upper, 2 * self.queries * self.copies + 1
        eta = math.sqrt(math.log(options) / self.size) * math.cosh(min(epsilon, 50.0) / 2)
        with workprec(BITS):
            grown = ball(epsilon) + 2 * ball(eta)
            error = (grown / 2).tanh() + 2 * self.copies * ball(delta) / (1 + grown.exp())
            short = ball(Fraction(options)).log() / (ball(eta) * self.size)
            seen = 1 - ball(1 - self.failure) ** self.copies
            return upper((error + short) / seen)
