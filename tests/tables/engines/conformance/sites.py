"""A `Site` is an engine with what the conformance suite puts in it: the suite is one for all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Protocol

import nasty
import pytest
from apart import FLOORED, LABS, TYPES, VISITS
from random_queries import FLOORS, Data

from dalenius.tables.engines.engine import Engine, Loaded
from dalenius.tables.language.dialects import dialect_of
from dalenius.tables.rows import Rows

SITES = ("duckdb", "postgres", "spark")
EXPRESSIONS = {"duckdb": 6, "postgres": 4, "spark": 2}
"""Batches of six dozen random expressions."""
EXAMPLES = {"duckdb": 24, "postgres": 16, "spark": 8}
"""Expressions by each function of the language."""
COLUMNS = {"duckdb": 12, "postgres": 12, "spark": 2}
"""Columns of the worst values, at most, with which each clause is tried."""
TABLES = {"duckdb": 40, "postgres": 36, "spark": 2}
"""Random tables whose integers are those of the reference engine."""
BATCH = {"duckdb": 10, "postgres": 12, "spark": 2}
"""Of such tables, in one test."""
PAIRS = {"duckdb": 20, "postgres": 60, "spark": 10}
"""Pairs of neighbouring databases."""
PLANS = {"duckdb": 10, "postgres": 1, "spark": 1}
"""Questions on each pair."""

AWAY = timezone(timedelta(hours=-9, minutes=-30))
KEYS = nasty.KEYS | {
    "TIMESTAMPTZ": (
        datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
        datetime(2023, 12, 31, 23, 59, 59, 999999, AWAY),
        datetime(1969, 12, 31, 23, 0, tzinfo=AWAY),
        None,
    )
}
"""Values of keys by DuckDB's names of types: also moments of some time zone."""
KINDS = {
    "VARCHAR": "text", "DOUBLE": "real", "DECIMAL(9,2)": "real", "DATE": "date", "TIMESTAMP": "moment",
    "TIMESTAMPTZ": "moment", "BOOLEAN": "boolean",
}  # fmt: skip
"""Our words for types; the others are whole numbers."""


def sized(numbers: Mapping[str, int], first: int = 0) -> pytest.MarkDecorator:
    """A test on each site, with so many numbers there."""
    cases = [(name, first + number) for name in SITES for number in range(numbers[name])]
    return pytest.mark.parametrize(("site", "number"), cases, indirect=["site"])


@dataclass(frozen=True)
class Filled:
    """A table by DuckDB's names of its types, and its rows."""

    types: Mapping[str, str]
    rows: Sequence[Sequence[Any]]


class Site(Protocol):
    """An engine that can be given tables."""

    name: str
    """That of its dialect, too."""
    nasty: Engine
    """Has the table of the worst values, with the number of each `line`."""

    def holding(self, tables: Mapping[str, Filled]) -> AbstractContextManager[Engine]:
        """An engine that has these tables."""

    def answers(self, engine: Engine, queries: Sequence[str]) -> list[list[tuple[Any, ...]]]:
        """The rows of queries."""


@contextmanager
def loaded(site: Site, table: nasty.Table) -> Iterator[Loaded]:
    """A random table, as a question reads it: units as they are, all else in canonical form."""
    dialect, spelled = dialect_of(site.name), []
    for name, kind in table.types.items():
        unit = name.startswith("unit") and kind != "VARCHAR"
        spelled.append(f"{name if unit else dialect.read(name, KINDS.get(kind, 'integer'))} AS {name}")
    shape = table.rows
    sql = f"SELECT {', '.join(spelled)} FROM {dialect.quoted('data')}"
    rows = Rows(sql, shape.units, shape.keys, shape.values, shape.distincts)
    with site.holding(filled(table)) as engine, engine.load(rows) as found:
        yield found


def filled(table: nasty.Table) -> dict[str, Filled]:
    """A random table, by its name."""
    return {"data": Filled(table.types, [list(row.values()) for row in table.data])}


def seen(table: nasty.Table) -> nasty.Table:
    """The table as the reference takes it: all but units in canonical form."""
    data = [
        {name: value if name.startswith("unit") else canonical(value) for name, value in row.items()}
        for row in table.seen()
    ]
    return nasty.Table(table.types, data, table.rows)


def canonical(value: Any) -> Any:
    """NaN is NULL, −0 is 0, a whole number that 64 bits do not hold is NULL, and a moment is that of UTC."""
    if isinstance(value, float):
        return None if math.isnan(value) else value + 0.0
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    large = isinstance(value, int) and not -(2**63) <= value < 2**63
    return None if large else value


def clinic(data: Data) -> dict[str, Filled]:
    """The tables of `random_queries`."""
    parts = {"visits": (VISITS, data.visits), "labs": (LABS, data.labs), "floors": (FLOORED, FLOORS)}
    return {
        name: Filled(
            {column: TYPES[kind] for column, kind in columns.items()},
            [[row[column] for column in columns] for row in rows],
        )
        for name, (columns, rows) in parts.items()
    }
