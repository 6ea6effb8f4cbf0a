"""Every clause gives the rows that it gives in DuckDB: of a hospital, and of the worst values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
from engines.conformance.comparing import alike, plainly, rows_sql
from engines.conformance.sites import COLUMNS, Filled, Site
from language import hospital, nasty
from language.test_surface import CLAUSES
from language.test_total import CASES

from dalenius.privacy.unit import Unit
from dalenius.tables.language.parsing import ask
from dalenius.tables.schema import Private, Schema

RANGES = {"x": (0, 1), "i": (-5, 5), "h": (0, 10), "d": (0, 1e20)}
"""What is declared may be wrong, too."""
MORE = [
    ("SELECT SUM(a), SUM(r) FROM (SELECT MEDIAN({c}) OVER (PARTITION BY i ORDER BY x) AS a, RANK() OVER"
     " (PARTITION BY i) AS r FROM nasty)", "x"),
    ("SELECT SUM(a), SUM(c) FROM (SELECT LEAD({c}, 2) OVER (PARTITION BY i ORDER BY x ROWS BETWEEN 1"
     " PRECEDING AND CURRENT ROW) AS a, NTH_VALUE({c}, 2) OVER (PARTITION BY i ORDER BY t) AS c FROM nasty)",
     "h"),
    ("SELECT SUM(a) FROM (SELECT NTILE(2) OVER (PARTITION BY i ORDER BY {c}) * 1000000000 AS a"
     " FROM nasty)", "x"),
    ("SELECT SUM(a), SUM(c) FROM (SELECT PERCENT_RANK() OVER (PARTITION BY i ORDER BY {c}) AS a,"
     " CUME_DIST() OVER (PARTITION BY i ORDER BY {c}) AS c FROM nasty)", "t"),
    ("SELECT AVG(n) FROM (SELECT i, round({c} * 2 / d, 2) AS k, COUNT(*) AS n FROM nasty"
     " GROUP BY i, k)", "x"),
    ("SELECT SUM(m) FROM (SELECT MEDIAN({c} * d) OVER (PARTITION BY i, sqrt(d) ORDER BY day) AS m"
     " FROM nasty)", "x"),
    ("SELECT COUNT(DISTINCT k) FROM (SELECT DISTINCT i, CAST({c} * d AS VARCHAR) AS k FROM nasty)", "i"),
]  # fmt: skip
ALL = [*CASES, *MORE]
QUERIES = list(dict.fromkeys(query for query, _ in ALL))


@pytest.fixture(scope="module")
def ward(site: Site) -> Iterator[Any]:
    """The hospital."""
    tables = {}
    for name in ("visits", "stays", "wards", "each_row"):
        found = hospital.connection().cursor().execute(f"FROM {name}")
        types = {str(column[0]): str(column[1]) for column in found.description}
        tables[name] = Filled(types, found.fetchall())
    with ExitStack() as open_now:
        yield open_now.enter_context(site.holding(tables))


def test_of_a_hospital(site: Site, ward: Any) -> None:
    """Every clause of the surface."""
    known = hospital.hospital()
    here = Schema(known.tables, ward.public, site.name)
    asked = [ask(query, known).rows for query in CLAUSES.values()]
    found = site.answers(ward, [rows_sql(ask(query, here).rows) for query in CLAUSES.values()])
    for clause, rows, got in zip(CLAUSES, asked, found, strict=True):
        wanted = hospital.connection().cursor().execute(rows_sql(rows)).fetchall()
        assert alike(got, wanted), (clause, got, wanted)


def compare(site: Site, cases: list[tuple[str, str]], unit: str, ranges: Mapping[str, Any]) -> None:
    """Rows of the worst values, with one column or another as the unit."""
    asked = []
    for query, column in cases:
        if column != unit:
            text = re.sub(r"\bi\b", unit, re.sub(r"\bb\b", "b_", query)).replace("{c}", column)
            private = Private("nasty", nasty.COLUMNS, Unit(unit, column=unit), ranges=ranges)
            both = (
                rows_sql(ask(text, Schema((private,), dialect=name)).rows) for name in ("duckdb", site.name)
            )
            asked.append((text, *both))
    found = site.answers(site.nasty, [here for _, _, here in asked])
    for (text, plain, _), got in zip(asked, found, strict=True):
        wanted = plainly().execute(plain).fetchall()
        assert alike(got, wanted), (text, got, wanted)


@pytest.mark.parametrize("number", range(4))
def test_of_the_worst_values(site: Site, number: int) -> None:
    """Every query with some columns, with one of the two units and with or without ranges."""
    for place, query in enumerate(QUERIES):
        if place % 4 == number:
            columns = [column for each, column in ALL if each == query]
            start = place % len(columns)
            cases = [(query, column) for column in [*columns[start:], *columns[:start]]][: COLUMNS[site.name]]
            compare(site, cases, "i" if place % 4 == 3 else "b", RANGES if place % 3 else {})


@pytest.mark.slow
@pytest.mark.parametrize("ranges", [{}, RANGES], ids=["", "ranges"])
@pytest.mark.parametrize("unit", ["i", "b"])
@pytest.mark.parametrize("place", range(len(QUERIES)))
def test_of_all_the_worst_values(site: Site, place: int, unit: str, ranges: Any) -> None:
    compare(site, [case for case in ALL if case[0] == QUERIES[place]], unit, ranges)


@pytest.mark.parametrize("time", ["day", "m", "z"])
def test_units_with_windows(site: Site, time: str) -> None:
    asked = []
    for window in ("hour", "day", "week", "month", "quarter", "year"):
        unit = Unit("i", column="i", window=window)  # type: ignore[arg-type]
        private = Private("nasty", nasty.COLUMNS, unit, time)
        both = (
            ask("SELECT COUNT(*) FROM nasty", Schema((private,), dialect=name)).rows
            for name in ("duckdb", site.name)
        )
        asked.append([f"SELECT unit_1 FROM ({rows.sql}) AS r" for rows in both])
    for (plain, _), got in zip(asked, site.answers(site.nasty, [here for _, here in asked]), strict=True):
        assert alike(got, plainly().execute(plain).fetchall())
