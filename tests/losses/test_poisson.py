from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.concentrated import ZeroConcentrated
from dalenius.losses.discrete_gaussian import DiscreteGaussian
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.gaussian import Gaussian, GaussianDP, GaussianMixture
from dalenius.losses.laplace import Laplace
from dalenius.losses.pure import Approximate, Pure
from dalenius.losses.randomized_response import RandomizedResponse
from dalenius.losses.raw import DiscretePair
from dalenius.profiles.atoms import Atoms
from dalenius.profiles.gaussian_pairs import MixturePair

RATES = [Fraction(1, 100), Fraction(1, 2), Fraction(999, 1000)]


def thinned(truth, rate, outcomes):
    """By the definition: the mixture against the law without the unit, and the reverse."""
    remove = outcomes([((1 - rate) * q + rate * p, q) for p, q in truth.masses])
    add = outcomes([(p, (1 - rate) * p + rate * q) for p, q in truth.masses])
    return remove, add


@pytest.mark.parametrize("rate", RATES)
def test_a_sampled_pair_is_enclosed_both_ways(rate, ball, outcomes, encloses):
    p, q = (Fraction(1, 8), Fraction(3, 8), Fraction(1, 2)), (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    rows = [(ball(a), ball(b)) for a, b in zip(p, q, strict=True)]
    remove, add = DiscretePair(p, q).poisson(rate).directions()
    r = ball(rate)
    encloses(remove[0][0], outcomes([((1 - r) * b + r * a, b) for a, b in rows]))
    # The pair for adding a unit is (Q, P): without it, with it.
    encloses(add[0][0], outcomes([(b, (1 - r) * b + r * a) for a, b in rows]))
    assert isinstance(remove[0][0], Atoms) and isinstance(add[0][0], Atoms)


@pytest.mark.parametrize("rate", RATES)
def test_what_one_law_lacks_is_kept(rate, ball, outcomes, encloses):
    d, r = ball(Fraction(1, 10)), ball(rate)
    e = ball(1).exp()
    high, low = (1 - d) * e / (1 + e), (1 - d) / (1 + e)
    truth = outcomes([(d, ball(0)), (high, low), (low, high), (ball(0), d)])
    remove, add = thinned(truth, r, outcomes)
    ours = Approximate(1, delta=0.1).poisson(rate).directions()
    encloses(ours[0][0][0], remove, orders=())
    encloses(ours[1][0][0], add)


@pytest.mark.parametrize("rate", RATES)
def test_a_sampled_law_that_is_not_listed_is_enclosed_both_ways(rate, ball, outcomes, encloses):
    scale, shift = Fraction(2), 3
    a = (-1 / ball(scale)).exp()
    ends = (1 / (1 + a), a**shift / (1 + a))
    rows = [((1 - a) / (1 + a) * a**x, (1 - a) / (1 + a) * a ** (shift - x)) for x in range(1, shift)]
    remove, add = thinned(outcomes([*rows, ends, ends[::-1]]), ball(rate), outcomes)
    ours = DiscreteLaplace(scale, sensitivity=shift).poisson(rate).directions()
    near = (-1.0, -0.01, 0.0, 0.003, 0.2, 0.6, 1.4, 3.0)
    encloses(ours[0][0][0], remove, epsilons=near, orders=(1.0, 2.0, 7.0, 20.0))
    encloses(ours[0][0][0], remove, epsilons=near, orders=(0.5, 2.5), width=1e-5)
    encloses(ours[1][0][0], add, epsilons=near, orders=(0.5, 1.0, 2.5), width=1e-5)
    encloses(ours[0][0][0].reversed(), remove.reversed(), epsilons=near, orders=(1.0,), width=1e-5)


def test_a_sampled_unbounded_law_is_enclosed(ball, outcomes, encloses):
    half, reach = 1 / ball(Fraction(8)), 120
    weights = {x: (-half * x * x).exp() for x in range(-reach - 1, reach + 1)}
    total = sum(weights.values(), ball(0))
    truth = outcomes((weights[x] / total, weights[x - 1] / total) for x in range(-reach, reach + 1))
    remove, add = thinned(truth, ball(Fraction(1, 10)), outcomes)
    ours = DiscreteGaussian(2).poisson(0.1).directions()
    encloses(ours[0][0][0], remove, epsilons=(-0.1, 0.0, 0.1, 1.0), orders=(1.0, 3.0))
    encloses(ours[1][0][0], add, epsilons=(-1.0, 0.0, 0.01, 0.09), orders=())


@given(
    rate=st.fractions(Fraction(1, 1000), Fraction(999, 1000)),
    scale=st.fractions(Fraction(1, 10), Fraction(10)),
    epsilon=st.floats(-8, 8),
)
def test_both_directions_are_reverses_of_one_another(rate, scale, epsilon):
    # H_{Q‖P}(ε) = 1 − e^ε + e^ε H_{P‖Q}(−ε), and Laplace's pair is its own reverse.
    remove, add = (worst[0][0] for worst in Laplace(scale).poisson(rate).directions())
    assert add == remove.reversed()
    forward = remove.hockey(np.array([-epsilon]))[1][0]
    backward = add.hockey(np.array([epsilon]))
    assert backward[0][0] <= -np.expm1(epsilon) + np.exp(epsilon) * forward + 1e-12 * np.exp(abs(epsilon))


def test_a_composition_on_one_sample_is_multiplied_out_first():
    together = (Pure(0.1) * 5 + RandomizedResponse(0.5) * 4).poisson(0.1)
    apart = Pure(0.1).poisson(0.1) * 5 + RandomizedResponse(0.5).poisson(0.1) * 4
    assert together != apart
    assert len(together.directions()[0][0][0].atoms) == 6 * 5
    mixed = (Pure(1) * 2 + Laplace(1)).poisson(0.1)
    assert mixed.directions()[0][0][0].hockey(np.array([0.0]))[0][0] > 0


def test_a_rate_of_one_changes_nothing():
    assert Pure(1).poisson(1) == Pure(1)


def test_what_no_theorem_covers_is_refused_with_the_way_out():
    with pytest.raises(NotSound, match=r"replace.*add_remove"):
        Pure(1, relation="replace").poisson(0.1)
    with pytest.raises(NotSound, match="fresh sample"):
        ZeroConcentrated(1).poisson(0.1)
    with pytest.raises(NotSound, match="fresh sample"):
        (Laplace(1) * 2).poisson(0.1)
    with pytest.raises(InvalidArgument, match=r"sampling_rate must be in \(0, 1\]"):
        Pure(1).poisson(0)


def test_gaussians_become_mixtures_of_gaussians():
    sampled = Gaussian(2).poisson(0.1)
    (remove, _), (add, _) = (worst[0] for worst in sampled.directions())
    assert remove == MixturePair(((Fraction(0), Fraction(9, 10)), (Fraction(1, 2), Fraction(1, 10))))
    assert add == remove.reversed()
    assert sampled.poisson(0.5).directions() == Gaussian(2).poisson(0.05).directions()
    assert GaussianDP(0.5).poisson(0.1).directions() == sampled.directions()


def test_a_group_on_a_sample_is_a_binomial_mixture():
    group = Gaussian(2).poisson(0.5).group(2)
    assert group == GaussianMixture(2, weights=[0.25, 0.5, 0.25], shifts=[0, 1, 2])


@pytest.mark.parametrize("rate", [Fraction(1, 10**9), Fraction(1, 10**12), Fraction(1, 10**20)])
@pytest.mark.parametrize("epsilon", [0, 0.01, 0.5])
def test_tiny_rates_cost_no_more_than_being_seen(rate, epsilon):
    """δ ≤ n·q, the chance that the unit is in a sample at all; and the answer takes no unusual memory."""
    bound = (Gaussian(1).poisson(rate) * 1000).delta(epsilon)
    assert 0 <= bound.lower <= bound.upper <= float(1000 * rate) * (1 + 1e-12)


@pytest.mark.parametrize("noise_multiplier", [43, 48, 50, 60])
def test_next_to_nothing_is_not_taken_for_more(noise_multiplier: int) -> None:
    """Where no other route is narrow, moments are: δ(0), about 0.006, is no answer at ε = 2."""
    loss = Gaussian(noise_multiplier=noise_multiplier).poisson(Fraction(1, 5)) * 4
    assert loss.delta(2).upper < 1e-50 and loss.delta(Fraction(1, 2)).upper < 1e-50
