"""Every clause of the surface: what is computed from `Rows` is what DuckDB answers to the query itself."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from language.hospital import connection, hospital, unprotected

from dalenius.errors import InvalidArgument, Unsupported
from dalenius.tables.language.parsing import ask
from dalenius.tables.question import Sorted
from dalenius.tables.schema import Schema

CLAUSES = {
    "COUNT(*)": "SELECT COUNT(*) FROM visits",
    "COUNT(column)": "SELECT COUNT(age), COUNT(ward), COUNT(urgent), COUNT(day) FROM visits",
    "COUNT(DISTINCT unit)": "SELECT COUNT(DISTINCT patient_id) FROM visits",
    "COUNT(DISTINCT column)": "SELECT COUNT(DISTINCT ward), COUNT(DISTINCT cost) FROM visits",
    "SUM and AVG": "SELECT SUM(cost), AVG(cost), SUM(age), AVG(age) FROM visits",
    "VAR and STDDEV": (
        "SELECT VAR_SAMP(cost), VAR_POP(cost), VARIANCE(age), STDDEV(age), STDDEV_SAMP(cost), "
        "STDDEV_POP(cost) FROM visits"
    ),
    "MIN and MAX": "SELECT MIN(cost), MAX(cost), MIN(age), MAX(age) FROM visits",
    "MEDIAN and PERCENTILE": (
        "SELECT MEDIAN(cost), QUANTILE_CONT(cost, 0.25), PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY "
        "age) FROM visits"
    ),
    "histogram": "SELECT FLOOR(age / 10) * 10 AS bin, COUNT(*) AS n FROM visits GROUP BY bin ORDER BY bin",
    "arithmetic around aggregates": (
        "SELECT SUM(cost) / COUNT(*) AS mean, 100.0 * COUNT(age) / COUNT(*) AS share FROM visits"
    ),
    "CASE inside an aggregate": "SELECT SUM(CASE WHEN age > 40 THEN cost ELSE 0 END) FROM visits",
    "CASE as a key": (
        "SELECT CASE WHEN age < 40 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS g, "
        "COUNT(*) FROM visits GROUP BY g"
    ),
    "expressions inside aggregates": (
        "SELECT SUM(cost * 2 + age), AVG(ABS(cost - 10)), SUM(SQRT(cost)) FROM visits"
    ),
    "WHERE with AND, OR, NOT, IN": (
        "SELECT COUNT(*) FROM visits WHERE age > 30 AND (ward = 'A' OR ward IN ('B', 'C')) AND NOT urgent"
    ),
    "WHERE with NULL and BETWEEN": (
        "SELECT COUNT(*) FROM visits WHERE ward IS NULL OR age IS NOT NULL AND cost BETWEEN 5 AND 10"
    ),
    "GROUP BY a column": "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    "GROUP BY columns": "SELECT ward, urgent, COUNT(*), AVG(cost) FROM visits GROUP BY ward, urgent",
    "GROUP BY a place": "SELECT ward, COUNT(*) FROM visits GROUP BY 1",
    "GROUP BY an alias": "SELECT ward AS w, COUNT(*) FROM visits GROUP BY w",
    "GROUP BY ALL": "SELECT ward, COUNT(*) FROM visits GROUP BY ALL",
    "GROUP BY an expression": (
        "SELECT lower(ward) || '!' AS w, COUNT(*) FROM visits GROUP BY lower(ward) || '!'"
    ),
    "public keys by JOIN ON": (
        "SELECT w.ward, COUNT(*) FROM visits AS v JOIN wards AS w ON v.ward = w.ward GROUP BY w.ward"
    ),
    "public keys by JOIN USING": "SELECT ward, COUNT(*) FROM visits JOIN wards USING (ward) GROUP BY ward",
    "public table first": (
        "SELECT region, ward, COUNT(*) FROM wards JOIN visits USING (ward) GROUP BY region, ward"
    ),
    "LEFT JOIN with a public table": (
        "SELECT region, COUNT(*), SUM(cost) FROM visits LEFT JOIN wards USING (ward) GROUP BY region"
    ),
    "HAVING": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 70 AND n < 100",
    "ORDER BY and LIMIT": (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC, ward LIMIT 2"
    ),
    "NULLS FIRST and OFFSET": (
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY ward DESC NULLS FIRST LIMIT 3 OFFSET 1"
    ),
    "ORDER BY a place and an aggregate": (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY 2, AVG(cost)"
    ),
    "CTEs": (
        "WITH v AS (SELECT patient_id, age FROM visits WHERE age > 30), w AS (SELECT age + 1 AS older "
        "FROM v) SELECT AVG(older) FROM w"
    ),
    "subquery by unit": (
        "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)"
    ),
    "HAVING by unit": (
        "SELECT n, COUNT(*) FROM (SELECT patient_id, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP "
        "BY patient_id HAVING SUM(cost) > 100) GROUP BY n"
    ),
    "aggregates by unit": (
        "SELECT AVG(s), AVG(m), AVG(d), MAX(x), AVG(a) FROM (SELECT patient_id, SUM(cost) AS s, "
        "MEDIAN(cost) AS m, COUNT(DISTINCT ward) AS d, MAX(age) AS x, AVG(cost) AS a FROM visits "
        "GROUP BY patient_id)"
    ),
    "SELECT DISTINCT with the unit": "SELECT COUNT(*) FROM (SELECT DISTINCT patient_id, ward FROM visits)",
    "ROW_NUMBER by unit": (
        "SELECT AVG(r) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY seen) AS r "
        "FROM visits)"
    ),
    "LAG by unit": (
        "SELECT AVG(c) FROM (SELECT cost - LAG(cost) OVER (PARTITION BY patient_id ORDER BY seen) AS "
        "c FROM visits)"
    ),
    "window frame and WINDOW clause": (
        "SELECT AVG(c), MAX(d) FROM (SELECT SUM(cost) OVER (PARTITION BY patient_id ORDER BY seen "
        "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS c, DENSE_RANK() OVER w AS d FROM visits WINDOW "
        "w AS (PARTITION BY patient_id ORDER BY ward))"
    ),
    "QUALIFY": (
        "SELECT COUNT(*), AVG(cost) FROM (SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION "
        "BY patient_id ORDER BY seen) <= 2)"
    ),
    "window without an order": (
        "SELECT AVG(cost - m) FROM (SELECT cost, AVG(cost) OVER (PARTITION BY patient_id) AS m FROM visits)"
    ),
    "JOIN on the unit": "SELECT nights, COUNT(*) FROM visits JOIN stays USING (patient_id) GROUP BY nights",
    "LEFT JOIN on the unit": (
        "SELECT AVG(s.nights), COUNT(*) FROM visits AS v LEFT JOIN stays AS s ON v.patient_id = "
        "s.patient_id AND s.nights > 2"
    ),
    "self join on the unit": (
        "SELECT COUNT(*), COUNT(b.age) FROM visits AS a JOIN visits AS b ON a.patient_id = "
        "b.patient_id WHERE a.day < b.day"
    ),
    "UNION ALL": (
        "SELECT COUNT(*), AVG(x) FROM (SELECT patient_id, age AS x FROM visits UNION ALL SELECT "
        "patient_id, nights FROM stays)"
    ),
    "UNION ALL with NULL": "SELECT day IS NULL AS k, COUNT(*), AVG(x) FROM (SELECT day, age AS x FROM visits"
    " UNION ALL SELECT NULL AS day, NULL FROM stays) WHERE day > DATE '2024-01-05' OR day IS NULL GROUP BY k",
    "UNION ALL and units": (
        "SELECT COUNT(DISTINCT patient_id) FROM (SELECT patient_id FROM visits UNION ALL SELECT "
        "patient_id FROM stays)"
    ),
    "date_trunc of a date": "SELECT date_trunc('month', day) AS m, COUNT(*) FROM visits GROUP BY m",
    "date_trunc of a moment": (
        "SELECT date_trunc('week', seen) AS m, COUNT(*) FROM visits WHERE seen >= '2024-01-01' AND "
        "seen < '2024-03-01' GROUP BY m"
    ),
    "parts of a date": (
        "SELECT EXTRACT(year FROM day) AS y, month(day) AS m, dayofweek(day) AS d, COUNT(*) FROM "
        "visits GROUP BY y, m, d"
    ),
    "hour of a moment": "SELECT hour(seen) AS h, COUNT(*) FROM visits GROUP BY h",
    "FILTER": (
        "SELECT COUNT(*) FILTER (WHERE age > 40), SUM(cost) FILTER (WHERE urgent), COUNT(DISTINCT "
        "patient_id) FILTER (WHERE urgent) FROM visits"
    ),
    "differences of dates": (
        "SELECT AVG(date_diff('day', DATE '2024-01-01', day)), AVG(day - DATE '2024-01-01') FROM visits"
    ),
    "INTERVAL": (
        "SELECT COUNT(*) FROM visits WHERE day >= DATE '2024-01-10' + INTERVAL 3 DAY AND day < "
        "CAST('2024-02-01' AS DATE) + 5"
    ),
    "strftime": "SELECT strftime(day, '%Y-%m') AS m, COUNT(*) FROM visits GROUP BY m",
    "dayname and LIKE": (
        "SELECT dayname(day) AS d, COUNT(*) FROM visits WHERE ward LIKE 'A%' OR ward NOT ILIKE '%b%' "
        "GROUP BY d"
    ),
    "COALESCE as a key": "SELECT COALESCE(ward, 'none') AS w, COUNT(*) FROM visits GROUP BY w",
    "a boolean key": "SELECT urgent, COUNT(*) FROM visits GROUP BY urgent",
    "a condition as a key": "SELECT age > 40 AS old, COUNT(*) FROM visits GROUP BY old",
    "ROUND around an aggregate": (
        "SELECT ward, ROUND(AVG(cost), 1) AS a, COALESCE(COUNT(*), 0) FROM visits GROUP BY ward ORDER BY a"
    ),
    "conditions around aggregates": (
        "SELECT COUNT(*) > 100 AS many, CASE WHEN COUNT(*) > 10 THEN 'big' ELSE 'small' END AS size "
        "FROM visits"
    ),
    "booleans in sums": (
        "SELECT SUM(urgent::INT), AVG(CASE WHEN urgent THEN 1 ELSE 0 END), COUNT_IF(urgent) FROM visits"
    ),
    "quoted and upper-case names": 'SELECT "Ward", COUNT(*) FROM "VISITS" GROUP BY "WARD"',
    "texts": (
        "SELECT AVG(length(ward)), AVG(instr_free) FROM (SELECT ward, length(substr(ward, 1, 1)) AS "
        "instr_free FROM visits)"
    ),
    "whole-number arithmetic": "SELECT SUM(age % 7), SUM(age // 7), SUM(-age), SUM(age * age) FROM visits",
    "LEAST, GREATEST, NULLIF, SIGN": (
        "SELECT SUM(greatest(age, cost)), SUM(least(age, 30)), SUM(nullif(age, 34)), SUM(sign(age - "
        "40)) FROM visits"
    ),
    "logarithms and powers": (
        "SELECT SUM(ln(age)), SUM(log(age)), SUM(log2(age)), SUM(exp(cost / 100)), SUM(power(cost, "
        "2)), SUM(log10(age)) FROM visits"
    ),
    "conversions": (
        "SELECT SUM(TRY_CAST(ward AS INTEGER)), COUNT(CAST(age AS VARCHAR)), SUM(CAST(cost AS "
        "INTEGER)) FROM visits"
    ),
    "comma join with a public table": "SELECT COUNT(*) FROM visits v, wards w WHERE v.ward = w.ward",
    "CROSS JOIN with a public table": "SELECT COUNT(*) FROM visits CROSS JOIN wards",
    "public subquery": (
        "SELECT region, COUNT(*) FROM visits JOIN (SELECT DISTINCT region, ward FROM wards WHERE ward "
        "<> 'C') USING (ward) GROUP BY region"
    ),
    "public keys and WHERE": (
        "SELECT region, COUNT(*) FROM visits JOIN wards USING (ward) WHERE region = 'north' GROUP BY region"
    ),
    "each row a unit, public join": "SELECT AVG(age) FROM each_row JOIN wards USING (ward)",
    "each row a unit": "SELECT ward, AVG(cost) FROM each_row GROUP BY ward",
    "EXCLUDE and a redefined column": (
        "SELECT ward, COUNT(*) FROM (SELECT * EXCLUDE (ward), upper(ward) AS ward FROM visits) GROUP BY ward"
    ),
    "concat": "SELECT concat(ward, '-', age // 10) AS k, COUNT(*) FROM visits GROUP BY k",
    "trim and replace": (
        "SELECT trim('  x ' || ward) AS k, replace(ward, 'A', 'Q') AS r, COUNT(*) FROM visits GROUP BY ALL"
    ),
    "column aliases of a table": "SELECT AVG(b) FROM visits AS v (a, b)",
    "quantile of another table": "SELECT QUANTILE_CONT(nights, 0.5) FROM stays",
    "IS DISTINCT FROM and IS TRUE": (
        "SELECT COUNT(*) FROM visits WHERE age IS DISTINCT FROM 34 AND urgent IS TRUE"
    ),
    "conversion of a key": (
        "SELECT width, COUNT(*) FROM (SELECT CAST(floor(cost / 5) AS INTEGER) AS width FROM visits) "
        "GROUP BY width"
    ),
    "IN and NOT IN with a public table": (
        "SELECT COUNT(*), COUNT_IF(ward NOT IN (SELECT ward FROM wards WHERE region = 'south')),"
        " COUNT_IF(ward NOT"
        " IN (SELECT NULLIF(ward, 'B') FROM wards)), COUNT_IF(age NOT IN (SELECT length(ward) FROM wards"
        " WHERE"
        " region = 'x')) FROM visits WHERE ward IN (SELECT ward FROM wards WHERE region <> 'x') OR age > 30"
    ),
    "IN as a key": (
        "SELECT ward IN (SELECT NULLIF(ward, 'B') FROM wards) AS k, COUNT(*) FROM visits GROUP BY k"
    ),
    "EXISTS and NOT EXISTS with a public table": (
        "SELECT COUNT(*), COUNT_IF(EXISTS (SELECT 1 FROM wards w WHERE w.ward = v.ward AND w.region ="
        " 'north'))"
        " FROM visits v WHERE NOT EXISTS (SELECT 1 FROM wards w WHERE v.ward = w.ward AND region = 'south')"
    ),
    "IN with the unit": (
        "SELECT COUNT(*), SUM(age), COUNT_IF(patient_id NOT IN (SELECT patient_id FROM stays WHERE nights >"
        " 3))"
        " FROM visits WHERE patient_id IN (SELECT patient_id FROM stays WHERE nights > 2) OR age > 50"
    ),
    "EXISTS with the unit": (
        "SELECT COUNT(*), AVG(cost) FROM visits v WHERE EXISTS (SELECT 1 FROM stays s WHERE s.patient_id ="
        " v.patient_id AND s.nights = v.age % 5)"
    ),
    "SEMI and ANTI JOIN": (
        "SELECT COUNT(*), SUM(age) FROM visits SEMI JOIN wards ON visits.ward = wards.ward AND region ="
        " 'south'"
        " ANTI JOIN stays ON visits.patient_id = stays.patient_id AND nights > 2"
    ),
    "NATURAL JOIN": "SELECT region, COUNT(*), AVG(nights) FROM visits NATURAL JOIN wards NATURAL JOIN stays"
    " GROUP BY region",
    "RIGHT JOIN on the unit": "SELECT COUNT(*), COUNT(n) FROM (SELECT patient_id, nights AS n FROM stays"
    " WHERE"
    " nights > 3) RIGHT JOIN visits USING (patient_id)",
    "RIGHT JOIN after a public table": "SELECT region, COUNT(*) FROM wards RIGHT JOIN visits USING (ward)"
    " GROUP BY"
    " region",
    "all rows of a public table": (
        "SELECT w.ward, COUNT(v.age), AVG(v.cost + 1), COUNT(DISTINCT v.patient_id) FROM visits v RIGHT"
        " JOIN wards"
        " w ON v.ward = w.ward GROUP BY w.ward"
    ),
    "a public table LEFT JOIN a private one": (
        "SELECT region, COUNT(age), MAX(cost) FROM wards LEFT JOIN visits USING (ward) GROUP BY region"
    ),
    "each row a unit, IN and EXISTS": (
        "SELECT COUNT(*) FROM each_row AS e WHERE ward IN (SELECT ward FROM wards) AND age NOT IN (SELECT"
        " length(ward) FROM wards) AND NOT EXISTS (SELECT 1 FROM wards w WHERE w.region = e.ward)"
    ),
    "each row a unit, IN of several columns": (
        "SELECT COUNT(*) FROM each_row WHERE (ward, 'north') IN (SELECT ward, region FROM wards UNION ALL"
        " SELECT"
        " ward, 'south' FROM wards)"
    ),
    "pairs of numbers": (
        "SELECT ward, CORR(age, cost), COVAR_POP(age, cost), COVAR_SAMP(cost, age), REGR_SLOPE(cost, age),"
        " REGR_INTERCEPT(cost, age), REGR_R2(cost, age), REGR_COUNT(cost, age), REGR_AVGX(cost, age),"
        " REGR_AVGY(cost, age), REGR_SXX(cost, age), REGR_SYY(cost, age), REGR_SXY(cost, age),"
        " CORR(age, cost) FILTER (WHERE urgent OR age < 70) FROM visits GROUP BY ward"
    ),
    "MIN and MAX of dates": (
        "SELECT MIN(day), MAX(day), MIN(seen), MAX(seen), MAX(day) - MIN(day), MIN(day) FILTER (WHERE"
        " urgent),"
        " date_diff('month', MIN(day), MAX(day)) FROM visits"
    ),
    "one of the values as a quantile": ("SELECT QUANTILE_CONT(age, 0.25), ward FROM visits GROUP BY ward"),
    "COUNT(DISTINCT …) of several": (
        "SELECT COUNT(DISTINCT (ward, age)), COUNT(DISTINCT (day, urgent, ward)) FROM visits"
    ),
    "key of both tables": (
        "SELECT ward || region AS k, COUNT(*) FROM visits JOIN wards USING (ward) GROUP BY k"
    ),
}


def plain(value: Any) -> Any:
    """Numbers to six decimals; a midnight is its day."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float | Decimal):
        return round(float(value), 6)
    if isinstance(value, datetime) and value.time() == time():
        return value.date()
    return value


