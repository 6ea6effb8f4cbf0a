"""The trade-off curve: encloses the closed form where there is one, and agrees with δ(ε) everywhere."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import flint
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.losses import Gaussian, GaussianDP, Loss, Pure
from tests.profiles.truth import number, tail


def quantile(probability: arb) -> arb:
    """x with Φ(−x) = probability, by bisection."""
    low, high = arb(-40), arb(40)
    for _ in range(160):
        middle = ((low + high) / 2).mid()
        low, high = (middle, high) if tail(middle) > probability else (low, middle)
    return low


@settings(max_examples=25)
@given(st.floats(-1, 1).map(lambda p: f"{10**p:.4g}"), st.floats(-9, -0.001).map(lambda p: f"{10**p:.4g}"))
def test_a_gaussian_has_the_curve_of_dong_roth_and_su(mu: str, fpr: str) -> None:
    """Dong, Roth and Su 2022, Equation 6: f(α) = Φ(Φ⁻¹(1 − α) − μ)."""
    bound = GaussianDP(Fraction(mu)).tradeoff(Fraction(fpr))
    with flint.ctx.workprec(200):
        truth = tail(number(mu) - quantile(number(fpr)))
        assert arb(bound.lower) <= truth <= arb(bound.upper), (bound, truth.str(20))
    assert bound.width <= 1e-3 or float(mu) > 3
    assert bound.safe == bound.lower


@given(st.floats(0.01, 5), st.floats(1e-9, 0.999))
def test_a_pure_loss_has_two_lines(epsilon: float, fpr: float) -> None:
    """Wasserman and Zhou 2010: f(α) = max(1 − e^ε α, e^−ε (1 − α))."""
    bound = Pure(epsilon).tradeoff(fpr)
    with flint.ctx.workprec(200):
        e, a = number(repr(epsilon)), number(repr(fpr))
        truth = (1 - e.exp() * a).max((-e).exp() * (1 - a)).max(arb(0))
        assert arb(bound.lower) <= truth <= arb(bound.upper), (bound, truth.str(20))


LOSSES = {
    "many": Gaussian(4).poisson(0.01) * 10_000,
    "mixed": Gaussian(1).poisson(0.1) * 10 + Gaussian(3),
    "costly": Gaussian(0.7).poisson(0.3) * 40,
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_no_point_lies_above_what_delta_allows(loss: Loss) -> None:
    """Every test has FNR ≥ 1 − δ(ε) − e^ε FPR, and the curve is that bound's supremum."""
    for fpr in (1e-6, 1e-3, 0.05, 0.5, 0.9):
        bound = loss.tradeoff(fpr)
        assert 0 <= bound.lower <= bound.upper <= 1 - fpr + 1e-15
        for epsilon in np.linspace(0, loss.epsilon(1e-8).upper, 7).tolist():
            below = 1 - loss.delta(epsilon).upper - math.exp(epsilon) * fpr
            assert bound.upper >= below - 1e-12
        assert bound.width <= 1e-3


@pytest.mark.slow
def test_few_steps_have_a_curve_too() -> None:
    """Jumps make corners, where only the safe side is sharp: no ε may ask for more than it says."""
    loss = Gaussian(1).poisson(0.01) * 5
    for fpr in (0.001, 0.05, 0.5):
        bound = loss.tradeoff(fpr)
        assert 0 <= bound.lower <= bound.upper <= 1 - fpr + 1e-15
        for epsilon in (0.0, 0.01, 0.1, 1.0):
            least = 1 - loss.delta(epsilon).upper - math.exp(epsilon) * fpr
            assert bound.upper >= least - 1e-12
            assert bound.lower >= least - 1e-4


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_the_curve_falls_and_is_convex(loss: Loss) -> None:
    at = np.linspace(0.01, 0.97, 13)
    bounds = [loss.tradeoff(float(a)) for a in at]
    for one, two in pairwise(bounds):
        assert two.lower <= one.upper
    for one, two, three in zip(bounds, bounds[1:], bounds[2:], strict=False):
        assert two.lower <= (one.upper + three.upper) / 2


@pytest.mark.slow
def test_the_ends_are_known() -> None:
    assert Gaussian(1).tradeoff(1).upper == 0
    assert Gaussian(1).tradeoff(0).upper == 1
    assert Gaussian(1).tradeoff(0).lower >= 0.9
