from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from contract import divergence

from dalenius.errors import InvalidArgument
from dalenius.mechanisms.bounded_sum import BoundedSum
from dalenius.mechanisms.mechanism import Law
from dalenius.privacy.quantized import Grid
from dalenius.privacy.unit import Unit


@pytest.mark.parametrize(
    ("relation", "per_unit", "expected"),
    [("add_remove", 1, 5), ("add_remove", 3, 15), ("zero_out", 1, 5), ("replace", 1, 7), ("replace", 3, 21)],
)
def test_sensitivity(relation: str, per_unit: int, expected: int) -> None:
    made = BoundedSum(lower=-2, upper=5, scale=1, relation=relation, per_unit=per_unit, grid=Grid(0))
    assert made.bound.linf == expected
    assert made.loss.epsilon(0).upper == expected


def test_under_replace_a_unit_may_also_have_fewer_records() -> None:
    made = BoundedSum(lower=5, upper=10, scale=1, relation="replace", per_unit=2, grid=Grid(0))
    assert made.bound.linf == 20
    first, second = made.worst_case()
    assert (len(first), second.tolist()) == (0, [10, 10])


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("bounds", [(-2, 1), (0, 2), (1, 3)])
def test_no_neighbours_are_further_apart_than_claimed(relation: str, bounds: tuple[int, int]) -> None:
    """Every data set of up to two records, on a coarse grid, by the exact laws."""
    made = BoundedSum(lower=bounds[0], upper=bounds[1], scale=2, relation=relation, grid=Grid(0))
    values = [-9.0, -1.5, 0.0, 0.7, 1.0, 2.9, math.inf, math.nan]
    seen: dict[object, tuple[Law, Law]] = {}
    for base in ([], [1.2]):
        if relation == "add_remove":
            pairs = [(base, [*base, x]) for x in values]
        else:
            pairs = [([*base, x], [*base, y]) for x, y in product(values, repeat=2)]
        for first, second in pairs:
            p, q = (made.probabilities(np.array(side, dtype=float)) for side in (first, second))
            assert p is not None and q is not None
            seen.setdefault(p.outcomes[0] - q.outcomes[0], (p, q))
    assert max(abs(shift) for shift in seen) == made.bound.linf
    claims = {epsilon: made.loss.delta(epsilon).upper for epsilon in (0.0, 0.4, 1.0)}
    for p, q in seen.values():
        for epsilon, claim in claims.items():
            assert max(divergence(p, q, epsilon), divergence(q, p, epsilon)) <= claim + 1e-9


def test_the_order_of_records_and_their_rounding_change_nothing() -> None:
    """Casacuberta et al. 2022: sums of floats move by more than a record when it is added."""
    made = BoundedSum.calibrate(epsilon=1, lower=0, upper=1)
    values = np.array([2.0**-53] * 1000 + [1.0, 0.1, 0.3] * 100)
    forth, back = (made.totals(made.vectors(side))[0] for side in (values, values[::-1]))
    assert forth == back
    more = made.totals(made.vectors(np.append(values, 1.0)))[0]
    assert (more - forth) * made.step == 1


def test_rounding_on_the_default_grid_is_small() -> None:
    values = np.linspace(0, 1, 1001)
    made = BoundedSum.calibrate(epsilon=1, lower=0, upper=1)
    total = float(made.totals(made.vectors(values))[0] * made.step)
    assert values.sum() - 1001 * 2.0**-30 <= total <= values.sum() + 1e-9


def test_records_far_from_zero_keep_their_digits_under_replace() -> None:
    made = BoundedSum.calibrate(epsilon=10**6, lower=10**9, upper=10**9 + 1, relation="replace")
    found = made.release(np.full(100, 10**9 + 0.5))
    assert found.value == pytest.approx(100 * (10**9 + 0.5), abs=0.01)


def test_what_is_missing_counts_as_absent_or_as_zero() -> None:
    values = np.array([3.0, math.nan])
    absent = BoundedSum(lower=2, upper=4, scale=1, grid=Grid(0))
    assert absent.totals(absent.vectors(values)).tolist() == [3]
    zero = BoundedSum(lower=2, upper=4, scale=1, grid=Grid(0), relation="replace")
    assert float(zero._offset(values)) + zero.totals(zero.vectors(values))[0] == 5


def test_odd_data_give_a_number() -> None:
    made = BoundedSum.calibrate(epsilon=1, lower=-1, upper=1)
    for values in ([], [math.nan], [math.inf, -math.inf], [1e308] * 3, [10**400], np.array([], dtype=int)):
        found = made.release(values)
        assert math.isfinite(found.value) and found.low < found.value < found.high


def test_a_unit_with_many_records_counts_no_more_than_it_may() -> None:
    made = BoundedSum.calibrate(epsilon=1000, lower=0, upper=1, per_unit=2)
    values, ids = np.ones(1000), np.repeat(["ann", "bob"], 500)
    found = made.release(values, ids=ids, unit=Unit("person", column="id"))
    assert found.value == pytest.approx(4, abs=0.5)
    assert found.receipt.bounds == (
        "values clipped to [0, 1]",
        "at most 2 records per unit, chosen by a hash of its id",
    )
    with pytest.raises(InvalidArgument):
        made.release(values, ids=ids[:-1])


def test_calibration() -> None:
    assert BoundedSum.calibrate(epsilon=0.5, lower=0, upper=10, grid=Grid(0)).scale == 20
    both = BoundedSum.calibrate(epsilon=1, delta=1e-5, lower=0, upper=1, noise="gaussian", grid=Grid(-10))
    assert float(both.scale) == pytest.approx(3.7306316348, rel=1e-9)
    assert both.loss.epsilon(1e-5).upper <= 1


@pytest.mark.parametrize(
    "bad",
    [
        {"scale": 0},
        {"scale": -1},
        {"scale": math.nan},
        {"scale": math.inf},
        {"lower": 1},
        {"upper": math.inf},
        {"lower": math.nan},
        {"per_unit": 0},
        {"noise": "normal"},
        {"relation": "swap"},
        {"grid": Grid(3)},
        {"grid": 1},
    ],
)
def test_bad_parameters_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        BoundedSum(**{"lower": 0, "upper": 1, "scale": 1, **bad})


def test_confidence_is_kept() -> None:
    made = BoundedSum(lower=0, upper=1, scale=1, grid=Grid(0))
    found = made.release([1.0], confidence=0.5)
    assert found.confidence == Fraction(1, 2)
    assert found.high - found.value == made.error(0.5)
