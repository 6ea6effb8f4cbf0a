from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dalenius.errors import InvalidArgument
from dalenius.losses import DiscreteLaplace
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


def divergence(move: tuple[int, ...], scale: float, epsilon: float) -> float:
    """Σ (p − e^ε q)₊ of the joint laws, from the formula of the law."""
    reach = math.ceil(30 * scale)
    first = second = np.ones(1)
    for far in move:
        steps = np.arange(-reach, reach + far + 1)
        p, q = (np.tanh(0.5 / scale) * np.exp(-np.abs(steps - at) / scale) for at in (0, far))
        first, second = np.outer(first, p).ravel(), np.outer(second, q).ravel()
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


@pytest.mark.parametrize(("l0", "l1", "linf"), [(2, 4, 4), (2, 4, 3), (2, 5, 3), (2, 4, 2), (3, 3, 2)])
def test_no_vector_costs_more_than_the_loss_and_the_most_unequal_costs_all_of_it(
    l0: int, l1: int, linf: int
) -> None:
    """Every move within the bounds, of entries in descending order."""
    scale, bound = 1.25, Sensitivity(l0=l0, l1=l1, linf=linf)
    mechanism = Laplace(scale=scale, sensitivity=bound, grid=Grid(0), exact=True)
    moves = [
        tuple(filter(None, move))
        for move in itertools.product(range(linf, -1, -1), repeat=l0)
        if 0 < sum(move) <= l1 and list(move) == sorted(move, reverse=True)
    ]
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        claim = mechanism.loss.delta(epsilon)
        found = {move: divergence(move, scale, epsilon) for move in moves}
        assert max(found.values()) <= claim.upper + 1e-9
        assert found[max(moves)] >= claim.lower - 1e-9


def test_a_vector_with_a_delta_takes_the_noise_of_its_composition() -> None:
    """Not that of one number with the same L1 norm, 100."""
    bound = Sensitivity(l0=100, linf=1)
    found = Laplace.calibrate(epsilon=1, delta=1e-6, sensitivity=bound, grid=Grid(0), exact=True)
    assert found.loss == DiscreteLaplace(found.scale) * 100
    assert 41 < found.scale < 42
    assert found.loss.epsilon(1e-6).upper <= 1
    less = DiscreteLaplace(found.scale * (1 - Fraction(1, 10**6))) * 100
    assert less.epsilon(1e-6).lower > 1


@pytest.mark.parametrize("bound", [Sensitivity(l0=3, linf=2), Sensitivity(l0=3, l1=5, linf=2)])
def test_a_pure_promise_for_a_vector_is_kept_to_the_digit(bound: Sensitivity) -> None:
    found = Laplace.calibrate(epsilon=0.3, sensitivity=bound, grid=Grid(0), exact=True)
    assert found.scale == bound.need("l1") / Fraction(3, 10)
    # Three tenths lie between two floats.
    assert found.loss.epsilon(0).upper == math.nextafter(0.3, 1)


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
