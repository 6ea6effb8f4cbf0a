"""Every refused clause says which it is, why, and a rewrite; the rewrite works."""

from __future__ import annotations

from pathlib import Path

import pytest
from language.hospital import hospital, unprotected

from dalenius.errors import InvalidArgument, Unsupported
from dalenius.privacy.unit import Unit
from dalenius.tables.language.parsing import ask
from dalenius.tables.language.refusals import REFUSALS, Refusal
from dalenius.tables.schema import Private, Schema

OTHERS = {
    "two statements": "SELECT COUNT(*) FROM visits; DROP TABLE visits",
    "COPY": "COPY visits TO 'visits.csv'",
    "ATTACH": "ATTACH 'other.db'",
    "PRAGMA": "PRAGMA database_list",
    "SET": "SET threads = 1",
    "CREATE MACRO": "CREATE MACRO f(x) AS x",
    "EXPLAIN ANALYZE": "EXPLAIN ANALYZE SELECT COUNT(*) FROM visits",
    "nothing": "",
    "SELECT INTO": "SELECT COUNT(*) INTO t FROM visits",
    "FOR UPDATE": "SELECT COUNT(*) FROM visits FOR UPDATE",
    "random()": "SELECT AVG(random()) FROM visits",
    "uuid()": "SELECT COUNT(DISTINCT uuid()) FROM visits",
    "now()": "SELECT COUNT(*) FROM visits WHERE seen < now()",
    "nextval()": "SELECT SUM(nextval('s')) FROM visits",
    "getenv()": "SELECT COUNT(*) FROM visits WHERE getenv('HOME') = ward",
    "a file": "SELECT COUNT(*) FROM 'visits.csv'",
    "read_parquet": "SELECT COUNT(*) FROM read_parquet('visits.parquet')",
    "glob": "SELECT COUNT(*) FROM glob('*')",
    "catalog": "SELECT COUNT(*) FROM information_schema.tables",
    "other schema": "SELECT COUNT(*) FROM main.visits",
    "TABLESAMPLE": "SELECT COUNT(*) FROM visits TABLESAMPLE 10%",
    "USING SAMPLE": "SELECT COUNT(*) FROM visits USING SAMPLE 10",
    "time travel": "SELECT COUNT(*) FROM visits AT (VERSION => 1)",
    "rowid": "SELECT COUNT(*) FROM visits WHERE rowid < 5",
    "IN of other units": "SELECT COUNT(*) FROM visits WHERE age IN (SELECT nights FROM stays)",
    "IN of rows that are units": "SELECT COUNT(*) FROM each_row WHERE age IN (SELECT age FROM visits)",
    "IN of another width": "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward, region FROM wards)",
    "NOT IN of several columns": "SELECT COUNT(*) FROM visits WHERE (ward, ward) NOT IN (SELECT ward, region"
    " FROM wards)",
    "EXISTS of other units": "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM stays s WHERE"
    " s.nights ="
    " v.age)",
    "EXISTS by an inequality": "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM wards w WHERE"
    " w.ward <"
    " v.ward)",
    "EXISTS with LIMIT": "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM wards w WHERE w.ward ="
    " v.ward"
    " LIMIT 1)",
    "a public semi-join with a private table": "SELECT COUNT(*) FROM wards SEMI JOIN visits USING (ward)",
    "all rows of a public table, by COUNT(*)": "SELECT w.ward, COUNT(*) FROM visits v RIGHT JOIN wards w ON"
    " v.ward"
    " = w.ward GROUP BY w.ward",
    "all rows of a public table, by COALESCE": "SELECT w.ward, SUM(coalesce(v.age, 1)) FROM visits v RIGHT"
    " JOIN"
    " wards w ON v.ward = w.ward GROUP BY w.ward",
    "all rows of a public table, by a private key": "SELECT v.ward, COUNT(age) FROM visits v RIGHT JOIN"
    " wards w ON"
    " v.ward = w.ward GROUP BY v.ward",
    "all rows of a public table, in a subquery": "SELECT COUNT(age) FROM (SELECT v.age FROM visits v RIGHT"
    " JOIN"
    " wards w ON v.ward = w.ward)",
    "EXISTS": "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM stays)",
    "ANY": "SELECT COUNT(*) FROM visits WHERE age > ANY (SELECT nights FROM stays)",
    "scalar in SELECT": "SELECT COUNT(*), (SELECT MAX(age) FROM visits) FROM visits",
    "scalar in HAVING": "SELECT COUNT(*) FROM visits HAVING COUNT(*) > (SELECT 3)",
    "NATURAL": "SELECT COUNT(*) FROM stays NATURAL JOIN wards",
    "POSITIONAL": "SELECT COUNT(*) FROM visits POSITIONAL JOIN stays",
    "SEMI": "SELECT COUNT(*) FROM visits SEMI JOIN stays ON age = nights",
    "ASOF": "SELECT COUNT(*) FROM visits ASOF JOIN stays ON visits.patient_id = stays.patient_id AND"
    " age >= nights",
    "FULL": "SELECT COUNT(*) FROM visits FULL JOIN stays USING (patient_id)",
    "CROSS JOIN of private tables": "SELECT COUNT(*) FROM visits CROSS JOIN stays",
    "comma join of private tables": "SELECT COUNT(*) FROM visits AS a, stays AS b WHERE a.patient_id ="
    " b.patient_id",
    "unit equality under OR": "SELECT COUNT(*) FROM visits a JOIN stays b ON a.patient_id ="
    " b.patient_id OR TRUE",
    "unit equality under NOT": "SELECT COUNT(*) FROM visits a JOIN stays b ON NOT a.patient_id ="
    " b.patient_id",
    "unit equal to itself": "SELECT COUNT(*) FROM visits a JOIN stays b ON a.patient_id = a.patient_id",
    "LIMIT after UNION ALL": "SELECT COUNT(*) FROM (SELECT age FROM visits UNION ALL SELECT age FROM"
    " visits LIMIT 5)",
    "LIMIT in a branch": "SELECT COUNT(*) FROM ((SELECT age FROM visits LIMIT 5) UNION ALL SELECT age"
    " FROM visits)",
    "OFFSET in a CTE": "WITH v AS (SELECT age FROM visits OFFSET 3) SELECT COUNT(*) FROM v",
    "DISTINCT ON": "SELECT COUNT(*) FROM (SELECT DISTINCT ON (patient_id) * FROM visits)",
    "LATERAL": "SELECT COUNT(*) FROM visits, LATERAL (SELECT visits.age) AS l",
    "unnest in FROM": "SELECT COUNT(*) FROM visits, unnest([1, 2, 3])",
    "unnest in SELECT": "SELECT COUNT(*) FROM (SELECT unnest([1, 2, 3]) FROM visits)",
    "recursive CTE": "WITH RECURSIVE t AS (SELECT age FROM visits UNION ALL SELECT age FROM t) SELECT"
    " COUNT(*) FROM t",
    "PIVOT": "PIVOT visits ON ward USING COUNT(*)",
    "LIMIT per cent": "SELECT COUNT(*) FROM visits LIMIT 10%",
    "ordered aggregate": "SELECT AVG(age ORDER BY day) FROM visits",
    "list aggregate": "SELECT list(age) FROM visits",
    "MAX of several": "SELECT MAX(age, 3) FROM visits",
    "COLUMNS": "SELECT COUNT(COLUMNS(*)) FROM visits",
    "a pattern that RE2 does not take": "SELECT COUNT(*) FROM visits WHERE ward SIMILAR TO 'A('",
    "a pattern that is too large": "SELECT COUNT(*) FROM visits WHERE regexp_matches(ward, 'A{1001}')",
    "a pattern that is a column": "SELECT COUNT(*) FROM visits WHERE regexp_matches(ward, ward)",
    "a replacement that refers to groups": "SELECT regexp_replace(ward, '(A)', '\\1') AS k, COUNT(*) FROM"
    " visits GROUP BY k",
    "an operator with two meanings": "SELECT COUNT(*) FROM visits WHERE ward ~ 'A'",
    "an option of a pattern": "SELECT COUNT(*) FROM visits WHERE regexp_matches(ward, 'A', 'g')",
    "a decimal number of no digits": "SELECT SUM(CAST(age AS DECIMAL(0, 0))) FROM visits",
    "a moment in milliseconds": "SELECT COUNT(CAST(seen AS TIMESTAMP_MS)) FROM visits",
    "an empty filling": "SELECT lpad(ward, 3, '') AS k, COUNT(*) FROM visits GROUP BY k",
    "GLOB": "SELECT COUNT(*) FROM visits WHERE ward GLOB 'A*'",
    "ESCAPE": "SELECT COUNT(*) FROM visits WHERE ward LIKE 'A$%' ESCAPE '$'",
    "COLLATE": "SELECT ward COLLATE NOCASE, COUNT(*) FROM visits GROUP BY 1",
    "subscript": "SELECT ward[1], COUNT(*) FROM visits GROUP BY 1",
    "struct": "SELECT {'a': age}, COUNT(*) FROM visits GROUP BY 1",
    "lambda": "SELECT list_transform([age], x -> x), COUNT(*) FROM visits GROUP BY 1",
    "text compared with a number": "SELECT COUNT(*) FROM visits WHERE ward > 5",
    "a condition that is a number": "SELECT COUNT(*) FROM visits WHERE age",
    "a column that is not there": "SELECT COUNT(height) FROM visits",
    "a table that is not there": "SELECT COUNT(*) FROM patients",
    "a column outside GROUP BY": "SELECT age, COUNT(*) FROM visits",
    "an ambiguous column": "SELECT COUNT(*) FROM visits v JOIN wards w ON v.ward = w.ward WHERE ward = 'A'",
    "each row, self join": "SELECT COUNT(*) FROM each_row AS a JOIN each_row AS b ON a.age = b.age",
    "each row, CROSS JOIN": "SELECT COUNT(*) FROM each_row CROSS JOIN wards",
    "each row, join by an inequality": "SELECT COUNT(*) FROM each_row JOIN wards ON each_row.ward >"
    " wards.ward",
    "each row, private join": "SELECT COUNT(*) FROM each_row JOIN visits USING (age)",
    "each row, DISTINCT": "SELECT COUNT(*) FROM (SELECT DISTINCT age FROM each_row)",
    "each row, window": "SELECT AVG(n) FROM (SELECT ROW_NUMBER() OVER (ORDER BY age) AS n FROM each_row)",
    "nested too deeply": f"SELECT COUNT(*) FROM visits WHERE {'(' * 3000}age{')' * 3000} > 1",
    "too long": f"SELECT COUNT(*) FROM visits WHERE ward = '{'x' * 300_000}'",
    "broken": "SELECT COUNT(* FROM visits",
    "names that double": "SELECT COUNT(*) FROM (SELECT age AS a0"
    + "".join(f", a{i} + a{i} AS a{i + 1}" for i in range(40)) + " FROM visits)",
    "arguments that double": f"SELECT SUM({'sqrt(' * 60}age{')' * 60}) FROM visits",
    "CTEs that double": "WITH t0 AS (SELECT patient_id FROM visits)"
    + "".join(f", t{i + 1} AS (SELECT * FROM t{i} UNION ALL SELECT * FROM t{i})" for i in range(40))
    + " SELECT COUNT(*) FROM t40",
    "columns that double": "WITH t0 AS (SELECT * FROM visits)"
    + "".join(f", t{i + 1} AS (SELECT * FROM t{i} AS a JOIN t{i} AS b USING (patient_id))" for i in range(30))
    + " SELECT COUNT(*) FROM t30",
}  # fmt: skip


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_a_refused_clause_names_itself_and_its_rewrite_works(refusal: Refusal) -> None:
    with pytest.raises(Unsupported) as caught:
        ask(refusal.example, hospital())
    assert caught.value.problem.startswith(refusal.clause) and refusal.why in caught.value.problem
    assert caught.value.remedy == refusal.rewrite
    assert unprotected(ask(refusal.instead, hospital())) is not None


