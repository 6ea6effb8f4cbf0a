from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.allocation.random_allocation import RandomAllocation, allocate
from dalenius.losses.concentrated import ZeroConcentrated
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.laplace import Laplace
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate, Pure
from dalenius.losses.raw import DiscretePair
from dalenius.profiles.allocation.atoms import allocated
from dalenius.profiles.allocation.pair import Allocated
from dalenius.profiles.atoms import Atoms, rational
from dalenius.profiles.discrete import discrete_profile
from dalenius.profiles.gaussian_pairs import ShiftPair

SMALL = [Fraction(1, 8), Fraction(3, 8), Fraction(1, 2)], [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]


def epoch(p, q, steps):
    """By the definition: the masses of all outcomes of an epoch, with the unit and without it."""
    for outcome in product(range(len(p)), repeat=steps):
        without = math.prod(q[i] for i in outcome)
        with_unit = sum(
            p[outcome[j]] * math.prod(q[i] for k, i in enumerate(outcome) if k != j) for j in range(steps)
        )
        yield with_unit / steps, without


def exact_hockey(rows, ratio):
    """H at ε = log ratio, as a rational."""
    return sum(max(p - ratio * q, 0) for p, q in rows)


@pytest.mark.parametrize("steps", [2, 3, 5])
def test_a_finite_step_is_enclosed_both_ways_as_all_outcomes_say(steps, ball, outcomes, encloses):
    rows = [(ball(a), ball(b)) for a, b in epoch(*SMALL, steps)]
    remove, add = allocate(DiscretePair(*SMALL), steps).directions()
    assert isinstance(remove[0][0], Atoms)
    encloses(remove[0][0], outcomes(rows))
    encloses(add[0][0], outcomes([(b, a) for a, b in rows]))


@settings(max_examples=6)
@given(
    weights=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=2, max_size=3),
    steps=st.sampled_from([2, 3, 4]),
    backward=st.booleans(),
)
def test_convolutions_enclose_what_enumeration_says(weights, steps, backward):
    totals = [sum(w[i] for w in weights) for i in (0, 1)]
    if 0 in totals or not any(a and b for a, b in weights):
        return
    p, q = ([Fraction(w[i], totals[i]) for w in weights] for i in (0, 1))
    rows = list(epoch(p, q, steps))
    pair = Allocated(rational(zip(p, q, strict=True)), steps, backward)
    ratios = [Fraction(1, 5), Fraction(1), Fraction(9, 8), Fraction(3), Fraction(40)]
    for ratio in ratios:
        epsilon = math.log(ratio)
        truth = exact_hockey([(b, a) for a, b in rows] if backward else rows, ratio)
        below, above = np.nextafter(epsilon, -np.inf), np.nextafter(epsilon, np.inf)
        assert pair.hockey(np.array([above]))[0][0] <= truth * (1 + Fraction(1, 10**12))
        assert pair.hockey(np.array([below]))[1][0] >= truth * (1 - Fraction(1, 10**12))


@pytest.mark.parametrize(("sigma", "level"), [(1.0, 1.1), (1.0, 4.0), (3.0, 1.3), (0.5, 30.0)])
def test_two_gaussian_steps_are_as_an_integral_says(sigma, level):
    # Given X₁, the call on the mean of two is half a call on X₂, which has a closed form.
    mu = 1 / sigma
    z = np.linspace(-12, 12 + 2 * mu, 60_001)
    first = np.exp(mu * z - mu * mu / 2)
    strike = 2 * level - first
    loss = np.log(np.where(strike > 0, strike, 1.0))
    closed = Gaussian(sigma).directions()[0][0][0].hockey(loss)[1]
    call = np.where(strike > 0, closed, 1 - strike) / 2
    truth = np.trapezoid(call * np.exp(-z * z / 2) / math.sqrt(2 * math.pi), z)
    low, high = Allocated(ShiftPair(1 / Fraction(sigma)), 2).hockey(np.array([math.log(level)]))
    assert low[0] <= truth * (1 + 1e-6) and truth * (1 - 1e-6) <= high[0]
    assert high[0] - low[0] <= 1e-3 * high[0]


