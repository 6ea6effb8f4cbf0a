"""Personal budgets by sampling: exact on small data, and as published."""

from __future__ import annotations

import copy
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses import Gaussian, Pure, ZeroConcentrated
from dalenius.losses.accountant import canonne_kamath_steinke, moments, sampled_gaussian
from dalenius.losses.individuals import PersonalSampling


def law(people, rates, epsilon):
    """A count of those who take part, by randomized response among 0, …, 3: exact, by enumeration."""
    total = np.zeros(4)
    for coins in itertools.product((0, 1), repeat=len(people)):
        chance = math.prod(rates[i] if c else 1 - rates[i] for i, c in zip(people, coins, strict=True))
        report = np.where(np.arange(4) == sum(coins), math.exp(epsilon), 1.0)
        total += chance * report / report.sum()
    return total


def test_everyone_gets_their_budget_and_whoever_is_alone_uses_it_up():
    wanted, top = (0.1, 0.5, 1.0), 1.0
    plan = PersonalSampling(Pure(top), epsilons=wanted)
    rates = [float(rate) for rate in plan.rates]
    worst = [0.0, 0.0, 0.0]
    for size in (1, 2, 3):
        for people in itertools.combinations(range(3), size):
            for person in people:
                with_person, rest = (
                    law(people, rates, top),
                    law([i for i in people if i != person], rates, top),
                )
                worst[person] = max(worst[person], np.abs(np.log(with_person / rest)).max())
    for found, allowed in zip(worst, wanted, strict=True):
        assert found <= allowed + 1e-12
        assert found == pytest.approx(allowed, rel=1e-9)


def test_rates_are_those_of_jorgensen_yu_and_cormode():
    # πᵢ = (e^ε − 1)/(e^t − 1), here with t = 1.
    plan = PersonalSampling(Pure(1), epsilons=[0.01, 0.2, 1])
    assert [float(r) for r in plan.rates] == pytest.approx(
        [math.expm1(e) / math.expm1(1) for e in (0.01, 0.2, 1)], rel=1e-10
    )
    for tier, epsilon in enumerate(plan.epsilons):
        assert plan.personal(tier).epsilon(0).upper <= epsilon
    assert plan.loss == Pure(1)


# Boenisch, Mühl, Dziedzic, Rinberg and Papernot 2023, Table 7 (Scale): δ = 1e-5, budgets ε = 1, 2, 3 of 34 %,
# 43 % and 23 % of the people; noise multipliers and clip norms of the groups, found with Opacus to 0.01.
# Last, what that noise costs exactly.
PUBLISHED = (
    (Fraction(1024, 73257), 2146, 0.9, (2.747, 1.589, 1.214), (0.561, 0.970, 1.270), (0.915, 1.834, 2.750)),
    (Fraction(1024, 50000), 1465, 0.4, (3.294, 1.868, 1.399), (0.244, 0.430, 0.574), (0.914, 1.832, 2.749)),
)


@pytest.mark.parametrize(("rate", "steps", "norm", "noise", "norms", "ours"), PUBLISHED)
def test_published_personal_noise_keeps_its_budgets_with_room(rate, steps, norm, noise, norms, ours):
    spread = sum(share / one for share, one in zip((0.34, 0.43, 0.23), noise, strict=True))
    assert [norm / spread / one for one in noise] == pytest.approx(norms, abs=5e-4)
    for epsilon, one, exact in zip((1, 2, 3), noise, ours, strict=True):
        theirs = moments(
            sampled_gaussian(one, sampling_rate=rate),
            delta=1e-5,
            count=steps,
            conversion=canonne_kamath_steinke,
        )
        assert theirs.epsilon == pytest.approx(epsilon, abs=0.015)
        found = (Gaussian(one).poisson(rate) * steps).epsilon(1e-5).upper
        assert found == pytest.approx(exact, abs=5e-4) and found < epsilon


def test_a_sampled_gaussian_has_the_largest_rates_that_keep_the_budgets():
    plan = PersonalSampling(Gaussian(2), epsilons=[0.5, 1], delta=1e-5, rounds=200)
    for tier, (rate, epsilon) in enumerate(zip(plan.rates, plan.epsilons, strict=True)):
        assert plan.personal(tier).epsilon(1e-5).upper <= epsilon
        assert plan.at(rate * Fraction(1001, 1000)).epsilon(1e-5).upper > epsilon
    assert plan.loss == plan.personal(1)


@given(st.fractions("1/10", 2, max_denominator=20), st.fractions("1/10", 2, max_denominator=20))
@settings(max_examples=10)
def test_a_smaller_budget_never_takes_part_more_often(one, other):
    plan = PersonalSampling(Pure(2), epsilons=sorted((one, other)))
    assert plan.rates[0] <= plan.rates[1] <= 1


def test_people_take_part_as_often_as_their_tier_does():
    # 20,000 coins of rate 0.2449 and as many of 1: six standard deviations, a false alarm below 1e-8.
    plan = PersonalSampling(Pure(1), epsilons=[0.35, 1])
    mask = plan.draw([0, 1] * 20_000)
    rate = float(plan.rates[0])
    assert mask[1::2].all()
    assert abs(mask[::2].mean() - rate) < 6 * math.sqrt(rate * (1 - rate) / 20_000)


def test_no_more_rounds_are_drawn_than_the_budgets_are_for():
    plan = PersonalSampling(Pure(1), epsilons=[0.35, 1], rounds=2)
    other = copy.copy(plan)
    with pytest.raises(InvalidArgument):
        plan.draw([2])
    plan.draw([0, 1])
    other.draw([0, 1])
    for one in (plan, other):
        with pytest.raises(NotSound, match="2 rounds"):
            one.draw([0, 1])
    assert plan == PersonalSampling(Pure(1), epsilons=[0.35, 1], rounds=2)


def test_what_does_not_fit_is_refused():
    for bad, name in (({"epsilons": []}, "epsilons"), ({"epsilons": [0]}, "epsilons")):
        with pytest.raises(InvalidArgument, match=name):
            PersonalSampling(Pure(1), **bad)
    with pytest.raises(InvalidArgument, match="each"):
        PersonalSampling(1, epsilons=[1])  # type: ignore[arg-type]
    with pytest.raises(NotSound, match="replace"):
        PersonalSampling(Pure(1, relation="replace"), epsilons=[0.5])
    with pytest.raises(NotSound):
        PersonalSampling(ZeroConcentrated(1), epsilons=[0.5], delta=1e-6)
    with pytest.raises(InvalidArgument, match="tiers"):
        PersonalSampling(Pure(1), epsilons=[0.5]).draw([1])
