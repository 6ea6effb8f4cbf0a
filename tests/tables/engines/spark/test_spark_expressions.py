"""An expression has the same value in Spark as in DuckDB, bit for bit, on the worst values of every type."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import pytest
from engines.spark.spark_nasty import nasty
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from language.nasty import COLUMNS, applied, connection, expressions

from dalenius.tables.language.dialects import dialect_of
from dalenius.tables.language.expressions import RULES, Call, Expression, parts_of

DUCKDB, SPARK = dialect_of("duckdb"), dialect_of("spark")
NAMES = [f"c{i}" for i in range(len(COLUMNS))]
TYPES = ["boolean", "date", "integer", "moment", "real", "text"]
NEARLY = {"ln", "exp", "power", "sin", "cos", "tan", "atan", "cbrt", "log10", "log2"}
"""Functions whose last digits are the library's own: they agree to 1e-12."""
LETTERS = {"lower", "upper", "ilike"}
"""Functions that know letters: those beyond ASCII have no one other case."""
SEVERAL = settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    database=None,
)


def read(dialect: Any) -> str:
    columns = (
        f"{dialect.read(dialect.quoted(name), type_)} AS c{i}"
        for i, (name, type_) in enumerate(COLUMNS.items())
    )
    return ", ".join(columns)


@cache
def wanted() -> Any:
    cursor = connection().cursor()
    cursor.execute(f"CREATE OR REPLACE TEMP TABLE told AS SELECT {read(DUCKDB)} FROM nasty")
    return cursor


@pytest.fixture(scope="module")
def told(small: Any) -> Any:
    """The nasty table in our own session, as it is read."""
    from dalenius.tables.engines.spark_settings import own_session

    ours = own_session(small)
    nasty(ours).coalesce(1).createOrReplaceTempView("nasty")
    rows = ours.sql(f"SELECT {read(SPARK)} FROM nasty ORDER BY number").cache()
    rows.createOrReplaceTempView("told")
    yield ours
    rows.unpersist()


def test_columns_are_read_the_same(told: Any) -> None:
    rows = [tuple(row) for row in told.table("told").collect()]
    assert rows == wanted().execute("FROM told").fetchall()


def compare(told: Any, several: list[Expression]) -> None:
    several = [each for each in several if each.type != "null"]
    said = [", ".join(dialect.canonical(each, NAMES) for each in several) for dialect in (DUCKDB, SPARK)]
    first = wanted().execute(f"SELECT {said[0]} FROM told").fetchall()
    second = told.sql(f"SELECT {said[1]} FROM told").collect()
    for place, expression in enumerate(several):
        for one, other in zip(first, second, strict=True):
            assert same(expression, one[place], other[place]), (expression, one[place], other[place])


def same(expression: Expression, one: Any, other: Any) -> bool:
    """Beneath other functions nothing is asked of those that agree nearly, but that they do not fail."""
    calls = [part for part in parts_of(expression) if isinstance(part, Call)]
    apart = [call for call in calls if call.name in NEARLY | LETTERS or is_told(call)]
    if len(apart) > 1 or any(call.name in LETTERS or call is not expression for call in apart):
        return True
    if apart and None not in (one, other):
        return math.isclose(float(one), float(other), rel_tol=0 if is_told(apart[0]) else 1e-12)
    return one == other and type(one) is type(other)


def is_told(call: Call) -> bool:
    """Whether a real number is made a text, whose last digit is Java's own."""
    return call.name == "cast_text" and call.arguments[0].type == "real"


@pytest.mark.parametrize("first", range(0, len(RULES), 15))
def test_every_function(told: Any, first: int) -> None:
    names = sorted(RULES)[first : first + 15]

    @seed(first)
    @SEVERAL
    @given(st.tuples(*(applied(name, depth=1) for name in names for _ in range(4))))
    def each(several: tuple[Expression, ...]) -> None:
        compare(told, list(several))

    each()


@pytest.mark.parametrize("number", range(3))
def test_random_expressions(told: Any, number: int) -> None:
    random_expressions(told, number, 12)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1000, 1100))
def test_random_expressions_at_length(told: Any, number: int) -> None:
    random_expressions(told, number, 30)


def random_expressions(told: Any, number: int, size: int) -> None:
    @seed(number)
    @SEVERAL
    @given(
        st.lists(
            st.sampled_from(TYPES).flatmap(lambda type_: expressions(type_)), min_size=size, max_size=size
        )
    )
    def each(several: list[Expression]) -> None:
        compare(told, several)

    each()
