"""Chances below the least float: what may happen is never taken for impossible."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dalenius.losses import Approximate, Gaussian, Laplace, Loss, Mixture, RandomizedResponse

RARE = Fraction(1, 10**200)
LEAST = Fraction(1, 2**1074)


def leak(delta: Fraction) -> Loss:
    return Laplace(1) + Approximate(1, delta=delta)


@pytest.mark.parametrize(
    "loss",
    [
        Mixture([Laplace(1), Approximate(1, delta=RARE)], [1 - RARE, RARE]),
        leak(RARE).poisson(RARE),
        leak(LEAST).poisson(Fraction(1, 4)),
        leak(20 * LEAST).poisson(Fraction(1, 100)),
    ],
)
def test_a_leak_of_any_chance_is_unbounded_without_a_delta(loss: Loss) -> None:
    assert loss.epsilon(0).upper == math.inf and loss.renyi(2).upper == math.inf
    assert loss.delta(5).upper > 0


def test_a_mixture_encloses_a_delta_below_the_least_normal_number() -> None:
    # By mpmath: 1.5886e-333 at ε = 33, and 1.33382106729e-319 at 32.
    mixture = Mixture([Gaussian(1), Laplace(1)], [Fraction(1, 10**100), 1 - Fraction(1, 10**100)])
    assert mixture.delta(33).upper > 0
    bound = mixture.delta(32)
    assert Fraction(bound.lower) <= Fraction("1.33382106729e-319") <= Fraction(bound.upper)


@pytest.mark.parametrize(
    ("loss", "truth"), [(Gaussian(1), 44), (RandomizedResponse(Fraction(1, 2)) * 10_000, 9300)]
)
def test_a_delta_below_the_least_float_has_no_lower_bound_above_the_truth(loss: Loss, truth: int) -> None:
    bound = loss.epsilon(Fraction(1, 10**400))
    assert bound.lower <= truth <= bound.upper
