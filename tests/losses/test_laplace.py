from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument
from dalenius.losses.laplace import Laplace, LaplacePair


class Densities:
    """The definition: P(x < m) − e^ε Q(x < m) at the threshold, and an integral over the three pieces."""

    def __init__(self, shift: arb) -> None:
        self.shift = shift

    def cdf(self, x: arb) -> arb:
        return x.exp() / 2 if x < 0 else 1 - (-x).exp() / 2

    def hockey(self, epsilon: float) -> arb:
        e = arb(epsilon)
        if e >= self.shift:
            return arb(0)
        if e <= -self.shift:
            return 1 - e.exp()
        threshold = (self.shift - e) / 2
        return self.cdf(threshold) - e.exp() * self.cdf(threshold - self.shift)

    def log_moment(self, order: float) -> arb:
        t, s = arb(order), self.shift
        middle = acb.integral(lambda x, _: (-x + t * (s - 2 * x)).exp() / 2, 0, s).real
        return ((t * s).exp() / 2 + (-(1 + t) * s).exp() / 2 + middle).log()


@pytest.mark.parametrize("scale", ["0.05", "0.4", "1", "7", "1000"])
def test_the_pair_is_enclosed(scale, ball, encloses):
    loss = Laplace(Fraction(scale))
    ((pair, count),) = loss.directions()[0]
    assert count == 1 and pair.reversed() == pair
    encloses(pair, Densities(1 / ball(Fraction(scale))))


def test_nothing_is_left_from_the_largest_loss_on():
    pair = LaplacePair(Fraction(1, 10))
    assert pair.hockey(np.array([0.1, 5.0, 1e300]))[1].tolist() == [0.0, 0.0, 0.0]
    assert pair.largest == Fraction(1, 10)


@given(a=st.floats(0.01, 3), b=st.floats(0.01, 3), epsilon=st.floats(-4, 4))
def test_two_coordinates_are_no_worse_than_one(a, b, epsilon):
    # E over the first coordinate's loss of H of the second, by a fine midpoint sum.
    x = (np.arange(4000) + 0.5) / 4000

    def inner(loss):
        return LaplacePair(Fraction(b)).hockey(np.atleast_1d(epsilon - loss))[1]

    middle = np.mean(inner(a * (1 - 2 * x)) * np.exp(-a * x)) * a / 2
    both = inner(a)[0] / 2 + inner(-a)[0] * np.exp(-a) / 2 + middle
    whole = LaplacePair(Fraction(a) + Fraction(b)).hockey(np.array([epsilon]))[1][0]
    assert both <= whole + 1e-6


def test_a_group_has_the_scale_divided():
    assert Laplace(3).group(4) == Laplace(0.75)


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), 1e200, 1e-9, "1", True])
def test_a_bad_scale_is_refused_by_name(scale):
    with pytest.raises(InvalidArgument, match="scale must be"):
        Laplace(scale)
    with pytest.raises(InvalidArgument, match="relation must be one of add_remove, replace, zero_out"):
        Laplace(1, relation="neighbours")
