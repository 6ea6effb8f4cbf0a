"""DuckDB, read as the engine reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import duckdb
from engines.conformance.sites import Filled
from language.nasty import connection

from dalenius.tables.engines.engine import Engine
from dalenius.tables.sources.opening import open_source


class DuckdbSite:
    """See `Site`."""

    name = "duckdb"

    def __init__(self) -> None:
        self.nasty: Engine = open_source(connection(), table="nasty")

    @contextmanager
    def holding(self, tables: Mapping[str, Filled]) -> Iterator[Engine]:
        """See `Site`."""
        with closing(created(tables)) as made:
            made.execute("SET TimeZone = 'Asia/Tokyo'")
            with closing(open_source(made, table=next(iter(tables)))) as engine:
                yield engine

    def answers(self, engine: Engine, queries: Sequence[str]) -> list[list[tuple[Any, ...]]]:
        """See `Site`."""
        return [[tuple(row.values()) for row in engine.public(sql)] for sql in queries]


def created(tables: Mapping[str, Filled]) -> duckdb.DuckDBPyConnection:
    """The tables in memory."""
    made = duckdb.connect()
    made.execute("SET threads = 1")
    for name, table in tables.items():
        columns = ", ".join(f"{column} {kind}" for column, kind in table.types.items())
        made.execute(f"CREATE TABLE {name} ({columns})")
        if table.rows:
            marks = ", ".join("?" for _ in table.types)
            made.executemany(f"INSERT INTO {name} VALUES ({marks})", [list(row) for row in table.rows])
    return made
