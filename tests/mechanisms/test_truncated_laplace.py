from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from contract import divergence

from dalenius.errors import InvalidArgument
from dalenius.mechanisms.mechanism import Law
from dalenius.mechanisms.truncated_laplace import TruncatedLaplace
from dalenius.privacy.sensitivity import Sensitivity


def law(scale: float, bound: int, at: int = 0) -> Law:
    weights = [math.exp(-abs(k) / scale) for k in range(-bound, bound + 1)]
    total = math.fsum(weights)
    return Law(tuple(range(at - bound, at + bound + 1)), np.array([w / total for w in weights]))


def test_no_shift_costs_more_than_the_loss_and_the_largest_costs_all_of_it() -> None:
    for scale, far, more in itertools.product((0.5, 2.0, 9.0), (1, 2, 5), (0, 3)):
        mechanism = TruncatedLaplace(scale=scale, bound=far + more, sensitivity=far)
        here = law(scale, far + more)
        for epsilon in (0.0, 0.1, far / scale, 2 * far / scale):
            claim = mechanism.loss.delta(epsilon)
            found = [divergence(here, law(scale, far + more, d), epsilon) for d in range(1, far + 1)]
            assert max(found) <= claim.upper + 1e-12
            assert found[-1] >= claim.lower - 1e-12


@pytest.mark.parametrize(
    ("epsilon", "delta", "far"), [(1, 1e-5, 1), (0.1, 1e-6, 5), (2, 0.1, 3), (0.01, 0.2, 1)]
)
def test_the_bound_is_the_least_that_keeps_the_promise(epsilon: float, delta: float, far: int) -> None:
    found = TruncatedLaplace.calibrate(epsilon=epsilon, delta=delta, sensitivity=far)
    assert found.loss.epsilon(delta).upper <= epsilon
    assert found.loss.delta(epsilon).upper <= delta
    # Geng, Ding, Guo and Kumar 2020: the bound of the continuous law.
    continuous = far / epsilon * math.log1p(math.expm1(epsilon) / (2 * delta))
    assert abs(float(found.bound) - max(continuous, far)) <= 1 + far
    if found.bound > far:
        shorter = TruncatedLaplace(scale=found.scale, bound=found.bound - 1, sensitivity=far)
        assert shorter.loss.delta(epsilon).lower > delta


def test_every_entry_of_a_vector_is_charged() -> None:
    bound = Sensitivity(l0=3, linf=2)
    found = TruncatedLaplace.calibrate(epsilon=1, delta=1e-6, sensitivity=bound)
    assert found.scale == 6
    assert found.loss.epsilon(1e-6).upper <= 1


def test_noise_never_exceeds_the_bound_and_the_bar_ends_there() -> None:
    mechanism = TruncatedLaplace(scale=50, bound=3, sensitivity=1)
    assert set(mechanism.sample(10, 5000).tolist()) == set(range(7, 14))
    assert mechanism.error(1e-12) == 3
    assert mechanism.beyond(2) == pytest.approx(float(2 * mechanism.masses(np.array([3]))[0]), rel=1e-8)


def test_floats_and_odd_values() -> None:
    bound = Sensitivity(l0=1, linf=1)
    mechanism = TruncatedLaplace.calibrate(epsilon=1, delta=1e-5, sensitivity=bound, exact=False)
    found = mechanism.release(np.array([np.nan, np.inf, -np.inf, 1e300]))
    assert np.isfinite(found.value).all()
    assert float(mechanism.bound) == pytest.approx(11.36, abs=0.02)
    assert len(mechanism.release(np.array([]))) == 0


def test_beyond_the_list_the_loss_is_stated_as_epsilon_and_delta() -> None:
    wide = TruncatedLaplace.calibrate(epsilon=1, delta=1e-5, sensitivity=1000)
    assert wide.loss.epsilon(1e-5).upper <= 1
    assert float(wide.bound) == pytest.approx(11361, abs=2)


@pytest.mark.parametrize(
    ("scale", "bound", "far"),
    [(0, 5, 1), (-1, 5, 1), (float("nan"), 5, 1), (float("inf"), 5, 1), (1, 0, 1), (1, 1, 2), (1, 5, 0)],
)
def test_bad_parameters_are_refused(scale: float, bound: float, far: float) -> None:
    with pytest.raises(InvalidArgument):
        TruncatedLaplace(scale=scale, bound=bound, sensitivity=far)
