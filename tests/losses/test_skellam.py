from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb

from dalenius.errors import InvalidArgument
from dalenius.losses.skellam import Skellam


def bessel(variance, shift, ball, outcomes, reach):
    v = ball(variance)
    mass = {x: (-v).exp() * v.bessel_i(arb(x)) for x in range(reach + shift + 1)}
    return outcomes((mass[abs(x)], mass[abs(x - shift)]) for x in range(-reach, reach + 1))


@pytest.mark.parametrize(
    ("variance", "shift", "reach"), [("1", 1, 120), ("0.05", 1, 100), ("10", 4, 160), ("60", 2, 260)]
)
def test_the_pair_is_enclosed(variance, shift, reach, ball, outcomes, encloses):
    pair = Skellam(Fraction(variance), sensitivity=shift).directions()[0][0][0]
    truth = bessel(Fraction(variance), shift, ball, outcomes, reach)
    encloses(pair, truth, epsilons=(-2.0, -0.1, 0.0, 0.2, 1.0, 3.0), orders=(0.01, 0.5, 1.0, 2.5))
    assert pair.reversed() == pair


def test_a_large_order_still_has_a_bound_below_and_above():
    lower, upper = Skellam(4).directions()[0][0][0].log_moment(1000.0)
    assert 0 < lower < upper


def test_a_group_has_a_multiple_of_the_sensitivity():
    assert Skellam(2).group(3) == Skellam(2, sensitivity=3)


@pytest.mark.parametrize(("variance", "sensitivity"), [(1e9, 1), (1e-9, 1), (1, 10**7)])
def test_what_cannot_be_listed_is_refused(variance, sensitivity):
    with pytest.raises(InvalidArgument, match="variance must be from 1e-6 to"):
        Skellam(variance, sensitivity=sensitivity)
