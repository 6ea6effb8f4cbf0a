from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from contract import check_json
from scipy.stats import binom

from dalenius.errors import DaleniusError, InvalidArgument
from dalenius.losses import DiscreteLaplace, Gaussian
from dalenius.mechanisms.histogram import Histogram
from dalenius.mechanisms.new_keys import Noise
from dalenius.privacy.unit import Relation


def test_records_are_counted_by_category_and_others_left_out_or_together() -> None:
    records: list[Any] = ["a", "b", "a", "1", 1, None, float("nan"), [1], "c", 2.5]
    assert Histogram(categories=["a", "1", 1], scale=1).counts(records).tolist() == [2, 1, 1]
    assert Histogram(categories=["a", "1", 1], scale=1, other=True).counts(records).tolist() == [2, 1, 1, 4]
    assert Histogram(categories=["a"], scale=1).counts(np.array(["a", "b"])).tolist() == [1]
    assert Histogram(categories=["a"], scale=1).counts([]).tolist() == [0]


def test_the_release_is_a_table_with_bars() -> None:
    found = Histogram.calibrate(epsilon=1, categories=["a", "b"], other=True).release(["a"] * 100)
    assert list(found.columns) == ["category", "n", "n_low", "n_high"]
    assert list(found.columns["category"]) == ["a", "b", None]
    assert (found["n_high"] - found["n_low"] == 6).all()
    assert "promise" in found.receipt.bounds[0]


def test_bars_cover_as_often_as_they_say() -> None:
    """False-alarm rate 1e-7."""
    for noise in ("laplace", "gaussian"):
        mechanism = Histogram(categories=["a", "b"], scale=3, noise=noise)
        off = np.abs(mechanism.sample(["b"], 40_000) - np.array([0, 1]))
        missed = int(np.count_nonzero(off > mechanism.error(0.1)))
        assert binom.sf(missed - 1, 80_000, 0.1) > 1e-7


def test_losses_are_those_of_the_counts_that_change() -> None:
    names = ["a", "b", "c", "d"]
    assert Histogram(categories=names, scale=2).loss == DiscreteLaplace(2)
    assert Histogram(categories=names, scale=2, l0=2, linf=3).loss == DiscreteLaplace(2, sensitivity=3) * 2
    swapped = Histogram(categories=names, scale=2, relation="replace").loss
    assert swapped == DiscreteLaplace(2, relation="replace") * 2
    assert Histogram(categories=["a"], scale=2, l0=5).loss == DiscreteLaplace(2)
    normal = Histogram(categories=names, scale=6, l0=4, linf=3, noise="gaussian").loss
    assert normal == Gaussian(1)


def moves(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> tuple[int, int, float]:
    apart = np.abs(first - second)
    return int(np.count_nonzero(apart)), int(apart.max(initial=0)), float(np.sqrt((apart**2).sum()))


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize(("l0", "linf"), [(1, 1), (2, 3), (3, 1)])
def test_no_unit_moves_the_counts_more_than_charged(relation: Relation, l0: int, linf: int) -> None:
    """Every unit of up to five records in three categories, one outside and none, among others."""
    names = ["a", "b", "c"]
    mechanism = Histogram(categories=names, scale=1, l0=l0, linf=linf, relation=relation, other=True)
    bound = mechanism.additive.sensitivity
    others, held = ["a", "b", "b"], ["x", "y", "y"]
    bags = [
        bag
        for size in (0, 1, 2, 5)
        for bag in itertools.combinations_with_replacement(["a", "b", "c", "z", None], size)
    ]
    found = [mechanism.counts([*others, *bag], ids=held + ["unit"] * len(bag)) for bag in bags]
    base = [found[0]] if relation == "add_remove" else found
    for first, second in itertools.product(base, found):
        count, most, norm = moves(first, second)
        assert count <= (bound.l0 or 0)
        assert most <= bound.need("linf")
        assert norm <= bound.need("l2") + 1e-9


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize(("l0", "size", "other"), [(1, 1, False), (1, 4, True), (2, 3, False), (3, 7, True)])
def test_the_cases_move_all_that_is_charged_and_every_row_in_turn(
    relation: Relation, l0: int, size: int, other: bool
) -> None:
    names = [*range(size)]
    mechanism = Histogram(categories=names, scale=1, l0=l0, linf=2, relation=relation, other=other)
    moved = [mechanism.counts(first) - mechanism.counts(second) for first, second in mechanism.cases()]
    for move in moved:
        assert sorted(np.abs(move).tolist())[::-1][: mechanism.additive.sensitivity.l0] == [2] * min(
            l0 * (2 if relation == "replace" else 1), size + other
        )
    assert np.any(moved, axis=0).all()


def test_a_unit_does_not_change_what_others_contribute() -> None:
    mechanism = Histogram(categories=["a", "b"], scale=1, l0=1, linf=2)
    alone = mechanism.counts(["a", "a", "a", "b"], ids=["u"] * 4)
    mixed = mechanism.counts(["b", "a", "a", "b", "a", "b"], ids=["v", "u", "u", "v", "u", "u"])
    assert alone.tolist() == [2, 0]
    assert mixed.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("noise", "delta", "relation"),
    [("laplace", 0, "add_remove"), ("laplace", 1e-5, "replace"), ("gaussian", 1e-5, "add_remove")],
)
def test_calibration_keeps_the_promise(noise: Noise, delta: float, relation: Relation) -> None:
    found = Histogram.calibrate(
        epsilon=1, delta=delta, categories=["a", "b", "c"], noise=noise, l0=2, relation=relation
    )
    assert found.loss.epsilon(delta).upper <= 1
    check_json(found)
    if noise == "laplace" and not delta:
        assert found.scale == 2
    if noise == "gaussian":
        # Balle and Wang 2018 at L2 sensitivity √2.
        assert float(found.scale) == pytest.approx(3.7306316348 * math.sqrt(2), rel=1e-9)


def test_texts_that_look_like_numbers_stay_texts() -> None:
    mechanism = Histogram(categories=["1", "1.50", "2/4", 1.5], scale=Fraction(1, 3))
    check_json(mechanism)
    assert mechanism.names == ["1", "1.50", "2/4", 1.5]
    assert mechanism.counts(["1", 1, 1.5, "1.5"]).tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    "categories", [[], ["a", "a"], [1, True], [float("nan")], [None], [["a"]], "abc", 5, '"abc"']
)
def test_bad_categories_are_refused(categories: Any) -> None:
    with pytest.raises(InvalidArgument, match="categories"):
        Histogram(categories=categories, scale=1)


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf")])
def test_bad_parameters_are_refused(scale: float) -> None:
    with pytest.raises(InvalidArgument):
        Histogram(categories=["a"], scale=scale)
    with pytest.raises(DaleniusError):
        Histogram.calibrate(epsilon=scale, categories=["a"])
    with pytest.raises(InvalidArgument):
        Histogram(categories=["a"], scale=1, l0=0)
    with pytest.raises(InvalidArgument):
        Histogram(categories=["a"], scale=1).release(["a", "a"], ids=["u"])
