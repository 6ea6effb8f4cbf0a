"""Meaning: odds, beliefs, attacks and words, each on the side that promises less."""

from __future__ import annotations

import json
import math
import warnings
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.losses import Gaussian, Laplace, Pure
from dalenius.losses.deployments import deployments, nearest, share_below
from dalenius.losses.meaning import DeltaWarning, check_delta, posterior
from dalenius.losses.words import at_most, chance, percent

PRIORS = st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999, 1000), max_denominator=1000)


@given(PRIORS, st.floats(min_value=0, max_value=30))
def test_beliefs_move_by_the_odds(prior: Fraction, epsilon: float) -> None:
    low, high = posterior(prior, epsilon)
    odds = prior / (1 - prior)
    assert 0 <= low <= prior <= high <= 1
    assert high == pytest.approx(
        float(odds) * math.exp(epsilon) / (1 + float(odds) * math.exp(epsilon)), rel=1e-12
    )
    assert low == pytest.approx(float(odds) / (float(odds) + math.exp(epsilon)), rel=1e-12)


@pytest.mark.parametrize("certain", [0, 1])
def test_certainty_does_not_move(certain: int) -> None:
    assert posterior(Fraction(certain), 5.0) == (certain, certain)


def test_without_a_bound_anything_may_be_believed() -> None:
    assert posterior(Fraction(1, 2), math.inf) == (0.0, 1.0)


def test_a_pure_loss_holds_in_every_case() -> None:
    meaning = Pure(1).meaning(0.1, delta=0)
    assert meaning.odds_factor == pytest.approx(math.e)
    assert meaning.posterior_high == pytest.approx(0.1 * math.e / (0.9 + 0.1 * math.e))
    assert "In every case" in str(meaning)
    assert "exception" not in str(meaning)


def test_delta_is_named_as_the_chance_of_failure() -> None:
    text = str(Gaussian(4).meaning(delta=1e-6))
    assert "1 in 1,000,000" in text
    assert "save for the exception below" in text


def test_attacks_are_those_of_the_loss() -> None:
    loss = Laplace(1)
    meaning = loss.meaning(delta=0)
    assert meaning.advantage == loss.advantage()
    assert meaning.true_positive_rate.upper >= 1 - loss.tradeoff(Fraction(1, 1000)).lower
    assert meaning.true_positive_rate.upper == pytest.approx(0.001 * math.e, rel=0.01)


def test_an_infinite_epsilon_is_said_so() -> None:
    assert "not bounded" in str(Gaussian(4).meaning(delta=0))


@pytest.mark.parametrize("relation", ["add_remove", "replace", "zero_out"])
def test_the_claim_follows_the_relation(relation: str) -> None:
    text = str(Laplace(1, relation=relation).meaning(delta=0))
    assert ("is in the data" in text) == (relation != "replace")


def test_json_and_figure_carry_the_numbers() -> None:
    meaning = Pure(1).meaning(delta=0)
    fields = json.loads(json.dumps(meaning.to_dict()))
    assert fields["posterior"]["high"] == meaning.posterior_high
    assert fields["sentences"] == list(meaning.sentences())
    high = meaning.figure().series[0]
    assert high.y[high.x.index(0.5)] == meaning.posterior_high


def test_a_delta_near_one_over_n_is_warned_about_and_the_advice_works() -> None:
    with pytest.warns(DeltaWarning, match="60,000") as caught:
        check_delta(Fraction(1, 10**5), 60_000)
    advised = Fraction(str(caught[0].message).split("Choose delta ")[1].split()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_delta(advised, 60_000)


def test_population_reaches_the_warning() -> None:
    with pytest.warns(DeltaWarning):
        Pure(1).epsilon(1e-3, population=1000)


def test_words_round_to_the_side_that_promises_less() -> None:
    assert percent(0.72041, "ROUND_CEILING") == "72.1%"
    assert percent(0.27952, "ROUND_FLOOR") == "27.9%"
    assert percent(1 - 1e-9, "ROUND_CEILING") != "100%"
    assert at_most(2.57751) == "2.578"
    assert chance(Fraction(3, 10**6)) == "1 in 333,333"


def test_deployments_are_sourced_and_ranked() -> None:
    listed = deployments()
    assert len(listed) >= 20
    assert all(row.source.startswith("https://") and row.epsilon > 0 for row in listed)
    assert len({(row.name, row.publisher) for row in listed}) == len(listed)
    assert share_below(0) == 0
    assert share_below(math.inf) == 1
    assert nearest(math.inf) is not None
    # The 2020 redistricting data: Abowd et al. 2022.
    assert nearest(17.1).epsilon == 17.14
