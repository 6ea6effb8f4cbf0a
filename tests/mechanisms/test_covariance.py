from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from contract import ALARM, check_json
from scipy.stats import binom

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses import DiscreteLaplace, Gaussian
from dalenius.mechanisms.covariance import Covariance
from dalenius.mechanisms.products import projected


def correlated(size: int) -> np.ndarray:
    first = np.linspace(-1, 1, size)
    return np.stack([50 + 40 * first, 3 * first**2 + first], axis=1)


def test_calibration_keeps_the_promise() -> None:
    mechanism = Covariance.calibrate(epsilon=1, delta=1e-6, lower=[0, -4], upper=[100, 4])
    check_json(mechanism)
    assert mechanism.loss.epsilon(1e-6).upper <= 1
    assert mechanism.error() is None
    pure = Covariance.calibrate(epsilon=1, delta=0, lower=[0, -4], upper=[100, 4], noise="laplace")
    check_json(pure)
    assert 1 - 1e-12 < pure.loss.epsilon(0).upper <= 1
    whole = DiscreteLaplace(pure.scale / pure.step, sensitivity=int(pure.bound.need("l1") / pure.step))
    assert pure.loss.epsilon(0.01).upper < whole.epsilon(0.01).upper
    less = Covariance.calibrate(epsilon=1, delta=1e-6, lower=[0, -4], upper=[100, 4], noise="laplace")
    assert less.scale < pure.scale and less.loss.epsilon(1e-6).upper <= 1


def test_sensitivity_is_attained_and_never_exceeded() -> None:
    mechanism = Covariance(lower=[0, 0, 0], upper=[1, 2, 3], scale=1, per_unit=2)
    most = 2 ** (2 * mechanism.bits)
    assert (mechanism.bound.l1, mechanism.bound.linf) == (20, 2)
    corners = mechanism.vectors(np.array(list(product((-9, 0.5, 9), repeat=3))))
    norms = np.sqrt((corners.astype(float) ** 2).sum(axis=1))
    assert np.abs(corners).max() == most
    assert 2 * norms.max() / most == pytest.approx(float(mechanism.bound.need("l2")), rel=1e-12)
    assert norms.max() <= math.sqrt(10) * most * (1 + 1e-12)
    base, more = mechanism.worst_case()
    apart = mechanism.totals(mechanism.vectors(more)) - mechanism.totals(mechanism.vectors(base))
    assert apart.tolist() == [2 * most] * 10


def test_the_loss_is_that_of_the_whole_vector() -> None:
    """Dwork, Talwar, Thakurta and Zhang 2014: one Gaussian on the sums of products, at their L2 norm."""
    mechanism = Covariance(lower=[0] * 3, upper=[1] * 3, scale=10)
    assert mechanism.loss.zcdp().upper == pytest.approx(10 / 200)
    assert Gaussian(noise_multiplier=10 / math.sqrt(10)).zcdp().upper == pytest.approx(10 / 200)


def test_released_matrices_are_positive_semidefinite_and_close() -> None:
    table = correlated(4000)
    mechanism = Covariance.calibrate(epsilon=2, delta=1e-5, lower=[0, -4], upper=[100, 4])
    found = mechanism.release(table)
    matrix = found["covariance"].reshape(2, 2)
    assert np.linalg.eigvalsh(matrix).min() >= -1e-9
    assert (matrix == matrix.T).all()
    units = np.outer([50, 4], [50, 4])
    # Noise of scale s on four sums: 8 deviations of it, over 4000 records, thrice, is never reached.
    assert (
        np.abs(matrix - np.cov(table.T, bias=True)).max()
        <= (units * 24 * float(mechanism.scale) / 4000).max()
    )
    assert found.receipt.postprocessing[0].endswith("positive semidefinite matrices")


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_error_bars_hold_each_by_itself(noise: str) -> None:
    """False alarm: 1e-7 for each entry. They are wider than they need be."""
    table = correlated(500)
    truth = np.cov(table.T, bias=True).ravel()
    mechanism = Covariance.calibrate(
        epsilon=3, delta=1e-3 if noise == "gaussian" else 0, lower=[0, -4], upper=[100, 4], noise=noise
    )
    bars = [mechanism.release(table, confidence=0.5) for _ in range(100)]
    for entry in range(4):
        hit = sum(
            bar["covariance_low"][entry] <= truth[entry] <= bar["covariance_high"][entry] for bar in bars
        )
        assert binom.cdf(hit, 100, 0.5) > ALARM
    assert all((bar["covariance_low"] <= bar["covariance"]).all() for bar in bars)


def test_the_projection_is_the_nearest() -> None:
    matrix = np.array([[1.0, 2.0], [2.0, 1.0]])
    nearest = projected(matrix)
    assert nearest == pytest.approx(np.full((2, 2), 1.5))
    assert projected(nearest) == pytest.approx(nearest)


def test_odd_data_give_a_matrix() -> None:
    mechanism = Covariance.calibrate(epsilon=1, delta=1e-6, lower=[0, 0], upper=[1, 1])
    odd = [
        [],
        [[math.nan, 1]],
        [[math.inf, -math.inf]],
        [[1e308, -1e308]],
        [[10**400, 0]],
        [["x", None]],
        [[1]],
    ]
    for table in odd:
        found = mechanism.release(table)
        assert len(found) == 4 and np.isfinite(found["covariance"]).all()
    assert mechanism.totals(mechanism.vectors([[math.nan, 1]])).tolist() == [0] * 6


def test_only_add_remove_is_covered() -> None:
    with pytest.raises(NotSound, match="add_remove"):
        Covariance(lower=[0], upper=[1], scale=1, relation="replace")


@pytest.mark.parametrize(
    "bad",
    [{"scale": 0}, {"lower": [1]}, {"lower": [0, 0]}, {"lower": 0}, {"upper": [math.nan]}, {"bits": 31}],
)
def test_bad_parameters_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        Covariance(**{"lower": [0], "upper": [1], "scale": 1, **bad})


def test_the_shape_of_a_table_is_a_fact_of_the_schema() -> None:
    mechanism = Covariance(lower=[0], upper=[1], scale=1)
    with pytest.raises(InvalidArgument):
        mechanism.release(np.zeros((3, 2)))