def sortable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((value is None, str(value)) for value in row)


@pytest.mark.parametrize("clause", CLAUSES)
def test_a_clause_means_what_it_means_in_sql(clause: str) -> None:
    query = CLAUSES[clause]
    question = ask(query, hospital())
    mine = [tuple(map(plain, row)) for row in unprotected(question)]
    truth = [tuple(map(plain, row)) for row in connection().cursor().execute(query).fetchall()]
    if question.keys is not None and len(mine) > len(truth):
        mine = [row for row in mine if row in truth]  # public groups without rows are shown too
    if not question.order:
        mine, truth = sorted(mine, key=sortable), sorted(truth, key=sortable)
    assert mine == truth


def test_the_unit_may_have_a_window() -> None:
    from dalenius.privacy.unit import Unit

    schema = hospital(Unit("patient", column="patient_id", window="week"), "day")
    weekly = (
        "SELECT patient_id, date_trunc('week', day) AS week, COUNT(*) AS n FROM visits GROUP BY"
        " patient_id, week"
    )
    question = ask(f"SELECT AVG(n), units() FROM ({weekly})", schema)
    assert question.rows.units == 2 and question.rows_per_unit == 1
    truth = connection().cursor().execute(f"SELECT AVG(n), COUNT(*) FROM ({weekly})").fetchall()
    assert [tuple(map(plain, row)) for row in unprotected(question)] == [
        tuple(map(plain, row)) for row in truth
    ]


