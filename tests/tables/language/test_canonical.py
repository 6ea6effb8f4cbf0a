"""Values that count as equal are the same from the scan on: no expression tells which row came first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pandas
import pyarrow as pa
import pytest

from dalenius.errors import InvalidArgument
from dalenius.privacy.unit import Unit
from dalenius.tables.engines.types import kind_of
from dalenius.tables.language.parsing import ask
from dalenius.tables.schema import Private, Public, Schema
from dalenius.tables.sources.frames import Frame
from dalenius.tables.sources.kinds import Shared

PERSON = Unit("person", column="id")
ROWS = Schema((Private("v", {"id": "integer", "x": "real", "y": "real"}, PERSON),))
NUMBERED = "SELECT SUM(CASE WHEN {told} THEN r ELSE 0 END) FROM ({source})"
WINDOW = "SELECT {x} AS x, ROW_NUMBER() OVER (PARTITION BY id) AS r FROM v"
PAIRS = [
    ("NULL", "'nan'", "x", "x IS NULL"),
    ("NULL", "'nan'", "x", "coalesce(x, 1) = 1"),
    ("0.0", "'-0.0'", "x", "power(x, -1) < 0"),
    ("NULL", "'nan'", "x", "x > 0"),
]


def executed(database: duckdb.DuckDBPyConnection, query: str, schema: Schema) -> list[tuple[Any, ...]]:
    return sorted(database.execute(ask(query, schema).rows.sql).fetchall(), key=repr)


def numbers(values: Sequence[str], query: str) -> list[tuple[Any, ...]]:
    database = duckdb.connect()
    database.execute("SET threads = 1; CREATE TABLE v (id BIGINT, x DOUBLE, y DOUBLE)")
    database.execute(f"INSERT INTO v VALUES {', '.join(f'(1, {value}, 0)' for value in values)}")
    return executed(database, query, ROWS)


@pytest.mark.parametrize(("one", "two", "column", "told"), PAIRS)
def test_the_order_of_rows_that_count_as_equal_is_not_seen(
    one: str, two: str, column: str, told: str
) -> None:
    query = NUMBERED.format(told=told, source=WINDOW.format(x=column))
    assert numbers([one, two, two], query) == numbers([two, two, one], query)


@pytest.mark.parametrize(
    ("expression", "null"),
    [
        ("x - x", True),  # ∞ − ∞
        ("x * 0", True),
        ("x / x", True),
        ("x % 2", True),
        ("power(-1 + y, 0.5)", True),
        ("CAST('nan' || '' AS DOUBLE) + y", True),
        ("x + 1", False),
    ],
)
def test_nan_is_null_wherever_it_is_made(expression: str, null: bool) -> None:
    for query in (
        f"SELECT SUM(CASE WHEN {expression} IS NULL THEN 1 ELSE 0 END) FROM v",
        f"SELECT SUM(CASE WHEN z IS NULL THEN 1 ELSE 0 END) FROM (SELECT {expression} AS z FROM v)",
        f"SELECT SUM(1 - c) FROM (SELECT id, COUNT({expression}) AS c FROM v GROUP BY id)",
        f"SELECT SUM(CASE WHEN z IS NULL THEN 1 ELSE 0 END) FROM (SELECT id, MEDIAN({expression}) AS z FROM v"
        " GROUP BY id)",
        f"SELECT SUM(CASE WHEN z IS NULL THEN 1 ELSE 0 END) FROM (SELECT LAST_VALUE({expression}) OVER"
        " (PARTITION BY id) AS z FROM v)",
    ):
        assert numbers(["'inf'"], query) == [(1, float(null))], query


def test_the_median_of_two_infinities_is_null() -> None:
    query = "SELECT COUNT(z), COUNT(*) FROM (SELECT id, MEDIAN(x) AS z FROM v GROUP BY id)"
    assert numbers(["'inf'", "'-inf'"], query) == [(1, None)]


@pytest.mark.parametrize(
    "expression", ["-x", "x * -1", "ceil(x - 0.5)", "round(x - 0.1)", "x / -5", "-4 % 2 + x"]
)
def test_zero_has_no_sign(expression: str) -> None:
    query = f"SELECT SUM(CASE WHEN power(z, -1) < 0 THEN 1 ELSE 0 END) FROM (SELECT {expression} AS z FROM v)"
    assert numbers(["0.0"], query) == [(1, 0.0)]


TEXTS = {"id": "text", "x": "real", "w": "text"}


@pytest.fixture
def collated() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    database.execute("CREATE TABLE v (id VARCHAR COLLATE NOCASE, x DOUBLE, w VARCHAR COLLATE NOCASE)")
    database.execute("INSERT INTO v VALUES ('a', 1, 'K'), ('A', 2, 'k'), ('b', 3, 'k')")
    database.execute("CREATE TABLE wards (w VARCHAR COLLATE NOCASE, g BIGINT)")
    database.execute("INSERT INTO wards VALUES ('K', 1), ('k', 2)")
    return database


@pytest.mark.parametrize("default", ["", "NOCASE"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT SUM(s) FROM (SELECT id, SUM(x) AS s FROM v GROUP BY id)",
        "SELECT SUM(s) FROM (SELECT id, SUM(x) OVER (PARTITION BY id) AS s FROM v)",
        "SELECT SUM(x) FROM (SELECT DISTINCT id, x FROM v)",
        "SELECT SUM(a.x) FROM v AS a JOIN v AS b ON a.id = b.id",
    ],
)
def test_collations_do_not_make_one_of_two_units(
    collated: duckdb.DuckDBPyConnection, query: str, default: str
) -> None:
    collated.execute(f"SET default_collation = '{default}'")
    schema = Schema((Private("v", TEXTS, PERSON),))
    assert executed(collated, query, schema) == [("A", 2.0), ("a", 1.0), ("b", 3.0)]


def test_texts_of_a_query_have_no_collation_either(collated: duckdb.DuckDBPyConnection) -> None:
    collated.execute("SET default_collation = 'NOCASE'")
    made = "SELECT DISTINCT id, CASE WHEN n = 1 THEN 'A' ELSE 'a' END AS t FROM (SELECT id, {} AS n FROM v)"
    twice = f"({made.format(1)} UNION ALL {made.format(2)})"
    schema = Schema((Private("v", TEXTS, PERSON),))
    assert len(executed(collated, f"SELECT COUNT(*) FROM (SELECT DISTINCT id, t FROM {twice})", schema)) == 6
    assert executed(collated, "SELECT COUNT(*) FROM v WHERE w || '' = 'K'", schema) == [("a",)]


def test_public_rows_are_matched_as_they_are_told_apart(collated: duckdb.DuckDBPyConnection) -> None:
    schema = Schema((Private("v", TEXTS, Unit("row")), Public("wards", {"w": "text", "g": "integer"})))
    query = "SELECT g, SUM(x) FROM v JOIN wards USING (w) GROUP BY g"
    assert executed(collated, query, schema) == [(1, 1.0), (2, 2.0), (2, 3.0)]


BROKEN = [b"\xff\xfeA", b"\xc3(", b"\xed\xa0\x80", "ä".encode()]


def broken() -> pa.Table:
    """Texts of which only the last is one."""
    ends = [0]
    for each in BROKEN:
        ends.append(ends[-1] + len(each))
    offsets, letters = b"".join(end.to_bytes(4, "little") for end in ends), b"".join(BROKEN)
    texts = pa.Array.from_buffers(pa.string(), 4, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
    return pa.table(
        {"id": [1, 2, 3, 4], "y": texts, "z": pa.DictionaryArray.from_arrays([3, 2, 1, 0], texts)}
    )


@pytest.mark.parametrize(
    "text",
    ["y", "lower(y)", "upper(y)", "trim(y)", "substring(y, 1, 2)", "y ILIKE 'Ä_%'", "replace(y, 'a', 'b')"],
)
@pytest.mark.parametrize("how", ["arrow", "pandas", "connection"])
def test_texts_that_are_no_utf_8_are_null(text: str, how: str) -> None:
    database, texts = duckdb.connect(), broken()
    if how == "connection":
        database.register("registered", texts)
        database.execute("CREATE VIEW v AS SELECT * FROM registered")
        Shared.open(database, "v", None).bind(database)
    else:
        frame = texts if how == "arrow" else texts.to_pandas(types_mapper=pandas.ArrowDtype)
        Frame("v", frame).bind(database)
    schema = Schema((Private("v", {"id": "integer", "y": "text", "z": "text"}, PERSON),))
    for column, expected in (("y", [True, True, True, False]), ("z", [False, True, True, True])):
        query = f"SELECT COUNT(DISTINCT {text.replace('y', column)}), COUNT(*) FROM v"
        found = executed(database, query, schema)
        assert [value is None for _, value in found] == expected


OTHER = Schema((Private("v", {"id": "other", "y": "other", "t": "integer"}, PERSON),))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT y, COUNT(*) FROM v GROUP BY y",
        "SELECT COUNT(DISTINCT y) FROM v",
        "SELECT COUNT(*) FROM (SELECT DISTINCT id, y FROM v)",
        "SELECT SUM(n) FROM (SELECT id, COUNT(*) AS n FROM v GROUP BY id, y)",
        "SELECT SUM(n) FROM (SELECT id, COUNT(DISTINCT y) AS n FROM v GROUP BY id)",
        "SELECT COUNT(n) FROM (SELECT id, MAX(y) AS n FROM v GROUP BY id)",
        "SELECT COUNT(n) FROM (SELECT MIN(y) OVER (PARTITION BY id) AS n FROM v)",
        "SELECT SUM(n) FROM (SELECT RANK() OVER (PARTITION BY id ORDER BY y) AS n FROM v)",
        "SELECT SUM(n) FROM (SELECT RANK() OVER (PARTITION BY id, y ORDER BY t) AS n FROM v)",
        "SELECT COUNT(CAST(y AS VARCHAR)) FROM v",
        "SELECT COUNT(*) FROM v WHERE y = y",
    ],
)
def test_values_of_other_types_are_not_told_apart(query: str) -> None:
    with pytest.raises(InvalidArgument, match="type has no meaning"):
        ask(query, OTHER)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT COUNT(y) FROM v", [(b"a", 1.0)]),
        ("SELECT SUM(t) FROM v WHERE y IS NULL", [(b"b", 3.0)]),
        ("SELECT SUM(n) FROM (SELECT id, COUNT(y) AS n FROM v GROUP BY id)", [(b"a", 1.0), (b"b", 0.0)]),
        (
            "SELECT SUM(r) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id) AS r FROM v)",
            [(b"a", 1), (b"b", 1)],
        ),
        ("SELECT COUNT(DISTINCT id), SUM(t) FROM v", [(b"a", 2.0), (b"b", 3.0)]),
    ],
)
def test_values_of_other_types_are_counted(query: str, rows: list[tuple[Any, ...]]) -> None:
    """A time that is none, which DuckDB cannot print."""
    times = pa.array([2**31 - 1, None], type=pa.time32("ms"))
    database = duckdb.connect()
    database.register("v", pa.table({"id": [b"a", b"b"], "y": times, "t": [2, 3]}))
    assert executed(database, query, OTHER) == rows


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("TIMESTAMP[]", "other"),
        ("TIMESTAMP WITH TIME ZONE", "moment"),
        ("TIMESTAMP_NS", "moment"),
        ("DECIMAL(10,2)[3]", "other"),
        ("DECIMAL(10,2)", "real"),
        ("DECIMAL(38,0)", "integer"),
        ("ENUM('a', 'b')[]", "other"),
        ("ENUM('a)', '\n[]')", "text"),
        ("UUID", "text"),
        ("UHUGEINT", "other"),
        ("HUGEINT", "integer"),
        ("STRUCT(a DATE)", "other"),
        ("TIME", "other"),
    ],
)
def test_types_are_known_by_their_whole_name(name: str, kind: str) -> None:
    assert kind_of(name) == kind
