from __future__ import annotations

from fractions import Fraction

import pytest

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.concentrated import MeanConcentrated, Renyi, ZeroConcentrated


def test_moments_are_those_of_the_definitions():
    assert ZeroConcentrated(0.5).moment(3.0) == pytest.approx(6, rel=1e-15)
    assert MeanConcentrated(0.1, scale=1).moment(2.0) == pytest.approx(2.2, rel=1e-15)
    assert Renyi(4, epsilon=0.5).moment(3.0) == 1.5
    assert Renyi(4, epsilon=0.5).moment(1.5) == 0.75
    assert Renyi(4, epsilon=0.5).moment(3.5) == float("inf")
    assert ZeroConcentrated(0.5, delta=0.1).moment(1.0) == float("inf")


def test_moments_round_up():
    for order in (0.1, 1 / 3, 7.7):
        exact = Fraction(order) * (1 + Fraction(order)) * Fraction(1, 3)
        assert Fraction(ZeroConcentrated(Fraction(1, 3)).moment(order)) >= exact


def test_a_mean_above_half_the_square_says_no_more():
    # The moment of order −1 of a privacy loss is 1, so the mean is at most τ²/2.
    assert MeanConcentrated(100, scale=1).moment(2.0) == MeanConcentrated(0.5, scale=1).moment(2.0)


def test_orders_in_common_bound_a_sum():
    both = Renyi(8, epsilon=0.1) + Renyi(4, epsilon=0.2)
    assert both.moment(3.0) == pytest.approx(0.9)
    assert both.moment(5.0) == float("inf")


def test_groups_grow_with_the_square():
    assert ZeroConcentrated(0.5).group(3) == ZeroConcentrated(4.5)
    grouped = MeanConcentrated(0.5, scale=1).group(3)
    # Hölder's bound along the path is exact where D_α = α/2.
    assert grouped.moment(2.0) == pytest.approx(9 * 2 * 3 / 2, rel=1e-12)


def test_no_group_bound_is_claimed_where_events_are_set_aside():
    with pytest.raises(NotSound, match="delta"):
        ZeroConcentrated(0.5, delta=1e-6).group(2)


def test_the_arguments_are_refused_by_name():
    for make, match in (
        (lambda: Renyi(1, epsilon=1), "alpha must be from 1.000001"),
        (lambda: Renyi(2, epsilon=-1), "epsilon must be 0 or more"),
        (lambda: ZeroConcentrated(-1), "rho must be 0 or more"),
        (lambda: ZeroConcentrated(1, delta=1), r"delta must be in \[0, 1\)"),
        (lambda: MeanConcentrated(1, scale=0), "scale must be above 0"),
    ):
        with pytest.raises(InvalidArgument, match=match):
            make()
