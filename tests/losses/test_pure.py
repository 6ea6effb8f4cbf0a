from __future__ import annotations

from fractions import Fraction

import pytest

from dalenius.errors import InvalidArgument
from dalenius.losses.pure import Approximate, Pure
from dalenius.profiles.binomial import two_point


@pytest.mark.parametrize("epsilon", ["0", "0.001", "0.1", "1", "6"])
@pytest.mark.parametrize("delta", ["0", "1/1000000", "0.3"])
def test_the_pair_of_kairouz_oh_and_viswanath_is_enclosed(epsilon, delta, ball, outcomes, encloses):
    e, d = ball(Fraction(epsilon)), ball(Fraction(delta))
    high, low = (1 - d) * e.exp() / (1 + e.exp()), (1 - d) / (1 + e.exp())
    truth = outcomes([(d, ball(0)), (high, low), (low, high), (ball(0), d)])
    loss = Approximate(Fraction(epsilon), delta=Fraction(delta))
    pair = loss.directions()[0][0][0]
    orders = () if d > 0 else (1e-3, 0.5, 1.0, 2.5, 20.0, 300.0)
    for side in (pair, pair.reversed()):
        encloses(side, truth, orders=orders, epsilons=(-2.0, -0.1, 0.0, 0.05, 0.1, 1.0, 5.5, 6.0, 7.0))
    if d > 0:
        assert pair.log_moment(1.0)[1] == float("inf")


def test_pure_is_approximate_without_a_failure():
    assert Pure(0.3).directions() == Approximate(0.3, delta=0).directions()


def test_ten_times_a_tenth_is_one():
    ((pair, count),) = (Pure(0.1) * 10).directions()[0]
    assert pair.largest * count == 1
    assert two_point(pair, count).epsilon(0.0) == (1.0, 1.0)


def test_a_group_has_a_multiple_of_epsilon():
    assert Pure(0.1).group(10) == Pure(1)


def test_the_arguments_are_refused_by_name():
    with pytest.raises(InvalidArgument, match="epsilon must be 0 or more"):
        Pure(-1)
    with pytest.raises(InvalidArgument, match=r"delta must be in \[0, 1\)"):
        Approximate(1, delta=1)


def test_it_prints_as_it_is_written():
    assert repr(Approximate(0.1, delta=Fraction(1, 3), relation="replace")) == (
        "Approximate(epsilon=0.1, delta=1/3, relation='replace')"
    )
    assert repr(Pure(2)) == "Pure(epsilon=2)"


def test_a_promise_holds_at_its_own_delta() -> None:
    """An infinite loss of exactly the allowed δ is allowed, though neither is a float."""
    assert Approximate(1, delta=1e-5).epsilon(1e-5).upper == 1
    assert Approximate(0.5, delta=1 / 1024).epsilon(1 / 1024).upper == 0.5
    assert Approximate(1, delta=1e-5).epsilon(9.99e-6).lower == float("inf")
