from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dalenius.errors import InvalidArgument
from dalenius.losses.concentrated import Renyi, ZeroConcentrated
from dalenius.losses.laplace import Laplace
from dalenius.losses.pure import Approximate, Pure
from dalenius.losses.raw import DiscretePair
from dalenius.losses.renyi import RenyiProfile, divergence, set_aside, zcdp


def test_the_divergence_of_a_pair_is_enclosed_in_its_worse_direction(ball):
    p, q = (Fraction(1, 4), Fraction(3, 4)), (Fraction(1, 2), Fraction(1, 2))
    loss = DiscretePair(p, q) * 3
    for alpha in (Fraction(3, 2), Fraction(2), Fraction(10), Fraction(11, 3)):
        sides = []
        for a, b in ((p, q), (q, p)):
            terms = [ball(x) ** ball(alpha) * ball(y) ** (1 - ball(alpha)) for x, y in zip(a, b, strict=True)]
            sides.append(3 * sum(terms, ball(0)).log() / ball(alpha - 1))
        bound = divergence(loss, alpha)
        worst = max(sides, key=float)
        assert not worst < ball(bound.lower) and not worst > ball(bound.upper)
        assert bound.tight and bound.width < 1e-12


def test_order_one_is_kullback_and_leibler():
    loss = DiscretePair([0.25, 0.75], [0.5, 0.5])
    worst = max(0.25 * math.log(0.5) + 0.75 * math.log(1.5), 0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    bound = divergence(loss, Fraction(1))
    assert bound.lower <= worst <= bound.upper
    assert bound.width < 1e-6


def test_an_infinite_loss_has_an_infinite_divergence():
    assert divergence(Approximate(1, delta=0.1), Fraction(2)).lower == math.inf


def test_the_order_is_refused_by_name_and_range():
    for alpha in (0, Fraction(1, 2), 1 + Fraction(1, 10**9), 10**10):
        with pytest.raises(InvalidArgument, match="alpha must be 1, or from"):
            divergence(Pure(1), Fraction(alpha))


@pytest.mark.parametrize("epsilon", [0.01, 1, 4])
def test_pure_privacy_is_as_concentrated_as_is_known(epsilon):
    # ρ = ε·tanh(ε/2) is optimal (Steinke 2024, "Tight RDP & zCDP Bounds from Pure DP").
    bound = zcdp(Pure(epsilon))
    truth = epsilon * math.tanh(epsilon / 2)
    assert bound.lower <= truth * (1 + 1e-14) and truth <= bound.upper * (1 + 1e-14)
    assert bound.width <= 2e-4 * truth


def test_concentration_adds_up():
    single, five = zcdp(Laplace(1)), zcdp(Laplace(1) * 5)
    assert five.upper == pytest.approx(5 * single.upper, rel=2e-4)
    assert zcdp(Renyi(2, epsilon=1)).upper == math.inf


def test_the_conversion_is_that_of_canonne_kamath_and_steinke():
    # At ρ = 1/2 (a Gaussian of noise multiplier 1) and δ = 1e-5, by minimising their Proposition 12.
    profile = RenyiProfile.of(ZeroConcentrated(0.5))
    _, upper = profile.epsilon(1e-5)
    best = min(
        (t * (1 + t) / 2 + math.log(1e5) + t * math.log(t) - (1 + t) * math.log1p(t)) / t
        for t in (1 + k / 1000 for k in range(9000))
    )
    assert best * (1 - 1e-12) <= upper * (1 + 1e-6) and upper <= best * (1 + 1e-6)
    assert upper > 4.3771  # the Gaussian itself at δ = 1e-5, which no bound may undercut


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
def test_delta_and_epsilon_answer_alike(epsilon):
    profile = RenyiProfile.of(ZeroConcentrated(0.1) * 2 + Pure(0.3))
    _, delta = profile.delta(epsilon)
    assert profile.epsilon(delta * (1 + 1e-9))[1] <= epsilon + 1e-6


def test_a_pure_loss_is_never_undercut(ball):
    profile = RenyiProfile.of(Pure(1))
    for epsilon in (0.0, 0.4, 0.99):
        truth = ball(1).exp() / (1 + ball(1).exp()) * (1 - (ball(epsilon) - 1).exp())
        assert not truth > ball(profile.delta(epsilon)[1])


def test_events_set_aside_are_paid_for_once_each():
    failure, rest = set_aside(ZeroConcentrated(0.5, delta=1e-6) * 3 + Approximate(0.1, delta=1e-3))
    assert failure == pytest.approx(1 - (1 - 1e-6) ** 3 * (1 - 1e-3), rel=1e-12)
    assert rest == ZeroConcentrated(0.5) * 3 + Pure(0.1)
    profile = RenyiProfile.of(ZeroConcentrated(0.5, delta=1e-6))
    assert profile.epsilon(1e-6) == (0.0, math.inf)
    assert profile.epsilon(0.0) == (0.0, math.inf)
    assert profile.delta(50.0)[1] == pytest.approx(1e-6, rel=1e-6)


def test_one_order_says_what_mironov_said():
    # ε + log(1/δ)/(α−1) (Mironov 2017, Proposition 3), less what the sharper conversion gains.
    _, upper = RenyiProfile.of(Renyi(8, epsilon=0.1)).epsilon(1e-5)
    gain = (7 * math.log(7) - 8 * math.log(8)) / 7
    assert upper == pytest.approx(0.1 + math.log(1e5) / 7 + gain, rel=1e-9)
