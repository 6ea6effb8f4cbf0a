"""What is explained is what is charged, for random questions, and explaining reads no data."""

from __future__ import annotations

import re
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from engines.conformance.on_duckdb import created
from engines.conformance.sites import clinic
from random_queries import WARDS, random_data, random_query

import dalenius as dp
from dalenius.errors import BudgetExceeded
from dalenius.losses import Approximate, Loss
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
        created(clinic(random_data(random))),
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
    return Loss.from_json(entry.fields["loss"])


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


WARD_COUNTS = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"
DELTA = Fraction(1, 10**9)


def small(**facts: Any) -> Table:
    """A table on an account that holds little."""
    return dp.table(
        created(clinic(random_data(Random(1)))),
        table="visits",
        unit=dp.Unit("patient", column="patient"),
        budget=dp.Budget(epsilon=3, delta=DELTA),
        ledger=dp.Ledger.memory(),
        **facts,
    )


@pytest.mark.parametrize("categories", [{}, {"ward": WARDS}], ids=["private", "public"])
@pytest.mark.parametrize("before", [None, 0.7, 2])
def test_what_is_explained_to_fit_is_what_a_refusal_names_and_fits(
    categories: dict[str, Any], before: float | None
) -> None:
    with small(categories=categories) as table:
        if before is not None:
            table.sql(WARD_COUNTS, epsilon=before)
        explained = table.explain(WARD_COUNTS, epsilon=3.2)
        with pytest.raises(BudgetExceeded) as refused:
            table.sql(WARD_COUNTS, epsilon=3.2)
        named = re.fullmatch(r"Try epsilon=([0-9.]+)\.", refused.value.remedy)
        assert named and not explained.fits
        assert f"does not fit: at most epsilon {named[1]} does" in str(explained)
        assert explained.left == refused.value.left == float(named[1])
        assert table.explain(WARD_COUNTS, epsilon=float(named[1])).fits
        assert not table.explain(WARD_COUNTS, epsilon=float(named[1]) * 1.02).fits
        table.sql(WARD_COUNTS, epsilon=float(named[1]))


def test_what_is_asked_and_fits_is_explained_as_no_less() -> None:
    with small() as table:
        explained = table.explain(WARD_COUNTS, epsilon=0.123456)
        assert explained.fits and explained.left > 2.9
        finer = explained.left + 1e-6
        assert table.explain(WARD_COUNTS, epsilon=finer).left == finer


@pytest.mark.parametrize(("epsilon", "further"), [(0.01, None), (5, "epsilon=2.")])
def test_where_the_delta_for_finding_groups_is_used_up_that_is_said(
    epsilon: float, further: str | None
) -> None:
    with small() as table:
        table.account.record(Approximate(0, delta=DELTA * Fraction(1499, 10_000)))
        with pytest.raises(BudgetExceeded) as refused:
            table.sql(WARD_COUNTS, epsilon=epsilon)
        assert "delta" in refused.value.problem and "used up" in refused.value.problem
        assert "keys=" in refused.value.remedy and "categories" in refused.value.remedy
        assert ("epsilon=" in refused.value.remedy) is (further is not None)
        assert further is None or further in refused.value.remedy
        explained = table.explain(WARD_COUNTS, epsilon=epsilon)
        assert not explained.fits and explained.left == 0
        assert "used up" in str(explained) and "keys=" in str(explained)
        named = re.search(r"then epsilon ([0-9.]+) fits", str(explained))
        assert named
        assert table.sql(WARD_COUNTS, epsilon=float(named[1]), keys=WARDS).receipt
