from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from dalenius import oneliners as dp
from dalenius.errors import InvalidArgument, NotSound
from dalenius.planner import people_needed
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Unit
from dalenius.release import AGGREGATE, EXACT, Release

AGES = np.arange(1000) % 100
PERSON = Unit("person")


def test_a_number_under_laplace_noise() -> None:
    found = dp.laplace(42, sensitivity=1, epsilon=1)
    assert isinstance(found.value, int)
    assert (found.high - found.value, found.receipt.cost, found.receipt.numerics) == (
        3,
        "epsilon 1",
        AGGREGATE,
    )
    part = dp.laplace(4.2, sensitivity=0.5, epsilon=0.1)
    assert isinstance(part.value, float)
    assert part.loss.epsilon(0).upper == 1 / 10


def test_a_number_under_gaussian_noise() -> None:
    found = dp.gaussian(42, sensitivity=1, epsilon=1, delta=1e-6)
    assert found.loss.epsilon(1e-6).upper <= 1
    assert found.receipt.cost == "epsilon 1 at delta 1e-06"


def test_vectors_say_how_many_entries_change() -> None:
    with pytest.raises(InvalidArgument, match="Sensitivity"):
        dp.laplace(np.zeros(3), sensitivity=1, epsilon=1)
    bound = Sensitivity(l0=3, linf=1)
    assert dp.laplace(np.zeros(3), sensitivity=bound, epsilon=1).value.shape == (3,)
    assert dp.gaussian(np.zeros(3), sensitivity=bound, epsilon=1, delta=1e-6).value.shape == (3,)
    assert dp.laplace([1, 2, 3], sensitivity=bound, epsilon=1).loss.epsilon(0).upper <= 1 + 1e-12


def test_counts_sums_and_means_are_within_their_bars_as_often_as_they_say() -> None:
    """False alarm 1e-7 for each."""
    truths = {"count": 1000, "sum": AGES.sum(), "mean": AGES.mean()}
    hits = dict.fromkeys(truths, 0)
    for _ in range(60):
        for name in truths:
            bounds = {} if name == "count" else {"lower": 0, "upper": 100}
            found = getattr(dp, name)(AGES, epsilon=1, **bounds)
            hits[name] += found.low <= truths[name] <= found.high
            assert found.receipt.numerics == EXACT
    assert all(binom.cdf(hit, 60, 0.95) > 1e-7 for hit in hits.values())


def test_whole_numbers_stay_whole() -> None:
    assert isinstance(dp.sum(AGES, lower=0, upper=100, epsilon=1).value, int)
    assert isinstance(dp.sum(AGES / 2, lower=0, upper=100, epsilon=1).value, float)
    assert isinstance(dp.count(AGES, epsilon=1).value, int)


def test_with_a_delta_the_law_with_the_shorter_bar_is_taken() -> None:
    one = dp.sum(AGES, lower=0, upper=100, epsilon=1, delta=1e-6)
    assert '"noise":"laplace"' in one.receipt.mechanism
    ids = np.repeat(range(20), 50)
    many = dp.histogram(AGES, categories=range(100), epsilon=1, delta=1e-6, per_unit=50, ids=ids)
    assert '"noise":"gaussian"' in many.receipt.mechanism
    assert many.loss.epsilon(1e-6).upper <= 1


def test_the_median_is_near() -> None:
    found = dp.median(AGES.astype(float), lower=0, upper=100, epsilon=5)
    # With 10 records a value and ε = 5 a rank error of 150 has probability below e^-300.
    assert 30 <= found.value <= 70
    assert found.low is None
    assert "±" not in str(found) and "%" not in str(found)


def test_a_histogram_of_several_records_needs_to_know_whose_they_are() -> None:
    with pytest.raises(InvalidArgument, match="ids"):
        dp.histogram(["a"], categories=["a"], epsilon=1, per_unit=2)


def test_a_histogram_counts_each_category() -> None:
    found = dp.histogram(["a", "b", "a", "z"], categories=["a", "b", "c"], epsilon=100)
    assert found["category"].tolist() == ["a", "b", "c"]
    assert found["n"].tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dp.mean(AGES, epsilon=1), "mean needs lower and upper: the least and the most"),
        (lambda: dp.mean(AGES, lower=0, upper=1), "mean needs epsilon: how much"),
        (lambda: dp.sum(AGES, lower=0, epsilon=1), "sum needs upper"),
        (lambda: dp.count(AGES), "count needs epsilon"),
        (lambda: dp.laplace(3, epsilon=1), "laplace needs sensitivity: how far"),
        (lambda: dp.gaussian(3, epsilon=1, sensitivity=1), "gaussian needs delta"),
        (lambda: dp.median(AGES, epsilon=1), "median needs lower and upper"),
        (lambda: dp.histogram(AGES, epsilon=1), "histogram needs categories"),
    ],
)
def test_what_is_missing_is_named(call: Callable[[], Release], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        call()


def test_the_unit_says_the_relation() -> None:
    swapped = Unit("person", relation="replace")
    assert dp.mean(AGES, lower=0, upper=100, epsilon=1, unit=swapped).loss.relation == "replace"
    assert dp.mean(AGES, lower=0, upper=100, epsilon=1, unit=PERSON).receipt.unit == PERSON
    assert dp.laplace(3, sensitivity=1, epsilon=1, unit=swapped).loss.relation == "replace"
    with pytest.raises(NotSound, match="len"):
        dp.count(AGES, epsilon=1, unit=swapped)


def test_people_with_several_records() -> None:
    ids = np.repeat(["ann", "bob"], 500)
    assert dp.count(AGES, epsilon=1000, per_unit=3, ids=ids).value == 6
    assert dp.sum(np.ones(1000), lower=0, upper=1, epsilon=1000, per_unit=3, ids=ids).value == pytest.approx(
        6, abs=1
    )
    assert "hash" in dp.mean(AGES, lower=0, upper=100, epsilon=1, per_unit=3, ids=ids).receipt.bounds[1]


ODD = [[], [math.nan], [None, 3], [math.inf, -math.inf], [10**400], np.array([], dtype=np.int32), ["x"]]


@pytest.mark.parametrize("values", ODD, ids=str)
def test_odd_columns_give_a_release(values: object) -> None:
    for call in (dp.sum, dp.mean, dp.median):
        found = call(values, lower=-1, upper=1, epsilon=1)
        assert isinstance(found, Release) and math.isfinite(found.value)
    assert isinstance(dp.count(values, epsilon=1).value, int)
    assert len(dp.histogram(values, categories=["x"], epsilon=1)) == 1


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


@pytest.mark.parametrize("bad", [{"error": 0}, {"epsilon": -1}, {"confidence": 1}, {"lower": 0}])
def test_bad_plans_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument):
        people_needed(**{"error": 0.1, "epsilon": 1, **bad})
