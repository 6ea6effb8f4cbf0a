"""Random compositions of many kinds: every answer is finite, and monotone, where that is known.

`mixed` draws and checks them; `python -m tests.losses.mixed FIRST LAST` runs as many as are wanted.
"""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from itertools import pairwise

import pytest

from dalenius.losses import (
    DiscreteGaussian,
    Gaussian,
    GaussianDP,
    Laplace,
    Loss,
    Pure,
    Renyi,
    TradeoffCurve,
    ZeroConcentrated,
)
from dalenius.losses.renyi import RenyiProfile
from tests.losses import mixed

HAIR = 1e-6


@pytest.mark.parametrize("seed", [2, 4, 5, 6, 7, 10, 12, 15, 17, 18, 25])
def test_mixed_compositions_have_finite_and_monotone_answers(seed: int) -> None:
    drawn = mixed.case(seed)
    assert drawn is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixed.check(drawn)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 10_000, 500))
def test_ten_thousand_mixed_compositions_have_finite_and_monotone_answers(first: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seen = mixed.run(iter(range(first, first + 500)))
    assert set(seen) <= {"right", "refused", "not finished"}


@pytest.mark.parametrize("loss", [Gaussian(4), Laplace(2), Pure(1), DiscreteGaussian(3)])
def test_a_smaller_sample_never_costs_more(loss: Loss) -> None:
    rates = [Fraction(1, 10**k) for k in (6, 3, 2, 1, 0)]
    uppers = [((loss.poisson(rate) if rate < 1 else loss) * 30).epsilon(1e-6).upper for rate in rates]
    assert all(a <= b * (1 + HAIR) + HAIR for a, b in pairwise(uppers))


@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 3), Fraction(9, 10)])
def test_a_stated_trade_off_curve_is_given_back(rate: Fraction) -> None:
    x, y = Fraction(6, 25), Fraction(741, 2500)
    bound = TradeoffCurve([0, x, 1], [1, y, 0]).tradeoff(rate)
    ahead = 1 - (1 - y) * rate / x if rate <= x else y * (1 - rate) / (1 - x)
    # The reverse is the curve mirrored.
    back = 1 - (1 - x) * rate / y if rate <= y else x * (1 - rate) / (1 - y)
    assert bound.tight
    assert bound.lower - 1e-12 <= min(ahead, back) <= bound.upper + 1e-12


def test_a_trade_off_curve_that_is_open_is_not_called_tight() -> None:
    bound = (Laplace(10**6) * 10**9).tradeoff(Fraction(1, 3))
    assert not bound.tight or bound.width <= 1e-3


def test_samples_that_are_next_to_never_drawn_take_no_unusual_memory() -> None:
    bound = (Gaussian(10**4).poisson(Fraction(1, 10**10)) * 10**9).tradeoff(Fraction(1, 10))
    assert 0.899 <= bound.lower <= 0.9 <= bound.upper + 1e-12


def test_moments_of_shifts_far_apart_are_bounded_at_once() -> None:
    loss = Gaussian(Fraction("0.0002671")).poisson(Fraction(1363, 100_000)) * 9 + ZeroConcentrated(1)
    assert loss.epsilon(1e-6).upper < math.inf


def test_the_order_of_an_epsilon_is_found_for_its_delta() -> None:
    """Along a path the bound over its order falls with the order: no small order proves anything."""
    loss = Renyi(Fraction("126.6"), epsilon=Fraction("1.613")).under("replace") * 15_509 + GaussianDP(
        Fraction(1, 10), relation="replace"
    )
    profile = RenyiProfile.of(loss)
    assert profile.delta(profile.epsilon(1e-6)[1])[1] <= 1.001e-6


def test_moments_of_large_groups_overflow_nowhere() -> None:
    sample = DiscreteGaussian(Fraction("0.9708"), relation="replace").without_replacement(42_223, 202_677)
    assert (sample.group(10**4) + ZeroConcentrated(1, relation="replace")).epsilon(1e-6).upper > 0
