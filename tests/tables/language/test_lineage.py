"""The unit is known by where a column comes from, never by what it is called."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import duckdb
import pytest
from language.hospital import hospital, unprotected

from dalenius.errors import InvalidArgument, Unsupported
from dalenius.privacy.unit import Unit
from dalenius.tables.language.parsing import ask
from dalenius.tables.question import Interval
from dalenius.tables.schema import Private, Public, Schema

BY_PATIENT = "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM ({}) GROUP BY patient_id)"


@pytest.mark.parametrize(
    "source",
    [
        "SELECT 1 AS patient_id, age FROM visits",
        "SELECT age AS patient_id, patient_id AS age FROM visits",
        "SELECT patient_id % 10 AS patient_id FROM visits",
        "SELECT patient_id + 0 AS patient_id FROM visits",
        "SELECT COALESCE(patient_id, 0) AS patient_id FROM visits",
        "SELECT CAST(patient_id AS VARCHAR) AS patient_id FROM visits",
        "SELECT CASE WHEN urgent THEN patient_id END AS patient_id FROM visits",
        "SELECT patient_id FROM visits UNION ALL SELECT nights AS patient_id FROM stays",
        "SELECT s.patient_id FROM visits AS v LEFT JOIN stays AS s ON v.patient_id = s.patient_id",
        "SELECT LAG(patient_id) OVER (PARTITION BY patient_id ORDER BY day) AS patient_id FROM visits",
        "SELECT region AS patient_id FROM visits JOIN wards USING (ward)",
    ],
)
def test_what_is_called_like_the_unit_is_not_the_unit(source: str) -> None:
    """Its groups are those of an answer, to be selected privately, and not rows of units."""
    question = ask(BY_PATIENT.format(source), hospital())
    assert question.after is not None and question.rows.keys == 1 and question.rows_per_unit is None
    joined = BY_PATIENT.format(source) + " AS p JOIN wards ON TRUE"
    with pytest.raises(Unsupported, match="GROUP BY without the unit"):
        ask(joined, hospital())


@pytest.mark.parametrize(
    "source",
    [
        "SELECT patient_id AS who FROM visits",
        "SELECT * EXCLUDE (patient_id), patient_id AS who FROM visits",
        "SELECT who FROM (SELECT age AS patient_id, patient_id AS who FROM visits WHERE age > 3)",
        "SELECT patient_id AS who FROM visits UNION ALL SELECT patient_id FROM stays",
        "SELECT s.patient_id AS who FROM visits AS v JOIN stays AS s ON v.patient_id = s.patient_id",
        "SELECT DISTINCT patient_id AS who, ward FROM visits",
    ],
)
def test_the_unit_stays_the_unit_under_another_name(source: str) -> None:
    question = ask(f"SELECT AVG(n) FROM (SELECT who, COUNT(*) AS n FROM ({source}) GROUP BY who)", hospital())
    assert question.rows_per_unit == 1 and unprotected(question)[0][0] > 0


def test_hidden_units_travel_whatever_is_selected() -> None:
    question = ask(
        "SELECT AVG(x) FROM (SELECT age AS x FROM (SELECT age, 7 AS patient_id FROM visits))", hospital()
    )
    assert question.rows.units == 1 and '"patient_id" AS u0' in question.rows.sql


def test_a_redefined_key_has_the_facts_of_its_new_expression_only() -> None:
    """OpenDP #2949: bounds that were known of a key must not be claimed for another key of its name."""
    schema = hospital(rows_per_unit=3, ranges={"age": (0, 120)}, categories={"ward": ("A", "B")})
    one = "SELECT patient_id, MIN(ward) AS ward FROM visits GROUP BY patient_id"
    assert ask(f"SELECT ward, COUNT(*) FROM ({one}) GROUP BY ward", schema).groups_per_unit == 1
    again = (
        f"SELECT v.cost AS ward, v.age * 1000 AS age FROM visits AS v JOIN ({one}) AS o USING (patient_id)"
    )
    question = ask(f"SELECT ward, SUM(age) FROM ({again}) GROUP BY ward", schema)
    assert question.keys is None and question.groups_per_unit == question.rows_per_unit == 3
    assert question.intervals[0] is not None and question.intervals[0].upper == 120_000
    joined = f"SELECT r.region AS ward FROM ({one}) AS o CROSS JOIN wards AS r"
    assert ask(f"SELECT ward, COUNT(*) FROM ({joined}) GROUP BY ward", schema).rows_per_unit is None