@pytest.mark.parametrize("name", OTHERS)
def test_whatever_else_is_not_known_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        ask(OTHERS[name], hospital())
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("query", "grouped"),
    [
        ("SELECT ward, COUNT(*) FROM visits", "SELECT ward, COUNT(*) FROM visits GROUP BY ward"),
        ("SELECT day, AVG(age) FROM visits", "SELECT day, AVG(age) FROM visits GROUP BY day"),
        (
            "SELECT ward, day, COUNT(*) FROM visits GROUP BY ward",
            "SELECT ward, day, COUNT(*) FROM visits GROUP BY ward, day",
        ),
    ],
)
def test_a_column_outside_group_by_is_refused_with_remedies_that_work(query: str, grouped: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        ask(query, hospital())
    name = caught.value.problem.partition(" ")[0]
    added = f"Add {name} to GROUP BY" if "GROUP" in query else f"Add GROUP BY {name}"
    assert caught.value.remedy.startswith(added) and f"COUNT({name})" in caught.value.remedy
    for mended in (grouped, query.replace(f"{name},", f"COUNT({name}),", 1)):
        ask(mended, hospital())


def test_the_documentation_lists_every_refusal() -> None:
    page = (Path(__file__).parents[3] / "docs" / "sql.md").read_text()
    missing = [
        each.clause for each in REFUSALS.values() if each.clause not in page or each.rewrite not in page
    ]
    assert missing == []


@pytest.mark.parametrize("word", ["case", "limit", "into", "from", "using", "when"])
def test_a_reserved_word_as_a_column_is_told_to_be_quoted(word: str) -> None:
    columns = {"id": "integer", word: "integer", "day": "date", "x": "real"}
    schema = Schema((Private("t", columns, Unit("person", column="id")),))
    with pytest.raises(InvalidArgument) as caught:
        ask(f"SELECT {word}, AVG({word}) FROM t GROUP BY {word} ORDER BY {word}, day", schema)
    assert f'"{word}"' in caught.value.remedy
    ask(f'SELECT "{word}", AVG("{word}") FROM t GROUP BY "{word}" ORDER BY "{word}"', schema)
    with pytest.raises(InvalidArgument) as caught:
        ask("SELECT day, AVG(x FROM t", schema)
    assert "day" not in caught.value.remedy
