"""One unit moves every part of a plan by no more than its noise hides: brute force on random neighbours."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from planning.asked import DELTA, EVERY, asked, patient
from reference import ReferenceLoaded

from dalenius.privacy.sensitivity import sqrt_up
from dalenius.tables.bounds import Bounds
from dalenius.tables.engines.engine import MASS, Bounding
from dalenius.tables.planning.measures import norm
from dalenius.tables.planning.plan import Plan
from dalenius.tables.planning.searching import Found
from dalenius.tables.question import Interval

KEYS = (("a",), ("b",), ("c",), (None,))
VALUES = [None, float("nan"), float("inf"), -float("inf"), 0.0, 1.0, -1.0, 0.3, 7.5, -40.0, 1e18, 5e-324]
RANGES = [(0, 10), (-3, 5), (7, 9), (-9, -7), (0, 0), (4, 4), (1000, 1001)]


def unit_rows(dice: random.Random, name: int) -> list[dict[str, Any]]:
    """The records of one unit: few or many, spread over groups and values or all alike."""
    number = dice.choice([1, 1, 2, 3, 9])
    keys = dice.choices("abcd", k=dice.randint(1, 4))
    values = dice.choices(VALUES, k=dice.choice([1, 9]))
    if dice.random() < 0.4:
        keys, values = ["a"], [dice.choice([float("inf"), -float("inf")])]
    return [
        {
            "unit_0": name,
            "key_0": None if (key := dice.choice(keys)) == "d" else key,
            "value_0": dice.choice(values),
            "distinct_0": dice.choice([None, 1, 2, 3, "x"]),
        }
        for _ in range(number)
    ]


def neighbours(dice: random.Random, relation: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Tables that differ in the records of unit 0; a null record has no unit."""
    others = [row for name in range(1, dice.randint(1, 4)) for row in unit_rows(dice, name)]
    nobody = [{"unit_0": None, "key_0": "a", "value_0": 3.0, "distinct_0": 9}]
    here, there = unit_rows(dice, 0), unit_rows(dice, 0)
    gone = {"add_remove": [], "zero_out": nobody, "replace": there}[relation]
    return others + here, others + gone


def random_plan(dice: random.Random, relation: Any) -> tuple[Plan, Found]:
    kinds = dice.sample(EVERY, dice.randint(1, 4))
    lower, upper = (Fraction(end) for end in dice.choice(RANGES))
    keys = tuple(dice.sample(KEYS, dice.randint(1, 4)))
    question = asked(*kinds, keys=keys, within=Interval(lower, upper))
    bounds = Bounds(groups=dice.choice([None, None, 1, 2]))
    delta = dice.choice([0, DELTA])
    plan = Plan.make(
        question, unit=patient(relation), epsilon=dice.choice([0.01, 1, 8]), delta=delta, bounds=bounds
    )
    limit = Fraction(dice.choice([1, 2, 64, 1000]), dice.choice([1, 3]))
    return plan, Found(limit, Fraction(dice.choice([1, 3]), 2), dice.randint(1, 4), question.intervals, {})


@pytest.mark.parametrize("relation", ["add_remove", "replace", "zero_out"])
@pytest.mark.parametrize("seed", range(12))
def test_no_measure_moves_further_than_its_noise_hides(relation: Any, seed: int) -> None:
    dice = random.Random(f"{relation} {seed}")
    for _ in range(15):
        plan, found = random_plan(dice, relation)
        bounding = Bounding(
            plan.norm, found.limit, found.presence, found.pairs, plan.bounds.groups, b"salt" * 8
        )
        made = [plan.measure(need, found, len(plan.question.keys or ())) for need in plan.needs]
        tables = [ReferenceLoaded(rows, plan.question.rows) for rows in neighbours(dice, relation)]
        one, other = (table.totals(plan.question.keys or (), made, bounding) for table in tables)
        start = 0
        for need, measure in zip(plan.needs, made, strict=True):
            move = [int(x) for x in (one - other)[:, start : start + measure.width].reshape(-1)]
            start += measure.width
            law = plan.law(need, measure, bounding)
            size = sqrt_up(Fraction(sum(x * x for x in move))) if plan.norm == "l2" else sum(map(abs, move))
            assert size <= law.sensitivity.need(plan.norm) * (1 + Fraction(1, 2**60))
            noise = plan.measure_noises[plan.needs.index(need)]
            assert law.scale >= noise.multiplier * law.sensitivity.need(plan.norm)
            assert law.sensitivity.need(plan.norm) >= norm(measure, bounding)


@pytest.mark.parametrize("relation", ["add_remove", "replace", "zero_out"])
def test_no_search_or_selection_moves_further_than_it_is_charged_for(relation: Any) -> None:
    dice = random.Random(relation)
    for _ in range(120):
        plan, _ = random_plan(dice, relation)
        keys = plan.question.keys or ()
        tables = [ReferenceLoaded(rows, plan.question.rows) for rows in neighbours(dice, relation)]
        for presence in (False, True):
            one, other = (table.shapes(keys, norm=plan.norm, presence=presence) for table in tables)
            _within(one - other, 1, plan, relation)
        one, other = (table.magnitudes(0) for table in tables)
        _within(one - other, MASS, plan, relation)
        first, second = (table.holders(most=2, salt=b"salt" * 8) for table in tables)
        moves = [first.get(key, 0) - second.get(key, 0) for key in {*first, *second}]
        assert sum(map(abs, moves)) <= (4 if relation == "replace" else 2)
        assert max(map(abs, moves), default=0) <= 1


def _within(move: Any, bound: int, plan: Plan, relation: str) -> None:
    size = float(np.sqrt((move.astype(float) ** 2).sum())) if plan.norm == "l2" else float(np.abs(move).sum())
    factor = 1.0 if relation != "replace" else 2**0.5 if plan.norm == "l2" else 2.0
    assert size <= factor * bound * (1 + 1e-12)
