from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from contract import ALARM, chi_square, divergence
from sizes import slow

from dalenius.errors import InvalidArgument
from dalenius.losses.pure import Pure
from dalenius.mechanisms import Laplace
from dalenius.mechanisms.private_selection import PrivateSelection
from dalenius.mechanisms.propose_test_release import ProposeTestRelease
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity

WHOLE = Laplace(scale=2, sensitivity=3, grid=Grid(0), exact=True)
EPSILONS = (0.0, 0.1, 0.5, 1.0, 1.5, 2.0, 2.5)


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
    vectors = ProposeTestRelease.calibrate(epsilon=2, delta=1e-9, sensitivity=Sensitivity(l0=1, linf=1))
    assert len(vectors.release((np.array([1.0, 2.0]), np.int64(0)))) == 2


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


@pytest.mark.parametrize("units", [2, *slow([5])])
def test_no_group_beats_its_claim(units: int) -> None:
    """The path of distances 0, 0, 1, …, whose first step moves the value by anything."""
    mechanism = ProposeTestRelease(mechanism=WHOLE, test_scale=1, threshold=3)
    first, last = (mechanism.probabilities(value) for value in ((0, 0), (1000, units - 1)))
    assert first is not None
    assert last is not None
    apart = [
        max(divergence(first, last, epsilon), divergence(last, first, epsilon))
        for epsilon in (0.0, 1.0, 2.5, 10.0)
    ]
    claims = [mechanism.loss.group(units).delta(epsilon).upper for epsilon in (0.0, 1.0, 2.5, 10.0)]
    assert all(found <= claim + 1e-9 for found, claim in zip(apart, claims, strict=True))
    # The parts of the composition, each enlarged by itself, claim too little.
    assert mechanism.loss.loss.group(units).delta(10).upper < apart[-1]


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-12), (2, 1e-3), (3.3, 1e-300), (0.7, 0.3)])
def test_a_promise_reads_back(epsilon: float, delta: float) -> None:
    mechanism = ProposeTestRelease.calibrate(epsilon=epsilon, delta=delta, sensitivity=1)
    assert mechanism.loss.epsilon(delta).upper <= epsilon
    assert float(mechanism.scale) == pytest.approx(2 / epsilon, rel=1e-4)


def test_what_cannot_be_evaluated_or_drawn_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="delta"):
        ProposeTestRelease.calibrate(epsilon=1, delta=Fraction(1, 10**301), sensitivity=1)
    with pytest.raises(InvalidArgument, match="test_scale"):
        ProposeTestRelease(mechanism=WHOLE, test_scale=2**51, threshold=3)


def test_in_a_selection_nothing_is_worse_than_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law alone, without its price. False alarm 1e-7."""
    monkeypatch.setattr("dalenius.mechanisms.private_selection.price", lambda *_: Pure(1))
    base = ProposeTestRelease(mechanism=WHOLE, test_scale=1, threshold=3)
    selection = PrivateSelection(base=base, stop=0.2, delta=0.3)
    values = [(0, 4), (1, 3)]
    law = selection.probabilities(values)
    assert law is not None
    assert chi_square(selection.sample(values, 20_000), law) > ALARM
    nothing = sum(m for (_, score), m in zip(law.outcomes, law.masses, strict=True) if score == -math.inf)
    # All of K runs fail: each does with s = (P(Z < 0) + P(Z ≤ 0))/2 = 1/2, and E[s^K] = 0.2s/(1 − 0.8s).
    assert nothing == pytest.approx(0.1 / 0.6)
