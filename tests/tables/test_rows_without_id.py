"""Rows without the id of a unit: left out and said so, or each a unit of its own."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest

import dalenius as dp
from dalenius.errors import InvalidArgument
from dalenius.ledger.terms import Terms
from dalenius.privacy.unit import Missing, Relation
from dalenius.tables import Table
from dalenius.tables.engines.engine import MASS, Bounding, Measure

BUDGET = dp.Budget(epsilon=1000, delta=1e-9)
MADE = """SELECT CASE WHEN i % 4 < 3 THEN i // 8 END AS {0}, i % 2 AS ward, i AS visit
          FROM range(4000) AS made(i) WHERE {1}"""
"""A thousand rows without an id; units with an id have six rows, in both wards."""


def opened(
    folder: Path, missing: Missing, *, relation: Relation = "add_remove", where: str = "TRUE", id: str = "id"
) -> Table:
    path = folder / f"visits{abs(hash((where, id)))}.parquet"
    duckdb.sql(f"COPY ({MADE.format(id, where)}) TO '{path}'")
    unit = dp.Unit("patient", column=id, relation=relation, missing=missing)
    ledger = dp.Ledger.memory().open("people", unit=unit, budget=BUDGET)
    return dp.table(path, account=ledger, name="visits")


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_rows_without_an_id_are_left_out_or_counted(tmp_path: Path, relation: Relation) -> None:
    query = "SELECT COUNT(*) AS n, COUNT(DISTINCT id) AS units FROM visits"
    for missing, rows, units in (("left out", 3000, 500), ("each row", 4000, 1500)):
        table = opened(tmp_path, missing, relation=relation)
        release = table.sql(query, epsilon=200, bounds=dp.tables.Bounds(rows=6))
        assert abs(release["n"][0] - rows) < 15 and abs(release["units"][0] - units) < 15


@pytest.mark.parametrize(
    ("missing", "words"), [("left out", "left out"), ("each row", "a patient of its own")]
)
def test_explanation_receipt_and_answer_say_what_becomes_of_them(
    tmp_path: Path, missing: Missing, words: str
) -> None:
    table = opened(tmp_path, missing)
    explained = table.explain("SELECT COUNT(*) FROM visits", epsilon=1)
    release = table.sql("SELECT COUNT(*) FROM visits", epsilon=1)
    for text in (explained, release.receipt, release):
        assert "rows without id" in str(text) and words in str(text)


def test_a_row_without_an_id_is_one_unit_in_every_histogram_and_total(tmp_path: Path) -> None:
    """Two neighbours by such a row: no other unit moves, and what moves is what one row of a unit may add."""
    whole, less = (opened(tmp_path, "each row", where=where) for where in ("TRUE", "i <> 1003"))
    asked = "SELECT ward, COUNT(*), SUM(visit), COUNT(DISTINCT id) FROM visits GROUP BY ward"
    question = whole.ask(asked, epsilon=1).request.question
    keys = [(0,), (1,)]
    bounding = Bounding("l2", groups=1, salt=bytes(32))
    measures = [Measure("rows"), Measure("units")]
    seen = []
    for table in (whole, less):
        with table._engine.load(question.rows) as loaded:
            holders = loaded.holders(most=1, salt=bytes(32))
            seen.append(
                (
                    loaded.shapes(keys, norm="l2", presence=False),
                    loaded.magnitudes(0),
                    sum(holders.values()),
                    loaded.totals(keys, measures, Bounding("l2", limit=bounding.limit)),
                )
            )
    (shapes, magnitudes, held, totals), (shapes_less, magnitudes_less, held_less, totals_less) = seen
    assert (shapes - shapes_less)[0, 0] == 1 and np.abs(shapes - shapes_less).sum() == 1
    assert (magnitudes - magnitudes_less).sum() == MASS and held - held_less == 1
    assert np.count_nonzero(totals - totals_less) == 2


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) FROM visits JOIN visits AS v ON visits.id = v.id",
        "SELECT COUNT(*) FROM (SELECT id, ward FROM visits UNION ALL SELECT id, ward FROM visits)",
        "WITH v AS (SELECT id FROM visits) SELECT COUNT(*) FROM v JOIN v AS w ON v.id = w.id",
    ],
)
def test_two_readings_of_numbered_rows_are_not_put_together(tmp_path: Path, query: str) -> None:
    with pytest.raises(InvalidArgument, match="not put together"):
        opened(tmp_path, "each row").sql(query, epsilon=1)


def test_a_subquery_by_unit_has_a_row_for_each(tmp_path: Path) -> None:
    query = "SELECT AVG(n) AS n FROM (SELECT id, COUNT(*) AS n FROM visits GROUP BY id)"
    release = opened(tmp_path, "each row").sql(
        query, epsilon=200, bounds=dp.tables.Bounds(ranges={"n": (0, 8)})
    )
    assert abs(release.value - 4000 / 1500) < 0.2


def test_an_account_keeps_what_a_missing_id_means(tmp_path: Path) -> None:
    unit = dp.Unit("patient", column="id", missing="each row")
    terms = Terms("people", unit, BUDGET.filter)
    assert Terms.from_json("people", terms.to_json()).unit == unit
    plain = json.loads(Terms("people", dp.Unit("patient", column="id"), BUDGET.filter).to_json())
    assert "missing" not in plain["unit"], "as earlier versions wrote it"
    account = dp.Ledger.memory().open("people", unit=unit, budget=BUDGET)
    path = tmp_path / "visits.parquet"
    duckdb.sql(f"COPY ({MADE.format('id', 'TRUE')}) TO '{path}'")
    with pytest.raises(InvalidArgument, match="is for each"):
        dp.table(path, unit=dp.Unit("patient", column="id"), account=account)


def test_a_window_or_an_unknown_word_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="without a window"):
        dp.Unit("patient", column="id", window="week", missing="each row")
    with pytest.raises(InvalidArgument, match="missing must be one of"):
        dp.Unit("patient", column="id", missing="dropped")  # type: ignore[arg-type]


def test_engines_that_read_a_query_again_refuse_to_number_rows() -> None:
    from types import SimpleNamespace

    from dalenius.tables.opening import _check_numbered

    for dialect in ("postgres", "spark"):
        with pytest.raises(InvalidArgument, match="that DuckDB reads"):
            _check_numbered(SimpleNamespace(dialect=dialect), "integer")  # type: ignore[arg-type]
