"""What is explained is what is charged, for random questions, and explaining reads no data."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from apart import database
from random_queries import WARDS, random_data, random_query

import dalenius as dp
from dalenius.losses import Loss
from dalenius.tables import Bounds, Table

QUESTIONS = 12
"""To each table."""


def opened(random: Random) -> Table:
    """Random data with random facts, on an account that holds everything."""
    facts: dict[str, Any] = {}
    if random.random() < 0.5:
        facts["ranges"] = {"age": (0, 120), "cost": (-10, 100)}
    if random.random() < 0.5:
        facts["categories"] = {"ward": WARDS}
    relation = random.choice(("add_remove", "zero_out", "replace"))
    return dp.table(
        database(random_data(random)),
        table="visits",
        unit=dp.Unit("patient", column="patient", relation=relation),
        budget=dp.Budget(epsilon=1000, delta=1e-4),
        ledger=dp.Ledger.memory(),
        private=["labs"],
        public=["floors"],
        **facts,
    )


def charged(table: Table) -> Loss:
    """The newest charge."""
    entry = [one for one in table.account.entries() if one.event == "reserve"][-1]
    return Loss.from_json(json.dumps(entry.fields["loss"]))


@pytest.mark.parametrize("seed", range(5))
def test_what_is_explained_is_what_is_charged(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    table = opened(random)
    with table:
        for _ in range(QUESTIONS):
            query, options = random_query(random), priced(random)
            with monkeypatch.context() as patch:
                patch.setattr(type(table._engine), "load", lambda *_: pytest.fail("data were read"))
                explained = table.explain(query, **options)
            release = table.sql(query, **options)
            assert explained.loss == release.loss == charged(table), query
            assert release.loss.epsilon(table.account.terms.limit.delta).upper <= options["epsilon"]
            assert [entry.event for entry in table.account.entries(newest=2)] == ["reserve", "commit"]
            str(release), release.to_json(), release.to_arrow()


def priced(random: Random) -> dict[str, Any]:
    options: dict[str, Any] = {"epsilon": random.choice((0.1, 1, 2.5))}
    if random.random() < 0.3:
        options["bounds"] = Bounds(rows=random.choice((1, 3, 10)), groups=random.choice((None, 2)))
    if random.random() < 0.3:
        options["confidence"] = 0.99
    return options
