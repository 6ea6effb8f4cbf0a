"""What a unit adds is bounded as the sensitivity says, whatever it holds, and nothing else changes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.learn.evaluation.tables import GRID, WHOLE, Plan
from dalenius.learn.models import Answers

ODD = [math.nan, math.inf, -math.inf, -1.0, 2.0, 1e300, 0.0, 0.25, 0.5, 1.0]
LABELS = [0, 1, 2, 7, None, math.nan, "x", 1.0, True, [0]]
FULL = Plan(classes=(0, 1), outcomes="confusion", bins=7, scores=5, loss="log", bound=Fraction(3))
THREE = Plan(classes=(0, 1, 2), outcomes="recall", bins=3, loss="log", bound=Fraction(1, 3))
NUMBERS = Plan(classes=(), loss="squared", bound=Fraction(4))


def answers(rows: list[tuple[int, list[float], float]], classes: int) -> Answers:
    found = Answers.none(len(rows), classes)
    for i, (chosen, chances, value) in enumerate(rows):
        found.chosen[i], found.values[i] = chosen, value
        found.chances[i] = chances[:classes]
    return found


def totals(plan: Plan, rows: list[Any], targets: list[Any]) -> Any:
    return plan.totals(answers(rows, len(plan.classes)), targets, np.ones(len(rows), bool))


def any_rows(most: int) -> Any:
    row = st.tuples(
        st.integers(-1, 1), st.lists(st.sampled_from(ODD), min_size=3, max_size=3), st.sampled_from(ODD)
    )
    return st.lists(st.tuples(row, st.sampled_from(LABELS)), max_size=most)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from([FULL, THREE, NUMBERS]), any_rows(4), any_rows(3))
def test_a_unit_moves_the_counts_by_no_more_than_is_charged(plan: Plan, others: Any, own: Any) -> None:
    both = others + own
    without = totals(plan, *map(list, zip(*others, strict=True)) if others else ([], []))
    with_it = totals(plan, *map(list, zip(*both, strict=True)) if both else ([], []))
    alone = totals(plan, *map(list, zip(*own, strict=True)) if own else ([], []))
    # What others add is the same, and what the unit adds follows from its own rows.
    assert (with_it - without == alone).all()
    bound = plan.sensitivity(3, "add_remove")
    assert (alone >= 0).all()
    assert alone.sum() <= bound.need("l1") / GRID.step
    assert alone.max(initial=0) <= bound.need("linf") / GRID.step
    assert Fraction(int((alone.astype(object) ** 2).sum())) <= (bound.need("l2") / GRID.step) ** 2
    assert np.count_nonzero(alone) <= (bound.l0 or 0)


def test_the_bound_is_attained() -> None:
    # Right with confidence 1 and score 1, so that in each table one entry takes all.
    rows = [(1, [0.0, 1.0, 0.0], math.nan)] * 3
    alone = totals(FULL, rows, [1, 1, 1])
    bound = FULL.sensitivity(3, "add_remove")
    assert alone.sum() == bound.need("l1") / GRID.step == 12 * WHOLE
    assert sorted(alone[alone > 0].tolist()) == [3 * WHOLE] * 4
    assert math.isclose(math.sqrt((alone.astype(float) ** 2).sum()), float(bound.need("l2")) * WHOLE)
    # Wrong, sure of the first class, and with the greatest loss: in all tables elsewhere.
    replaced = FULL.sensitivity(3, "replace")
    away = alone - totals(FULL, [(0, [1.0, 0.0, 0.0], math.nan)] * 3, [1, 1, 1])
    assert np.abs(away).sum() == replaced.need("l1") / GRID.step
    assert math.isclose(math.sqrt((away.astype(float) ** 2).sum()), float(replaced.need("l2")) * WHOLE)


def test_what_is_no_class_and_what_got_no_class() -> None:
    plan = Plan(classes=("a", "b"), outcomes="confusion", loss="log", bound=Fraction(2))
    none = answers([(-1, [math.nan] * 3, math.nan)] * 2, 2)
    counts = plan.totals(none, ["b", "nobody"], np.ones(2, bool))
    # A row of b that was taken for nothing, with the greatest loss; the other is not there.
    assert (counts // WHOLE).tolist() == [0, 0, 0, 0, 0, 1, 0, 1]


def test_regression_losses_are_clipped() -> None:
    found = totals(NUMBERS, [(-1, [0.0] * 3, v) for v in (1.0, 5.0, math.nan, math.inf)], [0, 0, 0, 0])
    # (1² + 4 + 4 + 4)/4 of a bound of 4.
    assert found[1] / (4 * WHOLE) == pytest.approx((1 + 4 + 4 + 4) / 16)
    assert totals(NUMBERS, [(-1, [0.0] * 3, 1.0)], [None]).sum() == 0


def test_rows_that_do_not_count_add_nothing() -> None:
    given_ = answers([(0, [1.0, 0.0, 0.0], 0.0)] * 3, 2)
    plan = Plan(classes=(0, 1), outcomes="accuracy")
    assert plan.totals(given_, [0, 0, 0], np.array([True, False, True])).tolist() == [2 * WHOLE, 0]
