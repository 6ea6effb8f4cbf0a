"""Why PostgreSQL cannot be asked, before anything is charged: told without a word of the server's own.

Those may hold addresses, names and passwords. Whether a server answers at all is asked as pg_isready does.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dalenius.errors import InvalidArgument
from dalenius.tables.engines.postgres_server import psycopg

if TYPE_CHECKING:
    from psycopg import Connection

_PATIENCE = 5
"""Seconds for a server to answer, when it has failed to already."""


def of_address(url: str) -> InvalidArgument:
    """Why there is no connection to an address."""
    from psycopg.conninfo import make_conninfo

    driver = psycopg()
    try:
        where = make_conninfo(url, connect_timeout=_PATIENCE)
    except Exception:
        return InvalidArgument(
            "The address of the database cannot be read; nothing was charged.",
            remedy="Write it as postgresql://role@host:5432/database; in a password, @ is %40, / is %2F, "
            ": is %3A and % is %25.",
        )
    with suppress(Exception):
        driver.connect(where).close()
        return unknown()
    return _unanswered(driver.pq.Ping(driver.pq.PGconn.ping(where.encode())).name)


def of_connection(connection: Connection[Any]) -> InvalidArgument | None:
    """Why a connection cannot be used now, if so."""
    modes = psycopg().pq
    found = connection.info.transaction_status
    if connection.closed or found == modes.TransactionStatus.UNKNOWN:
        return InvalidArgument(
            "The connection is closed; nothing was charged.", remedy="Open a new one, and the table with it."
        )
    if found != modes.TransactionStatus.IDLE:
        return InvalidArgument(
            "The connection is in the middle of a transaction; nothing was charged.",
            remedy="Commit it or roll it back first.",
        )
    if connection.info.pipeline_status != modes.PipelineStatus.OFF:
        return InvalidArgument(
            "The connection is in a pipeline; nothing was charged.", remedy="Leave the pipeline first."
        )
    return None


def unknown() -> InvalidArgument:
    """The server was reached, and something failed all the same."""
    return InvalidArgument(
        "The database could not be asked; nothing was charged.",
        remedy="Try again, or ask whoever runs it: its log says why. A pool in front of it must keep each "
        "transaction on one connection.",
    )


def _unanswered(ping: str) -> InvalidArgument:
    if ping == "OK":
        return InvalidArgument(
            "The database server does not let this role in; nothing was charged.",
            remedy="Check the role, its password and the name of the database; psql with the same address "
            "says which of them is wrong.",
        )
    if ping == "REJECT":
        return InvalidArgument(
            "The database server lets nobody in at present; nothing was charged.",
            remedy="It is starting, stopping or recovering: try again in a while.",
        )
    return InvalidArgument(
        "The database server does not answer; nothing was charged.",
        remedy="Check host and port, that the server runs and that it can be reached from here; psql with "
        "the same address says more.",
    )
