"""What the rows of a unit are depends on its own records only: other units may come and go.

Rows are compared exactly, after another unit was removed, changed, or the table was put in another order;
this also tells sums that are rounded in the order of rows, and ties that are broken by it.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import duckdb
import pytest
from language.hospital import DATA, connection, hospital
from language.test_surface import CLAUSES

from dalenius.tables.language.parsing import ask

QUERIES = {name: query for name, query in CLAUSES.items() if "each_row" not in query} | {
    "ties": "SELECT SUM(r * cost), SUM(f), SUM(l) FROM (SELECT cost, ROW_NUMBER() OVER w AS r,"
    " FIRST_VALUE(cost) OVER w AS f, LAG(cost) OVER w AS l FROM visits"
    " WINDOW w AS (PARTITION BY patient_id ORDER BY ward))",
    "ties in a frame": "SELECT SUM(s) FROM (SELECT SUM(cost) OVER (PARTITION BY patient_id ORDER BY ward"
    " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM visits)",
    "rounded sums": "SELECT SUM(s), SUM(w) FROM (SELECT patient_id, SUM(cost / 3) AS s, AVG(cost / 7)"
    " AS w FROM visits"
    " GROUP BY patient_id)",
    "rounded window sums": "SELECT SUM(s) FROM (SELECT SUM(cost / 3) OVER (PARTITION BY patient_id"
    " ORDER BY ward) AS s"
    " FROM visits)",
    "rank and ntile": "SELECT SUM(a), SUM(b), SUM(c) FROM (SELECT RANK() OVER w AS a, NTILE(3) OVER w AS b,"
    " CUME_DIST() OVER w AS c FROM visits WINDOW w AS (PARTITION BY patient_id ORDER BY age))",
}  # fmt: skip


def by_unit(database: duckdb.DuckDBPyConnection, sql: str) -> dict[Any, Counter[Any]]:
    found: dict[Any, Counter[Any]] = {}
    for unit, *rest in database.cursor().execute(sql).fetchall():
        found.setdefault(unit, Counter())[tuple(rest)] += 1
    return found


@cache
def altered(change: str) -> duckdb.DuckDBPyConnection:
    """The hospital after something happened to patients 4 and 9, its rows in another order."""
    database = duckdb.connect()
    database.execute(DATA)
    for table in ("visits", "stays"):
        database.execute(f"ALTER TABLE {table} RENAME TO old")
        database.execute(f"CREATE TABLE {table} AS SELECT * FROM old ORDER BY hash(CAST(old AS VARCHAR))")
        database.execute("DROP TABLE old")
        database.execute(change.format(table=table))
    return database


CHANGES = {
    "removed": "DELETE FROM {table} WHERE patient_id IN (4, 9)",
    "doubled": "INSERT INTO {table} SELECT * FROM {table} WHERE patient_id IN (4, 9)",
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", QUERIES)
def test_other_units_change_nothing(name: str, change: str) -> None:
    sql = ask(QUERIES[name], hospital()).rows.sql
    before, after = by_unit(connection(), sql), by_unit(altered(CHANGES[change]), sql)
    for unit in (4, 9):
        before.pop(unit, None)
        after.pop(unit, None)
    assert before == after
