"""Questions that the first route of a loss does not answer, and that another one does."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import pytest

from dalenius.losses import (
    Approximate,
    BoundedRange,
    DiscreteGaussian,
    DiscretePair,
    Gaussian,
    GaussianDP,
    Laplace,
    Loss,
    PrivacyLossDistribution,
    Pure,
    RandomizedResponse,
    Renyi,
    Skellam,
    TradeoffCurve,
    ZeroConcentrated,
)
from dalenius.losses.renyi import RenyiProfile

RARE = Fraction(1, 10**10)
FAR: dict[str, tuple[Loss, float, float]] = {
    "a contour that ends early": (Laplace(1) + Gaussian(10).poisson(0.01), 1e-6, 1.0029),
    "the same of two": (Pure(5) + Gaussian(5).poisson(0.001) * 2, 1e-6, 5.0009),
    "losses too large for a lattice": (DiscreteGaussian(Fraction("0.1006")) * 10, 9.593e-4, 494.06),
    "samples too rare": (Gaussian(10**4).poisson(RARE) * 10**9, 1e-6, 19.43),
    "a large delta": (Laplace(10**6) * 10**9, 0.5, 1e-9),
    "noise too small": (Gaussian(Fraction(1, 1000)).poisson(Fraction(1, 2)) * 10**6, 1e-6, 5.01e11),
}


@pytest.mark.parametrize(("loss", "delta", "most"), FAR.values(), ids=FAR.keys())
def test_the_least_of_all_routes_answers(loss: Loss, delta: float, most: float) -> None:
    bound = loss.epsilon(delta)
    assert bound.upper <= most
    assert not bound.tight or bound.upper <= bound.lower * 1.05 + 1e-9
    assert loss.delta(bound.upper).lower <= delta


def test_a_delta_is_found_where_an_epsilon_is() -> None:
    """A leak on a sample has no moments, and what is known by moments alone has no pairs."""
    loss = Approximate(Fraction(1, 20), delta=Fraction(1, 10**10)).poisson(Fraction(1, 2)) + ZeroConcentrated(
        1
    )
    epsilon = loss.epsilon(1e-6).upper
    assert loss.delta(Fraction(epsilon)).upper <= 1.01e-6


def test_sums_of_epsilons_are_never_exceeded() -> None:
    loss, delta = DiscreteGaussian(Fraction("0.1184")), Fraction("3.06e-10")
    assert (loss * 613).epsilon(delta).upper <= 613 * loss.epsilon(delta / 613).upper * (1 + 1e-9)


def test_a_larger_delta_never_costs_more() -> None:
    loss = Laplace(10**6) * 10**9
    uppers = [loss.epsilon(delta).upper for delta in (1e-9, 1e-6, 1e-3, 0.1, 0.5)]
    assert uppers == sorted(uppers, reverse=True)


@pytest.mark.parametrize(
    "loss",
    [
        Renyi(8, epsilon=Fraction(1, 10)).selected(stop=Fraction(1, 5)),
        ZeroConcentrated(Fraction(1, 100)).selected(stop=Fraction(1, 5)),
        Renyi(40, epsilon=2) + Renyi(3, epsilon=Fraction(1, 5)),
    ],
)
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_delta_and_epsilon_use_the_same_orders(loss: Loss, delta: float) -> None:
    epsilon = loss.epsilon(delta).upper
    if math.isfinite(epsilon):
        assert loss.delta(epsilon).upper <= delta * 1.001


@pytest.mark.parametrize("alpha", [2, 64, 10**4])
def test_no_divergence_exceeds_the_largest_loss(alpha: int) -> None:
    for loss in (Pure(1).group(3), Laplace(1) * 5, Pure(1).selected(stop=Fraction(1, 5))):
        assert loss.renyi(alpha).upper <= loss.epsilon(0).upper * (1 + 1e-12)


def test_ends_of_a_tradeoff_curve_are_rounded_outward_without_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        end = Approximate(1, delta=RARE**2).tradeoff(0)
        Laplace(10**6).meaning()
    assert end.lower < 1 == end.upper


def test_what_is_never_missed_without_false_alarms_is_the_infinite_mass() -> None:
    for loss in (Approximate(1, delta=Fraction(1, 4)), Approximate(1, delta=Fraction(1, 8)) * 2 + Laplace(1)):
        end = loss.tradeoff(0)
        truth = 0.75 if loss == Approximate(1, delta=Fraction(1, 4)) else (7 / 8) ** 2
        assert end.tight
        assert end.lower <= truth <= end.upper <= end.lower + 1e-12


def test_a_guess_that_gains_nothing_is_said_so() -> None:
    text = str(Laplace(10**12).meaning())
    assert "at most 50% of the time, not 50%" not in text


INVERSE: dict[str, tuple[Loss, float]] = {
    "bounded losses and leaks on a coarse lattice": (
        RandomizedResponse(Fraction("0.193"), categories=2) * 1_326_789
        + DiscretePair(
            [Fraction(9, 11), 0, Fraction(2, 11)],
            [Fraction(1000, 1019), Fraction(10, 1019), Fraction(9, 1019)],
        )
        * 6,
        0.1942,
    ),
    "shifts too far for a lattice": (
        Gaussian(Fraction("0.0004514")).poisson(Fraction(851, 250_000)) * 4,
        0.01235,
    ),
    "a contour that fails": (
        Skellam(Fraction("163.7"), relation="zero_out")
        + Pure(Fraction("0.00003715"), relation="zero_out").poisson(Fraction(2463, 5_000_000)) * 9
        + Gaussian(Fraction("0.6457"), relation="zero_out").poisson(Fraction(288, 625)) * 6,
        0.00264,
    ),
    "losses far apart": (
        DiscreteGaussian(Fraction("0.21"), relation="replace").selected(mean=Fraction(1021, 1000)) * 5,
        1.954e-8,
    ),
    "a bounded loss beside a large Gaussian": (
        Gaussian(Fraction("0.0001201")) * 66 + Pure(Fraction("2.748e-11")),
        1.517e-5,
    ),
}


@pytest.mark.parametrize(("loss", "delta"), INVERSE.values(), ids=INVERSE.keys())
def test_the_delta_of_an_epsilon_is_no_more_than_the_delta_asked_for(loss: Loss, delta: float) -> None:
    epsilon = loss.epsilon(delta).upper
    assert loss.delta(Fraction(epsilon)).upper <= delta * 1.01


def test_the_epsilon_of_a_large_gaussian_falls_with_delta() -> None:
    loss, mu = GaussianDP(278_100) * 4, 2 * 278_100
    small, large = (loss.epsilon(delta) for delta in (Fraction("3.227e-8"), Fraction("1.237e-6")))
    assert large.upper < small.upper < mu**2 / 2 + 6 * mu
    assert small.upper <= small.lower * (1 + 1e-9)


def test_a_chance_that_many_releases_leak_is_no_long_power() -> None:
    loss = ZeroConcentrated(Fraction("0.001283"), delta=Fraction("7.796e-10")) * 29_240
    leak = -math.expm1(29_240 * math.log1p(-7.796e-10))
    assert loss.delta(1000).upper == pytest.approx(leak, rel=1e-9)
    many = Laplace(1) + Approximate(0, delta=RARE) * 10**7
    assert many.delta(2).upper == pytest.approx(-math.expm1(-1e-3), rel=1e-9)


def test_samples_that_are_next_to_never_drawn_cost_their_chance() -> None:
    often = DiscreteGaussian(Fraction("0.4845")).poisson(Fraction(1, 100)) * 44
    loss = often + Gaussian(Fraction("0.001012")).poisson(Fraction(2373, 10**14)) * 3495
    chance = 3495 * 2373e-14
    epsilon, least = loss.epsilon(0.01).upper, often.epsilon(0.01 - chance).upper
    assert epsilon <= least * (1 + 1e-6) + 2 * chance


def test_no_epsilon_is_above_what_the_largest_loss_proves() -> None:
    loss = Pure(Fraction("0.0001206")).poisson(Fraction(7043, 100_000)) + RandomizedResponse(
        Fraction("0.216"), categories=3
    ).poisson(Fraction(1101, 100_000)).group(100)
    delta, t = 0.3316, 7
    proved = loss.renyi(t + 1).upper + (math.log(1 / delta) + t * math.log1p(-1 / 8) - math.log(8)) / t
    assert loss.epsilon(delta).upper <= proved * (1 + 1e-6)


def test_ten_times_the_releases_cost_no_more_than_ten_times_one_tenth() -> None:
    loss = (
        Pure(Fraction("156.2"), relation="zero_out")
        + Skellam(Fraction("741.6"), relation="zero_out") * 5
        + Renyi(Fraction("423.2"), epsilon=Fraction("0.7677"), relation="zero_out").group(2)
    )
    assert (loss * 10).epsilon(Fraction("0.3744")).upper <= 10 * loss.epsilon(Fraction("0.03744")).upper * (
        1 + 1e-12
    )


def test_a_trade_off_curve_is_no_lower_than_what_an_epsilon_proves() -> None:
    loss = (
        PrivacyLossDistribution(
            [Fraction("0.01364"), Fraction("-0.001364")], [Fraction(2, 5), Fraction(3, 5)]
        )
        * 7
        + ZeroConcentrated(Fraction("1.101e-6"))
        + TradeoffCurve([0, 0.2, 1], [1, 0.264, 0]).poisson(Fraction(1797, 50_000)) * 3
    )
    proved = 1 - 0.08545 - math.exp(loss.epsilon(0.08545).upper) / 1000
    assert loss.tradeoff(Fraction(1, 1000)).lower >= proved - 1e-3


def test_an_order_is_found_beside_a_jump_and_between_whole_numbers() -> None:
    """Moments on samples are finite up to an order, and known better at whole orders than between them."""
    rare = Gaussian(Fraction("0.4957")).poisson(Fraction(1881, 50_000_000_000_000))
    assert RenyiProfile.of(rare).epsilon(4.436e-5)[1] <= 0.5622
    sample = BoundedRange(Fraction("0.002426")).poisson(Fraction(1239, 100_000))
    orders = [sample.moment(order) for order in (4095.5, 4096.0, 4096.5)]
    assert orders == sorted(orders)
    assert orders[1] <= (orders[0] + orders[2]) / 2 * (1 + 1e-6)


def test_the_order_for_a_group_is_found_with_few_moments() -> None:
    loss = Laplace(2).poisson(Fraction(1, 50)).group(100)
    profile = RenyiProfile.of(loss)
    delta = profile.delta(profile.epsilon(1e-6)[1])[1]
    assert delta <= 1.001e-6
    assert len(profile.known) <= 8
