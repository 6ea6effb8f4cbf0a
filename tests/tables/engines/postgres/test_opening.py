"""How tables of PostgreSQL are opened, what their columns are, and that nobody's settings or names matter."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from engines.postgres.bases import Base

import dalenius as dp
from dalenius.errors import InvalidArgument
from dalenius.tables.bounds import Bounds
from dalenius.tables.engines.engine import Bounding, Measure
from dalenius.tables.engines.postgres import PostgresEngine
from dalenius.tables.engines.postgres_server import Address, Handed
from dalenius.tables.language.dialects import dialect_of
from dalenius.tables.language.dialects.postgres_numbers import number, rounded_to
from dalenius.tables.language.parsing import ask
from dalenius.tables.schema import Private, Schema

UNIT = dp.Unit("patient", column="patient")
BUDGET = dp.Budget(epsilon=1000, delta=1e-6)
KINDS = {
    "boolean": "boolean", "smallint": "integer", "integer": "integer", "bigint": "integer",
    "numeric(30)": "integer", "numeric(30, 2)": "real", "numeric": "real", "real": "real",
    "double precision": "real", "text": "text", "varchar(9)": "text", "char(4)": "text", "name": "text",
    "uuid": "text", "mood": "text", "date": "date", "timestamp": "moment", "timestamp(3)": "moment",
    "timestamptz": "moment", "whole": "integer", "small": "integer", "cents": "real", "words": "text",
    "time": "other", "interval": "other", "bytea": "other", "jsonb": "other", "json": "other",
    "int[]": "other", "int4range": "other", "inet": "other", "money": "other", "bit(3)": "other",
    "point": "other", "pair": "other", "xml": "other", "oid": "other",
}  # fmt: skip


def opened(source: Any, folder: Path, table: str, **more: Any) -> Any:
    return dp.table(source, table=table, unit=UNIT, budget=BUDGET, ledger=folder / "a.ledger", **more)


def test_types_have_our_words_and_every_column_can_be_counted(base: Base, tmp_path: Path) -> None:
    base.owner.execute("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TYPE pair AS (a int, b int)")
    base.owner.execute("CREATE DOMAIN whole AS int; CREATE DOMAIN small AS whole CHECK (VALUE < 9)")
    base.owner.execute("CREATE DOMAIN cents AS numeric(9, 2); CREATE DOMAIN words AS text")
    columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(KINDS))
    base.owner.execute(f"CREATE TABLE typed (patient int, {columns})")
    base.owner.execute("INSERT INTO typed SELECT i FROM generate_series(1, 9) AS made (i)")
    base.owner.execute(f"UPDATE typed SET c{list(KINDS).index('pair')} = ROW(NULL, NULL) WHERE patient < 4")
    table = opened(base.url(), tmp_path, "typed")
    assert list(table.columns.values())[1:] == list(KINDS.values())
    counts = ", ".join(f"COUNT(c{i}) AS n{i}" for i in range(len(KINDS)))
    assert table.sql(f"SELECT {counts} FROM typed", epsilon=100, bounds=Bounds(rows=1)).receipt.entry


def test_a_profile_is_learned_as_everywhere(base: Base, tmp_path: Path) -> None:
    base.owner.execute(
        "CREATE TABLE v AS SELECT nullif(i % 40, 0) AS patient, i % 7 AS cost,"
        " chr(65 + i % 2) AS ward FROM generate_series(1, 400) AS made (i)"
    )
    table = opened(base.url(), tmp_path, "v")
    known = table.learn(epsilon=300).facts.learned
    assert known is not None and abs(known.units[0] - 39) < 5 and abs(known.missing[0] - 10) < 5
    asked = "SELECT ward, SUM(cost) FROM v GROUP BY ward"
    assert "search" not in [name for name, _ in table.explain(asked, epsilon=1).lines]
    unit = dp.Unit("patient", column="patient", missing="each row")
    with pytest.raises(InvalidArgument, match="that DuckDB reads"):
        dp.table(base.url(), table="v", unit=unit, budget=BUDGET, ledger=tmp_path / "b.ledger")


def test_composites_with_empty_parts_are_there(base: Base) -> None:
    base.owner.execute("CREATE TYPE pair AS (a int, b int); CREATE TABLE t (patient int, p pair)")
    base.owner.execute("INSERT INTO t VALUES (1, ROW(NULL, NULL)), (2, NULL), (3, ROW(1, NULL))")
    engine = PostgresEngine(Address(base.url()), {"t": "t"})
    read = dialect_of("postgres").read('"p"', "other")
    assert [row["c"] for row in engine.public(f'SELECT {read} AS c FROM "t" ORDER BY patient')] == [
        True,
        None,
        True,
    ]


def test_decimal_numbers_of_any_size_are_read(base: Base) -> None:
    base.owner.execute("CREATE TABLE t (n int, x numeric)")
    values = [
        "NaN",
        "1e400",
        "-1e400",
        "1e-400",
        "4.9e-324",
        "0.1",
        "Infinity",
        "1.7976931348623158e308",
        None,
    ]
    if base.owner.info.server_version < 140_000:
        # Which no decimal is before PostgreSQL 14.
        values.remove("Infinity")
    for place, value in enumerate(values):
        base.owner.execute("INSERT INTO t VALUES (%s, %s::numeric)", [place, value])
    read = dialect_of("postgres").read('"x"', "real")
    engine = PostgresEngine(Address(base.url()), {"t": "t"})
    found = [row["c"] for row in engine.public(f'SELECT {read} AS c FROM "t" ORDER BY n')]
    inf = float("inf")
    assert found == [None, inf, -inf, 0.0, 0.0, 0.1, *[inf] * (len(values) - 7), None]


def test_the_largest_numbers_are_rounded_as_by_duckdb(base: Base) -> None:
    largest, duck = sys.float_info.max, duckdb.connect()
    values = [largest, -largest, math.nextafter(largest, 0), 1.7e308, math.inf, 0.0]
    for digits in (*range(-300, -280), *range(-15, 16)):
        for value in values:
            sql = f"SELECT {rounded_to(number(value), digits)}"
            truth = duck.execute("SELECT round(?::DOUBLE, ?::INTEGER)", [value, digits]).fetchone()
            assert base.owner.execute(sql).fetchone() == truth, (value, digits)


@pytest.mark.parametrize("kind", ["interval", "bytea", "int[]", "inet", "jsonb"])
def test_units_whose_values_may_count_as_one_are_refused(base: Base, tmp_path: Path, kind: str) -> None:
    base.owner.execute(f"CREATE TABLE t (patient {kind}, ward text)")
    with pytest.raises(InvalidArgument, match="cannot be told by patient"):
        opened(base.url(), tmp_path, "t")


def test_tables_of_other_schemas_and_more_tables(visits: Base, tmp_path: Path) -> None:
    visits.owner.execute('CREATE SCHEMA ward; CREATE SCHEMA "Old.One"; ALTER TABLE visits SET SCHEMA ward')
    visits.owner.execute("CREATE TABLE ward.labs AS SELECT patient, cost AS result FROM ward.visits")
    visits.owner.execute(
        "CREATE TABLE floors (ward text, floor int); INSERT INTO floors VALUES ('A', 1), ('B', 2)"
    )
    visits.owner.execute('CREATE TABLE "Old.One".labs (patient int, kept boolean)')
    table = opened(
        visits.url(), tmp_path, "ward.visits", private=["ward.labs"], public={"levels": "public.floors"}
    )
    assert table.name == "visits"
    joined = "SELECT COUNT(*) FROM visits AS v JOIN labs AS l ON v.patient = l.patient"
    assert table.sql(joined, epsilon=5).receipt.entry
    by_floor = (
        "SELECT f.floor, COUNT(*) AS n FROM visits AS v JOIN levels AS f ON v.ward = f.ward GROUP BY f.floor"
    )
    answer = table.sql(by_floor, epsilon=5)
    assert sorted(answer["floor"]) == [1, 2]
    with pytest.raises(InvalidArgument, match="same database"):
        opened(visits.url(), tmp_path, "ward.visits", public={"floors": {"ward": ["A"]}})
    with pytest.raises(InvalidArgument, match="Which table"):
        dp.table(visits.url(), unit=UNIT, budget=BUDGET, ledger=tmp_path / "b.ledger")
    with pytest.raises(InvalidArgument, match=r"no table ward\.visit in"):
        opened(visits.url(), tmp_path, "ward.visit")


def test_a_database_that_is_not_in_utf8_is_refused(base: Base, tmp_path: Path) -> None:
    base.owner.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    try:
        with pytest.raises(InvalidArgument, match="UTF-8"):
            opened(base.url().replace(base.name, "latin"), tmp_path, "pg_class")
    finally:
        base.owner.execute("DROP DATABASE latin WITH (FORCE)")


HOSTILE = """
CREATE FUNCTION public.abs(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1/0';
CREATE FUNCTION public.length(text) RETURNS int LANGUAGE sql AS 'SELECT 1/0';
CREATE FUNCTION public.wrong(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT TRUE';
CREATE OPERATOR public.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = public.wrong);
CREATE TABLE public.pg_class (oid int, relname text);
"""
ODD = [
    "search_path = public, pg_catalog", "timezone = 'Asia/Kathmandu'", "datestyle = 'SQL, DMY'",
    "intervalstyle = 'iso_8601'", "extra_float_digits = -15", "standard_conforming_strings = off",
    "transform_null_equals = on", "bytea_output = escape", "enable_hashagg = off", "enable_hashjoin = off",
    "client_encoding = 'LATIN1'", "jit = on", "jit_above_cost = 0",
    "default_transaction_isolation = 'serializable'",
]  # fmt: skip
ASKED = [
    "SELECT abs(age - 40) AS k, length(ward) AS l, COUNT(*) FROM visits WHERE ward <> '\\' GROUP BY k, l",
    "SELECT CAST(cost AS VARCHAR) AS k, CAST(day AS VARCHAR) AS d, COUNT(*) AS n FROM visits GROUP BY k, d",
    "SELECT SUM(cost), SUM(age * age), COUNT(DISTINCT ward) FROM visits WHERE ward IS DISTINCT FROM NULL",
]


def test_settings_and_names_of_a_session_do_not_matter(visits: Base) -> None:
    odd = visits.connect()
    plain = PostgresEngine(Address(visits.url()), {"visits": "visits"})
    schema = Schema((Private("visits", plain.columns("visits"), UNIT),), dialect="postgres")
    truth = [_integers(plain, ask(query, schema).rows) for query in ASKED]
    visits.owner.execute(HOSTILE)
    for setting in ODD:
        odd.execute(f"SET {setting}")
    assert [
        _integers(PostgresEngine(Handed(odd), {"visits": "visits"}), ask(q, schema).rows) for q in ASKED
    ] == truth
    assert odd.execute("SHOW timezone").fetchone() == ("Asia/Kathmandu",)
    odd.close()


def _integers(engine: PostgresEngine, rows: Any) -> Any:
    with engine.load(rows) as loaded:
        held = loaded.holders(most=100, salt=b"s" * 32)
        keys = sorted(held, key=repr)[:20]
        totals = loaded.totals(keys, [Measure("rows"), Measure("units")], Bounding("l2", salt=b"s" * 32))
        return sorted(held.items(), key=repr), totals.tolist()


def test_an_answer_is_given_again_until_somebody_writes(visits: Base, tmp_path: Path) -> None:
    engine = PostgresEngine(Address(visits.url("reader")), {"visits": "visits"})
    first = engine.version()
    assert engine.version() == first
    visits.owner.execute("UPDATE visits SET age = age WHERE patient = 1")
    second = engine.version()
    assert second != first
    with visits.connect() as writing, writing.transaction():
        writing.execute("DELETE FROM visits WHERE patient = 2")
        during = engine.version()
    assert engine.version() != during
    visits.owner.execute("CREATE VIEW seen AS SELECT * FROM visits")
    view = PostgresEngine(Address(visits.url()), {"seen": "seen"})
    assert view.version() != view.version(), "what a view shows may change by itself"


def test_all_steps_of_a_question_see_one_snapshot(visits: Base) -> None:
    engine = PostgresEngine(Address(visits.url("reader")), {"visits": "visits"})
    schema = Schema((Private("visits", engine.columns("visits"), UNIT),), dialect="postgres")
    with engine.load(ask("SELECT ward, COUNT(*) FROM visits GROUP BY ward", schema).rows) as loaded:
        before = loaded.holders(most=9, salt=b"s" * 32)
        visits.owner.execute("DELETE FROM visits")
        assert loaded.holders(most=9, salt=b"s" * 32) == before and before
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            loaded._runner._cursor.execute("CREATE TEMP TABLE t (i int)")


CONSTANTS = [
    "0",
    "-1",
    "5e-324",
    "1.7976931348623157e308",
    "-0.0",
    "1e-200",
    "1e200",
    "NULL",
    "9223372036854775807",
]
FORMS = [
    "z * z", "1 / z", "z / 3e-300", "ln(z)", "log2(z)", "pow(z, z)", "pow(z, 0.5)", "exp(z)", "z + z",
    "z - 1e308", "sqrt(z)", "z % 0.3", "round(z, 2)", "round(z, -3)", "CAST(z AS BIGINT)",
    "CAST(CAST(z AS VARCHAR) AS DOUBLE)",
]  # fmt: skip


@pytest.mark.parametrize("constant", CONSTANTS)
def test_what_the_planner_knows_beforehand_does_not_fail(visits: Base, constant: str) -> None:
    """It evaluates functions of constants, also where they stand behind a condition that does not hold."""
    engine = PostgresEngine(Address(visits.url("reader")), {"visits": "visits"})
    schema = Schema((Private("visits", engine.columns("visits"), UNIT),), dialect="postgres")
    mixed = [form.replace("z", "(CASE WHEN age > 1000 THEN age ELSE z END)") for form in FORMS]
    for form in [*FORMS, *mixed]:
        query = f"SELECT SUM({form}) FROM (SELECT patient, age, {constant} AS z FROM visits) AS s"
        with engine.load(ask(query, schema).rows) as loaded:
            loaded.magnitudes(0)


@pytest.mark.parametrize("way", ["address", "connection", "account", "by hand"])
def test_one_account_has_windows_by_one_column(base: Base, tmp_path: Path, way: str) -> None:
    base.owner.execute(
        "CREATE TABLE visits AS SELECT i % 9 AS patient, DATE '2024-01-01' + i AS admitted,"
        " DATE '2024-01-01' + 7 * i AS billed FROM generate_series(1, 90) AS made (i)"
    )
    weeks = dp.Unit("patient", column="patient", window="week")
    source = base.owner if way == "connection" else base.url()
    options: dict[str, Any] = {"unit": weeks, "budget": BUDGET, "ledger": tmp_path / "a.ledger"}
    if way == "by hand":
        account = dp.Ledger(tmp_path / "a.ledger").open("weeks", unit=weeks, budget=BUDGET)
        options = {"unit": weeks, "account": account}
    first = dp.table(source, table="visits", time="admitted", **options)
    first.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    if way == "account":
        options = {"account": first.account}
    with pytest.raises(InvalidArgument, match="time by admitted"):
        dp.table(source, table="visits", time="billed", **options).sql(
            "SELECT COUNT(*) AS n FROM visits", epsilon=1
        )
    assert [entry.event for entry in first.account.entries()].count("reserve") == 1


@pytest.mark.parametrize(
    "public", [["visits"], ["public.visits"], {"keys": "visits"}, {"keys": '"visits"'}, {"keys": "VISITS"},
               ["visits_1"], ["whole"], {"keys": "public.whole"}]
)  # fmt: skip
def test_a_private_table_is_not_public_as_well(base: Base, tmp_path: Path, public: Any) -> None:
    """Nor is a partition of it, or what it is a partition of."""
    base.owner.execute("CREATE TABLE whole (patient int, ward text) PARTITION BY LIST (ward)")
    base.owner.execute("CREATE TABLE visits PARTITION OF whole FOR VALUES IN ('A') PARTITION BY LIST (ward)")
    base.owner.execute("CREATE TABLE visits_1 PARTITION OF visits FOR VALUES IN ('A')")
    base.owner.execute("CREATE TABLE wards (ward text)")
    with pytest.raises(InvalidArgument, match="same data"):
        opened(base.url(), tmp_path, "visits", name="private", public=public)
    assert not (tmp_path / "a.ledger").exists()
    opened(base.url(), tmp_path, "visits", name="private", public=["wards"]).close()


def test_an_extreme_moment_of_one_unit_makes_nothing_fail(base: Base, tmp_path: Path) -> None:
    base.owner.execute("CREATE TABLE t (patient timestamp, ward text)")
    extremes = "'294276-12-31 23:59:59.999999', '4713-11-24 00:00:00 BC', 'infinity', '-infinity'"
    base.owner.execute(f"INSERT INTO t SELECT unnest(CAST(ARRAY[{extremes}] AS timestamp[])), 'A'")
    table = opened(base.url(), tmp_path, "t")
    assert table.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).receipt.entry
    assert table.sql("SELECT ward, COUNT(*) AS n FROM t GROUP BY ward", epsilon=1).receipt.entry
    assert table.sql("SELECT COUNT(DISTINCT ward) AS n FROM t", epsilon=1).receipt.entry
    assert table.sql("SELECT SUM(EXTRACT(epoch FROM patient)) AS s FROM t", epsilon=1).receipt.entry
