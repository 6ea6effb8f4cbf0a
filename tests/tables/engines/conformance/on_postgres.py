"""A database of the tests' own PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count
from typing import Any

import psycopg
from engines.conformance import worst
from engines.conformance.sites import Filled
from postgres_server import Server

from dalenius.tables.engines.engine import Engine
from dalenius.tables.engines.postgres import PostgresEngine
from dalenius.tables.engines.postgres_server import Handed

TYPES = {"HUGEINT": "numeric(39)", "UBIGINT": "numeric(20)", "VARCHAR": "text", "DOUBLE": "float8"}
"""PostgreSQL's names of types, where they are not DuckDB's."""


class PostgresSite:
    """See `Site`."""

    name = "postgres"

    def __init__(self, server: Server) -> None:
        self._url, self._schemas = server.url("public"), count()
        self._database = f"site_{next(server.names)}"
        self._free: dict[str, list[tuple[str, psycopg.Connection[Any], Engine]]] = {}
        with psycopg.connect(self._url, autocommit=True) as owner:
            owner.execute(f"CREATE DATABASE {self._database}")
        self._connection = self._connected()
        self._connection.execute(worst.POSTGRES)
        self.nasty: Engine = PostgresEngine(Handed(self._connection), {"nasty": "nasty"})

    def _connected(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self._url, dbname=self._database, autocommit=True)

    def close(self) -> None:
        """Drop the database."""
        for _, connection, _ in chain.from_iterable(self._free.values()):
            connection.close()
        self._connection.close()
        with psycopg.connect(self._url, autocommit=True) as owner:
            owner.execute(f"DROP DATABASE {self._database} WITH (FORCE)")

    @contextmanager
    def holding(self, tables: Mapping[str, Filled]) -> Iterator[Engine]:
        """See `Site`. Tables of one form are used again, with other rows."""
        form = repr({name: table.types for name, table in tables.items()})
        free = self._free.setdefault(form, [])
        schema, connection, engine = free.pop() if free else self._created(tables)
        for name, table in tables.items():
            connection.execute(f"DELETE FROM {schema}.{name}")
            with connection.cursor().copy(f"COPY {schema}.{name} FROM STDIN") as copy:
                for row in table.rows:
                    copy.write_row(row)
        try:
            yield engine
        finally:
            free.append((schema, connection, engine))

    def _created(self, tables: Mapping[str, Filled]) -> tuple[str, psycopg.Connection[Any], Engine]:
        schema, connection = f"schema_{next(self._schemas)}", self._connected()
        connection.execute(f"CREATE SCHEMA {schema}; SET timezone = 'America/New_York'")
        for name, table in tables.items():
            columns = ", ".join(f"{column} {TYPES.get(kind, kind)}" for column, kind in table.types.items())
            connection.execute(f"CREATE TABLE {schema}.{name} ({columns})")
        names = {name: f"{schema}.{name}" for name in tables}
        return schema, connection, PostgresEngine(Handed(connection), names)

    def answers(self, engine: Engine, queries: Sequence[str]) -> list[list[tuple[Any, ...]]]:
        """See `Site`."""
        return [[tuple(row.values()) for row in engine.public(sql)] for sql in queries]
