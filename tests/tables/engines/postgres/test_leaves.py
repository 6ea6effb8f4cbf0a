"""Nothing but keys and integers leaves the server: every result that the driver hands over is looked at."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
from engines.postgres.bases import Base

import dalenius as dp
from dalenius.tables.engines.engine import MAGNITUDES, SIZES, SPREADS

GROUPS = 3
FROM = 'FROM "public"."visits"'
QUESTIONS = [
    "SELECT ward, COUNT(*) AS n, SUM(cost) AS s, AVG(age) AS a FROM visits GROUP BY ward",
    "SELECT ward, COUNT(DISTINCT age) AS d, COUNT(DISTINCT patient) AS p FROM visits GROUP BY ward",
    "SELECT MEDIAN(cost) AS m, VAR_SAMP(age) AS v FROM visits",
    "SELECT AVG(t) FROM (SELECT patient, SUM(cost) AS t FROM visits GROUP BY patient) AS p",
]


class Watching(psycopg.Cursor[Any]):
    """A cursor that keeps what it hands over."""

    seen: ClassVar[list[tuple[str, list[tuple[Any, ...]]]]] = []

    def fetchall(self) -> list[Any]:
        return self._keep(super().fetchall())

    def fetchone(self) -> Any:
        found = super().fetchone()
        self._keep([found] if found is not None else [])
        return found

    def _keep(self, rows: list[Any]) -> list[Any]:
        query = self._query.query.decode() if self._query else ""
        self.seen.append((query, rows))
        return rows


def is_whole(value: object) -> bool:
    return value is None or (isinstance(value, int | Decimal) and value == int(value))


@pytest.mark.parametrize("question", QUESTIONS)
def test_only_keys_and_integers_leave(visits: Base, tmp_path: Path, question: str) -> None:
    with psycopg.connect(visits.url("reader"), cursor_factory=Watching) as connection:
        table = dp.table(
            connection, table="visits", unit=dp.Unit("patient", column="patient"),
            budget=dp.Budget(epsilon=50, delta=1e-6), ledger=tmp_path / "v.ledger", ranges={"age": (0, 100)},
        )  # fmt: skip
        Watching.seen.clear()
        table.sql(question, epsilon=10)
    of_data = [(query, rows) for query, rows in Watching.seen if FROM in query]
    assert len(of_data) >= 2
    for query, rows in of_data:
        held = "AS ahead" in query and "GROUP BY k0" in query
        assert len(rows) <= (GROUPS if held else max(SIZES * SPREADS, MAGNITUDES, GROUPS << 12))
        for row in rows:
            assert all(is_whole(part) for part in (row[1:] if held else row)), query
    about = [rows for query, rows in Watching.seen if FROM not in query]
    assert all(len(rows) <= 8 for rows in about), "settings and the catalogue"
