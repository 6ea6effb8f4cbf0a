"""What cannot be opened or asked is refused: it says what to do, repeats no secret, and charges nothing."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from engines.postgres.asking import PATIENCE, QUESTION, opened
from engines.postgres.bases import Base

from dalenius.errors import DaleniusError, InvalidArgument, MissingExtra
from dalenius.tables.engines import postgres_finding, postgres_server

SECRET = "s3cret"


def refused(base: Base, folder: Path, source: Any, table: str, said: str) -> DaleniusError:
    """The refusal of opening a table, which says so and nothing that it should not."""
    with pytest.raises(DaleniusError, match=said) as found:
        opened(base, folder, source, table=table)
    told = found.value
    assert told.__context__ is None and told.__cause__ is None and told.remedy
    assert SECRET not in repr(told) and "FATAL" not in str(told) and not any(folder.iterdir())
    return told


ADDRESSES = {
    "postgresql://reader:s3cret@/{0}?host={1}&port=1": "does not answer; nothing was charged",
    "postgresql://reader:s3cret@nowhere.invalid/{0}": "does not answer; nothing was charged",
    "postgresql://stranger:s3cret@/{0}?host={1}": "does not let this role in; nothing was charged",
    "postgresql://reader:s3cret@/s3cret?host={1}": "does not let this role in; nothing was charged",
    "postgresql://reader:s3cret%zz@/{0}?host={1}": "address of the database cannot be read",
    "postgresql://reader:s3cret@/{0}?host={1}&color=s3cret": "address of the database cannot be read",
    "host={1} dbname={0} user=reader password=s3cret": "postgresql://role@host/database",
    "postgresql+psycopg://reader:s3cret@/{0}?host={1}": "begin with postgresql://",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses_that_lead_nowhere(visits: Base, tmp_path: Path, address: str) -> None:
    given = address.format(visits.name, visits.server.folder)
    refused(visits, tmp_path, given, "visits", ADDRESSES[address])
    assert SECRET not in repr(postgres_server.Address(given))


def test_a_driver_that_is_not_installed(
    visits: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres_server.psycopg.cache_clear()
    monkeypatch.setitem(sys.modules, "psycopg", None)
    told = refused(visits, tmp_path, None, "visits", "need psycopg")
    assert isinstance(told, MissingExtra) and "dalenius[postgres]" in told.remedy


def test_a_server_that_is_too_old(visits: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_finding, "OLDEST", 99)
    refused(visits, tmp_path, None, "visits", "older than PostgreSQL 99")


MADE = """
CREATE SCHEMA hidden; CREATE TABLE hidden.visits (patient int); GRANT SELECT ON hidden.visits TO reader;
CREATE TABLE closed (patient int); CREATE TABLE bare (); GRANT SELECT ON bare TO reader;
CREATE INDEX places ON visits (ward); CREATE SEQUENCE numbers; GRANT SELECT ON numbers TO reader;
CREATE ROLE keeper_of_{0}; CREATE VIEW lost AS SELECT * FROM closed; ALTER VIEW lost OWNER TO keeper_of_{0};
GRANT SELECT ON lost TO reader;
"""
UNREAD = {
    "visit": "There is no table visit in the database",
    "nowhere.visits": r"There is no table nowhere\.visits",
    "elsewhere.public.visits": r"There is no table elsewhere\.public\.visits",
    '"VISITS"': 'There is no table "VISITS"',
    "visits; DROP TABLE visits": "There is no table visits; DROP",
    "vis\0its": "a character that no name has",
    "vis\udc80its": "a character that no name has",
    "hidden.visits": r'may not read.*GRANT USAGE ON SCHEMA "hidden" and GRANT SELECT ON "hidden"\."visits"',
    "closed": r'may not read the table closed.*by GRANT SELECT ON "public"\."closed"',
    "bare": "has no columns",
    "places": "There is no table places",
    "numbers": "There is no table numbers",
    "lost": r'cannot be read; nothing was charged.*SELECT FROM "public"\."lost" LIMIT 0',
}


@pytest.mark.parametrize("table", UNREAD)
def test_tables_that_are_not_there_or_may_not_be_read(visits: Base, tmp_path: Path, table: str) -> None:
    visits.owner.execute(MADE.format(visits.name))
    refused(visits, tmp_path, None, table, UNREAD[table])


NAMES = {
    "VISITS": "visits",
    "public.visits": "visits",
    "{0}.public.visits": "visits",
    '"public".visits': "visits",
    "Mixed Case": "Mixed Case",
    '"Mixed Case"': "Mixed Case",
    'quo"te': 'quo"te',
    '"quo""te"': 'quo"te',
    '"Old.One"."Зал ☃"': "Зал ☃",
    "with.dot": "with.dot",
    '"with.dot"': "with.dot",
    "back\\slash": "back\\slash",
}


@pytest.mark.parametrize("table", NAMES)
def test_names_are_understood_however_they_are_written(visits: Base, tmp_path: Path, table: str) -> None:
    visits.owner.execute('CREATE SCHEMA "Old.One"; GRANT USAGE ON SCHEMA "Old.One" TO reader')
    for name in ('"Mixed Case"', '"quo""te"', '"Old.One"."Зал ☃"', '"with.dot"', '"back\\slash"'):
        visits.owner.execute(f"CREATE TABLE {name} AS SELECT * FROM visits; GRANT SELECT ON {name} TO reader")
    with visits.connect() as owner:
        owner.execute("SET client_encoding = 'LATIN1'; SET standard_conforming_strings = off")
        for source in (visits.url("reader"), owner):
            found = opened(visits, tmp_path, source, table=table.format(visits.name))
            assert found._engine._tables["visits"].name == NAMES[table]


def test_rights_that_are_lost_behind_a_view_are_seen_before_the_charge(visits: Base, tmp_path: Path) -> None:
    visits.owner.execute(f"CREATE ROLE loser_of_{visits.name}")
    visits.owner.execute(f"GRANT SELECT ON visits TO loser_of_{visits.name}")
    visits.owner.execute("CREATE VIEW seen AS SELECT * FROM visits; GRANT SELECT ON seen TO reader")
    visits.owner.execute(f"ALTER VIEW seen OWNER TO loser_of_{visits.name}")
    table = opened(visits, tmp_path, table="seen")
    visits.owner.execute(f"REVOKE SELECT ON visits FROM loser_of_{visits.name}")
    with pytest.raises(InvalidArgument, match="cannot be read; nothing was charged"):
        table.sql(QUESTION, epsilon=0.5)
    assert float(table.account.spent) == 0 and not any(tmp_path.iterdir())


def test_connections_that_cannot_be_used_now(visits: Base, tmp_path: Path) -> None:
    with psycopg.connect(visits.url("reader")) as connection:
        connection.execute("SELECT 1")
        refused(visits, tmp_path, connection, "visits", "middle of a transaction; nothing was charged")
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / 0")
        refused(visits, tmp_path, connection, "visits", "middle of a transaction; nothing was charged")
        connection.rollback()
        with connection.pipeline():
            refused(visits, tmp_path, connection, "visits", "in a pipeline; nothing was charged")
        connection.rollback()
        table = opened(visits, tmp_path, connection)
        visits.owner.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])
        deadline = time.monotonic() + PATIENCE
        while visits.others():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with pytest.raises(InvalidArgument, match="The connection is closed; nothing was charged"):
            table.sql(QUESTION, epsilon=0.5)
        assert float(table.account.spent) == 0
        refused(visits, tmp_path, connection, "visits", "The connection is closed; nothing was charged")


CURSORS = {
    "raw": {"cursor_factory": psycopg.RawCursor},
    "client": {"cursor_factory": psycopg.ClientCursor},
    "dictionaries": {"row_factory": psycopg.rows.dict_row},
    "autocommit": {"autocommit": True},
}


@pytest.mark.parametrize("kind", CURSORS)
def test_connections_of_every_kind_are_asked(visits: Base, tmp_path: Path, kind: str) -> None:
    options: dict[str, Any] = CURSORS[kind]
    with psycopg.connect(visits.url("reader"), **options) as connection:
        assert opened(visits, tmp_path, connection).sql(QUESTION, epsilon=0.5).receipt.entry


def test_tables_of_ibis_are_found_by_their_exact_names(visits: Base, tmp_path: Path) -> None:
    ibis = pytest.importorskip("ibis")
    visits.owner.execute(
        'CREATE TABLE "with.dot" AS SELECT * FROM visits; GRANT SELECT ON "with.dot" TO reader'
    )
    host = str(visits.server.folder)
    connection = ibis.postgres.connect(host=host, user="reader", database=visits.name)
    for place in (None, "public", (visits.name, "public")):
        named = connection.table("with.dot", database=place)
        found = opened(visits, tmp_path, named, table=None)
        assert found._engine._tables["visits"].name == "with.dot"
    refused(visits, tmp_path, named, "visits", "one table already")
    connection.con.close()
