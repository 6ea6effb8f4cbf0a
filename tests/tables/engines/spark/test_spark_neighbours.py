"""One unit never moves an answer by more than was charged: random questions on neighbours, in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing as closed
from random import Random
from typing import Any

import pytest
from apart import LABS, VISITS, Both, check
from random_queries import FLOORS, Data
from test_neighbours import RELATIONS, neighbours, plan_of, question

from dalenius.tables.engines.spark import SparkEngine, open_spark
from dalenius.tables.language.dialects import dialect_of
from dalenius.tables.planning import plan as planning

SPARK = dialect_of("spark")
PAIRS = 5
"""Of databases, in one test."""


def frame(spark: Any, columns: dict[str, Any], rows: Sequence[Any]) -> Any:
    """Rows as literals, so that small tables cost no job of their own."""

    def line(row: Any) -> str:
        return ", ".join(f"{SPARK.literal(row[name], type_)} AS {name}" for name, type_ in columns.items())

    lines = [f"SELECT {line(dict.fromkeys(columns))} WHERE FALSE", *(f"SELECT {line(row)}" for row in rows)]
    return spark.sql(" UNION ALL ".join(lines)).coalesce(1)


def opened(spark: Any, data: Data) -> SparkEngine:
    more = {
        "labs": frame(spark, LABS, data.labs),
        "floors": frame(spark, {"ward": "text", "floor": "integer"}, FLOORS),
    }
    return open_spark(frame(spark, VISITS, data.visits), "visits", more=more)


def tried(spark: Any, seed: int) -> None:
    """A plan on one pair of neighbours."""
    random = Random(seed)
    relation = random.choice(RELATIONS)
    one, other = (opened(spark, data) for data in neighbours(random, relation))
    asked = question(random, relation, dialect="spark")
    plan = plan_of(random, asked, relation)
    with closed(one), closed(other), one.load(asked.rows) as first, other.load(asked.rows) as second:
        both = Both(first, second)
        plan.run(both)
    check(plan, both)


@pytest.mark.parametrize("batch", range(6))
def test_neighbours_are_no_further_apart_than_charged(small: Any, batch: int) -> None:
    for seed in range(batch * PAIRS, (batch + 1) * PAIRS):
        tried(small, seed)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(60))
def test_neighbours_at_length(small: Any, batch: int) -> None:
    for seed in range(10**6 + PAIRS * batch, 10**6 + PAIRS * (batch + 1)):
        tried(small, seed)


def test_a_charge_that_is_too_small_would_be_noticed(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    norm = planning.norm
    monkeypatch.setattr(planning, "norm", lambda measure, bounding: norm(measure, bounding) / 4)
    with pytest.raises(AssertionError):
        for seed in range(2 * PAIRS):
            tried(small, seed)
