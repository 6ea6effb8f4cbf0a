from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from contract import check_json
from scipy.stats import binom

from dalenius.errors import InvalidArgument
from dalenius.losses import DiscreteLaplace, Gaussian
from dalenius.mechanisms.marginals import Marginals
from dalenius.mechanisms.new_keys import Noise
from dalenius.privacy.unit import Relation

COLUMNS = {"sex": 2, "age": 3, "region": 4}


def test_every_marginal_counts_every_record() -> None:
    rng = np.arange(600).reshape(200, 3) * 7919 % 1000
    records = rng % np.array([2, 3, 4])
    mechanism = Marginals(columns=COLUMNS, marginals=[["age", "sex"], ["region"]], scale=1)
    counts = mechanism.counts(records)
    rows = mechanism.rows
    assert len(counts) == 6 + 4 == len(rows["marginal"])
    for i, count in enumerate(counts.tolist()):
        fixed = {j: rows[name][i] for j, name in enumerate(COLUMNS) if rows[name][i] is not None}
        assert count == sum(all(row[j] == code for j, code in fixed.items()) for row in records.tolist())


def test_the_release_is_one_table_with_one_receipt() -> None:
    mechanism = Marginals.calibrate(
        epsilon=1, delta=1e-6, columns=COLUMNS, marginals=[["sex"], ["sex", "region"]], weights=[1, 2]
    )
    found = mechanism.release(np.zeros((50, 3), dtype=np.uint8))
    assert list(found.columns) == ["marginal", "sex", "age", "region", "n", "n_low", "n_high"]
    assert list(found.columns["marginal"]) == ["sex"] * 2 + ["sex,region"] * 8
    assert set(found.columns["age"]) == {None}
    widths = found["n_high"] - found["n_low"]
    assert widths[0] > widths[-1]
    assert found.loss == mechanism.loss


def test_the_whole_costs_one_gaussian_at_the_weighted_norm() -> None:
    chosen = [["sex"], ["age"], ["region"]]
    mechanism = Marginals(columns=COLUMNS, marginals=chosen, weights=[2, 1, 2], scale=6)
    assert [part.scale for part, _ in mechanism.parts] == [3, 6, 3]
    assert mechanism.loss == Gaussian(2)
    twice = Marginals(columns=COLUMNS, marginals=chosen, weights=[2, 1, 2], scale=6, per_unit=2)
    assert twice.loss == Gaussian(1)
    swapped = Marginals(columns=COLUMNS, marginals=chosen[:1], scale=6, relation="replace").loss
    assert swapped.zcdp().upper == pytest.approx(1 / 36)


def test_laplace_tables_compose() -> None:
    mechanism = Marginals(columns=COLUMNS, marginals=[[0], [1]], weights=[1, 3], scale=6, noise="laplace")
    assert mechanism.loss == DiscreteLaplace(6) + DiscreteLaplace(2)
    found = Marginals.calibrate(epsilon=1, columns=COLUMNS, marginals=[[0], [1]], weights=[1, 3], per_unit=2)
    assert found.scale == 8
    assert found.loss.epsilon(0).upper == 1


def test_under_replace_records_leave_one_row_and_enter_another() -> None:
    mechanism = Marginals(
        columns=COLUMNS, marginals=[[0]], scale=6, noise="laplace", per_unit=3, relation="replace"
    )
    assert mechanism.loss == DiscreteLaplace(6, sensitivity=3, relation="replace") * 2
    single = Marginals(
        columns={"x": 1}, marginals=[[0]], scale=6, noise="laplace", per_unit=3, relation="replace"
    )
    assert single.loss == DiscreteLaplace(6, sensitivity=3, relation="replace")


@pytest.mark.parametrize("sizes", [{"x": 1}, {"x": 3, "y": 2}])
def test_the_worst_case_moves_all_that_is_charged(sizes: dict[str, int]) -> None:
    for relation in ("add_remove", "replace"):
        mechanism = Marginals(columns=sizes, marginals=[[0]], scale=1, per_unit=3, relation=relation)
        for first, second in mechanism.cases():
            apart = np.abs(mechanism.counts(first) - mechanism.counts(second))
            assert apart.sum() == mechanism.parts[0][0].sensitivity.l1


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_no_unit_moves_the_tables_more_than_charged(relation: Relation) -> None:
    """Every unit of up to three records, of which two count, codes outside the range among them."""
    mechanism = Marginals(
        columns={"a": 2, "b": 2},
        marginals=[["a", "b"], ["b"]],
        weights=[3, 1],
        scale=1,
        per_unit=2,
        relation=relation,
    )
    bound = mechanism.parts[0][0].sensitivity
    records = [[0, 0], [0, 1], [1, 0], [2, 1]]
    bags = [bag for size in range(4) for bag in itertools.combinations_with_replacement(records, size)]
    counts = [mechanism.counts([[1, 1], *bag], ids=["x"] + ["unit"] * len(bag)).astype(float) for bag in bags]
    for first, second in itertools.product(counts[:1] if relation == "add_remove" else counts, counts):
        for part in (slice(0, 4), slice(4, 6)):
            apart = np.abs(first - second)[part]
            assert apart.sum() <= bound.need("l1")
            assert math.sqrt((apart**2).sum()) <= bound.need("l2") + 1e-9


