"""What an accepted expression gives is what DuckDB gives: every function and cast that can be read, nested.

The expressions are made of one template or more for every kind of node that has a handler, of every name that
handlers know and of every type of CAST; a test fails where one has none. Values are plain ones, of which the
documentation promises what DuckDB does; the worst ones are in `test_total` and the conformance suite.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any

import duckdb
import pytest
from sqlglot import exp, parse_one

from dalenius.privacy.unit import Unit
from dalenius.tables.language import conversions, words  # noqa: F401
from dalenius.tables.language.parsing import ask
from dalenius.tables.language.phrases import PARTS_OF
from dalenius.tables.language.reading import HANDLERS
from dalenius.tables.schema import Private, Schema

ROWS = 1_000
SCHEMA = Schema(
    (
        Private(
            "t",
            {
                "id": "integer", "i": "integer", "j": "integer", "x": "real", "y": "real", "s": "text",
                "w": "text", "b": "boolean", "d": "date", "e": "date", "m": "moment", "n": "moment",
            },
            Unit("person", column="id"),
        ),
    )
)  # fmt: skip
COLUMNS = {"i": "ij", "x": "xy", "t": "sw", "b": "b", "d": "de", "m": "mn"}
TEMPLATES = {
    kind: tuple(each.strip() for each in several.split(";"))
    for kind, several in {
        "i": """
            {i} + {i}; {i} - {i}; {i} * {i}; {i} // nullif({i}, 0); {i} % nullif({i}, 0); -({i}); abs({i});
            sign({x}); length({t}); round({i}); CASE WHEN {b} THEN {i} ELSE {i} END;
            CASE {i} WHEN 3 THEN 1 END; if({b}, {i}, {i}); coalesce({i}, {i}); nullif({i}, {i});
            greatest({i}, {i}); least({i}, {i}, {i}); strpos({t}, {t}); instr({t}, 'a');
            position('b' IN {t}); extract(year FROM {d}); date_part('month', {d}); year({d}); quarter({m});
            month({d}); week({d}); weekofyear({d}); day({m}); dayofmonth({d}); dayofweek({d}); isodow({d});
            dayofyear({d}); hour({m}); minute({m}); second({m}); isoyear({d}); decade({d}); century({d});
            millennium({d}); yearweek({d}); extract(decade FROM {m}); date_diff('day', {d}, {d});
            date_diff('hour', {m}, {m}); date_diff('month', {d}, {d});
            CAST({d} AS DATE) - CAST({d} AS DATE); mod({i}, 7); CAST({b} AS INTEGER);
            CAST({column} AS TINYINT); CAST({i} AS SMALLINT); CAST({column} AS INT);
            CAST({column} AS BIGINT); CAST({i} AS UTINYINT); CAST({i} AS USMALLINT); CAST({i} AS UINTEGER);
            CAST({i} AS UBIGINT); CAST({i} AS HUGEINT); CAST({i} AS UHUGEINT); trunc({i});
            CAST(CAST({i} AS VARCHAR) AS INTEGER); {b}::INT + ({i})
        """,
        "x": """
            {x} + {x}; {x} - {i}; {x} * {x}; {x} / nullif({x}, 0); {i} / nullif({i}, 0);
            {x} % nullif({x}, 0); -{x}; abs({x}); round({x}); round({x}, 2); round({x}, -1); floor({x});
            ceil({x}); trunc({x}); sqrt(abs({x})); cbrt({x}); ln(abs({x}) + 1); log(abs({i}) + 1);
            log10(abs({x}) + 1); log2(abs({x}) + 0.5); log(2, 1 + abs({x})); exp({x} / 100); pow({x}, 2);
            {x} ** 2; sin({x}); cos({x}); tan({x}); atan({x}); asin(sin({x})); acos(cos({x}));
            atan2({x}, {x}); degrees({x}); radians({x}); cot(nullif({x}, 0)); pi(); ({x}); epoch({m});
            coalesce({x}, {i}); CAST(CAST({x} AS FLOAT) AS DOUBLE); CAST(CAST({i} AS FLOAT) AS DOUBLE);
            CAST({x} AS DOUBLE); CAST({column} AS DECIMAL(10, 2)); CAST({column} AS DECIMAL(4, 2));
            CAST({column} AS NUMERIC); CAST({i} AS DECIMAL(5, 1)); CAST({digits} AS DECIMAL(9, 1));
            CAST({digits} AS DOUBLE); TRY_CAST({digits} AS DOUBLE); CAST({column} AS DECIMAL(3));
            CASE WHEN {b} THEN {x} ELSE {i} END; CAST(CAST({x} AS REAL) AS DOUBLE)
        """,
        "t": """
            {t} || {t}; concat({t}, '-', {i}); concat_ws('-', {t}, {t}, {i}); lower({t}); upper({t});
            trim({t}); ltrim({t}); rtrim({t}); substring({t}, 2); substring({t}, -2, 1); substr({t}, 2, 3);
            left({t}, 2); left({t}, -2); left({t}, 0); right({t}, 2); right({t}, -2); right({t}, 0);
            lpad({t}, 5, 'xy'); rpad({t}, 5, 'xy'); lpad({t}, 1, ' '); repeat({t}, 3); repeat({t}, 0);
            replace({t}, 'a', 'bb'); split_part({t}, 'a', 2); split_part({t}, 'b', 1);
            regexp_extract({t}, '[ab]+'); regexp_extract({t}, '(a)(b*)', 2);
            regexp_replace({t}, 'a+', 'x'); regexp_replace({t}, '[AB]', '', 'gi'); strftime({d}, '%Y-%m');
            dayname({d}); monthname({m}); CAST({i} AS VARCHAR); CAST(CAST({d} AS DATE) AS TEXT);
            CAST({b} AS VARCHAR(2)); CASE WHEN {b} THEN {t} END; coalesce({t}, 'none'); nullif({t}, 'a');
            greatest({t}, {t}); CAST({i} AS CHAR)
        """,
        "b": """
            {i} = {i}; {x} <> {x}; {t} < {t}; {d} <= {d}; {m} > {m}; {x} >= {i}; NOT {b}; {b} AND {b};
            {b} OR {b}; {x} IS NULL; {b} IS TRUE; {t} IS NOT NULL; {i} IN (1, 2, {i}); {t} IN ('a', 'b');
            {i} BETWEEN 1 AND {i}; {t} LIKE 'a%'; {t} NOT LIKE '%b_'; {t} ILIKE 'A%';
            starts_with({t}, {t}); ends_with({t}, 'a'); contains({t}, {t}); {i} IS DISTINCT FROM {i};
            {t} IS NOT DISTINCT FROM {t}; isnan({x}); isfinite({x}); regexp_matches({t}, '^a.*b?$');
            regexp_matches({t}, 'A', 'i'); regexp_full_match({t}, '(a|b)+'); {t} SIMILAR TO 'a.*';
            prefix({t}, 'a'); suffix({t}, {t}); CAST({i} AS BOOLEAN); TRUE; CAST('yes' AS BOOLEAN) AND {b};
            CASE WHEN {b} THEN {b} END
        """,
        "d": """
            CAST({d} AS DATE) + CAST({small} AS INTEGER); CAST({d} AS DATE) - 3; last_day({d});
            last_day({m}); make_date({small} + 2000, 2, 3); CAST({m} AS DATE); CAST('2024-02-29' AS DATE);
            coalesce({d}, {d}); greatest({d}, {d}); CASE WHEN {b} THEN {d} ELSE DATE '2001-02-03' END;
            date_trunc('month', {d}); date_trunc('week', {d}); date_add({d}, INTERVAL 3 DAY);
            {d} + INTERVAL 2 MONTH; {d} - INTERVAL 1 YEAR; {d} + INTERVAL ({small}) DAY;
            {d} + to_days(CAST({small} AS INTEGER)); datetrunc('quarter', {d})
        """,
        "m": """
            {m} + INTERVAL 3 HOUR; {m} - INTERVAL 90 SECOND; date_trunc('hour', {m});
            date_trunc('day', {m}); date_trunc('minute', {m}); CAST({m} AS TIMESTAMP_S);
            CAST({d} AS TIMESTAMP); CAST({m} AS DATETIME); coalesce({m}, {m});
            try_strptime({stamp}, '%d.%m.%Y'); strptime('31.12.2013', '%d.%m.%Y')
        """,
        "column": """
            x; y
        """,
        "digits": """
            CAST({i} AS VARCHAR); '1.5'; '-0.25'; strftime({d}, '%Y')
        """,
        "small": """
            ({i} % 20); CAST({b} AS INTEGER); 7
        """,
        "stamp": """
            strftime({d}, '%d.%m.%Y'); '30.02.2024'
        """,
    }.items()
}
UNCOMPARED = {exp.WidthBucket: "DuckDB has none", exp.DateTrunc: "DuckDB's is read as TimestampTrunc"}


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """A thousand rows of plain values."""
    random, found = Random(7), duckdb.connect()
    found.execute(
        "CREATE TABLE t (id BIGINT, i BIGINT, j BIGINT, x DOUBLE, y DOUBLE, s VARCHAR, w VARCHAR, b BOOLEAN,"
        " d DATE, e DATE, m TIMESTAMP, n TIMESTAMP)"
    )

    def some(value: Any) -> Any:
        return None if random.random() < 0.1 else value

    def day() -> date:
        return date.fromordinal(random.randint(date(1960, 1, 1).toordinal(), date(2040, 1, 1).toordinal()))

    def moment() -> datetime:
        return datetime.combine(day(), time(random.randrange(24), random.randrange(60), random.randrange(60)))

    def text() -> str:
        return "".join(random.choice("abAB é-") for _ in range(random.randrange(7)))

    def real() -> float:
        return random.choice((random.gauss(0, 30), random.randint(-2000, 2000) / 8, random.randint(-9, 9)))

    rows = [
        [
            line, some(random.randint(-9, 9)), some(random.randint(-300, 300)), some(real()), some(real()),
            some(text()), some(random.choice("ab")), some(random.random() < 0.5), some(day()), some(day()),
            some(moment()), some(moment()),
        ]
        for line in range(ROWS)
    ]  # fmt: skip
    found.executemany(f"INSERT INTO t VALUES ({', '.join('?' * 12)})", rows)
    return found


def expression(random: Random, kind: str, template: str, depth: int) -> str:
    """A template filled with columns and with others."""

    def filled(match: re.Match[str]) -> str:
        inner = match.group(1)
        if inner in COLUMNS and (depth <= 1 or random.random() < 0.5):
            return random.choice(COLUMNS[inner])
        return f"({expression(random, inner, random.choice(TEMPLATES[inner]), depth - 1)})"

    return re.sub(r"\{(\w+)\}", filled, template)


def plain(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, datetime) and value.time() == time():
        return value.date()
    return value


def same(one: Any, other: Any) -> bool:
    one, other = plain(one), plain(other)
    if isinstance(one, float) or isinstance(other, float):
        if None in (one, other) or isinstance(one, str) or isinstance(other, str):
            return one is other
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)


def values(text: str) -> tuple[list[Any], list[Any]]:
    """What is read of the expression on each row, and what DuckDB gives."""
    question = ask(f"SELECT COUNT(DISTINCT k) FROM (SELECT id, {text} AS k FROM t WHERE id >= 0)", SCHEMA)
    mine = dict(connection().execute(f"SELECT unit_0, distinct_0 FROM ({question.rows.sql})").fetchall())
    tried = re.sub(r"\bCAST\(", "TRY_CAST(", text).replace("TRY_TRY_", "TRY_")
    theirs = connection().execute(f"SELECT {tried} FROM t ORDER BY id").fetchall()
    return [mine.get(line) for line in range(ROWS)], [row[0] for row in theirs]


CASES = [
    (kind, template) for kind in ("i", "x", "t", "b", "d", "m") for template in TEMPLATES[kind]
]  # fmt: skip


@pytest.mark.parametrize("part", range(8))
def test_accepted_expressions_are_equal_to_duckdb(part: int) -> None:
    """Every template once over columns and once nested, and as many more at random."""
    random = Random(part)
    asked = [expression(random, *case, depth) for case in CASES[part::8] for depth in (1, 2)]
    for text in asked:
        mine, theirs = values(text)
        wrong = [(a, b) for a, b in zip(mine, theirs, strict=True) if not same(a, b)]
        assert not wrong, (text, len(wrong), wrong[:3])


def test_every_handler_has_a_template() -> None:
    """Of nodes, of names and of types of CAST."""
    written = [
        parse_one(f"SELECT {re.sub('[{}]', '', each)}", dialect="duckdb")
        for every in TEMPLATES.values()
        for each in every
    ]
    seen = {type(node) for tree in written for node in tree.walk()}
    assert set(HANDLERS) - seen - set(UNCOMPARED) == set()
    names = {node.name.lower() for tree in written for node in tree.find_all(exp.Anonymous)}
    assert set(PARTS_OF) <= names
    types = {each.this.name for tree in written for each in tree.find_all(exp.DataType)}
    known = {name for names in conversions.TYPES.values() for name in names.split()}
    spelled = {exp.DataType.build(name, dialect="duckdb").this.name for name in SPELLED}
    assert known & spelled <= types


SPELLED = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "UHUGEINT", "FLOAT", "REAL", "DOUBLE", "DECIMAL", "NUMERIC", "VARCHAR", "TEXT", "CHAR", "BOOLEAN", "DATE",
    "TIMESTAMP", "DATETIME", "TIMESTAMP_S",
)  # fmt: skip
"""Names of types that DuckDB has."""