def test_keys_may_be_given() -> None:
    query = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    assert unprotected(ask(query, hospital(), keys=["B", "X"]))[1] == ("X", 0)
    by_column = ask(
        "SELECT ward, urgent, COUNT(*) FROM visits GROUP BY 1, 2",
        hospital(),
        keys={"WARD": ["A", "B"], "urgent": [True]},
    )
    assert by_column.keys == (("A", True), ("B", True))
    assert ask("SELECT day, COUNT(*) FROM visits GROUP BY 1", hospital(), keys=["2024-01-05"]).keys == (
        (date(2024, 1, 5),),
    )


def test_width_bucket_makes_a_histogram() -> None:
    query = (
        "SELECT width_bucket(cost, 5, 20, 3) AS bin, COUNT(*) FROM visits WHERE cost IS NOT NULL GROUP BY bin"
    )
    question = ask(query, hospital())
    assert question.keys is not None and {0, 1, 2, 3, 4} <= {key[0] for key in question.keys}
    edges = "CASE WHEN cost < 5 THEN 0 WHEN cost >= 20 THEN 4 ELSE floor((cost - 5) / 5) + 1 END"
    truth = (
        connection()
        .cursor()
        .execute(f"SELECT {edges} AS bin, COUNT(*) FROM visits WHERE cost IS NOT NULL GROUP BY bin")
        .fetchall()
    )
    assert {row for row in unprotected(question) if row[1]} == {(int(edge), count) for edge, count in truth}


