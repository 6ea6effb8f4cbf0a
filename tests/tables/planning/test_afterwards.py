"""What is computed from an answer, and margins: bars that hold, and nothing that fails on any released"
" value."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from language.hospital import hospital
from planning.asked import DELTA, asked, between, patient
from planning.test_answers import LOUD, ROWS
from reference import ReferenceLoaded

from dalenius.tables.language.formulas import AggregateValue, Estimate
from dalenius.tables.language.parsing import ask
from dalenius.tables.planning.afterwards import run_steps
from dalenius.tables.planning.answers import Answer
from dalenius.tables.planning.plan import Plan
from dalenius.tables.question import Question

FROM = "FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)"
OVER = (
    f"SELECT ward, n / SUM(n) OVER () AS share, RANK() OVER (ORDER BY n) AS place, AVG(n) OVER (ORDER BY"
    f" ward) AS a"
    f" {FROM}",
    f"SELECT ward, SUM(n) OVER (PARTITION BY ward IS NULL ORDER BY n ROWS BETWEEN 1 PRECEDING AND 1"
    f" FOLLOWING) {FROM}",
    f"SELECT NTILE(2) OVER (ORDER BY n), LEAD(n, 2) OVER (ORDER BY ward), NTH_VALUE(n, 2) OVER (ORDER BY n)"
    f" {FROM}",
    f"SELECT SUM(n), AVG(n), MIN(n), MAX(n), MEDIAN(n), COUNT(n), COUNT(DISTINCT n) {FROM} WHERE n > 3",
    f"SELECT n > 0 AS some, MAX(ward), SUM(sqrt(n)) {FROM} GROUP BY some HAVING SUM(n) > 0 ORDER BY 3 DESC"
    f" LIMIT 1",
    f"SELECT DISTINCT n % 2 AS k, n IS NULL {FROM}",
)
NUMBERS = st.none() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False)
LOWS = st.floats(allow_nan=False, max_value=1e308)
HIGHS = st.floats(allow_nan=False, min_value=-1e308)


def _cell(value: Any, low: float, high: float) -> Estimate:
    """Return an estimate with ends in order; either may be open."""
    return Estimate(value, *sorted((low, high)))


CELLS = NUMBERS.map(Estimate) | st.builds(_cell, NUMBERS, LOWS, HIGHS)


def run(question: Question, **options: Any) -> Answer:
    given = {"epsilon": LOUD, "delta": DELTA} | options
    return Plan.make(question, unit=patient(), **given).run(ReferenceLoaded(ROWS, question.rows))


@given(
    st.sampled_from(OVER),
    st.lists(st.tuples(st.none() | st.sampled_from("ABC"), CELLS), max_size=5),
)
@example(OVER[4], [(None, Estimate(None, -math.inf, math.inf))])
def test_nothing_fails_on_any_released_value(query: str, rows: Any) -> None:
    after = ask(query, hospital()).after
    assert after is not None
    for row in run_steps([(Estimate(ward), cell) for ward, cell in rows], after.steps):
        assert len(row) == len(after.columns)


def columns(query: str, counts: dict[str, tuple[int, int, int]]) -> list[dict[str, Estimate]]:
    after = ask(query, hospital()).after
    assert after is not None
    rows = [(Estimate(ward), Estimate(*cell)) for ward, cell in counts.items()]
    names = [column.name for column in after.columns]
    return [dict(zip(names, row, strict=True)) for row in run_steps(rows, after.steps)]


def test_bars_go_along() -> None:
    found = columns(OVER[0], {"A": (10, 8, 12), "B": (30, 20, 40)})
    assert [each["share"].value for each in found] == [0.25, 0.75]
    low, high = found[0]["share"].low, found[0]["share"].high
    assert isinstance(low, float) and isinstance(high, float)
    assert low == pytest.approx(8 / 52) and high == pytest.approx(12 / 28)
    assert (found[1]["a"].low, found[1]["a"].value, found[1]["a"].high) == (14, 20, 26)


def test_ranks_have_no_bars_and_shares_have() -> None:
    question = ask(OVER[0], hospital(categories={"ward": ("a", "b")}))
    question = replace(asked("count"), after=question.after, outputs=asked("count").outputs)
    answer = run(question)
    assert set(answer.measures) == {"share", "a"} and "place_low" not in answer.columns
    assert all(
        low <= 0.5 <= high
        for low, high in zip(answer.columns["share_low"], answer.columns["share_high"], strict=True)
    )
    assert "an outer query computed from noisy values" in answer.notes


def test_margins_add_up_and_have_the_noise_of_their_sum() -> None:
    question = asked("count", "sum", "avg", "quantile", within=between(0, 10), sets=((0,), ()))
    for options in ({"epsilon": 1}, {"epsilon": 1, "delta": 0}):
        answer = run(question, **options)
        assert answer.columns["key"] == ("a", "b", None)
        for measure in ("count", "sum"):
            a, b, both = answer.columns[measure]
            assert both == pytest.approx(a + b, abs=1)
            width = [
                high - low
                for low, high in zip(
                    answer.columns[f"{measure}_low"], answer.columns[f"{measure}_high"], strict=True
                )
            ]
            assert width[0] < width[2] < 4 * width[0]
    truth = [row["value_0"] for row in ROWS]
    answer = run(question)
    assert answer.columns["avg"][2] == pytest.approx(sum(truth) / len(truth), rel=0.02)
    assert answer.columns["quantile"][2] == pytest.approx(3, abs=0.2)


def test_margins_of_private_groups_are_open() -> None:
    answer = run(asked("count", "avg", keys=None, within=between(0, 10), sets=((0,), ())))
    assert answer.columns["key"] == ("a", "b", None)
    assert answer.columns["count_high"][2] == math.inf and answer.columns["count_low"][2] > 300
    assert (answer.columns["avg_low"][2], answer.columns["avg_high"][2]) == (-math.inf, math.inf)
    assert all(map(math.isfinite, answer.columns["count_high"][:2]))


def test_margins_cost_what_their_groups_cost() -> None:
    plain = asked("count", "avg", within=between(0, 10))
    several = replace(plain, sets=((0,), ()))
    made = [Plan.make(each, unit=patient(), epsilon=1, delta=DELTA) for each in (plain, several)]
    assert made[0].loss == made[1].loss and made[0].measure_noises == made[1].measure_noises


def test_which_groups_are_added_up_is_told() -> None:
    question = ask(
        "SELECT ward, GROUPING(ward) AS g, COUNT(*) FROM visits GROUP BY ROLLUP (ward)", hospital()
    )
    assert str(question.outputs[1].formula) == "key_1" and question.sets == ((0,), ())
    assert question.outputs[2].formula == AggregateValue(0)
