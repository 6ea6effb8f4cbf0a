"""Tables are put together only where they have the same unit, and units are told apart in all of them."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from dalenius.errors import InvalidArgument, Unsupported
from dalenius.privacy.unit import Unit
from dalenius.tables.engines.types import kind_of
from dalenius.tables.language.parsing import ask
from dalenius.tables.schema import Private, Schema

PERSON = Unit("person", column="id")
JOIN = "SELECT SUM(a.x * 10 + b.x) FROM a JOIN b ON a.id = b.id"
UNION = "SELECT SUM(x) FROM (SELECT id, x FROM a UNION ALL SELECT id, x FROM b)"


def both(one: Unit, two: Unit, type_: str = "integer") -> Schema:
    columns = {"id": type_, "x": "real", "day": "date"}
    times = (None if each.window is None else "day" for each in (one, two))
    first, second = (Private(n, columns, u, t) for n, u, t in zip("ab", (one, two), times, strict=True))
    return Schema((first, second))


@pytest.mark.parametrize("query", [JOIN, UNION])
@pytest.mark.parametrize(
    "unit",
    [
        Unit("doctor", column="id"),
        Unit("person", column="id", relation="replace"),
        Unit("person", column="id", window="week"),
    ],
)
def test_different_units_are_not_put_together(query: str, unit: Unit) -> None:
    with pytest.raises(Unsupported, match="different units"):
        ask(query, both(PERSON, unit))


def test_different_windows_are_not_put_together() -> None:
    week, month = (Unit("person", column="id", window=each) for each in ("week", "month"))
    query = (
        "SELECT COUNT(*) FROM a JOIN b ON a.id = b.id "
        "AND date_trunc('week', a.day) = date_trunc('month', b.day)"
    )
    with pytest.raises(Unsupported, match=r"in each week.*in each month"):
        ask(query, both(week, month))


def test_one_unit_may_have_columns_of_two_names() -> None:
    tables = (
        Private("a", {"id": "integer", "x": "real"}, PERSON),
        Private("b", {"who": "integer", "x": "real"}, Unit("person", column="who")),
    )
    assert ask("SELECT SUM(a.x) FROM a JOIN b ON a.id = b.who", Schema(tables)).rows.units == 1


@pytest.mark.parametrize("query", [JOIN, UNION])
@pytest.mark.parametrize("type_", ["real", "moment"])
def test_units_that_a_conversion_may_merge_are_not_compared(query: str, type_: str) -> None:
    with pytest.raises(InvalidArgument, match=f"unit of type {type_}") as caught:
        ask(query, both(PERSON, PERSON, type_))
    assert "BIGINT or VARCHAR" in caught.value.remedy


IDENTITIES: dict[str, list[Any]] = {
    "BIGINT": [2**62, 2**62 + 1],
    "HUGEINT": [2**126, 2**126 + 1],
    "DECIMAL(18,0)": [900719925474099300, 900719925474099301],
    "DECIMAL(38,0)": [10**37 + 1, 10**37 + 2],
    "VARCHAR": ["a", "A", "a "],
    "VARCHAR COLLATE NOCASE": ["a", "A"],
    "UUID": ["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"],
    "DATE": ["2024-01-01", "2024-01-02"],
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_units_are_told_apart_in_both_tables(name: str) -> None:
    database = duckdb.connect()
    values = IDENTITIES[name]
    for table in "ab":
        database.execute(f"CREATE TABLE {table} (id {name}, x DOUBLE, day DATE)")
        for place, value in enumerate(values):
            database.execute(f"INSERT INTO {table} VALUES (?, ?, NULL)", [str(value), place])
    (described,) = database.execute("SELECT typeof(id) FROM a LIMIT 1").fetchone() or ("",)
    schema = both(PERSON, PERSON, kind_of(described))
    joined = database.execute(ask(JOIN, schema).rows.sql).fetchall()
    assert sorted(value for _, value in joined) == [11.0 * place for place in range(len(values))]
    united = database.execute(ask(UNION, schema).rows.sql).fetchall()
    assert len({unit for unit, _ in united}) == len(values)


def test_units_that_no_whole_number_holds_are_not_joined() -> None:
    with pytest.raises(InvalidArgument):
        ask(JOIN, both(PERSON, PERSON, kind_of("UHUGEINT")))
