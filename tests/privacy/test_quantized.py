"""Values on a grid: rounded toward zero record by record, summed exactly, never warned about."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dalenius.errors import InvalidArgument
from dalenius.privacy.quantized import MOST, TOTAL, Grid, clip_norm, exact_sum, saturate
from dalenius.privacy.sensitivity import Sensitivity

FLOATS = st.floats(allow_nan=True, allow_infinity=True)
EXPONENTS = st.integers(-60, 60)
INTEGERS = st.integers(-(2**63), 2**63 - 1)


def expected(value: float | int, grid: Grid, bound: int) -> int:
    """Rounded toward zero in rationals, then clipped to ±bound steps."""
    if isinstance(value, float) and not math.isfinite(value):
        return 0 if math.isnan(value) else bound if value > 0 else -bound
    return max(-bound, min(bound, math.trunc(Fraction(value) / grid.step)))


@given(st.lists(FLOATS, min_size=1, max_size=8), EXPONENTS, st.integers(0, MOST))
def test_floats_round_toward_zero_and_clip(values: list[float], exponent: int, bound: int) -> None:
    grid = Grid(exponent)
    steps = grid.quantize(np.array(values), lower=-bound * grid.step, upper=bound * grid.step)
    assert steps.tolist() == [expected(value, grid, bound) for value in values]


@given(st.lists(INTEGERS, min_size=1, max_size=8), st.integers(-70, 70), st.integers(0, MOST))
def test_integers_round_toward_zero_without_passing_through_floats(
    values: list[int], exponent: int, bound: int
) -> None:
    grid = Grid(exponent)
    array = np.array(values, dtype=np.int64)
    steps = grid.quantize(array, lower=-bound * grid.step, upper=bound * grid.step)
    assert steps.tolist() == [expected(value, grid, bound) for value in values]


def test_bounds_round_inward() -> None:
    steps = Grid(-1).quantize(np.array([-9.0, 0.0, 9.0]), lower=0.3, upper=1.2)
    assert steps.tolist() == [1, 1, 2]


@given(st.lists(FLOATS, max_size=6), st.permutations(range(6)), FLOATS)
def test_one_more_record_moves_the_sum_by_its_own_steps_whatever_the_order(
    values: list[float], order: list[int], record: float
) -> None:
    def total(records: list[float]) -> int:
        return exact_sum(Grid(-20).quantize(np.array(records, dtype=float), lower=-100, upper=100))

    mixed = [values[i] for i in order if i < len(values)]
    assert abs(total([*mixed, record]) - total(values)) == abs(total([record])) <= 100 * 2**20


@given(arrays.arrays(np.int64, st.integers(0, 20), elements=INTEGERS))
def test_sums_are_exact(steps: np.ndarray) -> None:
    assert exact_sum(steps) == sum(int(step) for step in steps)


@given(
    arrays.arrays(
        np.int64, st.tuples(st.integers(1, 5), st.integers(1, 6)), elements=st.integers(-MOST, MOST)
    ),
    st.fractions(min_value=Fraction(1, 100), max_value=2 * MOST),
    st.sampled_from(["l1", "l2"]),
)
def test_clipped_norms_are_within_the_bound_exactly(steps: np.ndarray, bound: Fraction, norm: str) -> None:
    for before, after in zip(steps.tolist(), clip_norm(steps, bound, norm=norm).tolist(), strict=True):
        size = sum(map(abs, after)) if norm == "l1" else Fraction(sum(entry**2 for entry in after))
        assert size <= (bound if norm == "l1" else bound**2)
        assert all(abs(a) <= abs(b) and a * b >= 0 for a, b in zip(after, before, strict=True))


def test_clipping_leaves_short_vectors_and_keeps_the_direction_of_long_ones() -> None:
    steps = np.array([[3, 4], [3000, 4000], [0, 0]])
    assert clip_norm(steps, 6, norm="l2").tolist() == [[3, 4], [3, 4], [0, 0]]
    assert clip_norm(steps, 10**400, norm="l1").tolist() == steps.tolist()


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(-1e9, 1e9), EXPONENTS)
def test_an_aggregate_is_within_its_charge(value: float, change: float, exponent: int) -> None:
    grid, other = Grid(exponent), value + change
    moved = abs(grid.aggregate(value) - grid.aggregate(other))
    distance = abs(Fraction(value) - Fraction(other)) if math.isfinite(other) else 0
    if distance:
        assert moved <= grid.charge(Sensitivity(l0=1, linf=distance)).need("l1")


@given(st.lists(st.tuples(st.fractions(-50, 50), st.fractions(-3, 3)), min_size=1, max_size=5))
def test_an_aggregate_vector_is_within_its_charge_in_every_norm(
    pairs: list[tuple[Fraction, Fraction]],
) -> None:
    changes = [abs(change) for _, change in pairs if change]
    moved = [abs(math.trunc(x) - math.trunc(x + change)) for x, change in pairs]
    if changes:
        charge = Grid(0).charge(Sensitivity(l0=len(changes), l1=sum(changes), linf=max(changes)))
        assert sum(moved) <= charge.need("l1") and max(moved) <= charge.need("linf")
        assert sum(step**2 for step in moved) <= charge.need("l2") ** 2


def test_aggregates_settle_what_is_not_finite_and_saturate() -> None:
    grid = Grid(-1000)
    assert [grid.aggregate(x) for x in (math.nan, math.inf, -math.inf, 1e300)] == [0, TOTAL, -TOTAL, TOTAL]
    assert saturate(-(2**200)) == -TOTAL
    with pytest.raises(InvalidArgument, match="l0"):
        grid.charge(Sensitivity(l1=1))


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_the_coarsest_grid_within_a_step(step: Fraction) -> None:
    grid = Grid.within(step)
    assert grid.step <= step < 2 * grid.step


@pytest.mark.parametrize("step", [1e-310, Fraction(1, 2**1100), 10**400])
def test_steps_beyond_all_measure_are_refused(step: object) -> None:
    with pytest.raises(InvalidArgument, match="step") as caught:
        Grid.within(step)
    assert "unit of measurement" in caught.value.remedy


@pytest.mark.parametrize("values", [[1.0], np.array(["1"]), np.array([1], dtype=np.uint64), np.array([1j])])
def test_only_typed_columns_are_read(values: object) -> None:
    with pytest.raises(InvalidArgument, match="numpy array"):
        Grid(0).quantize(values, lower=0, upper=1)


@pytest.mark.parametrize(("lower", "upper"), [(1, 0), (0.2, 0.8), (0, 2**63)])
def test_bounds_without_grid_points_or_beyond_64_bits_are_refused(lower: float, upper: float) -> None:
    with pytest.raises(InvalidArgument, match="lower and upper"):
        Grid(0).quantize(np.array([1.0]), lower=lower, upper=upper)