def test_aggregates_of_one_column_share_it_and_rows_without_a_value_are_left_out() -> None:
    question = ask("SELECT AVG(cost), SUM(cost), COUNT(cost), MAX(cost) FROM visits", hospital())
    assert question.rows.values == 1 and {each.column for each in question.aggregates} == {0}
    assert "WHERE value_0 IS NOT NULL" in question.rows.sql
    assert "IS NOT NULL" not in ask("SELECT AVG(cost), COUNT(*) FROM visits", hospital()).rows.sql


def test_an_empty_table_has_an_answer() -> None:
    question = ask("SELECT COUNT(*), SUM(cost), AVG(cost) FROM visits WHERE age > 1000", hospital())
    assert unprotected(question) == [(0, None, None)]


def test_regular_expressions_mean_what_they_mean_in_duckdb() -> None:
    query = (
        "SELECT regexp_extract(ward, '[A-C]') AS k, COUNT(*), COUNT(*) FILTER (WHERE regexp_matches(ward,"
        " '^(a|b)$', 'i')), COUNT(*) FILTER (WHERE ward SIMILAR TO '[CD]' OR regexp_replace(ward, 'A', 'B') ="
        " 'B') FROM visits GROUP BY k"
    )
    mine = [tuple(map(plain, row)) for row in unprotected(ask(query, hospital()))]
    truth = [tuple(map(plain, row)) for row in connection().cursor().execute(query).fetchall()]
    assert sorted(mine, key=sortable) == sorted(truth, key=sortable)


