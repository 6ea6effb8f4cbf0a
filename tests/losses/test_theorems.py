"""The classical theorems: upper bounds stay above, and each says what it is."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument
from dalenius.losses.theorems import (
    Step,
    advanced,
    basic,
    gdp_clt,
    moments,
    optimal_heterogeneous,
    parallel,
    sampled_gaussian,
    zcdp,
)
from dalenius.profiles.balls import ball

EPSILONS = st.builds(Fraction, st.integers(1, 20), st.sampled_from([7, 10, 16]))


def subset_sum(epsilons: list[Fraction], deltas: list[Fraction], epsilon: float) -> arb:
    """δ(ε) by the sum over all subsets (Murtagh and Vadhan 2016, Theorem 1.5)."""
    with ctx.workprec(200):
        total, weight, kept = arb(0), arb(1), arb(1)
        for one, delta in zip(epsilons, deltas, strict=True):
            weight *= 1 + ball(one).exp()
            kept *= 1 - ball(delta)
        for signs in itertools.product((0, 1), repeat=len(epsilons)):
            chosen = sum((e for e, s in zip(epsilons, signs, strict=True) if s), Fraction(0))
            term = ball(chosen).exp() - (arb(epsilon) + ball(sum(epsilons) - chosen)).exp()
            total += term if term > 0 else 0
        return 1 - kept * (1 - total / weight)


def test_ten_times_a_tenth_is_one() -> None:
    assert basic(Step(0.1, count=10)).epsilon == 1.0


def test_basic_adds_both_parameters() -> None:
    answer = basic([Step(0.5, delta=1e-6, count=2), Step(1, delta=1e-7)])
    assert (answer.epsilon, answer.delta) == (2.0, Fraction(21, 10**7))


def test_advanced_is_the_formula_rounded_up() -> None:
    answer = advanced(Step(0.1, count=100), delta=1e-6).epsilon
    nearest = math.sqrt(200 * math.log(1e6)) * 0.1 + 10 * math.expm1(0.1)
    assert nearest * (1 - 1e-15) <= answer <= nearest * (1 + 1e-14)


def test_advanced_says_nothing_when_delta_is_spent() -> None:
    assert advanced(Step(0.1, delta=1e-6, count=10), delta=1e-5).epsilon == math.inf


def test_parallel_is_the_largest_and_two_under_replace() -> None:
    parts = [Step(1, count=3), Step(2)]
    assert parallel(parts).epsilon == 2.0
    assert parallel(parts, relation="replace").epsilon == 3.0


def test_zcdp_is_the_formula_rounded_up() -> None:
    nearest = 2.56 + 2 * math.sqrt(2.56 * math.log(1e10))
    assert nearest * (1 - 1e-15) <= zcdp(2.56, delta=1e-10).epsilon <= nearest * (1 + 1e-14)


def test_zcdp_at_the_edges() -> None:
    assert zcdp(0, delta=0).epsilon == 0.0
    assert zcdp(1, delta=0).epsilon == math.inf


@settings(max_examples=20)
@given(
    st.lists(EPSILONS, min_size=1, max_size=5),
    st.sampled_from([0, 1e-9, 1e-6]),
    st.sampled_from([1e-3, 1e-5]),
)
def test_heterogeneous_is_never_below_the_subset_sum(
    epsilons: list[Fraction], each: float, delta: float
) -> None:
    steps = [Step(one, delta=each) for one in epsilons]
    answer = optimal_heterogeneous(steps, delta=delta)
    truth = subset_sum(epsilons, [step.delta for step in steps], answer.epsilon)
    assert truth <= Fraction(str(delta)).numerator / Fraction(str(delta)).denominator * (1 + 1e-12)
    if answer.status == "exact" and answer.epsilon > 0:
        assert subset_sum(epsilons, [step.delta for step in steps], answer.epsilon * (1 - 1e-9)) > delta


def test_heterogeneous_keeps_its_rounding_guarantee() -> None:
    steps = [Step(Fraction(1, 7), count=60), Step(Fraction(1, 11), count=60), Step(Fraction(1, 13), count=60)]
    exact = optimal_heterogeneous(steps, delta=1e-6)
    odd = [Step(step.epsilon + Fraction(1, 10**9 + 7), count=step.count) for step in steps]
    rounded = optimal_heterogeneous(odd, delta=1e-6, slack=Fraction(1, 2))
    finer = optimal_heterogeneous(steps, delta=1e-6 * math.exp(-0.25))
    assert exact.status == "exact"
    assert rounded.status == "upper bound"
    assert exact.epsilon <= rounded.epsilon <= finer.epsilon + 0.5 + 1e-6


def test_heterogeneous_refuses_a_grid_that_does_not_fit() -> None:
    many = [Step(Fraction(1, 7), count=5000), Step(Fraction(1, 10**9 + 7), count=5000)]
    with pytest.raises(InvalidArgument, match="slack") as refused:
        optimal_heterogeneous(many, delta=1e-6, slack=1e-3)
    least = float(refused.value.remedy.split()[2])
    assert optimal_heterogeneous(many, delta=1e-6, slack=least).epsilon < math.inf


def test_moments_of_a_full_sample_are_those_of_the_gaussian() -> None:
    moment = sampled_gaussian(2, sampling_rate=1)
    assert moment(7) == pytest.approx(7 * 8 / (2 * 4), rel=1e-14)


def test_moments_without_delta_say_nothing() -> None:
    assert moments(sampled_gaussian(2, sampling_rate=1), delta=0).epsilon == math.inf


def test_the_central_limit_is_marked_as_an_approximation() -> None:
    limit = gdp_clt(4, sampling_rate=0.01, count=10_000, delta=1e-5)
    assert limit.status == "approximation"
    # Below the true 0.9468668008: it is no bound.
    assert 0.9 < limit.epsilon < 0.9468668


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf])
def test_a_bad_epsilon_is_refused_by_name(bad: float) -> None:
    with pytest.raises(InvalidArgument, match="epsilon"):
        Step(bad)


def test_no_steps_are_refused() -> None:
    with pytest.raises(InvalidArgument):
        basic([])
