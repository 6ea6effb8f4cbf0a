"""Values are counted in steps: so fine that bars hold the values themselves, and total for every range."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from planning.arrays import ArraysLoaded
from planning.asked import DELTA, asked, between, patient
from reference import ReferenceLoaded

from dalenius.errors import InvalidArgument
from dalenius.privacy.quantized import TOTAL
from dalenius.tables.bounds import Bounds
from dalenius.tables.engines.engine import WEIGHT
from dalenius.tables.planning.bars import Noisy
from dalenius.tables.planning.measures import largest
from dalenius.tables.planning.plan import Plan
from dalenius.tables.planning.searching import Found
from dalenius.tables.question import Interval

ONE = Bounds(rows=1)
TRUTHS: dict[str, Any] = {"sum": np.sum, "avg": np.mean, "var_pop": np.var, "stddev_pop": np.std}


SURE = 1 - Fraction(1, 10**8)
"""The confidence of bars one of which, of a few, fails with probability below 1e-6."""


def plan(*kinds: str, epsilon: Any = 1, delta: Any = DELTA, bounds: Bounds = ONE, **more: Any) -> Plan:
    return Plan.make(
        asked(*kinds, **more), unit=patient(), epsilon=epsilon, delta=delta, bounds=bounds, confidence=SURE
    )


@pytest.mark.parametrize("asking", [("sum",), ("count", "sum"), ("sum", "avg"), ("sum", "var_pop")])
@pytest.mark.parametrize("groups", [1, 1000])
def test_cutting_a_billion_values_moves_a_sum_by_little_of_its_noise(asking: Any, groups: int) -> None:
    made = plan(*asking, keys=tuple((g,) for g in range(groups)), within=between(0, 1))
    found = Found(Fraction(1), Fraction(1), 1, made.intervals, {})
    need = next(need for need in made.needs if need.kind == "sum")
    counted = len(made.needs) > 1
    noise = float(made.measure_noises[made.needs.index(need)].multiplier)
    # A row is cut by less than a step, and by half of one on average.
    assert 10**9 / 2 / largest(made.measure(need, found, groups)) <= noise * (0.2 if counted else 0.1)


@pytest.mark.parametrize("delta", [0, DELTA])
@pytest.mark.parametrize("within", [(0, 1), (-1, 0)])
def test_bars_hold_the_statistic_of_the_values_themselves(delta: Any, within: tuple[int, int]) -> None:
    """Each value lies just short of a step, so that cutting takes nearly a whole one from all of them."""
    number = 200_000
    asking = {"keys": ((0,),), "within": between(*within), "bounds": Bounds(rows=2)}
    made = plan("count", *TRUTHS, epsilon=200_000, delta=delta, **asking)
    need = next(need for need in made.needs if need.kind == "sum")
    measure = made.measure(need, Found(Fraction(2), Fraction(1), 1, made.intervals, {}), 1)
    assert measure.range is not None
    step = float(measure.range.grid.step)
    size = (np.arange(number) % 1000 + 0.999) * step
    values = size if within[0] == 0 else -size
    columns = made.run(ArraysLoaded(np.arange(number), np.zeros(number, int), values)).columns
    for kind, truth in TRUTHS.items():
        exact = float(truth(values))
        # At so large an epsilon noise is far below what cutting takes: no bar that ignores it holds.
        assert columns[f"{kind}_low"][0] <= exact <= columns[f"{kind}_high"][0], kind


@pytest.mark.parametrize("size", [1e300, 1e155, 1e121, 1e-121, 1e-200])
@pytest.mark.parametrize("kind", ["var_pop", "stddev_samp"])
def test_a_range_whose_squares_no_float_holds_is_refused_before_the_charge(size: float, kind: str) -> None:
    with pytest.raises(InvalidArgument, match="too far from 1 for a variance") as caught:
        plan(kind, bounds=Bounds(rows=1, ranges={"value_0": (-size, size)}))
    assert "1e120" in caught.value.remedy


@pytest.mark.parametrize("size", [1e119, 1.0, 1e-119])
@pytest.mark.parametrize("delta", [0, DELTA])
def test_variances_of_large_and_small_values_are_numbers(size: float, delta: Any) -> None:
    made = plan(
        "var_pop", "stddev_samp", epsilon=50, delta=delta, within=Interval(Fraction(-size), Fraction(size))
    )
    rows = [{"unit_0": i, "key_0": "a", "value_0": size * (-1) ** i, "distinct_0": 1} for i in range(500)]
    columns = made.run(ReferenceLoaded(rows, made.question.rows)).columns
    assert all(np.isfinite(column[0]) for name, column in columns.items() if name != "key")
    assert columns["var_pop"][0] == pytest.approx(size * size, rel=0.3)


def test_sums_of_any_size_are_held_where_floats_can_follow() -> None:
    law = plan("count").measure_noises[0].on(Fraction(WEIGHT), nonnegative=True)
    huge = np.array([[10**400], [-(10**400)], [2**70]], object)
    noisy = Noisy.drawn(huge, law)
    assert np.isfinite(noisy.values).all()
    assert abs(noisy.totals[0] - TOTAL) < 2**40 > abs(noisy.totals[2] - 2**70)