@pytest.mark.parametrize(("noise", "delta"), [("gaussian", 1e-5), ("laplace", 1e-5), (None, 1e-5), (None, 0)])
def test_calibration_keeps_the_promise(noise: Noise | None, delta: float) -> None:
    found = Marginals.calibrate(
        epsilon=1, delta=delta, columns=COLUMNS, marginals=[["sex"], ["age", "region"]], noise=noise
    )
    assert found.loss.epsilon(delta).upper <= 1
    check_json(found)
    if found.noise == "gaussian":
        # Balle and Wang 2018 at L2 sensitivity √2.
        assert float(found.scale) == pytest.approx(3.7306316348 * math.sqrt(2), rel=1e-9)


def test_bars_cover_as_often_as_they_say() -> None:
    """False-alarm rate 1e-7."""
    mechanism = Marginals(columns=COLUMNS, marginals=[["sex"], ["age"]], weights=[1, 2], scale=5)
    off = np.abs(mechanism.sample(np.zeros((7, 3), dtype=int), 30_000) - np.array([7, 0, 7, 0, 0]))
    for column, (part, _) in ((0, mechanism.parts[0]), (4, mechanism.parts[1])):
        missed = int(np.count_nonzero(off[:, column] > part.error(0.1)))
        assert binom.sf(missed - 1, 30_000, 0.1) > 1e-7
    assert mechanism.error(0.1) == mechanism.parts[0][0].error(0.1)


def test_odd_records_take_the_same_path() -> None:
    mechanism = Marginals(columns={"a": 2, "b": 2}, marginals=[["a"], ["b"]], scale=1)
    odd: list[Any] = [
        [0, 5],
        [-1, 1],
        ["a", 1],
        [1],
        None,
        [10**30, 0],
        [True, 0],
        [1.0, 0],
        [0, float("nan")],
    ]
    # 1.0 is the code 1: a null turns a column of integers into one of floats.
    assert mechanism.counts(odd).tolist() == [2, 1, 3, 2]
    assert mechanism.counts([]).tolist() == [0, 0, 0, 0]
    assert mechanism.counts(np.array([[2**64 - 1, 0]], dtype=np.uint64)).tolist() == [0, 0, 1, 0]
    with pytest.raises(InvalidArgument):
        mechanism.counts(np.array([["a", "b"]]))


@pytest.mark.parametrize(
    "columns", [{}, {"n": 2}, {"a": 0}, {"a": -1}, {"a": 2.5}, {1: 2}, "no json", "[1]", None, {"a": 2**30}]
)
def test_bad_columns_are_refused(columns: Any) -> None:
    with pytest.raises(InvalidArgument, match="columns"):
        Marginals(columns=columns, marginals=[[0]], scale=1)


@pytest.mark.parametrize("marginals", [[], [[]], [["x"]], [[0, 0]], [["sex", 0]], [[7]], [[0.5]], "sex", 3])
def test_bad_marginals_are_refused(marginals: Any) -> None:
    with pytest.raises(InvalidArgument, match="marginals"):
        Marginals(columns=COLUMNS, marginals=marginals, scale=1)


def test_bad_parameters_are_refused() -> None:
    for weights in ([1, 2], [0], [-1], [float("nan")]):
        with pytest.raises(InvalidArgument):
            Marginals(columns=COLUMNS, marginals=[[0]], scale=1, weights=weights)
    for scale in (0, -1, float("inf"), float("nan")):
        with pytest.raises(InvalidArgument):
            Marginals(columns=COLUMNS, marginals=[[0]], scale=scale)
    with pytest.raises(InvalidArgument):
        Marginals(columns={"a": 5000, "b": 5000}, marginals=[[0, 1]], scale=Fraction(1))
    with pytest.raises(InvalidArgument):
        Marginals.calibrate(epsilon=1, columns=COLUMNS, marginals=[[0]], noise="gaussian")
