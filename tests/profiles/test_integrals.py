from __future__ import annotations

from fractions import Fraction

import pytest

from dalenius.losses.discrete_gaussian import DiscreteGaussianPair
from dalenius.losses.laplace import LaplacePair
from dalenius.losses.raw import DiscretePair
from dalenius.losses.skellam import SkellamPair
from dalenius.profiles.integrals import integral, kullback_leibler, log_moment


@pytest.mark.parametrize("loss", ["1/100", "1", "10"])
@pytest.mark.parametrize("order", [0.01, 0.5, 1.0, 4.0])
def test_moments_of_laplace_come_out_of_its_profile(loss, order):
    pair = LaplacePair(Fraction(loss))
    (lo, hi), (low, high) = log_moment(pair, order), pair.log_moment(order)
    assert lo <= high and low <= hi
    assert hi - lo <= 1e-5 * hi


@pytest.mark.parametrize("loss", ["1/100", "1", "10"])
def test_the_divergence_of_laplace_is_known(loss, ball):
    # D_KL = ε − 1 + e^{−ε}.
    e = ball(Fraction(loss))
    truth = e - 1 + (-e).exp()
    ahead, back = (integral(LaplacePair(Fraction(loss)), Fraction(s)) for s in (0, -1))
    for lo, hi in ((ahead[0] + back[0], ahead[1] + back[1]), kullback_leibler(LaplacePair(Fraction(loss)))):
        assert not truth < ball(lo * (1 - 1e-15)) and not truth > ball(hi * (1 + 1e-15))
        assert hi - lo <= 2e-6 * hi


def test_unbounded_losses_are_cut_where_little_is_left():
    # D_KL of the discrete Gaussian is Δ²/(2σ²) exactly, as its mean is 0.
    pair = DiscreteGaussianPair(Fraction(2), 1)
    ahead, back = integral(pair, Fraction(0)), integral(pair, Fraction(-1))
    assert ahead[0] + back[0] <= 0.125 <= ahead[1] + back[1] <= 0.126
    assert kullback_leibler(pair) == (0.125, 0.125)
    lo, hi = kullback_leibler(SkellamPair(Fraction(4), 1))
    assert lo <= hi <= lo * (1 + 1e-3)


def test_laws_with_a_gap_are_enclosed(ball):
    p, q = (Fraction(1, 4), Fraction(3, 4)), (Fraction(1, 2), Fraction(1, 2))
    pair = DiscretePair(p, q).directions()[0][0][0]
    truth = sum((ball(a) * ball(a / b).log() for a, b in zip(p, q, strict=True)), ball(0))
    lo, hi = kullback_leibler(pair)
    assert not truth < ball(lo) and not truth > ball(hi)


def test_an_infinite_loss_makes_an_infinite_integral():
    pair = DiscretePair([0.5, 0.5], [1, 0]).directions()[0][0][0]
    assert integral(pair, Fraction(0))[1] == float("inf")
    lo, hi = integral(pair.reversed(), Fraction(-1))
    assert 0 < lo <= hi < 1
