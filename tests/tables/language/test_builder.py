"""Questions in Python are those in SQL, to the letter."""

from __future__ import annotations

from typing import Any

import pytest
from language.hospital import hospital, unprotected

from dalenius.errors import InvalidArgument
from dalenius.tables.builder import Agg, Query, agg
from dalenius.tables.language.parsing import ask

VISITS = Query(hospital(ranges={"age": (0, 120)}), "visits")
PAIRS = {
    "counts": (
        VISITS.group_by("ward").agg(agg.count(), agg.mean("age")),
        "SELECT ward, COUNT(*), AVG(age) FROM visits GROUP BY ward",
    ),
    "no groups": (VISITS.agg(agg.count("age"), agg.units()), "SELECT COUNT(age), units() FROM visits"),
    "conditions": (
        VISITS.where("age > 20").where("ward = 'A'").agg(agg.sum("cost * 2").alias("twice")),
        "SELECT SUM(cost * 2) AS twice FROM visits WHERE age > 20 AND ward = 'A'",
    ),
    "columns": (
        VISITS.with_columns(decade="age // 10").group_by("decade").agg(agg.median("cost")),
        "SELECT decade, MEDIAN(cost) FROM (SELECT *, age // 10 AS decade FROM visits) GROUP BY decade",
    ),
    "redefined": (
        VISITS.with_columns(age="age + 1").where("age > 30").agg(agg.min("age"), agg.max("age")),
        "SELECT MIN(age), MAX(age) FROM (SELECT * EXCLUDE (age), age + 1 AS age FROM visits) WHERE age > 30",
    ),
    "select": (
        VISITS.select("patient_id", old="age > 60").group_by("old").agg(agg.count_distinct("patient_id")),
        "SELECT old, COUNT(DISTINCT patient_id) FROM (SELECT patient_id, age > 60 AS old FROM visits)"
        " GROUP BY old",
    ),
    "spread": (
        VISITS.agg(agg.variance("age"), agg.std("age"), agg.quantile("age", 0.9)),
        "SELECT VAR_SAMP(age), STDDEV_SAMP(age), QUANTILE_CONT(age, 0.9) FROM visits",
    ),
    "an expression as a key": (
        VISITS.group_by("month(day)").agg(agg.count().alias("n")),
        "SELECT month(day), COUNT(*) AS n FROM visits GROUP BY month(day)",
    ),
    "order": (
        VISITS.group_by("ward").agg(agg.count().alias("n")).having("n > 3")
        .order_by("n", descending=True).limit(2),
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 3 ORDER BY n DESC NULLS LAST"
        " LIMIT 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_the_same_question(name: str) -> None:
    built, sql = PAIRS[name]
    question = built.question()
    assert question == ask(sql, VISITS.schema)
    assert question.text == ask(built.sql, VISITS.schema).text
    assert unprotected(question) == unprotected(ask(sql, VISITS.schema))


def test_keys_are_passed_on_and_a_release_is_asked_for() -> None:
    asked: list[Any] = []
    query = Query(hospital(), "visits", lambda query, **options: asked.append((query, options)))
    wards = query.group_by("ward").agg(agg.count())
    wards.ask(epsilon=0.5, keys=["A"], purpose="test")
    assert asked == [(wards, {"epsilon": 0.5, "keys": ["A"], "purpose": "test"})]
    with pytest.raises(InvalidArgument, match="not asked of a table"):
        VISITS.agg(agg.count()).release(epsilon=1)


@pytest.mark.parametrize(
    "text", ["age FROM stays", "age, ward", "age; DROP TABLE visits", "COUNT(*) OVER ()", ""]
)
def test_an_expression_is_one_expression(text: str) -> None:
    with pytest.raises(InvalidArgument):
        VISITS.agg(Agg("sum", text)).question()


def test_columns_may_have_any_name() -> None:
    query = VISITS.with_columns(**{"my age": "age", 'a "b"': "cost"}).group_by("my age").agg(agg.sum('a "b"'))
    assert query.question().outputs[0].name == "my age"


def test_a_query_is_not_changed_by_what_is_made_of_it() -> None:
    grouped = VISITS.group_by("ward")
    grouped.agg(agg.count())
    assert grouped.agg(agg.sum("age")).question().aggregates[0].kind == "sum"
