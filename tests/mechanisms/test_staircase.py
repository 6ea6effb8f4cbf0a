from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from contract import divergence

from dalenius.errors import InvalidArgument
from dalenius.losses import Pure
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.mechanism import Law
from dalenius.mechanisms.staircase import Staircase
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity


def moved(law: Law, by: int) -> Law:
    return Law(tuple(k + by for k in law.outcomes), law.masses, law.rest)


def test_no_shift_costs_more_than_the_loss_and_the_largest_costs_all_of_it() -> None:
    for far, epsilon in itertools.product((1, 2, 5), (0.3, 2.0)):
        for width in range(1, far + 1):
            mechanism = Staircase(epsilon=epsilon, width=width, sensitivity=far)
            law = mechanism.probabilities(0)
            assert law is not None
            for at in (0.0, epsilon / 3, epsilon):
                claim = mechanism.loss.delta(at)
                found = [divergence(law, moved(law, d), at) for d in range(1, far + 1)]
                assert max(found) <= claim.upper + 1e-12
                assert found[-1] >= claim.lower - 1e-12


def test_it_is_pure_and_composes_below_what_pure_privacy_does() -> None:
    mechanism = Staircase.calibrate(epsilon=0.5, sensitivity=20)
    assert mechanism.loss.epsilon(0).upper == 0.5
    assert (mechanism.loss * 20).epsilon(1e-6).upper < (Pure(0.5) * 20).epsilon(1e-6).upper


def cost(mechanism: Staircase, power: int) -> float:
    law = mechanism.probabilities(0)
    assert law is not None
    return float(np.sum(np.abs(np.array(law.outcomes, dtype=float)) ** power * law.masses))


@pytest.mark.parametrize(("far", "epsilon"), [(5, 1.0), (7, 0.2), (12, 4.0)])
def test_calibration_finds_the_best_width(far: int, epsilon: float) -> None:
    widths = [Staircase(epsilon=epsilon, width=w, sensitivity=far) for w in range(1, far + 1)]
    near = Staircase.calibrate(epsilon=epsilon, sensitivity=far)
    even = Staircase.calibrate(epsilon=epsilon, sensitivity=far, least="variance")
    for found, power in ((near, 1), (even, 2)):
        best = min(cost(w, power) for w in widths)
        assert cost(found, power) == pytest.approx(best, rel=1e-12)
        laplace = Laplace(scale=far / epsilon, sensitivity=far, grid=Grid(0), exact=True).probabilities(0)
        assert laplace is not None
        assert best <= np.sum(np.abs(np.array(laplace.outcomes, dtype=float)) ** power * laplace.masses)


def test_the_best_width_is_near_that_of_the_continuous_law() -> None:
    """Geng, Kairouz, Oh and Viswanath 2015: γ = 1/(1 + e^{ε/2}) for |noise|."""
    for epsilon in (0.5, 2.0, 6.0):
        width = Staircase.calibrate(epsilon=epsilon, sensitivity=10_000).width
        assert width / 10_000 == pytest.approx(1 / (1 + math.exp(epsilon / 2)), abs=2e-4)


def test_every_entry_of_a_vector_is_charged() -> None:
    mechanism = Staircase(epsilon=1, width=1, sensitivity=Sensitivity(l0=3, linf=2))
    assert mechanism.loss.epsilon(0).upper == 3
    assert mechanism.release(np.arange(3)).value.shape == (3,)


def test_odd_values_take_the_same_path() -> None:
    found = Staircase.calibrate(epsilon=1, sensitivity=Sensitivity(l0=1, linf=1.5), exact=False).release(
        np.array([np.nan, np.inf, 1e300])
    )
    assert np.isfinite(found.value).all()
    assert abs(Staircase.calibrate(epsilon=1, sensitivity=3).release(10**400).value) < 2**63


@pytest.mark.parametrize(
    ("epsilon", "width", "far"),
    [
        (0, 1, 1),
        (-1, 1, 1),
        (float("inf"), 1, 1),
        (float("nan"), 1, 1),
        (1, 0, 2),
        (1, 3, 2),
        (1, 1, 0),
        (1, 1, 0.5),
    ],
)
def test_bad_parameters_are_refused(epsilon: float, width: int, far: float) -> None:
    with pytest.raises(InvalidArgument):
        Staircase(epsilon=epsilon, width=width, sensitivity=far)
