"""Databases of the tests' own server."""

from __future__ import annotations

from typing import Any

import psycopg
from postgres_server import Server

ROWS = "SELECT i % 40 AS patient, (ARRAY['A', 'B', 'C'])[1 + i % 3] AS ward, i % 90 AS age"
ROWS += (
    ", i * 0.5::float8 AS cost, DATE '2024-01-01' + i % 60 AS day FROM generate_series(1, 600) AS made (i)"
)


class Base:
    """A database of its own."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name = server, name
        self.owner = self.connect()

    def url(self, role: str = "dalenius") -> str:
        """Its address for a role."""
        return f"postgresql://{role}@/{self.name}?host={self.server.folder}"

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """A connection of its owner."""
        return psycopg.connect(self.url(), autocommit=True, **options)

    def others(self) -> list[tuple[str, str]]:
        """What the sessions of everyone but the owner's first are in the middle of."""
        asked = "SELECT state, query FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
        return self.owner.execute(f"{asked} AND backend_type = 'client backend'", [self.name]).fetchall()
