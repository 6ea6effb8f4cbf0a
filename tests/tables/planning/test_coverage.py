"""Error bars hold the bounded statistic as often as they say, for every aggregate.

Each of many groups is one trial. Coverage is tested one-sided: with true coverage of 95 % or more, a test
fails with probability below 1e-6.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from planning.arrays import ArraysLoaded
from planning.asked import DELTA, VALUED, aggregate, asked, between, patient
from scipy.stats import binom
from sizes import slow

from dalenius.tables.bounds import Bounds
from dalenius.tables.engines.engine import WEIGHT, Bounding
from dalenius.tables.language.formulas import AggregateValue, Constant, Operation
from dalenius.tables.planning.bars import Noisy
from dalenius.tables.planning.estimates import Totals
from dalenius.tables.planning.measures import ends
from dalenius.tables.planning.plan import Plan
from dalenius.tables.planning.searching import Found
from dalenius.tables.question import Output

GROUPS = 1500
KEYS = tuple((g,) for g in range(GROUPS))
LEAST = int(binom.ppf(1e-7, GROUPS, 0.95))
BOUNDS = Bounds(rows=2, groups=None, pairs=1)


@cache
def loaded() -> ArraysLoaded:
    """Groups of very different sizes, of units in one group each; some have more rows than count."""
    dice = np.random.default_rng(5)
    people = dice.integers(1, 400, GROUPS)
    groups = np.repeat(np.arange(GROUPS), people)
    rows = dice.integers(1, 5, groups.size)
    units, groups = np.repeat(np.arange(groups.size), rows), np.repeat(groups, rows)
    return ArraysLoaded(units, groups, dice.gamma(2, 12, groups.size))


def made(kinds: tuple[str, ...], epsilon: float, delta: Any, relation: Any = "add_remove") -> Plan:
    question = asked(*kinds, keys=KEYS, within=between(0, 90), groups_per_unit=1)
    return Plan.make(question, unit=patient(relation), epsilon=epsilon, delta=delta, bounds=BOUNDS)


def bounded(plan: Plan, kind: str) -> Any:
    """The statistic without noise, by the same formulas; quantiles from the values themselves."""
    found = Found(Fraction(2), Fraction(1), 1, plan.intervals)
    bounding = Bounding(plan.norm, found.limit, found.presence, found.pairs)
    measures = {need.place: plan.measure(need, found, GROUPS) for need in plan.needs}
    if kind in ("quantile", "min", "max"):
        return ordered(plan, kind, measures["tree", 0], bounding)
    noisy, start = {}, 0
    totals = loaded().totals(KEYS, list(measures.values()), bounding)
    for need in plan.needs:
        law, width = plan.law(need, measures[need.place], bounding), measures[need.place].width
        noisy[need.place] = Noisy(totals[:, start], law)
        start += width
    exact = Totals(plan.question, measures, noisy, found)
    return exact.bars(aggregate(kind), Fraction(1, 2)).value


def ordered(plan: Plan, kind: str, measure: Any, bounding: Bounding) -> Any:
    """The least value up to which half of the weight lies; or the first, or the last."""
    table = loaded()
    least, most = ends(measure.range)
    step = float(measure.range.grid.step)
    values = np.clip(np.trunc(table.values[0] / step), least, most) * step
    weights = table._weights(KEYS, float(bounding.limit), bounding.norm, False)[table.units] / WEIGHT
    order = np.lexsort((values, table.groups))
    found = []
    for part in np.split(order, np.searchsorted(table.groups[order], np.arange(1, GROUPS))):
        sums = np.cumsum(weights[part])
        at = {"min": 0, "max": -1, "quantile": int(np.searchsorted(sums, sums[-1] / 2))}[kind]
        found.append(values[part][at])
    return np.array(found)


def covered(plan: Plan, kind: str, truth: Any) -> int:
    columns = plan.run(loaded()).columns
    low, high = (np.array(columns[f"{kind}_{end}"], float) for end in ("low", "high"))
    value = np.array(columns[kind], float)
    assert np.all((low <= value) & (value <= high))
    return int(np.sum((low <= truth) & (truth <= high)))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, DELTA), (6, 0), *slow([(0.3, 0), (6, DELTA)])])
@pytest.mark.parametrize("kind", ["count", *VALUED, "units"])
def test_bars_hold_the_bounded_statistic(kind: str, epsilon: float, delta: Any) -> None:
    plan = made((kind,), epsilon, delta)
    assert covered(plan, kind, bounded(plan, kind)) >= LEAST


@pytest.mark.parametrize("relation", ["replace", "zero_out"])
@pytest.mark.parametrize("kind", ["count", "avg", "var_pop", "quantile"])
def test_bars_hold_under_every_relation(kind: str, relation: Any) -> None:
    plan = made((kind,), 2, DELTA, relation)
    assert covered(plan, kind, bounded(plan, kind)) >= LEAST


@pytest.mark.parametrize("kind", ["count", "sum", "avg"])
def test_bars_are_no_wider_than_the_law_says(kind: str) -> None:
    # With noise of dozens of rows, so that whole numbers do not matter.
    plan = made((kind,), 0.2, DELTA) if kind == "count" else made((kind,), 6, DELTA)
    # At a true coverage of 97 % or less it fails with probability below 1e-6.
    assert covered(plan, kind, bounded(plan, kind)) <= binom.ppf(1 - 1e-7, GROUPS, 0.97)


def test_bars_of_formulas_hold_too() -> None:
    parts = (AggregateValue(0), AggregateValue(1), Operation("multiply", (AggregateValue(2), Constant(2))))
    formula = Operation("add", (parts[0], Operation("subtract", parts[1:])))
    plan = made(("sum", "count", "avg"), 3, DELTA)
    object.__setattr__(plan.question, "outputs", (Output("mixed", formula),))
    truths = [bounded(plan, kind) for kind in ("sum", "count", "avg")]
    assert covered(plan, "mixed", truths[0] + truths[1] - 2 * truths[2]) >= LEAST


def test_averages_stay_in_range_where_nothing_stands_out() -> None:
    columns = made(("avg", "stddev_pop", "quantile"), 0.001, DELTA).run(loaded()).columns
    for name in ("avg", "quantile"):
        assert min(columns[f"{name}_low"]) >= 0 and max(columns[f"{name}_high"]) <= 90 + 1e-3
    assert max(columns["stddev_pop_high"]) <= 45 + 1e-3 and min(columns["stddev_pop_low"]) >= 0
