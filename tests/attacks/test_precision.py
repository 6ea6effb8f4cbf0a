"""Noise of doubles gives its input away; noise in whole steps does not."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dalenius.attacks.precision import by_addition, by_logarithm, impossible, precision_attack
from dalenius.errors import InvalidArgument
from dalenius.mechanisms import DiscreteGaussian, Gaussian, Laplace
from dalenius.mechanisms.mechanism import Mechanism

Sample = Callable[[float, int], NDArray[np.float64]]
doubles = st.floats(-1e6, 1e6)


def numpy_laplace(value: float, size: int) -> NDArray[np.float64]:
    return value + np.random.default_rng().laplace(0, 1, size)


def numpy_gaussian(value: float, size: int) -> NDArray[np.float64]:
    return value + np.random.default_rng().normal(0, 4, size)


def textbook(value: float, size: int) -> NDArray[np.float64]:
    chance = np.random.default_rng()
    units = chance.integers(1, 2**53, size).tolist()
    signs = chance.choice([-1.0, 1.0], size).tolist()
    return np.array([value + s * (1.0 * math.log(u / 2**53)) for s, u in zip(signs, units, strict=True)])


@pytest.mark.parametrize("sample", [numpy_laplace, numpy_gaussian])
def test_noise_of_doubles_is_told_apart_almost_always(sample: Sample) -> None:
    """A sixth or more of the outputs are impossible on 1, so one in 40 is. False alarms: below 1e-9."""
    found = precision_attack(sample, outputs=40, trials=400)
    assert found.success > 0.9
    assert found.details["impossible_on_neighbor"] > 0.05


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace.calibrate(epsilon=1, sensitivity=1),
        Gaussian.calibrate(epsilon=1, delta=1e-5, sensitivity=1),
    ],
    ids=lambda mechanism: mechanism.kind,
)
@pytest.mark.parametrize("pair", [(0.0, 1.0), (0.25, 1.25), (1000.0, 999.0)])
def test_every_output_of_noise_in_whole_steps_is_possible_on_the_neighbor(
    mechanism: Mechanism, pair: tuple[float, float]
) -> None:
    found = precision_attack(mechanism.sample, value=pair[0], neighbor=pair[1], trials=400)
    shares = [found.details[f"impossible_on_{which}"] for which in ("value", "neighbor", "itself")]
    assert shares == [0, 0, 0] and found.success == 0.5


def test_a_sampler_that_does_not_add_doubles_is_not_accused() -> None:
    """0.3 is on no grid: outputs in whole steps are not 0.3 plus a double, which tells nothing."""
    mechanism = Gaussian.calibrate(epsilon=1, delta=1e-5, sensitivity=1)
    found = precision_attack(mechanism.sample, value=0.3, neighbor=1.3, trials=400)
    assert found.details["impossible_on_itself"] > 0 and found.success == 0.5


def test_a_mechanism_of_whole_numbers_is_given_whole_numbers() -> None:
    mechanism = DiscreteGaussian.calibrate(epsilon=1, delta=1e-5, sensitivity=1)
    assert precision_attack(mechanism.sample, value=3, neighbor=4, trials=40).success == 0.5


def test_the_loss_is_that_of_all_outputs_of_a_trial() -> None:
    loss = Gaussian.calibrate(epsilon=1, delta=1e-5, sensitivity=1).loss
    assert (
        precision_attack(numpy_laplace, trials=40, outputs=3, loss=loss).bound == (loss * 3).advantage().upper
    )


@given(value=doubles, noise=doubles)
def test_a_sum_is_never_called_impossible(value: float, noise: float) -> None:
    assert by_addition(np.array([value + noise]), value).all()


@given(exponent=st.integers(-60, 20), near=st.integers(-2, 2), value=doubles)
def test_a_sum_next_to_a_power_of_two_is_never_called_impossible(
    exponent: int, near: int, value: float
) -> None:
    noise = 2.0**exponent - value + near * math.ulp(2.0**exponent)
    assert by_addition(np.array([value + noise]), value).all()


def test_a_power_of_two_may_be_reached_by_the_double_next_to_the_difference() -> None:
    value, noise = float.fromhex("-0x1.0832353216420p-6"), float.fromhex("0x1.0420c8d4c8591p+0")
    assert value + noise == 1.0 and value + (1.0 - value) != 1.0
    assert by_addition(np.array([1.0]), value).all()


def test_an_output_called_impossible_is_no_sum() -> None:
    """2⁻⁶⁰ is nearer to 1 + n for no double n than 2⁻⁵³: all within reach are tried."""
    tiny = 2.0**-60
    assert impossible(np.array([tiny, 0.5, 2.0**-53]), 1.0).tolist() == [tiny]
    start = np.nextafter(-1.0, -2.0)
    assert all(1.0 + n != tiny for n in (start, -1.0, np.nextafter(-1.0, 0), np.nextafter(start, -2.0)))


def test_the_textbook_laplace_is_told_apart_where_addition_shows_nothing() -> None:
    """Near inputs: addition finds next to nothing, the grid of the uniform does. False alarms: below 1e-9."""
    near = {"value": 0.0, "neighbor": 2.0**-10, "trials": 200}
    found = precision_attack(textbook, reaches=by_logarithm(1.0), **near)
    assert found.success > 0.9 and found.details["impossible_on_neighbor"] > 0.3
    assert precision_attack(textbook, **near).details["impossible_on_neighbor"] < 0.05


@pytest.mark.parametrize("value", [0.0, 1.0, -3.7])
def test_the_textbook_laplace_reaches_its_own_outputs(value: float) -> None:
    assert len(impossible(textbook(value, 2_000), value, reaches=by_logarithm(1.0))) == 0


def test_a_sampler_that_gives_too_few_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="as many numbers"):
        precision_attack(lambda value, size: np.zeros(3))
