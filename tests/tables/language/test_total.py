"""Whatever the data are, what is printed gives values or NULL, and never an error."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from language.nasty import COLUMNS, connection, expressions

from dalenius.privacy.unit import Unit
from dalenius.tables.language.dialects import dialect_of
from dalenius.tables.language.expressions import RULES, Expression
from dalenius.tables.language.parsing import ask
from dalenius.tables.schema import Private, Schema

DUCKDB = dialect_of("duckdb")
TYPES = ["boolean", "date", "integer", "moment", "real", "text"]
READ = ", ".join(
    f"{DUCKDB.read(DUCKDB.quoted(name), type_)} AS c{i}" for i, (name, type_) in enumerate(COLUMNS.items())
)
NAMES = [f"c{i}" for i in range(len(COLUMNS))]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(TYPES).flatmap(lambda type_: expressions(type_)))
def test_no_expression_fails_on_any_value(expression: Expression) -> None:
    sql = DUCKDB.canonical(expression, NAMES)
    source = f"(SELECT {READ} FROM nasty)"
    shown = connection().cursor().execute(f"SELECT MAX(CAST({sql} AS VARCHAR)), COUNT({sql}) FROM {source}")
    assert len(shown.fetchall()) == 1
    connection().cursor().execute(f"SELECT COUNT(*) FROM {source} WHERE {sql} IS NULL").fetchall()


@pytest.mark.parametrize("name", sorted(RULES))
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_function_is_left_out(name: str, data: st.DataObject) -> None:
    from language.nasty import applied

    expression = data.draw(applied(name))
    sql = DUCKDB.sql_of(expression, NAMES)
    connection().cursor().execute(
        f"SELECT MAX(CAST({sql} AS VARCHAR)) FROM (SELECT {READ} FROM nasty)"
    ).fetchall()


QUERIES = [
    "SELECT {c}, COUNT(*) FROM nasty GROUP BY {c}",
    "SELECT COUNT(DISTINCT {c}), COUNT({c}) FROM nasty",
    "SELECT AVG(n) FROM (SELECT i, {c}, COUNT(*) AS n FROM nasty GROUP BY i, {c})",
    "SELECT COUNT(*) FROM (SELECT DISTINCT i, {c} FROM nasty)",
    "SELECT COUNT(a), COUNT(b), COUNT(c), SUM(r) FROM (SELECT LAG({c}) OVER w AS a, FIRST_VALUE({c})"
    " OVER w AS b,"
    " LAST_VALUE({c}) OVER w AS c, ROW_NUMBER() OVER w AS r FROM nasty WINDOW w AS (PARTITION BY i"
    " ORDER BY {c} DESC))",
    "SELECT COUNT(*) FROM nasty AS a JOIN nasty AS b ON a.i = b.i AND a.{c} IS NULL",
    "SELECT COUNT({c}) FROM (SELECT i, {c} FROM nasty UNION ALL SELECT i, {c} FROM nasty)",
]
COUNTED = [
    "SELECT COUNT(*) FROM nasty AS a JOIN nasty AS b ON a.i = b.i AND a.{c} IS NULL",
    "SELECT COUNT({c}), SUM(n) FROM (SELECT i, {c}, ROW_NUMBER() OVER (PARTITION BY i) AS n FROM nasty)",
    "SELECT SUM(n) FROM (SELECT i, COUNT({c}) AS n FROM nasty GROUP BY i)",
]
"""What may be asked of values of any type."""
QUERIES += [query for query in COUNTED if query not in QUERIES]
NUMBERS = [
    "SELECT SUM({c}), AVG({c}), VAR_POP({c}), MEDIAN({c}), MAX({c} * {c}), MIN(1 / {c}) FROM nasty",
    "SELECT SUM(a), SUM(b), SUM(c), SUM(d), SUM(e) FROM (SELECT i, SUM({c}) AS a, AVG({c}) AS b,"
    " MEDIAN({c}) AS c,"
    " MIN({c}) AS d, COUNT(DISTINCT {c}) AS e FROM nasty GROUP BY i)",
    "SELECT SUM(a), SUM(b) FROM (SELECT SUM({c}) OVER (PARTITION BY i) AS a, AVG({c}) OVER (PARTITION"
    " BY i ORDER BY x"
    " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS b FROM nasty)",
    "SELECT floor({c} / 10) AS k, COUNT(*) FROM nasty GROUP BY k",
]
CASES = [(query, column) for query in QUERIES for column in COLUMNS if column != "i"]
CASES = [case for case in CASES if not (COLUMNS[case[1]] == "other" and case[0] not in COUNTED)]
CASES += [
    (query, column) for query in NUMBERS for column, type_ in COLUMNS.items() if type_ in ("integer", "real")
]


@pytest.mark.parametrize(
    "ranges", [{}, {"x": (0, 1), "i": (-5, 5), "h": (0, 10), "d": (0, 1e20)}], ids=["", "ranges"]
)
@pytest.mark.parametrize(("query", "column"), CASES)
def test_no_clause_fails_on_any_value(
    query: str, column: str, ranges: dict[str, tuple[float, float]]
) -> None:
    """Declared ranges may be wrong, too."""
    schema = Schema((Private("nasty", COLUMNS, Unit("i", column="i"), ranges=ranges),))
    question = ask(query.replace("{c}", column), schema)
    found = (
        connection()
        .cursor()
        .execute(f"SELECT COUNT(*), COUNT(columns(*)) FROM ({question.rows.sql})")
        .fetchall()
    )
    assert len(found) == 1


@pytest.mark.parametrize("window", ["hour", "day", "week", "month", "quarter", "year"])
@pytest.mark.parametrize("time", ["day", "m", "z"])
def test_windows_of_units_are_total(time: str, window: str) -> None:
    unit = Unit("i", column="i", window=window)  # type: ignore[arg-type]
    question = ask("SELECT COUNT(*) FROM nasty", Schema((Private("nasty", COLUMNS, unit, time),)))
    assert connection().cursor().execute(question.rows.sql).fetchall()
