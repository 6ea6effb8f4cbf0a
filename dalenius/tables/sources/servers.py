"""Database servers as sources: PostgreSQL by its address, or by a connection of psycopg.

    dp.table("postgresql://reader@host/hospital", table="ward.visits", private=["ward.labs"], …)

A table is called by its own name, without its schema's; `name` and `{"labs": "archive.labs"}` give others.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from dalenius.errors import InvalidArgument

_SCHEMES = ("postgresql://", "postgres://")


def is_server(source: object) -> bool:
    """Whether a source is a database server."""
    if isinstance(source, str):
        return source.startswith(_SCHEMES)
    driver = sys.modules.get("psycopg")
    return driver is not None and isinstance(source, driver.Connection)


def short(table: str) -> str:
    """What a table is called in questions: its own name, without its schema's."""
    return table.rpartition(".")[2] or table


def in_database(others: Mapping[str, object]) -> dict[str, object]:
    """Other tables by the names that they have in questions, each with its name in the database."""
    found: dict[str, object] = {}
    for label, table in others.items():
        if table is not None and not isinstance(table, str):
            raise InvalidArgument(
                f"The table {label} is not in the same database as the others.",
                remedy="Put it there, and name it: one engine reads all tables of a question.",
            )
        found[short(label) if table is None else label] = table or label
    return found
