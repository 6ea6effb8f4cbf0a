"""Wealth never grows on a true claim, falls from member to member, and grows on a false one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dalenius.audits.bets import Bet, Event, Wealth, choose
from dalenius.audits.families import Curve, Family, Point
from dalenius.losses import Approximate, DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Pure
from dalenius.losses.loss import Loss

ALARM = 1e-7
CLAIMS: list[Loss] = [
    Pure(1),
    Laplace(2),
    DiscreteLaplace(3),
    Gaussian(2),
    DiscreteGaussian(2),
    Approximate(0.5, delta=0.01),
    Gaussian(3).poisson(0.2) * 4,
    Gaussian(4) + Pure(0.1),
]
EVENT = Event("score", 1, 0, 0.5)


def families(claim: Loss) -> list[Family]:
    return [Curve(claim), Point(claim, Fraction(1, 100))]


@pytest.mark.parametrize("claim", CLAIMS, ids=repr)
def test_a_true_claim_lets_no_bet_grow_in_the_mean(claim: Loss) -> None:
    """Of the likeliest events that a line allows, the mean of the factor is 1 or less."""
    for family in families(claim):
        for anchor in (0.0, 0.2, 0.9):
            slope, intercept = family.line(family.own, anchor)
            for q in (0.0, 0.01, 0.2, 0.6):
                p = min(1.0, slope * q + intercept)
                for stake in (0.01, 0.9 / (slope + 1)):
                    gains = np.array([1 - slope, 1.0, -slope, 0.0]) - intercept
                    chances = np.array([p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)])
                    assert chances @ (1 + stake * gains) <= 1 + 1e-9
                    assert (1 + stake * gains >= 0).all()


@pytest.mark.parametrize("claim", CLAIMS, ids=repr)
@given(st.floats(0.01, 8), st.floats(0.01, 8), st.floats(0, 4))
@settings(max_examples=15, deadline=None)
def test_lines_rise_from_member_to_member(claim: Loss, one: float, other: float, anchor: float) -> None:
    for family in families(claim):
        low, high = sorted((one, other))
        first, second = family.line(low, anchor), family.line(high, anchor)
        assert first[0] <= second[0] and first[1] <= second[1] + 1e-12


@pytest.mark.parametrize("claim", CLAIMS, ids=repr)
def test_a_line_of_the_claim_is_nowhere_below_its_curve(claim: Loss) -> None:
    for epsilon in np.linspace(0, 6, 41).tolist():
        slope, intercept = Curve(claim).line(1.0, epsilon)
        assert slope >= math.exp(epsilon)
        assert intercept >= claim.delta(Fraction(f"{epsilon:.9e}")).lower - 1e-15


def test_members_with_less_noise_have_the_larger_epsilon() -> None:
    for claim in CLAIMS:
        found = [Curve(claim).epsilon(member, Fraction(1, 100)) for member in (0.5, 1.0, 2.0)]
        assert found == sorted(found)
        assert found[1] <= claim.epsilon(0.01).upper


def coins(chances: tuple[float, float], size: int, seed: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    draw = np.random.default_rng(seed)
    sides = [(draw.random(size) < chance).astype(float) for chance in chances]
    return {"score": (sides[0], sides[1])}


def test_wealth_on_what_the_claim_just_allows_reaches_its_need_no_oftener_than_it_may() -> None:
    """A coin that attains Pure(1), looked at after every batch: at risk 0.1, with alarm rate 1e-7."""
    chances = math.e / (1 + math.e), 1 / (1 + math.e)
    wrong, runs = 0, 80
    for run in range(runs):
        wealth = Wealth(Curve(Pure(1)), 0.1)
        past = coins(chances, 200, run)
        for batch in range(6):
            bet = choose(past, wealth.family, left=4000, need=wealth.need)
            fresh = coins(chances, 500, 10_000 * (batch + 1) + run)
            if bet is not None:
                wealth.add(bet, fresh)
            past = {
                "score": tuple(np.concatenate(s) for s in zip(past["score"], fresh["score"], strict=True))
            }
        wrong += wealth.shown > 1
    assert binom.sf(wrong - 1, runs, 0.1) > ALARM


def test_wealth_finds_what_is_there() -> None:
    """Power, not soundness: nine tenths of the ε of a coin."""
    chances = math.e / (1 + math.e), 1 / (1 + math.e)
    wealth = Wealth(Curve(Pure(2)), 0.05)
    bet = choose(coins(chances, 2000, 1), wealth.family, left=20_000, need=wealth.need)
    assert bet is not None
    wealth.add(bet, coins(chances, 20_000, 2))
    assert 0.9 < wealth.family.epsilon(wealth.shown, Fraction(0)) <= 1.05


def test_a_stake_that_could_ruin_counts_for_nothing() -> None:
    wealth = Wealth(Point(Pure(1), Fraction(0)), 0.1)
    wealth.add(Bet(EVENT, 0.0, 0.9, 0.0), coins((1.0, 0.0), 100, 3))
    assert wealth.shown <= math.log(1 / 0.9) + 1e-3


def test_inputs_that_look_alike_are_not_bet_on() -> None:
    same = {"score": (np.zeros(100), np.zeros(100))}
    assert choose(same, Curve(Pure(1)), left=100, need=3.0) is None


@pytest.mark.parametrize("claim", [Approximate(1, delta=1e-6), Pure(1) + Approximate(0, delta=1e-3)])
def test_a_broken_claim_is_not_taken_for_an_epsilon_beyond_all_measure(claim: Loss) -> None:
    """A coin of ε = 1.5 against claims of 1: their curves say that they are broken, not by how much."""
    from dalenius.audits.hunt import Hunt

    odds, draw = math.exp(1.5), np.random.default_rng(4)
    chances = odds / (1 + odds), 1 / (1 + odds)
    hunt = Hunt(claim, Fraction(1, 100), 0.01)
    scores = {"tests by the exact likelihood ratio": lambda draws: np.asarray(draws, dtype=float)}
    hunt.run(lambda n: tuple((draw.random(n) < p).astype(float) for p in chances), scores, 20_000)
    found = hunt.report(Fraction(99, 100), 20_000, None)
    assert found.violated and 1 < found.epsilon_lower < 1.6 and found.epsilon_any < 1.6
