from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dalenius.losses.bounded_range import BoundedRange
from dalenius.losses.pure import Pure
from dalenius.losses.renyi import RenyiProfile


def position(ball, outcomes, epsilon, t):
    """The two outcomes of Dong, Durfee and Rogers 2020 for the range [t − ε, t]."""
    q = ((-t).exp() - (-epsilon).exp()) / (1 - (-epsilon).exp())
    return outcomes([(t.exp() * q, q), (1 - t.exp() * q, 1 - q)])


@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_no_position_of_the_range_is_worse_and_one_attains_it(epsilon, ball, outcomes):
    e = ball(Fraction(epsilon))
    pair = BoundedRange(Fraction(epsilon)).directions()[0][0][0]
    for x in np.linspace(-0.99, 0.99, 12) * float(epsilon):
        lo, hi = (float(end[0]) for end in pair.hockey(np.array([x])))
        assert hi - lo < 1e-13
        for share in range(1, 20):
            assert not position(ball, outcomes, e, e * share / 20).hockey(x) > ball(hi)
        best = position(ball, outcomes, e, (ball(x) + e) / 2).hockey(x)
        assert not best < ball(lo) and not best > ball(hi)


@pytest.mark.parametrize("order", [0.1, 1.0, 3.5, 30.0])
def test_moments_are_the_worst_over_positions_and_below_an_eighth_of_the_square(order, ball, outcomes):
    e, worst = ball(1), BoundedRange(1).moment(order)
    moments = [position(ball, outcomes, e, e * k / 400).log_moment(order) for k in range(1, 400)]
    assert all(not moment > ball(worst) for moment in moments)
    assert max(float(moment) for moment in moments) == pytest.approx(worst, rel=1e-4)
    assert worst <= order * (1 + order) / 8


def test_the_pair_has_the_moments_of_its_density(ball, encloses):
    class Density:
        def hockey(self, epsilon):
            y, e = ball(epsilon), ball(2)
            if abs(epsilon) >= 2:
                return (1 - y.exp()).max(ball(0))
            return (1 - ((y - e) / 2).exp()) ** 2 / (1 - (-e).exp())

        def log_moment(self, order):
            t, e = ball(order), ball(2)
            return ((e * (t + ball(0.5))).sinh() / ((2 * t + 1) * (e / 2).sinh())).log()

    pair = BoundedRange(2).directions()[0][0][0]
    encloses(pair, Density(), epsilons=(-5.0, -2.0, -1.0, 0.0, 0.3, 1.9999, 2.0, 3.0))
    assert pair.reversed() == pair


def test_many_releases_cost_less_by_moments_than_by_their_pure_bound():
    (_, upper), (_, pure) = (
        RenyiProfile.of(loss * 100).epsilon(1e-6) for loss in (BoundedRange(0.1), Pure(0.1))
    )
    assert upper < pure * 0.6


def test_a_group_has_a_multiple_of_the_range():
    assert BoundedRange(0.5).group(3) == BoundedRange(1.5)
