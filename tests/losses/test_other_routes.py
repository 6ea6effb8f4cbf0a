"""Questions that the first route of a loss does not answer, and that another one does."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import pytest

from dalenius.losses import (
    Approximate,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Loss,
    Pure,
    Renyi,
    ZeroConcentrated,
)

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
