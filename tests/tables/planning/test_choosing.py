"""Bounds chosen from noisy histograms are near the best there are, and never absurd."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from planning.arrays import ArraysLoaded
from planning.asked import DELTA, asked, patient

from dalenius.tables.bounds import Bounds
from dalenius.tables.engines.engine import WEIGHT, Bounding, Measure
from dalenius.tables.planning.plan import Plan


def simulated(people: int, groups: int, *, rows: int = 10, heavy: bool = True) -> ArraysLoaded:
    """Rows of people of very different activity, in groups of very different size."""
    dice = np.random.default_rng(people + groups)
    activity = dice.pareto(1.5, people) + 1 if heavy else np.ones(people)
    sizes = 1 / np.arange(1, groups + 1)
    number = people * rows
    units = dice.choice(people, number, p=activity / activity.sum())
    return ArraysLoaded(units, dice.choice(groups, number, p=sizes / sizes.sum()), dice.gamma(2, 20, number))


def errors(data: ArraysLoaded, groups: int, epsilon: float, runs: int) -> tuple[list[float], float]:
    """Mean absolute errors of counts: of runs that find the bound themselves, and of the best bound."""
    keys = tuple((g,) for g in range(groups))
    truth = np.bincount(data.groups, minlength=groups)
    found = Plan.make(asked("count", keys=keys), unit=patient(), epsilon=epsilon, delta=DELTA)
    given = Plan.make(
        asked("count", keys=keys), unit=patient(), epsilon=epsilon, delta=DELTA, bounds=Bounds(rows=1)
    )
    scale = float(given.measure_noises[0].multiplier)
    noise = np.random.default_rng(1).normal(0, scale, (10, groups))
    best = np.inf
    for limit in 2.0 ** (np.arange(28) / 2):
        totals = data.totals(keys, [Measure("rows")], Bounding("l2", Fraction(limit)))[:, 0] / WEIGHT
        best = min(best, float(np.abs(totals - truth + limit * noise).mean()))
    return [
        float(np.abs(np.array(found.run(data).columns["count"]) - truth).mean()) for _ in range(runs)
    ], best


def test_counts_of_many_groups_are_not_far_from_those_with_the_best_bound() -> None:
    # A bound that makes honest intervals narrow is larger than the one of the least error: errors are about
    # twice the least. In 2 of 120 runs they were more than 8 times: five of nine are so below 2e-7.
    found, best = errors(simulated(100_000, 1000), 1000, 1.0, 9)
    assert np.median(found) <= 8 * best


@pytest.mark.parametrize("heavy", [True, False])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_small_tables_are_answered_sensibly(heavy: bool, epsilon: float) -> None:
    # Each ratio is below 10 but for a false sighting far off: in 2 of 400 runs, so four of eight are not.
    found, best = errors(simulated(200, 10, heavy=heavy), 10, epsilon, 8)
    assert sorted(found)[-4] <= 10 * best


def ranges(data: ArraysLoaded, kinds: tuple[str, ...], groups: int, delta: Any = DELTA) -> Any:
    """The middle of nine ranges found, each end by itself.

    Noise passes for a value in one run in fifty or so: in five of nine with probability below 1e-6.
    """
    keys = tuple((g,) for g in range(groups))
    plan = Plan.make(asked(*kinds, keys=keys), unit=patient(), epsilon=2, delta=delta)
    found = [plan._searching.run(data, keys).intervals[0] for _ in range(9)]
    ends = np.array([(float(one.lower), float(one.upper)) for one in found if one is not None])
    return np.median(ends, axis=0)


@pytest.mark.parametrize("delta", [0, DELTA])
def test_a_range_is_found_where_values_lie(delta: Any) -> None:
    lower, upper = ranges(simulated(5000, 5), ("sum", "avg"), 5, delta)
    assert -16 <= lower <= 32 <= upper <= 1024 and upper - lower >= 8


@pytest.mark.parametrize("ends", [(-40, 80), (100, 110), (-110, -100)])
def test_values_of_both_signs_and_far_from_zero(ends: tuple[int, int]) -> None:
    values = np.random.default_rng(3).uniform(*ends, 20_000)
    data = ArraysLoaded(np.arange(20_000), np.zeros(20_000, int), values)
    lower, upper = ranges(data, ("avg",), 1)
    width = ends[1] - ends[0]
    assert lower <= ends[0] + width / 20 and upper >= ends[1] - width / 20 and upper - lower <= 8 * width


def limits(kinds: tuple[str, ...], data: ArraysLoaded, groups: int) -> dict[Any, float]:
    keys = tuple((g,) for g in range(groups))
    plan = Plan.make(asked(*kinds, keys=keys), unit=patient(), epsilon=1, delta=DELTA)
    found = plan._searching.run(data, keys)
    return {place: float(limit) for place, limit in found.limits.items()}


def test_a_median_does_not_push_down_the_bound_of_a_count() -> None:
    data = simulated(20_000, 100)
    alone = np.median([limits(("count",), data, 100)["rows", None] for _ in range(9)])
    beside = np.median([limits(("count", "quantile"), data, 100)["rows", None] for _ in range(9)])
    # The median takes half of the cost, so that the count's own noise asks for a smaller bound.
    assert beside >= alone / 3


def test_groups_without_rows_do_not_push_down_the_bound_of_others() -> None:
    data = simulated(20_000, 100)
    few = np.median([limits(("count",), data, 100)["rows", None] for _ in range(9)])
    data.size = 3000
    many = np.median([limits(("count",), data, 3000)["rows", None] for _ in range(9)])
    assert many >= few / 3


@pytest.mark.parametrize(("centre", "width"), [(2000, 30), (-5e6, 1e4), (40, 3)])
def test_a_range_far_from_zero_is_found_closely(centre: float, width: float) -> None:
    """First where values lie, then how widely: no more than a few times the width of what there is."""
    values = centre + width * np.random.default_rng(4).uniform(-1 / 2, 1 / 2, 20_000)
    data = ArraysLoaded(np.arange(20_000), np.zeros(20_000, int), values)
    lower, upper = ranges(data, ("avg",), 1)
    assert lower <= centre - 0.45 * width and upper >= centre + 0.45 * width
    assert upper - lower <= 4 * max(width, abs(centre) / 64)
