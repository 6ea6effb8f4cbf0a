"""What is written once or as often as it is mentioned has the same value; letters have DuckDB's cases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from engines.conformance.comparing import compare_values
from engines.conformance.on_postgres import PostgresSite
from engines.conformance.sites import Site
from engines.conformance.test_clauses import ALL, RANGES
from engines.conformance.test_clauses import compare as compare_clauses
from engines.conformance.test_expressions import FUNCTIONS, drawn, some
from engines.postgres.bases import Base
from hypothesis import strategies as st
from language.nasty import applied, connection
from postgres_server import Server

from dalenius.tables.language.dialects import postgres_numbers
from dalenius.tables.language.dialects.postgres_texts import cased


@pytest.fixture(scope="module")
def served(postgres: Server) -> Iterator[Site]:
    with closing(PostgresSite(postgres)) as found:
        yield found


@pytest.fixture(autouse=True)
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """All arguments are written once."""
    monkeypatch.setattr(postgres_numbers, "INLINE", 0)


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_every_function(served: Site, number: int) -> None:
    compare_values(served, drawn(number, st.tuples(*(applied(name) for name in FUNCTIONS[number]))))


def test_random_expressions(served: Site) -> None:
    compare_values(served, drawn(0, some(3)))


@pytest.mark.parametrize("ranges", [{}, RANGES], ids=["", "ranges"])
def test_clauses(served: Site, ranges: dict[str, Any]) -> None:
    compare_clauses(served, ALL[:: 2 if ranges else 3], "b", ranges)


@pytest.mark.parametrize("name", ["lower", "upper"])
def test_letters_of_the_known_alphabets_have_the_cases_that_duckdb_gives_them(base: Base, name: str) -> None:
    letters = [chr(code) for code in (*range(1, 0x590), *range(0x1E00, 0x1F00))]
    truth = (
        connection().cursor().execute(f"SELECT {name}(x) FROM (SELECT unnest($1) AS x)", [letters]).fetchall()
    )
    sql = cased(name).format('(x COLLATE "C")')
    server: psycopg.Connection[Any] = base.owner
    ours = server.execute(
        f"SELECT {sql} FROM unnest(%s::text[]) WITH ORDINALITY AS t (x, n) ORDER BY n", [letters]
    )
    assert ours.fetchall() == truth
