"""Errors of answers to adaptive queries: by noise, by splitting the sample, and as published."""

from __future__ import annotations

import math
from fractions import Fraction

from dalenius.arithmetic import arb, workprec
from dalenius.losses.generalization.posterior import golden
from dalenius.profiles.balls import BITS, ball, upper


def off(noise: Fraction, queries: int, failure: Fraction) -> float:
    """How far noisy answers are from what is expected of the sample, rounded up: see `planning`."""
    z = normal_tail_point(float(failure) / (2 * queries))
    with workprec(BITS):
        at = ball(z)
        density = (-at * at / 2).exp() / (2 * arb.pi()).sqrt()
        tail = (at / ball(2.0).sqrt()).erfc() / 2
        return upper(ball(noise) * (at + 2 * queries / ball(failure) * (density - at * tail)))


def rough_off(noise: float, queries: int, failure: float) -> float:
    """The same in plain floats, for a search."""
    z, share = normal_tail_point(failure / (2 * queries)), failure / (2 * queries)
    return noise * math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / share


def normal_tail_point(mass: float) -> float:
    """About where a normal law has so much beyond, at least 0."""
    from scipy.special import ndtri

    return max(-float(ndtri(mass)), 0.0)


def splitting(queries: int, size: int, failure: Fraction) -> float:
    """Hoeffding's inequality on a fresh part of the sample for each query; 1 with too few records."""
    part = size // queries
    if part == 0:
        return 1.0
    with workprec(BITS):
        return min(upper(((2 * queries / ball(failure)).log() / (2 * part)).sqrt()), 1.0)


def published(queries: int, size: int, failure: Fraction) -> float:
    """The error by Jung et al. 2020 as published, for Gaussian noise, with the best noise and δ found."""
    from scipy.special import erfcinv

    beta, k = float(failure), queries

    def error(rho: float, delta: float) -> float:
        total = rho * k
        inside = math.sqrt(math.pi * total) / delta
        epsilon = total + 2 * math.sqrt(total * math.log(inside if inside >= math.e else 1 / delta))
        sample = float(erfcinv(delta / k)) / (size * math.sqrt(rho))
        return math.expm1(min(epsilon, 50.0)) + 6 * delta / beta + sample

    def best_rho(log_delta: float) -> float:
        return golden(lambda x: error(math.exp(x), math.exp(log_delta)), math.log(1e-14 / k), math.log(1 / k))

    def least(log_delta: float) -> float:
        return error(math.exp(best_rho(log_delta)), math.exp(log_delta))

    top = math.log(beta / 8)
    return least(golden(least, top - 20, top)) * (1 + 1e-9)
