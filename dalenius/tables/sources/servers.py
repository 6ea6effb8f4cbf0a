"""Database servers as sources: PostgreSQL by its address, or by a connection of psycopg.

    dp.table("postgresql://reader@host/hospital", table="ward.visits", private=["ward.labs"], …)

A table is called by its own name, without its schema's; `name` and `{"labs": "archive.labs"}` give others. A
name that has dots or capital letters in it may be quoted as in SQL: `"Old.One"."Visits"`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

from dalenius.errors import InvalidArgument

_SCHEMES = ("postgresql://", "postgres://")
_PART = r'"(?:[^"]|"")+"|[^".]+'
_PARTS = re.compile(rf"(?:{_PART})(?:\.(?:{_PART}))*")


def is_server(source: object) -> bool:
    """Whether a source is a database server."""
    if isinstance(source, str):
        return source.startswith(_SCHEMES)
    driver = sys.modules.get("psycopg")
    return driver is not None and isinstance(source, driver.Connection)


def parts(table: str) -> list[str]:
    """What a name is made of, the schema first; the whole where it is not written as SQL would have it."""
    if not _PARTS.fullmatch(table):
        return [table]
    return [part[1:-1].replace('""', '"') if part[0] == '"' else part for part in re.findall(_PART, table)]


def short(table: str) -> str:
    """What a table is called in questions: its own name, without its schema's."""
    return parts(table)[-1]


def in_database(others: Mapping[str, object]) -> dict[str, object]:
    """Other tables by the names that they have in questions, each with its name in the database."""
    found: dict[str, object] = {}
    for label, table in others.items():
        if table is not None and not isinstance(table, str):
            raise InvalidArgument(
                f"The table {label} is not named as one in the same database.",
                remedy=f'Put it there, and name it, as in {{"{label}": "ward.{label}"}}: '
                "one engine reads all tables of a question.",
            )
        found[short(label) if table is None else label] = table or label
    return found
