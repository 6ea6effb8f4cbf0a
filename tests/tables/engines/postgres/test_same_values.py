"""The same expression has the same value on the same row in PostgreSQL as in DuckDB, and never an error."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from engines.postgres import worst
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from language.nasty import COLUMNS, applied, expressions
from language.test_total import CASES, TYPES
from postgres_server import Server

from dalenius.privacy.unit import Unit
from dalenius.tables.engines.postgres import PostgresEngine
from dalenius.tables.engines.postgres_server import Address
from dalenius.tables.language.dialects import postgres_numbers
from dalenius.tables.language.dialects.postgres_texts import cased
from dalenius.tables.language.expressions import RULES, Call, Expression, parts_of
from dalenius.tables.language.parsing import ask
from dalenius.tables.schema import Private, Schema

NEARLY = {"ln", "exp", "power", "sin", "cos", "tan", "log2", "log10", "cbrt", "atan"}
"""Functions whose last digit is a library's own."""


BY_EXPRESSIONS = [
    "SELECT AVG(n) FROM (SELECT i, round({c} * 2 / d, 2) AS k, COUNT(*) AS n FROM nasty GROUP BY i, k)",
    "SELECT SUM(m) FROM (SELECT MEDIAN({c} * d) OVER (PARTITION BY i, sqrt(d) ORDER BY day) AS m FROM nasty)",
    "SELECT COUNT(DISTINCT k) FROM (SELECT DISTINCT i, CAST({c} * d AS VARCHAR) AS k FROM nasty)",
]
"""Groups, windows and medians of what is computed."""


@pytest.fixture(scope="module")
def server(postgres: Server) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres.url("public"), autocommit=True) as owner:
        owner.execute("CREATE DATABASE nasty")
        with psycopg.connect(postgres.url("public"), dbname="nasty", autocommit=True) as found:
            worst.create(found)
            found.execute(worst.SETTINGS)
            yield found
        owner.execute("DROP DATABASE nasty WITH (FORCE)")


@settings(max_examples=250, suppress_health_check=list(HealthCheck))
@given(expression=st.sampled_from(TYPES).flatmap(lambda type_: expressions(type_)))
def test_of_any_expression(server: psycopg.Connection[Any], expression: Expression) -> None:
    compare(server, expression)


@pytest.fixture(params=[postgres_numbers.INLINE, 0], ids=["", "bound"])
def inline(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments are written as often as they are mentioned, or all of them once."""
    monkeypatch.setattr(postgres_numbers, "INLINE", request.param)


@pytest.mark.parametrize("name", sorted(RULES))
@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_of_every_function(
    server: psycopg.Connection[Any], inline: None, name: str, data: st.DataObject
) -> None:
    compare(server, data.draw(applied(name)))


@pytest.mark.slow
@settings(max_examples=5_000, suppress_health_check=list(HealthCheck))
@given(expression=st.sampled_from(TYPES).flatmap(lambda type_: expressions(type_, 4)))
def test_at_length(server: psycopg.Connection[Any], expression: Expression) -> None:
    compare(server, expression)


def compare(server: psycopg.Connection[Any], expression: Expression) -> None:
    called = {part.name for part in parts_of(expression) if isinstance(part, Call)}
    ours, truth = worst.found_by_postgres(server, expression), worst.found_by_duckdb(expression)
    assert len(ours) == len(truth) == 10
    for one, other in zip(ours, truth, strict=True):
        assert same(one, other, nearly=bool(called & NEARLY)), expression


def same(one: Any, other: Any, *, nearly: bool) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        equal = struct.pack("d", one) == struct.pack("d", other)
        # Where a function is not exact, neither is where it overflows.
        ends = min(abs(one), abs(other)) > 1e308 and (one > 0) == (other > 0)
        return equal or (nearly and (ends or math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-320)))
    return type(one) is type(other) and bool(one == other)


@pytest.mark.parametrize(
    "ranges", [{}, {"x": (0, 1), "i": (-5, 5), "h": (0, 10), "d": (0, 1e20)}], ids=["", "ranges"]
)
def test_no_clause_fails_on_any_value(
    server: psycopg.Connection[Any], inline: None, ranges: dict[str, tuple[float, float]]
) -> None:
    engine = PostgresEngine(Address(f"{server.info.dsn}"), {"nasty": "nasty"})
    schema = Schema((Private("nasty", COLUMNS, Unit("i", column="i"), ranges=ranges),), dialect="postgres")
    for query, column in [*CASES, *((query, "x") for query in BY_EXPRESSIONS)]:
        question = ask(query.replace("{c}", column), schema)
        with engine._transaction(question.rows.sql) as (cursor, source):
            columns = ", ".join(f"COUNT({name})" for name in names(question.rows))
            assert len(cursor.execute(f"SELECT COUNT(*), {columns or 1} FROM {source} AS r").fetchall()) == 1


def names(rows: Any) -> list[str]:
    parts = (("unit", rows.units), ("key", rows.keys), ("value", rows.values), ("distinct", rows.distincts))
    return [f"{name}_{i}" for name, count in parts for i in range(count)]


@pytest.mark.parametrize("window", ["hour", "day", "week", "month", "quarter", "year"])
@pytest.mark.parametrize("time", ["day", "m", "z"])
def test_windows_of_units_are_total(server: psycopg.Connection[Any], time: str, window: str) -> None:
    engine = PostgresEngine(Address(f"{server.info.dsn}"), {"nasty": "nasty"})
    unit = Unit("i", column="i", window=window)  # type: ignore[arg-type]
    schema = Schema((Private("nasty", COLUMNS, unit, time),), dialect="postgres")
    question = ask("SELECT COUNT(*) FROM nasty", schema)
    with engine._transaction(question.rows.sql) as (cursor, source):
        assert cursor.execute(f"SELECT * FROM {source} AS r").fetchall()


@pytest.mark.parametrize("name", ["lower", "upper"])
def test_letters_of_the_known_alphabets_have_the_cases_that_duckdb_gives_them(
    server: psycopg.Connection[Any], name: str
) -> None:
    from language.nasty import connection

    letters = [chr(code) for code in (*range(1, 0x590), *range(0x1E00, 0x1F00))]
    truth = (
        connection().cursor().execute(f"SELECT {name}(x) FROM (SELECT unnest($1) AS x)", [letters]).fetchall()
    )
    sql = cased(name).format('(x COLLATE "C")')
    ours = server.execute(
        f"SELECT {sql} FROM unnest(%s::text[]) WITH ORDINALITY AS t (x, n) ORDER BY n", [letters]
    )
    assert ours.fetchall() == truth
