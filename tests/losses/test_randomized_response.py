from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dalenius.errors import InvalidArgument
from dalenius.losses.randomized_response import RandomizedResponse
from dalenius.profiles.binomial import two_point


@pytest.mark.parametrize("randomize", ["0.001", "0.5", "0.9", "1"])
@pytest.mark.parametrize("categories", [2, 3, 17])
@pytest.mark.parametrize("relation", ["add_remove", "replace", "zero_out"])
def test_the_reports_of_two_values_are_enclosed(randomize, categories, relation, ball, outcomes, encloses):
    other = Fraction(randomize) / categories
    true = 1 - Fraction(randomize) + other
    first = [true, other] + [other] * (categories - 2)
    second = [other, true] + [other] * (categories - 2)
    loss = RandomizedResponse(Fraction(randomize), categories=categories, relation=relation)
    pair = loss.directions()[0][0][0]
    truth = outcomes((ball(p), ball(q)) for p, q in zip(first, second, strict=True))
    encloses(pair, truth)
    encloses(pair.reversed(), truth.reversed())


@pytest.mark.parametrize("categories", [2, 5])
def test_an_absent_person_who_reports_at_random_is_covered(categories):
    loss = RandomizedResponse(0.3, categories=categories)
    pair = loss.directions()[0][0][0]
    other = 0.3 / categories
    present, uniform = np.array([0.7 + other] + [other] * (categories - 1)), 1 / categories
    for epsilon in np.linspace(-3, 3, 41):
        worst = pair.hockey(np.array([epsilon]))[1][0]
        assert np.maximum(present - np.exp(epsilon) * uniform, 0).sum() <= worst + 1e-12
        assert np.maximum(uniform - np.exp(epsilon) * present, 0).sum() <= worst + 1e-12


def test_a_thousand_reports_cost_more_than_one():
    # dp-accounting 0.6.0 gives 0.2007, the cost of one report, for a thousand.
    ((pair, count),) = (RandomizedResponse(0.9) * 1000).directions()[0]
    assert count == 1000
    lower, upper = two_point(pair, count).epsilon(1e-6)
    assert 40 < lower <= upper < lower * (1 + 1e-9)


def test_nothing_random_hides_nothing():
    pair = RandomizedResponse(0).directions()[0][0][0]
    assert pair.infinite_mass == (1.0, 1.0)
    assert pair.hockey(np.array([30.0]))[0][0] == 1.0


def test_a_group_sends_as_many_reports():
    assert RandomizedResponse(0.5).group(3) == RandomizedResponse(0.5) * 3


def test_the_arguments_are_refused_by_name():
    with pytest.raises(InvalidArgument, match=r"randomize must be in \[0, 1\]"):
        RandomizedResponse(1.5)
    with pytest.raises(InvalidArgument, match="categories must be a whole number from 2"):
        RandomizedResponse(0.5, categories=1)