def test_a_thousand_steps_agree_with_the_public_code_and_beat_poisson():
    # Feldman and Shenfeld's public accountant gives 0.1364 to 0.1422 for σ = 1, t = 1000, δ = 1e-5.
    bound = allocate(Gaussian(1), 1000).epsilon(1e-5)
    assert 0.1364 <= bound.lower <= bound.upper <= 0.1422
    assert bound.width <= 1e-4 * bound.upper and bound.tight
    assert bound.upper < (Gaussian(1).poisson(Fraction(1, 1000)) * 1000).epsilon(1e-5).lower


def test_the_second_moment_is_the_closed_form():
    # E S² = 1 + (e^{1/σ²} − 1)/t in closed form: the Rényi divergence of order 2.
    pair = allocate(Gaussian(2), 50).directions()[0][0][0]
    truth = math.log1p(math.expm1(0.25) / 50)
    assert pair.log_moment(1.0) == pytest.approx((truth, truth), rel=1e-12)
    low, high = pair.log_moment(2.0)
    third = (math.exp(0.75) + 3 * 49 * math.exp(0.25) + 49 * 48) / 2500
    assert low <= math.log(third) * (1 + 1e-12) and math.log(third) * (1 - 1e-12) <= high <= low * (1 + 1e-12)


def test_a_simulation_agrees():
    # Chua et al. 2025 estimate the same expectation. Bernstein's inequality on 200,000 means in [0, 1]: false
    # alarms below 1e-6 either way.
    draws, steps, sigma = 200_000, 20, 1.0
    rng = np.random.default_rng(20)
    pair = allocate(Gaussian(sigma), steps).directions()
    mean = np.exp(rng.standard_normal((draws, steps)) / sigma - 0.5 / sigma**2).mean(axis=1)
    for worst, epsilon in ((pair[1], 0.1), (pair[1], 0.4)):
        seen = np.maximum(1 - math.exp(epsilon) * mean, 0.0)
        slack = math.sqrt(2 * seen.var() * 1.1 * 15.5 / draws) + 15.5 / draws
        low, high = worst[0][0].hockey(np.array([epsilon]))
        assert low[0] - slack <= seen.mean() <= high[0] + slack


def test_a_large_epoch_is_near_the_normal_limit():
    # S is nearly N(1, s²), s² = (e^{1/σ²} − 1)/t, so that δ(0) is nearly s/√(2π).
    bound = allocate(Gaussian(4), 5000).delta(0)
    limit = math.sqrt(math.expm1(1 / 16) / 5000 / (2 * math.pi))
    assert bound.width <= 1e-3 * bound.upper
    assert float(bound) == pytest.approx(limit, rel=1e-2)


def test_pure_steps_keep_their_largest_loss_and_approximate_ones_their_failure():
    loss = allocate(Pure(1), 6)
    assert loss.epsilon(0).upper == pytest.approx(1.0) and loss.epsilon(1e-3).upper < 1
    leaking = allocate(Approximate(1, delta=0.01), 6)
    assert leaking.directions()[0][0][0].infinite_mass[0] == pytest.approx(0.01)
    assert leaking.directions()[1][0][0].infinite_mass[1] == pytest.approx(0.01**6)
    assert allocate(Laplace(1), 40).epsilon(0) == allocate(Laplace(1), 41).epsilon(0)


def test_epochs_compose_with_anything_and_in_any_order():
    loss = allocate(Laplace(1), 30)
    once, twice = loss.epsilon(1e-6), (loss * 2).epsilon(1e-6)
    both = (loss * 2 + Gaussian(8)).epsilon(1e-6)
    assert once.upper < twice.lower < twice.upper < both.lower
    assert twice.width <= 0.01 * twice.upper
    assert loss * 2 + Gaussian(8) == Gaussian(8) + loss + loss


