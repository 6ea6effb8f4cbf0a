"""Filters accept no sequence whose composition exceeds them, and measure what they say."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dalenius.errors import InvalidArgument, NotSound, UnknownKind
from dalenius.losses import (
    Approximate,
    BoundedRange,
    Cost,
    DiscreteGaussian,
    DiscreteLaplace,
    Filter,
    Gaussian,
    GaussianDP,
    Laplace,
    Loss,
    Odometer,
    Pure,
    RandomizedResponse,
    Renyi,
    Skellam,
    ZeroConcentrated,
    compose,
)
from dalenius.losses.gauges import GaussianGauge, largest_loss, squared_distance
from dalenius.losses.gaussian_domination import dominates, least_distance

LIMIT = Filter(epsilon=1, delta=1e-6)
LOSSES: tuple[Loss, ...] = (
    Pure(0.1),
    Pure(0.03),
    Laplace(20),
    DiscreteLaplace(15),
    Gaussian(20),
    Gaussian(9),
    Gaussian(2).poisson(0.01),
    Gaussian(1).poisson(0.001) * 50,
    RandomizedResponse(Fraction(95, 100)),
    Approximate(0.05, delta=1e-9),
    ZeroConcentrated(0.002),
    ZeroConcentrated(0.001, delta=1e-9),
    DiscreteGaussian(12),
    BoundedRange(0.1),
    Renyi(64, epsilon=0.02),
    Laplace(2).poisson(0.01),
    Skellam(400, sensitivity=1),
)


@pytest.fixture(scope="module")
def costs() -> dict[Loss, Cost]:
    return {loss: LIMIT.cost(loss) for loss in LOSSES}


@given(choices=st.lists(st.sampled_from(LOSSES), min_size=1, max_size=200))
@settings(max_examples=12, deadline=None)
def test_what_is_accepted_composes_to_no_more_than_the_limit(
    choices: list[Loss], costs: dict[Loss, Cost]
) -> None:
    """By fixed-parameter composition, which no adaptive sequence undercuts: δ(ε) is certainly not above δ."""
    total, accepted = LIMIT.nothing, []
    for loss in choices:
        if LIMIT.accepts(total + costs[loss]):
            total = total + costs[loss]
            accepted.append(loss)
    assert accepted
    assert compose(accepted).delta(LIMIT.epsilon).lower <= LIMIT.delta


@given(choices=st.lists(st.sampled_from(LOSSES), max_size=40), shuffled=st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_order_of_charges_does_not_matter(
    choices: list[Loss], shuffled: object, costs: dict[Loss, Cost]
) -> None:
    other = sorted(choices, key=lambda loss: loss.to_json())
    totals = [sum((costs[loss] for loss in order), LIMIT.nothing) for order in (choices, other)]
    assert totals[0] == totals[1]
    assert Cost.from_json(totals[0].to_json()) == totals[0]


def test_one_loss_alone_repeated_until_refused_is_within_the_limit_and_close_to_it() -> None:
    """What is lost to adaptivity and to several gauges: less than a third of the number of releases."""
    for loss in (Gaussian(20), Laplace(50), Pure(Fraction(1, 7))):
        cost, total, count = LIMIT.cost(loss), LIMIT.nothing, 0
        while LIMIT.accepts(total + cost):
            total, count = total + cost, count + 1
        assert (loss * count).epsilon(LIMIT.delta).lower <= LIMIT.epsilon
        assert (loss * math.ceil(1.5 * count)).epsilon(LIMIT.delta).upper > LIMIT.epsilon


@pytest.mark.parametrize(("epsilon", "times"), [("0.1", 10), ("1/3", 3), ("1/7", 7), ("0.25", 4)])
def test_parts_of_a_whole_add_up_to_it_exactly(epsilon: str, times: int) -> None:
    limit = Filter(epsilon=1)
    cost = limit.cost(Pure(Fraction(epsilon)))
    total = sum(itertools.repeat(cost, times), limit.nothing)
    assert limit.accepts(total)
    assert limit.spent(total) == 1
    assert limit.left(total) is None
    assert not limit.accepts(total + cost)
    assert not limit.accepts(total + limit.cost(Pure(1e-9)))


@pytest.mark.parametrize(
    "loss", [Pure(0.4), Gaussian(10), Gaussian(4).poisson(0.01) * 100, Renyi(64, epsilon=0.1)]
)
def test_what_is_left_is_accepted_and_hardly_more_is(loss: Loss) -> None:
    total = LIMIT.cost(loss)
    left = LIMIT.left(total)
    assert left is not None
    assert LIMIT.accepts(total + LIMIT.cost(left))
    again = LIMIT.left(total + LIMIT.cost(left))
    assert again is None or again.epsilon(LIMIT.delta).upper < left.epsilon(LIMIT.delta).upper


def test_a_planned_run_costs_what_it_composes_to() -> None:
    """q = 0.01, σ = 4, T = 10,000, ε = 1.0846 at 1e-6: one charge is within 1 % of that."""
    run = Gaussian(4).poisson(0.01) * 10_000
    found = GaussianGauge(Fraction(1, 10**6), Fraction(1, 10**8)).measure(run, Fraction(1))
    assert found is not None
    assert found[1] <= Fraction(1, 10**8)
    assert GaussianDP(Fraction(math.sqrt(found[0]))).epsilon(1e-6).upper < 1.01 * run.epsilon(1e-6).upper


@pytest.mark.parametrize("loss", [Gaussian(3), Pure(0.3) * 20, Gaussian(1).poisson(0.01) * 100])
def test_the_least_distance_dominates_at_every_epsilon(loss: Loss) -> None:
    """Between the knots too: at many ε, by the normal law of another library."""
    slack = Fraction(1, 10**9)
    distance = least_distance(loss, slack)
    assert distance is not None
    mu, s = float(distance), float(slack)
    for epsilon in np.linspace(0, loss.epsilon(1e-9).upper, 25):
        normal = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert loss.delta(float(epsilon)).lower <= (s + (1 - s) * normal) * (1 + 1e-9)


def test_a_gaussian_is_dominated_by_itself_and_by_none_that_is_closer() -> None:
    distance = least_distance(Gaussian(3), Fraction(1, 10**12))
    assert distance is not None
    assert Fraction(1, 3) < distance < Fraction(1, 3) * Fraction(101, 100)
    knots = np.linspace(0, 2, 97)
    most = np.array([Gaussian(3).delta(e).upper for e in knots.tolist()])
    assert not dominates(1 / 3.01, knots, most, 1e-12)


def test_chords_are_compared_between_the_knots() -> None:
    """Two knots so far apart that the chord rises above the curve, though it meets it at both."""
    knots = np.array([0.0, 3.0])
    curve = np.array([norm.cdf(0.5 - e) - math.exp(e) * norm.cdf(-0.5 - e) for e in knots.tolist()])
    assert not dominates(1.0, knots, curve * (1 - 1e-6), 1e-3)


@pytest.mark.parametrize("epsilon", ["1e-6", "0.1", "1", "3", "20"])
def test_randomized_response_meets_the_gaussians_at_its_kink(epsilon: str) -> None:
    mu = -2 * norm.ppf(1 / (1 + math.exp(float(epsilon))))
    assert float(squared_distance(Fraction(epsilon))) == pytest.approx(mu**2, rel=1e-6)
    loss = GaussianDP(Fraction(mu) * Fraction(100001, 100000))
    for fraction in (0.2, 0.7):
        assert Pure(Fraction(epsilon)).delta(fraction * float(epsilon)).lower <= loss.delta(
            fraction * float(epsilon)
        ).upper * (1 + 1e-9)


def test_the_largest_loss_is_exact_where_it_is_known() -> None:
    assert largest_loss(Laplace(10) * 7 + Pure(0.3)) == (1, 0)
    assert largest_loss(Approximate(0.5, delta=1e-7) * 2) == (1, Fraction(2, 10**7))
    assert largest_loss(Gaussian(1)) is None
    assert largest_loss(ZeroConcentrated(1)) is None


def test_a_filter_is_read_back_as_it_was_fixed() -> None:
    assert Filter.from_json(LIMIT.to_json()) == LIMIT
    with pytest.raises(UnknownKind):
        Filter.from_json('{"version":2}')


def test_the_deltas_of_all_gauges_add_up_to_no_more_than_delta() -> None:
    for limit in (
        LIMIT,
        Filter(epsilon=8, delta=1e-9),
        Filter(epsilon=1, delta=1e-6, shares={"gaussian": (80, 20)}),
    ):
        assert sum(gauge.delta + gauge.slack for gauge, _ in limit.limits) <= limit.delta
        for gauge, bound in limit.limits:
            if bound > 0 and gauge.delta:
                assert gauge.as_loss(bound, "add_remove").epsilon(gauge.delta).lower <= limit.epsilon


@pytest.mark.parametrize("loss", [Pure(10) * 20, Pure(40) * 6, Laplace(0.1) * 10 + Gaussian(1)])
def test_what_is_told_apart_almost_surely_is_measured_or_not_but_never_fails(loss: Loss) -> None:
    assert not LIMIT.accepts(LIMIT.cost(loss))


def test_a_filter_without_slack_measures_without_it() -> None:
    limit = Filter(epsilon=1, delta=1e-6, shares={"gaussian": (100, 0)})
    assert limit.accepts(limit.cost(Gaussian(20)))
    assert limit.accepts(limit.cost(Laplace(100) * 10))


@pytest.mark.parametrize(
    "shares", [{"gaussian": (0.5, 20)}, {"gaussian": (90, 20)}, {"laplace": (1, 1)}, {"zcdp": (-1, 5)}]
)
def test_shares_beyond_delta_are_refused(shares: Any) -> None:
    with pytest.raises(InvalidArgument, match="shares"):
        Filter(epsilon=1, delta=1e-6, shares=shares)


def test_cells_cost_what_the_largest_do() -> None:
    costs = [LIMIT.cost(Pure(e)) for e in (0.1, 0.3, 0.2)]
    assert Cost.largest(costs).amounts["pure"] == costs[1].amounts["pure"]
    assert "pure" not in Cost.largest([*costs, LIMIT.cost(Gaussian(50))]).amounts


def test_an_odometer_reads_a_level_that_holds_everything() -> None:
    odometer = Odometer(delta=1e-6, levels=(0.5, 1, 2))
    total = odometer.nothing
    assert odometer.epsilon(total) == Fraction(1, 2)
    for _ in range(6):
        total = odometer.add(total, Gaussian(8))
    reading = odometer.epsilon(total)
    assert (Gaussian(8) * 6).epsilon(1e-6).upper <= reading == 2
    for _ in range(60):
        total = odometer.add(total, Gaussian(8))
    with pytest.raises(NotSound, match="highest level"):
        odometer.epsilon(total)
    with pytest.raises(InvalidArgument, match="levels"):
        Odometer(levels=(2, 1))
