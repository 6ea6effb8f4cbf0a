from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from contract import ALARM, check_error
from scipy.special import ive

from dalenius.audits import audit
from dalenius.errors import InvalidArgument
from dalenius.losses import Skellam as Scalar
from dalenius.losses import ZeroConcentrated
from dalenius.mechanisms.skellam import Skellam
from dalenius.mechanisms.skellam_concentration import concentration
from dalenius.privacy.sensitivity import Sensitivity


def test_the_claim_for_vectors_withstands_an_attack() -> None:
    """False-alarm rate 1e-7."""
    mechanism = Skellam(scale=1.5, sensitivity=Sensitivity(l0=2, linf=1))
    assert [np.size(value) for value in mechanism.worst_case()] == [2, 2]
    assert audit(mechanism, trials=40_000, confidence=1 - ALARM).holds
    check_error(mechanism)


def moment(variance: float, shift: int, order: float) -> float:
    """log Σ p (p/q)^order, from the Bessel functions of another library."""
    x = np.arange(-60 - shift, 61 + shift)
    p, q = np.log(ive(np.abs(x), variance)), np.log(ive(np.abs(x - shift), variance))
    return math.log(float(np.exp(p + order * (p - q)).sum()))


@pytest.mark.parametrize("variance", [1.0, 4.0, 12.0])
def test_every_shift_is_as_concentrated_as_claimed(variance: float) -> None:
    rho = float(concentration(Fraction(variance)))
    assert rho < 1.06 / (2 * variance)
    for shift, order in itertools.product((1, 2, 5), (0.01, 0.3, 1.0, 2.5, 6.0)):
        assert moment(variance, shift, order) <= shift**2 * rho * order * (order + 1)


@pytest.mark.parametrize("variance", [Fraction(1, 10), 1, 30, 1000])
def test_the_concentration_is_near_the_largest_found(variance: int | Fraction) -> None:
    found = float(concentration(Fraction(variance)))
    assert found >= Scalar(variance).zcdp().lower
    assert found <= 1.002 * max(Scalar(variance).zcdp().lower, 1 / (2 * variance))


def test_it_is_below_the_bound_of_the_paper() -> None:
    """Agarwal, Kairouz and Liu 2021: αΔ²/(2v) + min(((2α−1)Δ² + 6Δ)/(4v²), 3Δ/(2v)) at whole orders α."""
    for variance, alpha in itertools.product((1, 10, 100), (2, 3, 10, 50)):
        paper = alpha / (2 * variance) + min((2 * alpha + 5) / (4 * variance**2), 3 / (2 * variance))
        assert alpha * float(concentration(Fraction(variance))) <= paper


def test_a_ball_is_charged_by_its_norm_and_a_histogram_exactly() -> None:
    assert Skellam(scale=5, sensitivity=Sensitivity(l0=4, linf=1)).loss == Scalar(25) * 4
    ball = Skellam(scale=5, sensitivity=Sensitivity(l2=3)).loss
    assert ball == ZeroConcentrated(9 * concentration(Fraction(25)))


def test_no_vector_in_the_ball_costs_more_than_the_loss() -> None:
    loss = Skellam(scale=2, sensitivity=Sensitivity(l2=2)).loss
    x = np.arange(-40, 41)
    one = ive(np.abs(x), 4.0), ive(np.abs(x - 1), 4.0)
    two = ive(np.abs(x), 4.0), ive(np.abs(x - 2), 4.0)
    pairs = [two, tuple(np.multiply.outer(side, side).ravel() for side in one)]
    for (p, q), epsilon in itertools.product(pairs, (0.0, 0.5, 2.0)):
        assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= loss.delta(epsilon).upper


@pytest.mark.parametrize("bound", [1, Sensitivity(l2=3)])
def test_calibration_keeps_the_promise_and_little_less_does_not(bound: Sensitivity | int) -> None:
    found = Skellam.calibrate(epsilon=1, delta=1e-5, sensitivity=bound)
    assert found.loss.epsilon(1e-5).upper <= 1
    assert Skellam(scale=found.scale * 0.999, sensitivity=bound).loss.delta(1).upper > 1e-5


def test_odd_values_take_the_same_path() -> None:
    found = Skellam(scale=2, sensitivity=Sensitivity(l0=1, linf=1), exact=False).release(
        np.array([np.nan, np.inf, -1e300])
    )
    assert np.isfinite(found.value).all()
    assert len(Skellam(scale=2, sensitivity=Sensitivity(l0=1, linf=1)).release(np.array([], dtype=int))) == 0


@pytest.mark.parametrize("scale", [0, -1, float("inf"), float("nan"), 1e5])
def test_bad_parameters_are_refused(scale: float) -> None:
    with pytest.raises(InvalidArgument):
        Skellam(scale=scale, sensitivity=1)
