from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from contract import check_audit, check_json, check_law, divergence

from dalenius.errors import InvalidArgument
from dalenius.mechanisms import Gaussian, Laplace
from dalenius.mechanisms.propose_test_release import ProposeTestRelease
from dalenius.privacy.quantized import Grid

WHOLE = Laplace(scale=2, sensitivity=3, grid=Grid(0), exact=True)
EPSILONS = (0.0, 0.1, 0.5, 1.0, 1.5, 2.0, 2.5)


@pytest.mark.parametrize(
    "mechanism",
    [
        ProposeTestRelease.calibrate(epsilon=2, delta=1e-3, sensitivity=1, grid=Grid(0), exact=True),
        ProposeTestRelease(mechanism=WHOLE, test_scale=Fraction(4, 5), threshold=3),
        ProposeTestRelease(
            mechanism=Gaussian(scale=2, sensitivity=1, grid=Grid(-3)), test_scale=1, threshold=4
        ),
    ],
)
def test_contract(mechanism: ProposeTestRelease) -> None:
    check_json(mechanism)
    check_law(mechanism)
    check_audit(mechanism)
    first, second = (mechanism.probabilities(value) for value in mechanism.worst_case())
    assert first is not None
    assert second is not None
    for epsilon in (0.0, 0.5, 1.0):
        found = max(divergence(first, second, epsilon), divergence(second, first, epsilon))
        claim = mechanism.loss.delta(epsilon)
        assert 0.9 * claim.upper < found <= claim.upper + 1e-9


def test_no_neighbours_beat_the_claim() -> None:
    """All distances up to beyond the threshold; values any distance apart where both are unstable."""
    mechanism = ProposeTestRelease(mechanism=WHOLE, test_scale=1, threshold=3)
    near = {(value, d): mechanism.probabilities((value, d)) for value in (0, 1, 3) for d in range(8)}
    far = mechanism.probabilities((1000, 0))
    claims = {epsilon: mechanism.loss.delta(epsilon).upper + 1e-9 for epsilon in EPSILONS}
    pairs = [
        (near[0, d], near[value, e])
        for d in range(8)
        for e in range(8)
        for value in (0, 1, 3)
        if abs(d - e) <= 1 and max(d, e) >= 1
    ]
    pairs.append((near[0, 0], far))
    for first, second in pairs:
        assert first is not None
        assert second is not None
        for epsilon, claim in claims.items():
            assert divergence(first, second, epsilon) <= claim
            assert divergence(second, first, epsilon) <= claim
    assert near[0, 0] is not None
    assert far is not None
    failure = math.exp(-4) / (1 + math.exp(-1))
    assert divergence(near[0, 0], far, 10.0) == pytest.approx(failure)


def test_the_promise_is_that_of_dwork_and_lei() -> None:
    """(2ε, δ) for a test and a release at ε each, and the least threshold for δ."""
    mechanism = ProposeTestRelease.calibrate(epsilon=1, delta=1e-6, sensitivity=1)
    assert mechanism.test_scale == 2
    assert mechanism.scale == 2
    assert mechanism.loss.epsilon(1e-6).upper <= 1
    a = math.exp(-0.5)
    assert a ** (mechanism.threshold + 1) / (1 + a) <= 1e-6 < a**mechanism.threshold / (1 + a)
    assert mechanism.threshold < math.log(1e6) * 2


def test_a_stable_value_is_released_and_an_unstable_one_is_not() -> None:
    mechanism = ProposeTestRelease.calibrate(epsilon=2, delta=1e-9, sensitivity=1, grid=Grid(0), exact=True)
    stable = mechanism.release((50, 10**6))
    assert stable.columns["stable"] == (True,)
    assert stable.low <= stable.value <= stable.high
    unstable = mechanism.release((50, 0))
    assert list(unstable.columns) == list(stable.columns)
    assert unstable.columns["stable"] == (False,)
    assert unstable.value is unstable.low is unstable.high is None


def test_odd_values_are_values_like_others() -> None:
    mechanism = ProposeTestRelease.calibrate(epsilon=2, delta=1e-9, sensitivity=1)
    for value in (float("nan"), float("inf"), -1e300):
        assert len(mechanism.release((value, 10**30))) == 1
        assert mechanism.release((value, -(10**30))).columns["stable"] == (False,)
    assert len(mechanism.release((np.array([1.0, 2.0]), np.int64(0)))) == 2


@pytest.mark.parametrize("bad", [3.0, (1.0, 2.0), (1.0, 2, 3), (1.0, None)])
def test_a_value_comes_with_its_distance(bad: object) -> None:
    mechanism = ProposeTestRelease.calibrate(epsilon=2, delta=1e-9, sensitivity=1)
    with pytest.raises(InvalidArgument):
        mechanism.release(bad)


@pytest.mark.parametrize("name", ["epsilon", "delta", "sensitivity", "test_share"])
@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf")])
def test_bad_parameters_are_refused_by_name(name: str, bad: float) -> None:
    good = {"epsilon": 1, "delta": 1e-6, "sensitivity": 1}
    with pytest.raises(InvalidArgument, match=name):
        ProposeTestRelease.calibrate(**{**good, name: bad})


def test_the_inner_mechanism_adds_noise() -> None:
    with pytest.raises(InvalidArgument):
        ProposeTestRelease(mechanism=1, test_scale=1, threshold=3)
    with pytest.raises(InvalidArgument, match="threshold"):
        ProposeTestRelease(mechanism=WHOLE, test_scale=1, threshold=-1)
