from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from dalenius import oneliners as dp
from dalenius.errors import InvalidArgument, NotSound
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity
from dalenius.privacy.unit import Unit
from dalenius.release import AGGREGATE, EXACT, Release

AGES = np.arange(1000) % 100
PERSON = Unit("person")


def test_a_number_under_laplace_noise() -> None:
    found = dp.laplace(42, sensitivity=1, epsilon=1, grid=Grid(0))
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


def test_whole_numbers_stay_whole_where_that_is_asked_for() -> None:
    assert isinstance(dp.count(AGES, epsilon=1).value, int)
    for values in (AGES, AGES / 2):
        assert isinstance(dp.sum(values, lower=0, upper=100, epsilon=1, grid=Grid(0)).value, int)
        assert isinstance(dp.sum(values, lower=0, upper=100, epsilon=1).value, float)
    for value in (3, 3.5, np.int64(3)):
        assert isinstance(dp.laplace(value, sensitivity=1, epsilon=1).value, float)
        assert isinstance(dp.gaussian(value, sensitivity=1, epsilon=1, delta=1e-6, grid=Grid(0)).value, int)


COLUMNS = [
    np.array([1, 2, 3]),
    np.array([1.0, 2.0, math.nan]),
    np.array([1, 2, None], dtype=object),
    np.array([True, False]),
    np.array([2**64 - 1], dtype=np.uint64),
    np.array([], dtype=np.int64),
    np.ma.array([1, 2], mask=[False, True]),
    [1, 2, 3],
    [1, 2, None],
    [],
]


@pytest.mark.parametrize("call", [dp.sum, dp.mean, dp.median])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_what_a_null_makes_of_a_column_shows_in_nothing_but_the_number(
    call: Callable[..., Release], delta: float
) -> None:
    seen = {
        (
            found.receipt.mechanism,
            str(found.receipt.bounds),
            tuple(found.columns),
            *(type(cell) for column in found.columns.values() for cell in column),
        )
        for values in COLUMNS
        for found in [call(values, lower=0, upper=10, epsilon=1, delta=delta)]
    }
    assert len(seen) == 1


def test_what_a_null_makes_of_a_column_leaves_the_bars_as_they_are() -> None:
    """Up to the last digits of a float, as ends are rounded outward."""
    found = [dp.sum(values, lower=0, upper=10, epsilon=1) for values in COLUMNS]
    widths = [release.high - release.low for release in found]
    assert widths == pytest.approx([widths[0]] * len(widths), rel=1e-12)


def test_every_record_counts_whatever_it_holds() -> None:
    """At ε = 1000 the noise is zero but for e^-1000."""
    for records in ([1, 2, 3], [None, math.nan, 3], np.full(3, math.nan), np.zeros((3, 2))):
        assert dp.count(records, epsilon=1000).value == 3
        assert dp.count(records, epsilon=1000, ids=["ann", "bob", "ann"]).value == 2


@pytest.mark.parametrize("call", [dp.count, dp.sum, dp.mean, dp.histogram])
def test_there_is_one_id_for_each_record(call: Callable[..., Release]) -> None:
    known = {dp.count: {}, dp.histogram: {"categories": ["a"]}}.get(call, {"lower": 0, "upper": 1})
    with pytest.raises(InvalidArgument, match="ids and values differ in length"):
        call([1, 2, 3], epsilon=1, ids=["ann", "bob"], **known)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1, 1000])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_every_epsilon_has_an_answer(epsilon: float, delta: float) -> None:
    for call in (dp.sum, dp.mean):
        found = call([1.0, 2.0], lower=0, upper=100, epsilon=epsilon, delta=delta)
        assert found.loss.epsilon(delta).upper <= math.nextafter(epsilon, math.inf)
        assert found.low <= found.value <= found.high
    assert isinstance(dp.count([1], epsilon=epsilon, delta=delta).value, int)
    assert len(dp.histogram([1], categories=[1, 2], epsilon=epsilon, delta=delta)) == 2


