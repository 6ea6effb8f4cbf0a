"""A chance that everything is given away, beside the grid route, which shares no numerics with it."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dalenius.losses import Approximate, Filter, Gaussian, Laplace, compose
from dalenius.losses.gauges import GaussianGauge
from dalenius.losses.loss import Loss
from dalenius.losses.routes import route
from dalenius.profiles.discrete import discrete_profile
from dalenius.profiles.leaking import LeakingProfile

CASES = [
    compose([Gaussian(10), Approximate(0, delta=1e-12)]),
    compose([Gaussian(1), Approximate(0, delta=1e-3) * 5]),
    compose([Laplace(2), Approximate(0, delta=1e-4)]),
    compose([Gaussian(2).poisson(0.01) * 100, Approximate(0, delta=1e-7)]),
]


@pytest.mark.parametrize("loss", CASES)
def test_both_routes_enclose_one_truth(loss: Loss) -> None:
    for worst in loss.directions() or ():
        leaking, grid = route(worst), discrete_profile(worst)
        assert isinstance(leaking, LeakingProfile)
        for epsilon in (0.0, 0.1, 1.0):
            (low, high), (least, most) = leaking.delta(epsilon), grid.delta(epsilon)
            assert low <= most
            assert least <= high
            assert high - low <= most - least
        for delta in (2e-3, 1e-1):
            (low, high), (least, most) = leaking.epsilon(delta), grid.epsilon(delta)
            assert low <= most
            assert least <= high


def test_below_the_leak_no_epsilon_will_do() -> None:
    loss = compose([Gaussian(1), Approximate(0, delta=1e-3)])
    assert loss.epsilon(Fraction(1, 2000)).lower == math.inf
    assert math.isfinite(loss.epsilon(Fraction(1, 500)).upper)


def test_a_gauge_of_gaussians_takes_a_leak_as_slack_alone() -> None:
    gauge = GaussianGauge(Fraction(1, 10**9), Fraction(1, 10**9))
    loss = compose([Gaussian(4), Approximate(0, delta=1e-12) * 3])
    assert gauge.measure(loss, Fraction(1)) == (Fraction(1, 16), Fraction(3, 10**12))


def test_an_account_takes_many_releases_with_leaks() -> None:
    limit = Filter(epsilon=3, delta=1e-9)
    cost = limit.cost(compose([Gaussian(40), Approximate(0, delta=1e-12)]))
    total = limit.nothing
    for _ in range(100):
        total = total + cost
    assert limit.accepts(total)