@pytest.mark.parametrize("engine", ["postgres", "spark"])
@pytest.mark.parametrize("condition", ["regexp_matches(ward, 'A')", "try_strptime(ward, '%Y') IS NULL"])
def test_functions_of_duckdb_alone_are_refused_elsewhere(engine: str, condition: str) -> None:
    schema = Schema(hospital().tables, dialect=engine)
    with pytest.raises(Unsupported, match=engine):
        ask(f"SELECT COUNT(*) FROM visits WHERE {condition}", schema)


def test_a_list_of_quantiles_is_a_column_for_each() -> None:
    query = "SELECT ward, QUANTILE_CONT(cost, [0.25, 0.5]) AS q FROM visits GROUP BY ward"
    question = ask(query, hospital())
    assert [output.name for output in question.outputs] == ["ward", "q_0.25", "q_0.5"]
    truth = connection().cursor().execute(query).fetchall()
    assert sorted(unprotected(question), key=sortable) == sorted(
        ((ward, *quantiles) for ward, quantiles in truth), key=sortable
    )


def test_a_discrete_quantile_of_whole_numbers_is_whole_and_no_median_within_units() -> None:
    query = "SELECT QUANTILE_DISC(age, 0.5), PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY age) FROM visits"
    assert [type(each) for each in unprotected(ask(query, hospital()))[0]] == [int, int]
    within = (
        "SELECT AVG(m) FROM (SELECT patient_id, QUANTILE_DISC(age, 0.5) AS m FROM visits GROUP BY patient_id)"
    )
    with pytest.raises(Unsupported):
        ask(within, hospital())


