"""Whatever a query or a key says, it is answered or refused at once, with a remedy."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from language.hospital import hospital

from dalenius.errors import DaleniusError, InvalidArgument
from dalenius.privacy.unit import Unit
from dalenius.tables.builder import Query, agg
from dalenius.tables.language.dialects import dialect_of
from dalenius.tables.language.expressions import Column, call, literal
from dalenius.tables.language.functions import evaluate
from dalenius.tables.language.parsing import ask
from dalenius.tables.schema import Private, Schema

MANY = "9" * 5000


@pytest.mark.parametrize(
    "query",
    [
        "SELECT QUANTILE(cost, 1e9999999) FROM visits",
        "SELECT QUANTILE(cost, 1e-9999999) FROM visits",
        f"SELECT COUNT(*) FROM visits LIMIT {MANY}",
        f"SELECT COUNT(*) FROM visits GROUP BY {MANY}",
        f"SELECT left(ward, {MANY}) AS k, COUNT(*) FROM visits GROUP BY k",
        "SELECT SUM(s) FROM (SELECT SUM(cost) OVER (PARTITION BY patient_id ROWS "
        f"{MANY} PRECEDING) AS s FROM visits)",
        "SELECT COUNT(*) FROM visits WHERE ward = '\ud800'",
        "SELECT COUNT(*) AS \"\ud800\" FROM visits",
        "SELECT COUNT(*) FROM visits WHERE ward LIKE 'a\0b'",
        "SELECT COUNT(*) FROM visits WHERE ward = 'a\0b'",
        f"SELECT SUM({'1 / (' * 40}cost{')' * 40}) FROM visits",
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_refused(query: str) -> None:
    with pytest.raises(DaleniusError) as caught:
        ask(query, hospital())
    assert isinstance(caught.value, InvalidArgument) and caught.value.remedy


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*), ROUND(2.5, 10000000) AS r FROM visits",
        "SELECT COUNT(*), ROUND(2.5, -10000000) AS r FROM visits",
        f"SELECT COUNT(*) FROM visits WHERE age < {MANY}",
        "SELECT QUANTILE(cost, 5E-1) FROM visits",
        "SELECT COUNT(*) FROM visits LIMIT 0000000000000000000000000000001",
    ],
)
def test_long_numbers_are_read(query: str) -> None:
    assert ask(query, hospital()).outputs


@pytest.mark.parametrize(
    ("key", "given", "said"),
    [
        ("ward", 5, "no list"),
        ("ward", "AB", "no list"),
        ("ward", {"ward": 5}, "no list"),
        ("ward", {"ward": "A"}, "no list"),
        ("ward", ["a\ud800"], "whole characters"),
        ("ward", [f"a{i}\ud800" for i in range(200)], "whole characters"),
        ("cost", [[10**400]], "out of reach"),
        ("age", [[10**5000]], "out of reach"),
        ("age", {"age": range(10**6)}, "more than"),
    ],
)
def test_keys_that_are_none_are_refused(key: str, given: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said) as caught:
        ask(f"SELECT {key}, COUNT(*) FROM visits GROUP BY {key}", hospital(), keys=given)
    assert caught.value.remedy


def test_keys_need_groups() -> None:
    with pytest.raises(InvalidArgument, match="no GROUP BY") as caught:
        ask("SELECT COUNT(*) FROM visits", hospital(), keys=["A"])
    assert caught.value.remedy == "Leave keys= out."


def test_names_in_python_are_whole_characters() -> None:
    query = Query(hospital(), "visits").agg(agg.count().alias("\ud800"))
    with pytest.raises(InvalidArgument, match="whole characters"):
        query.question()


@pytest.mark.parametrize("number", [-1, 10**4000, 1.5, "1"])
def test_a_limit_in_python_is_a_number_of_rows(number: Any) -> None:
    with pytest.raises(InvalidArgument, match="number of rows"):
        Query(hospital(), "visits").agg(agg.count()).limit(number)


@pytest.mark.parametrize("most", [1e-320, 5e-324, 1e300, 1.7e308])
def test_sums_within_ranges_of_any_size(most: float) -> None:
    schema = Schema((Private("v", {"id": "integer", "x": "real"}, Unit("p", "id"), ranges={"x": (0, most)}),))
    question = ask(
        "SELECT SUM(s), SUM(a) FROM (SELECT id, SUM(x) AS s, AVG(x) AS a FROM v GROUP BY id)", schema
    )
    database = duckdb.connect()
    database.execute(f"CREATE TABLE v AS SELECT 1 AS id, CAST('{most}' AS DOUBLE) AS x")
    ((_, total, mean),) = database.execute(question.rows.sql).fetchall()
    assert total == mean == pytest.approx(most, rel=1e-6, abs=2.0**-1000)


@pytest.mark.parametrize("digits", [None, 2, 0, -1, -3, -18, -19, -25])
@pytest.mark.parametrize("number", [2**63 - 1, -(2**63) + 1, 2**53 + 1, 45, -45, -44, 0, 1500])
def test_whole_numbers_are_rounded_exactly(number: int, digits: int | None) -> None:
    places = () if digits is None else (literal(digits),)
    sql = dialect_of("duckdb").sql_of(call("round", Column(0, "integer"), *places), ["c"])
    source = f"(SELECT CAST({number} AS BIGINT) AS c)"
    ((found,),) = duckdb.connect().execute(f"SELECT {sql} FROM {source}").fetchall()
    step = 10 ** max(-(digits or 0), 0)
    wanted = (abs(number) + step // 2) // step * step * (-1 if number < 0 else 1)
    assert found == (wanted if abs(wanted) < 2**63 else None)
    assert evaluate("round", [number] if digits is None else [number, digits]) == wanted
