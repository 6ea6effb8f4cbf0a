"""The integers of the engine: those of the reference, those of DuckDB, and apart on neighbours as charged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from random import Random
from typing import Any

import nasty
import psycopg
import pytest
from apart import LABS, VISITS, Both, check, database, schema
from engines import same
from engines.postgres.bases import Base
from random_queries import FLOORS, WARDS, Data, random_query
from reference import ReferenceEngine
from test_neighbours import RELATIONS, neighbours, plan_of

from dalenius.tables.engines.postgres import PostgresEngine
from dalenius.tables.engines.postgres_server import Handed
from dalenius.tables.language.dialects import dialect_of
from dalenius.tables.language.parsing import ask
from dalenius.tables.planning import plan as planning
from dalenius.tables.question import Question
from dalenius.tables.rows import Rows
from dalenius.tables.schema import Schema
from dalenius.tables.sources.opening import open_source

TYPES = {
    "BIGINT": ("bigint", "integer"),
    "HUGEINT": ("numeric(39)", "integer"),
    "UBIGINT": ("numeric(20)", "integer"),
    "INTEGER": ("integer", "integer"),
    "VARCHAR": ("text", "text"),
    "DOUBLE": ("float8", "real"),
    "DECIMAL(9,2)": ("numeric(9,2)", "real"),
    "DATE": ("date", "date"),
    "TIMESTAMP": ("timestamp", "moment"),
    "BOOLEAN": ("boolean", "boolean"),
}
POSTGRES = dialect_of("postgres")
SERVED = {"integer": "bigint", "text": "text", "real": "float8", "date": "date"}


def created(owner: psycopg.Connection[Any], table: nasty.Table) -> Rows:
    """The table, and its rows as questions read them: units as they are, all else in canonical form."""
    columns = ", ".join(f"{column} {TYPES[kind][0]}" for column, kind in table.types.items())
    owner.execute(
        f"DROP TABLE IF EXISTS data; CREATE TABLE data (dummy integer{', ' if columns else ''}{columns})"
    )
    marks = ", ".join(["0", *("%s" for _ in table.types)])
    with owner.cursor() as cursor:
        cursor.executemany(f"INSERT INTO data VALUES ({marks})", [list(row.values()) for row in table.data])
    shown = [
        column if column.startswith("unit") else f"{POSTGRES.read(column, TYPES[kind][1])} AS {column}"
        for column, kind in table.types.items()
    ]
    rows = table.rows
    sql = f'SELECT {", ".join(shown) or "1 AS present"} FROM "data"'
    return Rows(sql, rows.units, rows.keys, rows.values, rows.distincts)


@pytest.fixture(scope="module")
def owner(postgres: Any) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres.url("public"), autocommit=True) as found:
        found.execute("CREATE SCHEMA IF NOT EXISTS one; CREATE SCHEMA IF NOT EXISTS other")
        yield found


@pytest.mark.parametrize("batch", range(6))
def test_equal_to_the_reference(owner: psycopg.Connection[Any], batch: int) -> None:
    for seed in range(12 * batch, 12 * batch + 12):
        compare(owner, seed)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(100))
def test_equal_to_the_reference_at_length(owner: psycopg.Connection[Any], batch: int) -> None:
    for seed in range(10**6 + 10 * batch, 10**6 + 10 * batch + 10):
        compare(owner, seed)


def compare(owner: psycopg.Connection[Any], seed: int) -> None:
    random = Random(seed)
    table = nasty.table(random, nasty.PRINTED, tuple(nasty.UNITS))
    engine_rows = created(owner, table)
    engine = PostgresEngine(Handed(owner), {"data": "public.data"})
    with ReferenceEngine(table.seen()).load(table.rows) as truth, engine.load(engine_rows) as loaded:
        same.check(random, table, loaded, truth)


class Pair:
    """Two databases of one form, and engines that read them."""

    def __init__(self, base: Base) -> None:
        self.connections = [base.connect() for _ in range(2)]
        for schema_, connection in zip(("one", "other"), self.connections, strict=True):
            connection.execute(f"CREATE SCHEMA {schema_}; SET search_path = {schema_}")
            for table, columns in self._tables():
                listed = ", ".join(f"{column} {SERVED[kind]}" for column, kind in columns.items())
                connection.execute(f"CREATE TABLE {table} ({listed})")
        names = {table: table for table, _ in self._tables()}
        self.engines = [PostgresEngine(Handed(connection), names) for connection in self.connections]

    @staticmethod
    def _tables() -> list[tuple[str, dict[str, str]]]:
        return [("visits", VISITS), ("labs", LABS), ("floors", {"ward": "text", "floor": "integer"})]

    def fill(self, pair: tuple[Data, Data]) -> None:
        """Other rows in both."""
        for connection, data in zip(self.connections, pair, strict=True):
            connection.execute("TRUNCATE visits, labs, floors")
            for (table, columns), rows in zip(self._tables(), (data.visits, data.labs, FLOORS), strict=True):
                with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                    for row in rows:
                        copy.write_row([row[column] for column in columns])


@pytest.fixture
def pair(base: Base) -> Iterator[Pair]:
    found = Pair(base)
    yield found
    for connection in found.connections:
        connection.close()


def questions(random: Random, relation: str) -> tuple[Question, Question]:
    """A random one, for PostgreSQL and for DuckDB."""
    declared: dict[str, Any] = {}
    if random.random() < 0.5:
        declared["ranges"] = {"age": (0, random.choice((1, 120))), "cost": (random.choice((-10, 0)), 100)}
    if random.random() < 0.4:
        declared["categories"] = {"ward": WARDS[: random.randint(1, 5)]}
    query, known = random_query(random), schema(relation, **declared)
    served = Schema(known.tables, known.read, "postgres")
    return ask(query, served), ask(query, known)


def tried(pair: Pair, seed: int) -> None:
    """A plan on one pair of neighbours; for some, the same integers from DuckDB of the first of them."""
    random = Random(seed)
    relation = random.choice(RELATIONS)
    both_data = neighbours(random, relation)
    pair.fill(both_data)
    ours, theirs = questions(random, relation)
    plan = plan_of(random, ours, relation)
    with ExitStack() as open_now:
        first, second = (open_now.enter_context(engine.load(ours.rows)) for engine in pair.engines)
        both = Both(first, second)
        if seed % 4:
            plan.run(both)
            return check(plan, both)
        duckdb = open_now.enter_context(closing(open_source(database(both_data[0]), table="visits")))
        alike = Both(first, open_now.enter_context(duckdb.load(theirs.rows)))
        plan.run(_Twice(both, alike))
    check(plan, both)
    apart = [*alike.shapes_apart, *alike.magnitudes_apart]
    apart += [] if alike.asked is None else [alike.totals_apart]
    return _equal(alike.held, apart, ours.text)


def _equal(held: list[int], apart: list[Any], text: str) -> None:
    assert not any(held) and not any((one != 0).any() for one in apart), text


class _Twice:
    """Asks two of what a plan asks one."""

    def __init__(self, first: Both, second: Both) -> None:
        self._first, self._second = first, second

    def __getattr__(self, method: str) -> Any:
        def asked(*given: Any, **named: Any) -> Any:
            getattr(self._second, method)(*given, **named)
            return getattr(self._first, method)(*given, **named)

        return asked


@pytest.mark.parametrize("batch", range(4))
def test_neighbours_are_no_further_apart_than_charged(pair: Pair, batch: int) -> None:
    for seed in range(50 * batch, 50 * batch + 50):
        tried(pair, seed)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(40))
def test_neighbours_at_length(pair: Pair, batch: int) -> None:
    for seed in range(10**6 + 50 * batch, 10**6 + 50 * batch + 50):
        tried(pair, seed)


def test_a_charge_that_is_too_small_would_be_noticed(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    norm = planning.norm
    monkeypatch.setattr(planning, "norm", lambda measure, bounding: norm(measure, bounding) / 2)
    with pytest.raises(AssertionError):
        for seed in range(50):
            tried(pair, seed)