WRONG = [0, -1, math.nan, math.inf, "1", True, [1], 1j, 10**400, np.array([1.0])]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: f"{value!s:.8}")
@pytest.mark.parametrize("name", ["epsilon", "delta", "lower", "upper", "per_unit", "unit", "ids", "grid"])
def test_what_was_passed_wrongly_is_named(name: str, wrong: object) -> None:
    allowed = {"delta": [0], "lower": [0, -1], "per_unit": []}
    if any(wrong is value for value in allowed.get(name, [])):
        return
    calls = {
        dp.sum: {"lower": 0, "upper": 0.5},
        dp.mean: {"lower": 0, "upper": 0.5},
        dp.median: {"lower": 0, "upper": 0.5},
        dp.count: {},
        dp.histogram: {"categories": ["a"]},
    }
    for call, known in calls.items():
        accepted = call.__kwdefaults__
        if name in accepted and (name != "upper" or wrong != 1):
            with pytest.raises(InvalidArgument, match=name) as caught:
                call([1, 2], **{"epsilon": 1, **known, name: wrong})
            assert caught.value.remedy


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, "1", True, 1e-200, 1e200, 10**400])
def test_a_wrong_sensitivity_is_named(wrong: object) -> None:
    for call in (dp.laplace, dp.gaussian):
        with pytest.raises(InvalidArgument, match="sensitivity"):
            call(3.5, sensitivity=wrong, epsilon=1, delta=1e-6)


@pytest.mark.parametrize("where", [1e12, 1e16, -1e17])
def test_a_median_far_from_zero(where: float) -> None:
    found = dp.median([where], lower=where, upper=where + 64, epsilon=1)
    assert where <= found.value <= where + 64
    with pytest.raises(InvalidArgument, match="grid points") as caught:
        dp.median([where], lower=where, upper=Fraction(where) + Fraction(1, 2**60), epsilon=1)
    assert "subtract a public number" in caught.value.remedy


@pytest.mark.parametrize("name", ["lower", "upper"])
@pytest.mark.parametrize("wrong", [10**400, -(10**400), math.nan, "1"], ids=["huge", "small", "nan", "text"])
def test_a_wrong_end_of_a_clamp_is_named(name: str, wrong: object) -> None:
    found = dp.count([1], epsilon=1)
    with pytest.raises(InvalidArgument, match=f"^{name} must be"):
        found.clamp(**{name: wrong})


class Table:
    """What a data frame of another library looks like."""

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.zeros((2, 2))


@pytest.mark.parametrize(
    "values",
    [
        3,
        "abc",
        b"abc",
        None,
        {"a": 1},
        {1, 2},
        np.zeros((2, 2)),
        np.array(3.0),
        np.array(["secret"]),
        np.array(["2020-01-01"], dtype="M8[D]"),
        np.array([1j]),
        Table(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_column_is_refused_by_its_type(values: object) -> None:
    for call in (dp.sum, dp.mean, dp.median):
        with pytest.raises(InvalidArgument, match=r"^values must be") as caught:
            call(values, lower=0, upper=1, epsilon=1)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("values", [3, "abc", None, {"a": 1}, np.array(3.0), (x for x in "abc")])
def test_what_has_no_length_is_not_counted(values: object) -> None:
    with pytest.raises(InvalidArgument, match=r"^records must be"):
        dp.count(values, epsilon=1)
    with pytest.raises(InvalidArgument, match=r"^values must be"):
        dp.histogram(values, categories=["a"], epsilon=1)


@pytest.mark.parametrize("value", [[1, 2], (1, 2), np.zeros(2)], ids=str)
def test_a_vector_is_refused_by_its_type(value: object) -> None:
    with pytest.raises(InvalidArgument, match=r"^A vector needs"):
        dp.laplace(value, sensitivity=1, epsilon=1)


@pytest.mark.parametrize("sensitivity", [1, Sensitivity(l0=3, linf=1)])
@pytest.mark.parametrize("value", [[1, [2, 3]], "3", None, True, {"a": 1}], ids=str)
def test_what_is_no_number_is_refused_by_its_type(value: object, sensitivity: object) -> None:
    for call in (dp.laplace, dp.gaussian):
        with pytest.raises(InvalidArgument, match=r"^value must be a number"):
            call(value, sensitivity=sensitivity, epsilon=1, delta=1e-6)


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
