"""Laplace and Gaussian noise are calibrated for every ε and every size of sensitivity."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest

from dalenius.errors import InvalidArgument
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.loss import Loss
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.laplace_ratio import LEAST, least_ratio
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity

EPSILONS = [1e-9, 1e-4, 1, 1000, 10**6]


def family(ratio: Fraction) -> Loss:
    return DiscreteLaplace(ratio * 7, sensitivity=7)


@pytest.mark.parametrize("epsilon", [*EPSILONS, 999_999])
@pytest.mark.parametrize("delta", [0, 1e-9, 0.5])
def test_the_ratio_is_within_its_range_and_keeps_the_promise(epsilon: float, delta: float) -> None:
    limit, failure = Fraction(str(epsilon)), Fraction(str(delta))
    found = least_ratio(family, epsilon=limit, delta=failure)
    assert LEAST <= found <= (1 + Fraction(1, 10**9)) / limit
    assert family(found).epsilon(failure).upper <= math.nextafter(epsilon, math.inf)
    if found * Fraction(99, 100) > LEAST and delta:
        assert family(found * Fraction(99, 100)).epsilon(failure).upper > epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sensitivity", [1e-50, 1e-12, 1, 1e7, 1e50])
def test_every_sensitivity_has_its_noise(epsilon: float, sensitivity: float) -> None:
    for delta in (0, 1e-6):
        made = Laplace.calibrate(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
        assert made.loss.epsilon(delta).upper <= math.nextafter(epsilon, math.inf)
        assert made.scale <= Fraction(65, 64) * Fraction(str(sensitivity)) / Fraction(str(epsilon))
    normal = Gaussian.calibrate(epsilon=epsilon, delta=1e-6, sensitivity=sensitivity)
    assert normal.loss.epsilon(1e-6).upper <= epsilon
    for law in (made, normal):
        assert math.isfinite(law.release(sensitivity / 2).value)


@pytest.mark.parametrize("sensitivity", [1, Sensitivity(l0=1000, linf=1)])
def test_a_grid_too_fine_for_the_noise_names_the_least_epsilon(sensitivity: Sensitivity | int) -> None:
    with pytest.raises(InvalidArgument, match="epsilon must be at least") as caught:
        Laplace.calibrate(epsilon=1e-9, sensitivity=sensitivity, grid=Grid(-20))
    least = re.search(r"epsilon=([\d.e-]+)", caught.value.remedy)
    assert least is not None
    assert Laplace.calibrate(epsilon=float(least[1]), sensitivity=sensitivity, grid=Grid(-20))


@pytest.mark.parametrize("epsilon", [1e-3, 1, 1000])
def test_a_grid_too_fine_for_the_sensitivity_is_named(epsilon: float) -> None:
    with pytest.raises(InvalidArgument, match="steps of the grid") as caught:
        Laplace.calibrate(epsilon=epsilon, sensitivity=1, grid=Grid(-50))
    assert caught.value.remedy == "Leave grid out, or choose a coarser one."
    assert Laplace.calibrate(epsilon=epsilon, sensitivity=1)
    assert Laplace.calibrate(epsilon=epsilon, sensitivity=1, grid=Grid(-29))


def test_a_gaussian_that_cannot_be_drawn_is_refused_when_it_is_made() -> None:
    with pytest.raises(InvalidArgument, match=r"2\^50 steps") as caught:
        Gaussian(scale=2**20, sensitivity=1, grid=Grid(-40))
    assert caught.value.remedy == "Leave grid out, or choose a coarser one."
    Gaussian(scale=2**20, sensitivity=1).release(0)
    Gaussian(scale=2**20, sensitivity=1, grid=Grid(-30)).release(0)


@pytest.mark.parametrize("scale", [1e-9, 1e15])
def test_a_gaussian_of_a_scale_beyond_all_measure_names_the_scale(scale: float) -> None:
    with pytest.raises(InvalidArgument, match="scale must be from 1e-6 to 1e12 times the sensitivity"):
        Gaussian(scale=scale, sensitivity=1, grid=Grid(0))


def test_a_gaussian_asks_for_a_delta() -> None:
    with pytest.raises(InvalidArgument, match="delta") as caught:
        Gaussian.calibrate(epsilon=1, delta=0, sensitivity=1)
    assert "delta such as 1e-6" in caught.value.remedy