@pytest.mark.parametrize("backward", [False, True])
def test_a_composition_of_convolutions_encloses_that_of_all_outcomes(backward):
    step = Pure(1).directions()[0][0][0]
    finite = allocated(step, 6)
    exact = discrete_profile(((finite.reversed() if backward else finite, 3),))
    ours = discrete_profile(((Allocated(step, 6, backward), 3),))
    for epsilon in (0.0, 0.5, 1.5):
        truth, found = exact.delta(epsilon), ours.delta(epsilon)
        assert found[0] <= truth[1] and truth[0] <= found[1] <= truth[1] * 1.001


@settings(max_examples=8)
@given(steps=st.integers(2, 60), scale=st.sampled_from([0.5, 1.0, 2.0]), epsilon=st.floats(0, 2))
def test_more_steps_never_cost_more_and_never_more_than_one(steps, scale, epsilon):
    few, many = allocate(Pure(scale), steps), allocate(Pure(scale), 2 * steps)
    at = [loss.delta(epsilon) for loss in (Pure(scale), few, many)]
    assert at[2].lower <= at[1].upper * (1 + 1e-9) and at[1].lower <= at[0].upper * (1 + 1e-9)


@given(steps=st.integers(2, 10**6), sigma=st.fractions(Fraction(1, 4), Fraction(9)))
def test_the_json_round_trip_is_the_same_loss(steps, sigma):
    loss = allocate(Gaussian(sigma), steps)
    assert Loss.from_json(loss.to_json()) == loss


def test_the_json_evaluates_the_same():
    loss = allocate(Pure(1), 12)
    assert Loss.from_json(loss.to_json()).epsilon(1e-4) == loss.epsilon(1e-4)


def test_bad_parameters_and_what_no_theorem_covers_are_refused():
    assert allocate(Pure(1), 1) == Pure(1)
    for steps in (0, 2.5, -3, 10**10):
        with pytest.raises(InvalidArgument, match="steps must be a whole number"):
            allocate(Pure(1), steps)
    with pytest.raises(InvalidArgument, match="loss must be a loss"):
        RandomAllocation("gaussian", 3)
    for make in (allocate, RandomAllocation):
        with pytest.raises(NotSound, match=r"replace.*add_remove"):
            make(Pure(1, relation="replace"), 10)
    with pytest.raises(NotSound, match="one pair of distributions"):
        allocate(ZeroConcentrated(1), 10)
    with pytest.raises(NotSound, match="one pair of distributions"):
        allocate(Laplace(1) * 2, 10)


def test_zero_out_means_the_same_and_groups_are_bounded_along_a_path():
    loss = allocate(Pure(1, relation="zero_out"), 10)
    assert loss.relation == "zero_out"
    assert loss.epsilon(1e-3) == allocate(Pure(1), 10).epsilon(1e-3)
    group = loss.group(2)
    assert not group.tight and group.epsilon(1e-3).upper > loss.epsilon(1e-3).upper


def test_far_out_both_sides_are_those_of_one_step():
    pair = allocate(Gaussian(1), 100).directions()[0][0][0]
    far = np.array([12.0, 30.0])
    low, high = pair.hockey(far)
    one = Gaussian(1).directions()[0][0][0]
    assert (low <= high).all() and (high <= one.hockey(far)[1]).all()
    assert (low >= one.hockey(far + math.log(100) + 1e-12)[0]).all()


def test_whole_numbers_are_asked_as_floats():
    pair = RandomAllocation(Gaussian(0.5), 100).directions()[0][0][0]
    assert np.array_equal(pair.hockey(np.array([1])), pair.hockey(np.array([1.0])))


def test_steps_within_steps_are_steps():
    assert Gaussian(1).random_allocation(4).random_allocation(5) == Gaussian(1).random_allocation(20)


def test_a_moment_is_no_larger_than_that_of_one_step():
    for order in (3, 20, 40, 63.5):
        assert Gaussian(50).random_allocation(3).renyi(order + 1).upper <= Gaussian(50).renyi(
            order + 1
        ).upper * (1 + 1e-9)