def test_facts_of_a_column_die_with_it() -> None:
    schema = hospital(ranges={"age": (0, 120)}, not_null=["age"])
    question = ask("SELECT SUM(age) FROM (SELECT cost AS age FROM visits)", schema)
    assert question.intervals == (None,)
    assert ask("SELECT COUNT(age) FROM visits", schema).aggregates[0].kind == "count"
    assert (
        ask("SELECT COUNT(age) FROM (SELECT cost AS age FROM visits)", schema).aggregates[0].kind
        == "count_of"
    )


def test_count_distinct_knows_the_unit() -> None:
    def kind(query: str) -> str:
        return ask(query, hospital()).aggregates[0].kind

    assert kind("SELECT COUNT(DISTINCT who) FROM (SELECT patient_id AS who FROM visits)") == "units"
    assert kind("SELECT COUNT(DISTINCT patient_id) FROM (SELECT age AS patient_id FROM visits)") == "distinct"
    assert kind("SELECT COUNT(DISTINCT age) FROM visits") == "distinct"


def test_a_cte_hides_a_table_of_its_name() -> None:
    query = (
        "WITH visits AS (SELECT patient_id, age FROM visits WHERE age > 60) SELECT COUNT(*),"
        " MIN(age) FROM visits"
    )
    assert unprotected(ask(query, hospital()))[0][1] > 60
    shadow = (
        "WITH wards AS (SELECT ward, cost AS region FROM visits) SELECT COUNT(*) FROM visits JOIN"
        " wards USING (ward)"
    )
    with pytest.raises(Unsupported, match="JOIN of private tables"):
        ask(shadow, hospital())
    outer = (
        "WITH t AS (SELECT age FROM visits) SELECT COUNT(*) FROM (WITH t AS (SELECT cost FROM"
        " visits) SELECT cost FROM t)"
    )
    assert unprotected(ask(outer, hospital())) == [(300,)]


def test_names_are_those_of_sql() -> None:
    columns = {"Größe": "real", "Ward Name": "text", 'quo"te': "integer", "select": "text", "id": "text"}
    table = Private('my "table"', columns, Unit("person", column="ID"))
    schema = Schema((table, Public("Öffentlich", {"Ward Name": "text"})))
    sums = 'SELECT T."WARD NAME", SUM("Größe"), MAX("QUO""TE")'
    sql = ask(f"""{sums} FROM "MY ""TABLE""\" AS t WHERE t."SELECT" <> '' GROUP BY 1""", schema).rows.sql
    assert all(name in sql for name in ('"Ward Name"', '"Größe"', '"quo""te"', '"my ""table""'))
    with pytest.raises(InvalidArgument, match="no column GRÖSSE"):
        ask('SELECT SUM("GRÖSSE") FROM "my ""table"""', schema)
    assert ask('SELECT COUNT(DISTINCT "Id") FROM "my ""table"""', schema).aggregates[0].kind == "units"


def test_names_that_occur_twice() -> None:
    with pytest.raises(InvalidArgument, match="two columns age"):
        ask("SELECT AVG(age) FROM visits AS a JOIN visits AS b ON a.patient_id = b.patient_id", hospital())
    assert (
        ask("SELECT AVG(b.age) FROM visits AS a JOIN visits AS b USING (patient_id)", hospital()).rows.units
        == 1
    )
    question = ask("SELECT ward, COUNT(*) AS ward, ward FROM visits GROUP BY ward", hospital())
    assert [each.name for each in question.outputs] == ["ward", "ward_1", "ward_2"]
    # An alias never hides a column of its name inside expressions, but ORDER BY means the alias.
    swapped = ask(
        "SELECT AVG(cost) AS age, COUNT(*) AS n FROM visits WHERE age > 30 ORDER BY age", hospital()
    )
    assert str(swapped.order[0][0]) == str(swapped.outputs[0].formula)


