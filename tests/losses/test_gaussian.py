"""Pairs of Gaussians: divergence and moments are enclosed, in both directions."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.losses import Gaussian, GaussianDP
from dalenius.profiles.gaussian_pairs import MixturePair, ShiftPair
from tests.profiles.truth import Case, abscissae, added, gaussian, number, removed

rates = st.floats(-5, -0.01).map(lambda power: f"{10**power:.5g}")
noises = st.floats(-2.3, 1.7).map(lambda power: f"{10**power:.5g}")
epsilons = st.one_of(st.floats(-6, 3).map(lambda power: 10**power), st.floats(0, 3).map(lambda p: -(10**p)))


def pairs(q: str, sigma: str) -> tuple[MixturePair, MixturePair]:
    distance, rate = 1 / Fraction(sigma), Fraction(q)
    pair = MixturePair(((Fraction(0), 1 - rate), (distance, rate)))
    return pair, pair.reversed()


def inside(truth: arb, low: float, high: float) -> bool:
    return not truth < arb(float(low)) and not truth > arb(float(high))


@settings(max_examples=100)
@given(rates, noises, st.lists(epsilons, min_size=1, max_size=4))
def test_divergence_of_a_mixture_is_enclosed(q: str, sigma: str, at: list[float]) -> None:
    case = Case(q, sigma, 1, "0")
    for pair, truth in zip(pairs(q, sigma), (removed, added), strict=True):
        low, high = pair.hockey(np.array(at))
        with flint.ctx.workprec(4000):
            for epsilon, one, two in zip(at, low, high, strict=True):
                value = truth(case, arb(epsilon))
                assert inside(value, one, two), (epsilon, one, two, value.str(20))


@settings(max_examples=100)
@given(noises, st.lists(epsilons, min_size=1, max_size=4))
def test_divergence_of_a_shift_is_enclosed(sigma: str, at: list[float]) -> None:
    low, high = ShiftPair(1 / Fraction(sigma)).hockey(np.array(at))
    with flint.ctx.workprec(4000):
        for epsilon, one, two in zip(at, low, high, strict=True):
            value = gaussian(1 / number(sigma), arb(epsilon))
            assert inside(value, one, two), (epsilon, one, two, value.str(20))


@pytest.mark.parametrize(
    ("q", "sigma", "epsilon", "least"),
    [("4.054e-4", "0.02905", 713.5, 3.3e-8), ("0.001", "0.025", 900, 3.4e-6), ("0.01", "0.03", 715, 3.5e-9)],
)
def test_losses_beyond_the_range_of_exp_are_not_lost(
    q: str, sigma: str, epsilon: float, least: float
) -> None:
    """e^ε overflows a float, and yet δ(ε) is far from zero."""
    loss = Gaussian(noise_multiplier=Fraction(sigma)).poisson(Fraction(q))
    bound = loss.delta(epsilon)
    with flint.ctx.workprec(4000):
        truth = removed(Case(q, sigma, 1, "0"), arb(epsilon))
        assert truth > arb(least) and inside(truth, bound.lower, bound.upper), bound
    assert loss.epsilon(least).upper >= epsilon


def moment(case: Case, s: arb, step: Fraction) -> arb:
    """log ∫ φ wˢ by the trapezoid rule on a wide range."""
    far = 18 + max(0.0, float(s)) * float(case.shift)
    log, base = abscissae(case, step, -18.0, far)
    return sum(((b + s * v).exp() for v, b in zip(log, base, strict=True)), arb(0)).log()


@settings(max_examples=12)
@given(rates, st.floats(-0.3, 1.3).map(lambda p: f"{10**p:.4g}"), st.floats(-3, 1.5).map(lambda p: 10**p))
def test_moments_of_a_mixture_are_enclosed(q: str, sigma: str, order: float) -> None:
    case = Case(q, sigma, 1, "0")
    for pair, s in zip(pairs(q, sigma), (1 + order, -order), strict=True):
        low, high = pair.log_moment(order)
        with flint.ctx.workprec(160):
            exponent = arb(1) + arb(order) if s > 0 else -arb(order)
            step = Fraction(1, 16 * math.ceil(float(case.shift)))
            value = moment(case, exponent, step)
            assert abs(value - moment(case, exponent, step / 2)) < arb("1e-28")
            assert inside(value, low, high), (order, low, high, value.str(20))
            assert high - low <= 1e-6 * high + 1e-12 or high > 650


@given(rates, st.floats(-0.3, 1.3).map(lambda p: f"{10**p:.4g}"), st.integers(2, 60))
def test_moments_of_whole_order_are_binomial_sums(q: str, sigma: str, alpha: int) -> None:
    """Mironov, Talwar and Zhang 2019, Section 3.3."""
    low, high = pairs(q, sigma)[0].log_moment(alpha - 1.0)
    with flint.ctx.workprec(300):
        rate, shift = number(q), 1 / number(sigma)
        value = sum(
            (
                math.comb(alpha, k) * (1 - rate) ** (alpha - k) * rate**k * (shift**2 * k * (k - 1) / 2).exp()
                for k in range(alpha + 1)
            ),
            arb(0),
        ).log()
        assert inside(value, low, high)


@given(noises, st.floats(1e-3, 100))
def test_moments_of_a_shift_are_enclosed(sigma: str, order: float) -> None:
    low, high = ShiftPair(1 / Fraction(sigma)).log_moment(order)
    with flint.ctx.workprec(200):
        assert inside(arb(order) * (arb(order) + 1) / number(sigma) ** 2 / 2, low, high)


@settings(max_examples=30)
@given(st.floats(0, 2).map(lambda p: f"{10**p:.4g}"), st.integers(1, 1000), st.floats(-30, -2))
def test_gaussians_compose_to_a_gaussian(sigma: str, steps: int, power: float) -> None:
    """Dong, Roth and Su 2022, Corollary 3.3; without sampling, Poisson at rate 1 is the same."""
    delta = Fraction(f"{10**power:.3g}")
    bound = (Gaussian(noise_multiplier=Fraction(sigma)) * steps).epsilon(delta)
    assert bound == (Gaussian(noise_multiplier=Fraction(sigma)).poisson(1) * steps).epsilon(delta)
    with flint.ctx.workprec(3000):
        distance = number(steps).sqrt() / number(sigma)
        wanted = number(str(delta))
        assert gaussian(distance, arb(bound.upper)) <= wanted
        assert bound.lower == 0 or gaussian(distance, arb(bound.lower)) >= wanted
    assert bound.width <= 1e-12 * bound.upper


def test_a_group_has_a_multiple_of_the_distance() -> None:
    assert GaussianDP(0.5).group(4).epsilon(1e-6) == GaussianDP(2).epsilon(1e-6)
    assert Gaussian(4).group(4).epsilon(1e-6) == Gaussian(1).epsilon(1e-6)