AFTERWARDS = {
    "ROLLUP": "SELECT ward, urgent, COUNT(*), AVG(cost), MEDIAN(age), GROUPING(urgent) AS g FROM visits"
    " GROUP BY"
    " ROLLUP (ward, urgent)",
    "CUBE": "SELECT ward, urgent, SUM(age), GROUPING(ward, urgent) AS g FROM visits GROUP BY CUBE (1,"
    " urgent) HAVING"
    " COUNT(*) > 30",
    "GROUPING SETS": (
        "SELECT ward, urgent, age > 40 AS old, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((ward,"
        " urgent), (old),"
        " ROLLUP (ward))"
    ),
    "a column beside ROLLUP": "SELECT ward, urgent, MAX(cost) FROM visits GROUP BY ward, ROLLUP (urgent)",
    "a window over ROLLUP": (
        "SELECT ward, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY GROUPING(ward)) AS share FROM visits"
        " GROUP BY ROLLUP"
        " (ward)"
    ),
    "an outer query over ROLLUP": (
        "SELECT MAX(n) - MIN(n) AS d FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward))"
    ),
    "shares": "SELECT ward, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM visits GROUP BY ward",
    "shares within a key": (
        "SELECT ward, urgent, COUNT(*) AS n, n / SUM(COUNT(*)) OVER (PARTITION BY ward) AS share FROM visits"
        " GROUP BY ward, urgent HAVING COUNT(*) > 10 ORDER BY ward, urgent"
    ),
    "ranks": (
        "SELECT ward, COUNT(*) AS n, RANK() OVER (ORDER BY n DESC) AS r, DENSE_RANK() OVER (ORDER BY n),"
        " ROW_NUMBER()"
        " OVER (ORDER BY n, ward), PERCENT_RANK() OVER (ORDER BY n), CUME_DIST() OVER (ORDER BY n),"
        " NTILE(2) OVER"
        " (ORDER BY ward) FROM visits GROUP BY ward"
    ),
    "QUALIFY over groups": (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward QUALIFY RANK() OVER (ORDER BY n DESC, ward)"
        " <= 2"
    ),
    "neighbours in an order": (
        "SELECT ward, n - LAG(n) OVER w AS d, LEAD(n) OVER w, FIRST_VALUE(ward) OVER w, LAST_VALUE(n) OVER"
        " w, SUM(n)"
        " OVER (ORDER BY ward ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s, AVG(n) OVER (PARTITION BY"
        " ward < 'C')"
        " FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) WINDOW w AS (ORDER BY ward)"
    ),
    "a running total": "SELECT ward, SUM(SUM(age)) OVER (ORDER BY ward) AS t FROM visits GROUP BY ward",
    "an outer filter": (
        "WITH c AS (SELECT ward, COUNT(*) AS n, AVG(cost) AS a FROM visits GROUP BY ward) SELECT ward, n, a"
        " * 2 AS b"
        " FROM c WHERE n > 68 ORDER BY n DESC, ward DESC LIMIT 3"
    ),
    "an outer aggregate": (
        "SELECT AVG(n), MAX(n), MIN(n), COUNT(*), SUM(n), COUNT(DISTINCT n) FROM (SELECT ward, COUNT(*) AS"
        " n FROM"
        " visits GROUP BY ward)"
    ),
    "an outer GROUP BY": (
        "SELECT ward IS NULL AS k, MEDIAN(n), COUNT(*) FROM (SELECT ward, urgent, COUNT(*) AS n FROM visits"
        " GROUP BY"
        " ALL) GROUP BY k HAVING COUNT(*) > 1"
    ),
    "a number of the whole answer": (
        "WITH c AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) SELECT ward, n / (SELECT SUM(n)"
        " FROM c) AS"
        " share FROM c WHERE n > (SELECT AVG(n) - 1 FROM c) AND ward > 'A' ORDER BY share, ward"
    ),
    "CTEs in a row": (
        "WITH a AS (SELECT ward, urgent, COUNT(*) AS n FROM visits GROUP BY ward, urgent), b (w, t) AS"
        " (SELECT ward,"
        " SUM(n) FROM a GROUP BY ward) SELECT w, t FROM b WHERE t > 60 ORDER BY w"
    ),
    "a star over an answer": "SELECT * FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) ORDER BY"
    " n, ward",
    "DISTINCT of an answer": "SELECT DISTINCT n FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)",
    "SELECT DISTINCT": "SELECT DISTINCT ward, urgent FROM visits WHERE age > 30",
    "GROUP BY alone": "SELECT ward FROM visits GROUP BY ward ORDER BY ward DESC LIMIT 2",
    "MODE": "SELECT MODE(ward) AS m FROM visits WHERE ward < 'B' OR urgent",
    "MODE by group": (
        "SELECT MODE(age % 3) + 1 AS m, urgent FROM visits WHERE urgent IS NOT NULL GROUP BY urgent ORDER"
        " BY urgent"
    ),
    "MODE with FILTER": "SELECT mode(age % 3) FILTER (WHERE urgent) AS m FROM visits",
}


@pytest.mark.parametrize("clause", AFTERWARDS)
def test_what_is_computed_from_an_answer_means_what_it_means_in_sql(clause: str) -> None:
    query = AFTERWARDS[clause]
    question = ask(query, hospital())
    mine = [tuple(map(plain, row)) for row in unprotected(question)]
    truth = [tuple(map(plain, row)) for row in connection().cursor().execute(query).fetchall()]
    steps = () if question.after is None else question.after.steps
    if not question.order and not any(isinstance(each, Sorted) for each in steps):
        mine, truth = sorted(mine, key=sortable), sorted(truth, key=sortable)
    assert mine == truth


def test_values_that_are_asked_for_are_selected_privately_whatever_is_public() -> None:
    schema = hospital(categories={"ward": ("A", "B")})
    assert ask("SELECT ward, COUNT(*) FROM visits GROUP BY ward", schema).keys is not None
    assert ask("SELECT DISTINCT ward FROM visits", schema).keys is None
    with pytest.raises(InvalidArgument):
        ask("SELECT DISTINCT ward FROM visits", schema, keys=["A"])
