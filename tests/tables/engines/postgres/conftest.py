"""One server for all tests of the engine, and databases of it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from engines.postgres.bases import ROWS, Base
from postgres_server import Server


@pytest.fixture
def base(postgres: Server) -> Iterator[Base]:
    name = f"base_{next(postgres.names)}"
    with psycopg.connect(postgres.url("public"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
    found = Base(postgres, name)
    yield found
    found.owner.close()
    with psycopg.connect(postgres.url("public"), autocommit=True) as server:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def visits(base: Base) -> Base:
    """A database with visits of forty patients to three wards, and a role that may read them and no more."""
    base.owner.execute(f"CREATE TABLE visits AS {ROWS}")
    if not base.owner.execute("SELECT FROM pg_roles WHERE rolname = 'reader'").fetchall():
        base.owner.execute("CREATE ROLE reader LOGIN")
    base.owner.execute(f"REVOKE TEMPORARY, CREATE ON DATABASE {base.name} FROM PUBLIC")
    base.owner.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
    base.owner.execute("GRANT USAGE ON SCHEMA public TO reader; GRANT SELECT ON visits TO reader")
    return base
