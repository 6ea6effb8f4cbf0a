"""`open_server`: an engine of tables in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalenius.tables.engines.postgres import PostgresEngine
from dalenius.tables.engines.postgres_server import Address, Handed, Server
from dalenius.tables.sources.kinds import check_columns, check_tables


def open_server(source: Any, tables: Mapping[str, object]) -> PostgresEngine:
    """An engine of tables by name, each with its name in the database."""
    check_tables(list(tables))
    server: Server = Address(source) if isinstance(source, str) else Handed(source)
    engine = PostgresEngine(server, {name: str(table) for name, table in tables.items()})
    for columns in engine.tables().values():
        check_columns(columns)
    return engine
