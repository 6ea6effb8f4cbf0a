"""A plan for adaptive queries on a holdout: how much Gaussian noise, and how near the answers are.

Each of k queries, the mean over n records of a number in [0, 1], is chosen with sight of all earlier
answers and answered with noise N(0, σ²): for one record that is replaced this is GaussianDP(1/(nσ)) each.
Its answers are off from the population's value by at most error = a + b with probability at least 1 − β₁ −
β₂; it exceeds 1 where noise does, as answers are not clipped:

    a = σ(z + (2k/β₁)(φ(z) − z·Φ(−z))) for any z ≥ 0, at z = Φ⁻¹(1 − β₁/2k) σφ(z)/Φ(−z): how far answers are
        from what is expected of the sample given all answers. Jung et al. 2020 resample the data given the
        answers; here |answer − E[q(S) | π]| ≤ zσ + E[Σ (|noise| − zσ)₊ | π], and Markov's inequality bounds
        the last.
    b   how far those expectations are from the population's, by `posterior`.

`splitting` is the error of a fresh part of the holdout for each query, by Hoeffding's inequality: no noise,
n/k records. `published` is the error by the theorem of Jung et al. as published, α + e^ε − 1 + c + 2d at β
= β′/c + δ/d, with their choices β′ = δ, c = d and conversion from concentrated privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dalenius.losses.gaussian import GaussianDP
from dalenius.losses.generalization.answers import off, published, rough_off, splitting
from dalenius.losses.generalization.posterior import drift, golden
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Shares of β that pay for large noise."""


@dataclass(frozen=True)
class Plan:
    """Answers to `queries` queries with noise of standard deviation `noise` are within `error`."""

    queries: int
    size: int
    confidence: float
    noise: float
    error: float
    splitting: float
    published: float
    loss: Loss

    @property
    def worthwhile(self) -> bool:
        """Whether reusing the holdout is nearer than splitting it."""
        return self.error < self.splitting


def plan(*, queries: int, size: int, confidence: Number = 0.95) -> Plan:
    """The noise for `queries` adaptive queries on a holdout of `size` of which the error bound is least."""
    asked, many = numbers.count(queries, "queries"), numbers.count(size, "size")
    failure = 1 - numbers.confidence(confidence)
    _, noise, share = min(_rough(asked, many, float(failure), share) for share in SHARES)
    scale = Fraction(f"{noise:.4g}")
    loss = GaussianDP(1 / (many * scale), relation="replace") * asked
    rare = failure * numbers.exact(share, "share")
    error = off(scale, asked, rare) + drift(loss, failure - rare).size
    return Plan(
        queries=asked,
        size=many,
        confidence=float(1 - failure),
        noise=float(scale),
        error=error * (1 + 2**-50),
        splitting=splitting(asked, many, failure),
        published=published(asked, many, failure),
        loss=loss,
    )


def most_queries(*, size: int, error: Number, confidence: Number = 0.95) -> int:
    """How many adaptive queries a plan keeps within `error`; 0 where not even one."""
    wanted = numbers.delta(error, "error")

    def fits(queries: int) -> bool:
        if queries > numbers.MOST_STEPS:
            return False
        return plan(queries=queries, size=size, confidence=confidence).error <= wanted

    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _rough(queries: int, size: int, failure: float, share: float) -> tuple[float, float, float]:
    """The least error in plain floats, its noise, and the share of the failure that large noise has."""

    def error(log_noise: float) -> float:
        noise = math.exp(log_noise)
        mu = math.sqrt(queries) / (size * noise)
        return rough_off(noise, queries, failure * share) + _rough_drift(mu, failure * (1 - share))

    balanced = math.log(math.sqrt(math.sqrt(queries) / size))
    best = golden(error, balanced - 6, balanced + 3)
    return error(best), math.exp(best), share


def _rough_drift(mu: float, failure: float) -> float:
    def at(epsilon: float) -> float:
        tails = [math.erfc((epsilon / mu + side * mu / 2) / math.sqrt(2)) / 2 for side in (-1, 1)]
        delta = max(tails[0] - math.exp(epsilon) * tails[1], 0.0)
        rest = max(1 - delta / failure, 0.0)
        return 1 - 2 * rest / (1 + math.sqrt(1 + math.expm1(epsilon) * rest))

    return at(golden(at, 0.0, min(8 * mu + mu * mu, 40.0))) if mu < 30 else 1.0
