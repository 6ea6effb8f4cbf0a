"""One unit never moves an answer by more than was charged: random questions on random neighbours."""

from __future__ import annotations

from contextlib import ExitStack
from contextlib import closing as closed
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from apart import Both, check, database, schema
from random_queries import WARDS, Data, random_data, random_query

from dalenius.privacy.unit import Unit
from dalenius.tables.bounds import Bounds
from dalenius.tables.language.parsing import ask
from dalenius.tables.planning import plan as planning
from dalenius.tables.planning.plan import Plan
from dalenius.tables.question import Question
from dalenius.tables.sources.opening import open_source

PLANS = 20
"""On each pair of databases."""
BATCH = 5
"""Pairs of databases in one test."""
RELATIONS = ("add_remove", "add_remove", "zero_out", "replace")


def neighbours(random: Random, relation: str) -> tuple[Data, Data]:
    data = random_data(random)
    patient = random.choice([row["patient"] for row in data.visits if row["patient"] is not None] or [0])
    other = data.with_other(patient, random) if relation == "replace" else data.without(patient)
    return (data, other) if random.random() < 0.5 else (other, data)


def question(random: Random, relation: str, *, dialect: str = "duckdb") -> Question:
    """A random one; where it groups by ward its keys may be public, or its column declared."""
    declared: dict[str, Any] = {"dialect": dialect}
    if random.random() < 0.5:
        declared["ranges"] = {"age": (0, random.choice((1, 120))), "cost": (random.choice((-10, 0)), 100)}
    if random.random() < 0.4:
        declared["categories"] = {"ward": WARDS[: random.randint(1, 5)]}
    if random.random() < 0.2:
        declared["rows_per_unit"] = random.choice((1, 2, 5))  # often false, which must not matter
    return ask(random_query(random), schema(relation, **declared))


def plan_of(random: Random, asked: Question, relation: str) -> Plan:
    pure = asked.keys is not None and random.random() < 0.3
    given = {
        "rows": random.choice((1, Fraction(7, 2), 20)),
        "groups": random.choice((None, 1, 2)),
        "pairs": 2,
    }
    return Plan.make(
        asked,
        unit=Unit("patient", column="patient", relation=relation),
        epsilon=random.choice((Fraction(1, 10), Fraction(1), Fraction(8), Fraction(40))),
        delta=Fraction(0) if pure else Fraction(1, 10 ** random.choice((2, 6))),
        bounds=Bounds(**given) if random.random() < 0.5 else None,
    )


def tried(seed: int) -> None:
    """Some plans on one pair of neighbours."""
    random = Random(seed)
    relation = random.choice(RELATIONS)
    with ExitStack() as closing:
        engines = [
            closing.enter_context(closed(open_source(database(data), table="visits")))
            for data in neighbours(random, relation)
        ]
        for _ in range(PLANS):
            asked = question(random, relation)
            plan = plan_of(random, asked, relation)
            with engines[0].load(asked.rows) as first, engines[1].load(asked.rows) as second:
                both = Both(first, second)
                plan.run(both)
            check(plan, both)


@pytest.mark.parametrize("batch", range(6))
def test_neighbours_are_no_further_apart_than_charged(batch: int) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        tried(seed)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(200))
def test_neighbours_at_length(batch: int) -> None:
    for seed in range(10**6 + BATCH * batch, 10**6 + BATCH * (batch + 1)):
        tried(seed)


def test_a_charge_that_is_too_small_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search itself: with half of the sensitivity charged, it finds neighbours too far apart."""
    norm = planning.norm
    monkeypatch.setattr(planning, "norm", lambda measure, bounding: norm(measure, bounding) / 2)
    with pytest.raises(AssertionError):
        for seed in range(BATCH):
            tried(seed)
