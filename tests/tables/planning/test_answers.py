"""From rows to columns: what a run gives on small tables, by the slow reference engine."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from planning.arrays import ArraysLoaded
from planning.asked import DELTA, EVERY, asked, between, patient
from reference import ReferenceLoaded
from scipy.stats import binom

from dalenius.tables.bounds import Bounds
from dalenius.tables.engines.engine import WEIGHT, Measure
from dalenius.tables.language.formulas import AggregateValue, Constant, KeyColumn, Operation
from dalenius.tables.planning.answers import Answer
from dalenius.tables.planning.bars import Noisy
from dalenius.tables.planning.choosing import Chosen, seen_sizes
from dalenius.tables.planning.plan import Plan
from dalenius.tables.planning.removed import Removed
from dalenius.tables.planning.searching import Found
from dalenius.tables.planning.seeing import Blur
from dalenius.tables.question import Aggregate, Output

ROWS = [{"unit_0": i, "key_0": "ab"[i % 2], "value_0": float(i % 7), "distinct_0": i % 5} for i in range(400)]
LOUD = 1000
"""An epsilon with next to no noise."""


def answer(*kinds: str, epsilon: Any = LOUD, delta: Any = DELTA, rows: Any = ROWS, **more: Any) -> Answer:
    bounds = more.pop("bounds", None)
    more.setdefault("within", between(0, 10))
    question = asked(*kinds, **more)
    made = Plan.make(question, unit=patient(), epsilon=epsilon, delta=delta, bounds=bounds)
    return made.run(ReferenceLoaded(rows, question.rows))


@pytest.mark.parametrize("delta", [0, DELTA])
def test_without_much_noise_every_aggregate_is_that_of_the_table(delta: Any) -> None:
    columns = answer(*EVERY, delta=delta).columns
    values = np.array([row["value_0"] for row in ROWS if row["key_0"] == "a"])
    truth = {
        "count": 200, "count_of": 200, "units": 200, "distinct": 5,
        "sum": values.sum(), "avg": values.mean(), "var_pop": values.var(), "var_samp": values.var(ddof=1),
        "stddev_pop": values.std(), "stddev_samp": values.std(ddof=1),
        "quantile": np.median(values), "min": values.min(), "max": values.max(),
    }  # fmt: skip
    assert columns["key"] == ("a", "b")
    for kind, exact in truth.items():
        assert columns[kind][0] == pytest.approx(exact, rel=0.05, abs=0.2), kind
        assert columns[f"{kind}_low"][0] <= columns[kind][0] <= columns[f"{kind}_high"][0]


def test_selected_groups_come_in_their_own_order_and_rare_ones_not_at_all() -> None:
    rare = {"unit_0": 999, "key_0": "Z", "value_0": 1.0, "distinct_0": 1}
    shown = answer("count", keys=None, epsilon=20, rows=[rare, *reversed(ROWS)])
    # At most one in 1e6 that a group of one is shown.
    assert shown.columns["key"] == ("a", "b")


def test_a_table_without_groups_gives_columns_without_rows() -> None:
    empty = answer("count", "avg", keys=None, rows=[], epsilon=1)
    assert empty.columns["count"] == () and empty.measures == ("count", "avg")


def test_an_empty_table_gives_numbers_where_groups_are_known() -> None:
    columns = answer(*EVERY, rows=[], epsilon=1).columns
    assert all(len(column) == 2 for column in columns.values())
    assert None not in columns["avg"] and None not in columns["quantile"]


def test_having_order_and_limit_look_at_noisy_values() -> None:
    rows = [row | {"key_0": "abcd"[i % 4 if i < 80 else i % 2]} for i, row in enumerate(ROWS)]
    many = Operation("greater", (AggregateValue(0), Constant(50)))
    order = ((KeyColumn(0), True, False),)
    keys = (("a",), ("b",), ("c",), ("d",))
    found = answer("count", rows=rows, keys=keys, having=many, order=order)
    assert found.columns["key"] == ("b", "a")
    assert {"HAVING applied to noisy values", "ORDER BY applied to noisy values"} <= set(found.notes)
    found = answer(
        "count", rows=rows, keys=keys, order=((AggregateValue(0), False, False),), limit=1, offset=3
    )
    assert found.columns["key"][0] in "ab" and len(found.columns["key"]) == 1


@pytest.mark.parametrize("fraction, least, most", [(0, 0.0, 1.0), (1, 5.0, 10.0)])
def test_the_first_and_the_last_quantile_are_not_the_median(fraction: int, least: float, most: float) -> None:
    """Values are from 0 to 6, in a range up to 10; beyond the last of them noise decides."""
    question = asked("quantile", within=between(0, 10))
    question = replace(question, aggregates=(Aggregate("quantile", 0, Fraction(fraction)),))
    made = Plan.make(question, unit=patient(), epsilon=LOUD, delta=DELTA)
    columns = made.run(ReferenceLoaded(ROWS, question.rows)).columns
    assert least <= columns["quantile"][0] <= most


def test_values_are_the_same_wherever_they_stand() -> None:
    """Averages of next to nothing are held within their bars, which depend on the risk; values must not."""
    groups = tuple((g,) for g in range(300))
    rows = [{"unit_0": g, "key_0": g, "value_0": 1.0, "distinct_0": 1} for g in range(300)]
    average = AggregateValue(0)
    both = Operation("add", (average, Operation("multiply", (Constant(0), AggregateValue(1)))))
    question = asked("avg", "count", keys=groups, within=between(0, 10), rows_per_unit=1)
    outputs = (*question.outputs, Output("both", both))
    having = Operation("greater", (average, Constant(5)))
    order = ((both, False, False),)
    question = replace(question, outputs=outputs, having=having, order=order)
    made = Plan.make(question, unit=patient(), epsilon=1, delta=DELTA)
    columns = made.run(ReferenceLoaded(rows, question.rows)).columns
    assert columns["both"] == columns["avg"] == tuple(sorted(columns["avg"]))
    assert 0 < len(columns["avg"]) < 300 and min(columns["avg"]) > 5
    ends = zip(columns["both_low"], columns["avg_low"], columns["both"], columns["both_high"], strict=True)
    assert all(low <= nearer and low <= value <= high for low, nearer, value, high in ends)


def test_where_declared_facts_bound_everything_that_is_said() -> None:
    unclipped = "nothing is clipped if the declared facts hold"

    def said(*kinds: str, **more: Any) -> list[bool]:
        within = more.pop("within", between(0, 10))
        made = Plan.make(
            asked(*kinds, within=within, **more), unit=patient(), epsilon=1, delta=DELTA, bounds=bounds
        )
        found = made.run(ReferenceLoaded(ROWS, made.question.rows))
        return [unclipped in found.bounds, ("bound", unclipped) in made.lines()]

    bounds = None
    assert said("count", "sum", "units", "distinct", rows_per_unit=2) == [True, True]
    assert said("sum", rows_per_unit=1, within=None) == [False, False]
    assert said("count") == [False, False]
    bounds = Bounds(rows=1)
    assert said("count", rows_per_unit=2) == [False, False]
    bounds = Bounds(ranges={"value_0": (0, 3)})
    assert said("sum", rows_per_unit=1) == [False, False]


def test_what_is_said_of_bounds_is_public_and_plain() -> None:
    found = answer("count", "sum", "units", within=None, epsilon=1)
    assert any("found privately" in text and "patient" in text for text in found.bounds)
    assert all("salt" not in text for text in (*found.bounds, found.mechanism))
    parts = json.loads(found.mechanism)["parts"]
    assert [part["kind"] for part in parts if "kind" in part] == ["search_rows", "search_values"]
    given = answer("count", bounds=Bounds(rows=2, groups=1))
    assert given.bounds[0].endswith("above 2: given") and not given.warnings


def test_unseen_bounds_and_ranges_are_warned_about() -> None:
    # In one run noise passes for a sighting with probability below a third: in fifteen below 1e-6.
    said = [" ".join(answer("sum", within=None, rows=ROWS[:3], epsilon=0.01).warnings) for _ in range(15)]
    assert any("How many rows a patient has could not be found" in text for text in said)
    assert any("No range of value_0 could be found" in text for text in said)


def clipped(counts: dict[int, float], limit: float, *, most: float = 2.0**31) -> dict[str, Any]:
    """A count of 200 and one of 0 under a limit, with next to no noise, by what a search showed of sizes."""
    made = Plan.make(asked("count"), unit=patient(), epsilon=LOUD, delta=DELTA)
    noisy = np.zeros(64)
    for place, units in counts.items():
        noisy[place] = units
    sizes = seen_sizes(noisy, blur=Blur(0.1, False, 1.0), most=most)
    chosen = Chosen(Fraction(limit), Removed(sizes, limit))
    found = Found(Fraction(limit), Fraction(1), 1, made.intervals, {"rows": chosen})
    law = made.measure_noises[0].on(Fraction(WEIGHT), nonnegative=True)
    totals = {("rows", None): Noisy(np.array([200 * WEIGHT, 0], object), law)}
    return dict(made._answer((("a",), ("b",)), found, {("rows", None): Measure("rows")}, totals).columns)


def test_an_interval_holds_what_bounds_took_and_says_so() -> None:
    # 100 units of up to 2 rows, and 30 of up to 8, of which a limit of 2 takes 6 each.
    columns = clipped({2: 100, 6: 30}, 2)
    assert 200 < columns["count"][0] <= columns["count_high"][0]
    assert 180 <= columns["count_high"][0] - 200 <= 230 and columns["count_low"][0] >= 195
    # Of a group in which nothing is left nothing was taken, up to noise.
    assert columns["count_high"][1] <= 20
    assert columns["count_flag"][0] == "clipped"


def test_a_limit_that_takes_nothing_leaves_nothing_to_say() -> None:
    columns = clipped({2: 100, 6: 30}, 8, most=8)
    assert columns["count_high"][0] <= 205 and columns["count_flag"] == ("", "")


def test_where_nothing_stands_out_the_interval_is_open() -> None:
    columns = clipped({}, 3)
    assert columns["count_high"] == (math.inf, math.inf) and columns["count_low"][0] >= 195
    assert columns["count_flag"] == ("open above", "open above")


def visits(people: int) -> ArraysLoaded:
    """One group, of people with 1, 2, 3, 5 or 12 rows, whose values have a long tail."""
    dice = np.random.default_rng(8)
    units = np.repeat(np.arange(people), dice.choice([1, 1, 2, 3, 3, 5, 12], people))
    return ArraysLoaded(units, np.zeros(len(units), int), dice.lognormal(6, 1, len(units)))


@pytest.mark.parametrize("kind", ["count", "avg"])
def test_answers_are_within_their_bars_whatever_bounds_took(kind: str) -> None:
    data, runs = visits(1500), 40
    truth = len(data.units) if kind == "count" else float(data.values[0].mean())
    made = Plan.make(asked(kind, keys=((0,),)), unit=patient(), epsilon=Fraction(1, 5), delta=DELTA)
    found = [made.run(data).columns for _ in range(runs)]
    held = sum(each[f"{kind}_low"][0] <= truth <= each[f"{kind}_high"][0] for each in found)
    # At a coverage of 95 % with probability below 1e-6.
    assert held >= binom.ppf(1e-7, runs, 0.95)


def test_values_outside_a_range_that_was_found_are_told() -> None:
    made = Plan.make(asked("avg", keys=((0,),)), unit=patient(), epsilon=1, delta=DELTA)
    assert any("lie outside" in text for text in made.run(visits(1500)).bounds)


def test_quantiles_of_one_column_are_in_order_and_so_are_their_bars() -> None:
    rows = [row | {"key_0": i} for i, row in enumerate(ROWS[:60])]
    keys = tuple((g,) for g in range(60))
    question = asked("max", "quantile", "min", keys=keys, within=between(0, 10), rows_per_unit=1)
    high = (Aggregate("quantile", 0, Fraction(9, 10)), Output("high", AggregateValue(3)))
    question = replace(
        question, aggregates=(*question.aggregates, high[0]), outputs=(*question.outputs, high[1])
    )
    made = Plan.make(question, unit=patient(), epsilon=1, delta=DELTA)
    columns = made.run(ReferenceLoaded(rows, question.rows)).columns
    for end in ("", "_low", "_high"):
        each = np.array([columns[name + end] for name in ("min", "quantile", "high", "max")])
        assert (np.diff(each, axis=0) >= 0).all()


def test_where_no_range_is_found_nothing_is_said_of_values() -> None:
    rows = [row | {"value_0": None} for row in ROWS]
    # Noise passes for a value in one run in fifty or so: in ten of ten never.
    found = [answer("avg", "count", within=None, rows=rows, epsilon=1) for _ in range(10)]
    unseen = [each for each in found if each.columns["avg"] == (None, None)]
    assert unseen and all("No range of value_0" in " ".join(each.warnings) for each in unseen)
    assert all(None not in each.columns["count"] for each in found)


def test_why_no_group_is_shown_is_said() -> None:
    said = answer("count", keys=None, rows=[], epsilon=1).warnings
    assert said[0].startswith("No group is shown: one that") and "patients have" in said[0]


def test_bars_of_distinct_values_hold() -> None:
    groups = 400
    rows = [
        {"unit_0": i, "key_0": i % groups, "value_0": 0.0, "distinct_0": i % 7} for i in range(groups * 5)
    ]
    keys = tuple((g,) for g in range(groups))
    columns = answer("distinct", keys=keys, rows=rows, epsilon=1, rows_per_unit=1).columns
    truth = [len({row["distinct_0"] for row in rows if row["key_0"] == g}) for g in range(groups)]
    ends = zip(columns["distinct_low"], truth, columns["distinct_high"], strict=True)
    # False alarm below 1e-6 at a coverage of 95 %.
    assert sum(low <= exact <= high for low, exact, high in ends) >= binom.ppf(1e-7, groups, 0.95)


def test_lines_say_what_is_known_and_what_is_yet_to_be_found() -> None:
    question = asked("count", "avg", value_names=("age",), within=between(0, 120))
    lines = Plan.make(question, unit=patient(), epsilon=Fraction(1, 2), delta=DELTA).lines()
    text = "\n".join(f"{name}: {words}" for name, words in lines)
    assert "epsilon 0.5, delta 1e-06 for each patient" in text
    assert "age held within 0 to 120" in text and "× C" in text
    known = Plan.make(asked("count", rows_per_unit=1), unit=patient(), epsilon=1, delta=0).lines()
    assert any("± 2.99" in words or "± 3" in words for _, words in known)
