from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dalenius.errors import InvalidArgument
from dalenius.mechanisms import Laplace
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity


def test_a_pure_promise_takes_exactly_the_scale_of_the_theorem() -> None:
    mechanism = Laplace.calibrate(epsilon=0.1, sensitivity=1)
    assert mechanism.scale == 10
    assert mechanism.loss.epsilon(0).upper == 0.1


def test_rounding_a_float_onto_the_grid_is_charged() -> None:
    mechanism = Laplace(scale=1, sensitivity=Fraction(1, 3), grid=Grid(-2))
    assert mechanism.loss.epsilon(0).upper == 0.5


def test_values_that_are_no_numbers_behave_like_numbers() -> None:
    mechanism = Laplace(scale=1, sensitivity=Sensitivity(l0=1, linf=1))
    found = mechanism.release(np.array([np.nan, np.inf, -np.inf, 1e300, 0.0]))
    assert len(found) == 5
    assert np.isfinite(found.value).all()
    assert len(mechanism.release(np.array([]))) == 0
    assert np.isfinite(mechanism.release(10**400).value)


def test_error_bars_are_columns() -> None:
    found = Laplace(scale=1, sensitivity=1, grid=Grid(0), exact=True).release(10, name="n")
    assert list(found.columns) == ["n", "n_low", "n_high"]
    assert found.low == found.value - 3
    assert found.receipt.charged == "uncharged"


def test_vectors_are_charged_for_every_entry_that_changes() -> None:
    bound = Sensitivity(l0=4, l1=2)
    exact = Laplace(scale=8, sensitivity=bound, grid=Grid(0), exact=True)
    assert exact.loss.epsilon(0).upper == 0.25
    rounded = Laplace(scale=8, sensitivity=bound, grid=Grid(0))
    assert rounded.loss.epsilon(0).upper == 5 / 8


@pytest.mark.parametrize(
    ("scale", "sensitivity"),
    [(0, 1), (-1, 1), (1, 0), (float("inf"), 1), (1, float("inf")), (float("nan"), 1)],
)
def test_bad_parameters_are_refused(scale: float, sensitivity: float) -> None:
    with pytest.raises(InvalidArgument):
        Laplace(scale=scale, sensitivity=sensitivity)


def test_whole_steps_must_be_integers_by_type() -> None:
    with pytest.raises(InvalidArgument):
        Laplace(scale=1, sensitivity=1, grid=Grid(0), exact=True).release(1.0)


def test_huge_whole_numbers_in_a_list_saturate() -> None:
    mechanism = Laplace(scale=1, sensitivity=Sensitivity(l0=1, linf=1), grid=Grid(0), exact=True)
    assert len(mechanism.release([1, 10**30])) == 2
    assert len(mechanism.release([])) == 0


def test_the_sensitivity_of_one_number_does_not_serve_a_vector() -> None:
    """It would be charged as if one entry could change."""
    for mechanism in (Laplace.calibrate(epsilon=1, sensitivity=1), Laplace(scale=1, sensitivity=1)):
        with pytest.raises(InvalidArgument, match="l0="):
            mechanism.release(np.zeros(3))
    stated = Laplace(scale=1, sensitivity=Sensitivity(l0=3, linf=1))
    assert len(stated.release(np.zeros(3))) == 3


@pytest.mark.parametrize("confidence", [0, 1, 1.5])
def test_a_bad_confidence_is_refused_by_its_name(confidence: float) -> None:
    with pytest.raises(InvalidArgument, match="confidence"):
        Laplace(scale=1, sensitivity=1).release(1, confidence=confidence)
