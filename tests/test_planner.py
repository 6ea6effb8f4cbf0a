"""How many people an error needs, by the law of the noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dalenius import oneliners as dp
from dalenius.errors import InvalidArgument
from dalenius.planner import people_needed


def test_people_needed_for_a_count() -> None:
    """Discrete Laplace of scale 1: |noise| > 3 has probability 2e^-4/(1 + e^-1) = 0.027, > 2 has 0.073."""
    assert people_needed(error=0.05, epsilon=1) == 60
    assert people_needed(error=0.05, epsilon=0.1) > 590
    with pytest.raises(InvalidArgument, match="share"):
        people_needed(error=0.05, epsilon=1, population=1000)


def test_as_many_people_as_needed_suffice_for_a_mean() -> None:
    """False alarm 1e-7: the error is within 2 in nineteen cases of twenty."""
    needed = people_needed(error=2, epsilon=1, lower=0, upper=100)
    assert needed == pytest.approx(100 * 3.69 / 2 + 7.4, abs=2)
    values = np.zeros(needed)
    hit = sum(abs(dp.mean(values, lower=0, upper=100, epsilon=1).value) <= 2 for _ in range(200))
    assert binom.cdf(hit, 200, 0.95) > 1e-7


def test_a_sample_needs_more_people() -> None:
    alone = people_needed(error=0.05, epsilon=1, lower=0, upper=1)
    endless = people_needed(error=0.05, epsilon=1, lower=0, upper=1, population=math.inf)
    town = people_needed(error=0.05, epsilon=1, lower=0, upper=1, population=2000)
    assert alone < town < endless
    assert town <= 2000
    # Hoeffding alone: log(2/0.025)/(2·0.05²) = 876.
    assert endless > 876
    with pytest.raises(InvalidArgument, match="population would leave"):
        people_needed(error=0.001, epsilon=1, lower=0, upper=1, population=500)


@pytest.mark.parametrize(
    "bad",
    [
        {"error": 0},
        {"epsilon": -1},
        {"epsilon": 1e-12},
        {"epsilon": 1e9},
        {"confidence": 1},
        {"confidence": 2},
        {"lower": 0},
        {"population": 0.5, "lower": 0, "upper": 1},
        {"population": math.nan, "lower": 0, "upper": 1},
        {"population": "all", "lower": 0, "upper": 1},
    ],
)
def test_bad_plans_are_refused_by_name(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(bad))):
        people_needed(**{"error": 0.1, "epsilon": 1, **bad})


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1, 10**6])
def test_every_epsilon_has_a_plan(epsilon: float) -> None:
    """Of a mean, about the two-sided 95 % reach of two Laplace variables, −log(0.025) = 3.69 scales."""
    assert people_needed(error=0.05, epsilon=epsilon) >= 1
    needed = people_needed(error=1, epsilon=epsilon, lower=0, upper=100)
    assert needed == pytest.approx(102 * 3.6889 / epsilon, rel=0.01, abs=1)


def test_a_population_may_be_larger_than_any_float() -> None:
    huge = people_needed(error=0.05, epsilon=1, lower=0, upper=1, population=10**400)
    assert huge == people_needed(error=0.05, epsilon=1, lower=0, upper=1, population=math.inf)