def test_every_part_of_the_unit_must_be_there() -> None:
    schema = hospital(Unit("patient", column="patient_id", window="week"), "day")
    inner = "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM visits GROUP BY {})"
    assert ask(inner.format("patient_id, date_trunc('week', day)"), schema).rows_per_unit == 1
    for keys in (
        "patient_id",
        "patient_id, day",
        "patient_id, date_trunc('month', day)",
        "date_trunc('week', day)",
    ):
        with pytest.raises(Unsupported, match="GROUP BY without the unit"):
            ask(inner.format(keys), schema)
    with pytest.raises(Unsupported, match="JOIN of private tables"):
        ask("SELECT COUNT(*) FROM visits AS a JOIN visits AS b USING (patient_id)", schema)
    on = "a.patient_id = b.patient_id AND date_trunc('week', a.day) = date_trunc('week', b.day)"
    assert ask(f"SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON {on}", schema).rows.units == 2


def test_where_says_where_a_column_lies() -> None:
    question = ask(
        "SELECT SUM(age), SUM(cost) FROM visits WHERE age > 17 AND age <= 65 AND cost BETWEEN 1 AND 2",
        hospital(),
    )
    assert [(each.lower, each.upper) for each in question.intervals if each] == [(18, 65), (1, 2)]
    assert ask("SELECT SUM(age) FROM visits WHERE age > 17 OR urgent", hospital()).intervals == (None,)


def test_one_row_never_counts_twice_where_each_row_is_a_unit() -> None:
    database = duckdb.connect()
    database.execute("CREATE TABLE people AS SELECT unnest(['A', 'A', 'B', 'C', NULL]) AS ward, 1 AS age")
    database.execute(
        "CREATE TABLE wards AS SELECT unnest(['A', 'A', 'B', 'D', NULL, NULL]) AS ward, 2 AS floor"
    )
    people = Private("people", {"ward": "text", "age": "integer"}, Unit("person"))
    schema = Schema((people, Public("wards", {"ward": "text", "floor": "integer"})))
    query = "SELECT COUNT(*), COUNT(floor) FROM people {} wards USING (ward)"
    counts = [
        database.execute(f"SELECT COUNT(*) FROM ({ask(query.format(verb), schema).rows.sql})").fetchall()[0][
            0
        ]
        for verb in ("JOIN", "LEFT JOIN")
    ]
    assert counts == [1, 5]  # ward A is there twice among the public rows, and is passed over


def test_identities_of_any_size_are_told_apart() -> None:
    database = duckdb.connect()
    database.execute(
        "CREATE TABLE a AS SELECT 18446744073709551615::UBIGINT - i::UBIGINT AS id FROM range(3) t(i)"
    )
    database.execute("CREATE TABLE b AS SELECT id::HUGEINT AS id FROM a")
    schema = Schema([Private(name, {"id": "integer"}, Unit("person", column="id")) for name in ("a", "b")])
    for query in (
        "SELECT units() FROM a JOIN b USING (id)",
        "SELECT units() FROM (SELECT id FROM a UNION ALL SELECT id FROM b)",
        "SELECT units() FROM (SELECT id, COUNT(*) FROM a GROUP BY id)",
    ):
        sql = ask(query, schema).rows.sql
        assert database.execute(f"SELECT COUNT(DISTINCT unit_0) FROM ({sql})").fetchall() == [(3,)]
    database.close()


def test_intervals_that_say_nothing_are_left_out() -> None:
    def interval(value: str, **facts: Any) -> Any:
        return ask(f"SELECT SUM({value}) FROM visits", hospital(**facts)).intervals[0]

    assert interval("ln(age)", ranges={"age": (1, 1)}) == Interval(Fraction(0), Fraction(0))
    assert interval("cost", ranges={"cost": (0, 1e300)}) is None
    assert interval("cost", ranges={"cost": (5e-324, 1)}) == Interval(Fraction(0), Fraction(1))
