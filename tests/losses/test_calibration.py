"""Calibration keeps the promise, and a little less noise would break it."""

from __future__ import annotations

from fractions import Fraction

import flint
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument
from dalenius.losses import Gaussian, Laplace, Pure, calibrate
from tests.profiles.truth import gaussian, number

PROMISES = [
    (3, 1e-5, Fraction(256, 60000), 14_062),
    (1, 1e-6, Fraction(1, 100), 1000),
    (0.1, 1e-10, Fraction(1, 1000), 50),
    (8, 1e-15, Fraction(1, 2), 20),
    (2, 1e-7, Fraction(1, 50), 1),
    (0.5, 1e-5, Fraction(1), 100),
]
LESS = 1 - Fraction(1, 10**8)


@pytest.mark.parametrize(("epsilon", "delta", "rate", "steps"), PROMISES)
def test_the_promise_is_kept_and_barely(epsilon: float, delta: float, rate: Fraction, steps: int) -> None:
    found = Gaussian.calibrate(epsilon=epsilon, delta=delta, sampling_rate=rate, steps=steps)
    noise = found.noise_multiplier
    assert (found.poisson(rate) * steps).epsilon(delta).upper <= epsilon
    assert (found.poisson(rate) * steps).delta(epsilon).upper <= delta
    less = Gaussian(noise * LESS).poisson(rate) * steps
    assert less.delta(epsilon).lower > delta
    assert less.epsilon(delta).lower > epsilon


@settings(max_examples=15)
@given(st.floats(0.01, 20), st.floats(-12, -2))
def test_one_gaussian_meets_the_closed_form(epsilon: float, power: float) -> None:
    """Balle and Wang 2018, Theorem 8."""
    delta = float(f"{10**power:.3g}")
    noise = Gaussian.calibrate(epsilon=epsilon, delta=delta).noise_multiplier
    with flint.ctx.workprec(1000):
        e, d, distance = number(repr(epsilon)), number(repr(delta)), 1 / number(str(noise))
        assert gaussian(distance, e) <= d
        assert gaussian(distance / (1 - arb("1e-8")), e) > d


def test_any_family_can_be_calibrated() -> None:
    scale = calibrate(lambda s: Laplace(s) * 10, epsilon=1, delta=1e-6)
    assert (Laplace(scale) * 10).delta(1).upper <= 1e-6
    assert (Laplace(scale * (1 - Fraction(1, 10**4))) * 10).delta(1).lower > 1e-6


def test_pure_losses_are_calibrated_without_delta() -> None:
    scale = calibrate(lambda s: Pure(1 / s) * 10, epsilon=1, delta=0)
    assert (Pure(1 / scale) * 10).epsilon(0).upper <= 1
    assert 10 <= scale <= 10 * (1 + Fraction(1, 10**8))


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1e-5), (-1, 1e-5), (1, 1), (1, -0.1), (1, float("nan"))])
def test_a_promise_that_is_none_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidArgument):
        Gaussian.calibrate(epsilon=epsilon, delta=delta)


def test_a_promise_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="noise_multiplier"):
        Gaussian.calibrate(epsilon=1, delta=0)
