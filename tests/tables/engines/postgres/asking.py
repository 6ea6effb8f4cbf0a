"""Questions to a table of visits, slow ones too, and what a session is in the middle of."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from engines.postgres.bases import Base

import dalenius as dp

QUESTION = "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward"
PATIENCE = 600
"""Seconds after which something is taken to hang: far more than it takes on a busy machine."""
SLOWLY = "CREATE VIEW slow AS SELECT v.* FROM visits AS v, (SELECT pg_sleep({0})) AS slept"


def opened(base: Base, folder: Path, source: Any = None, table: str | None = "visits") -> Any:
    return dp.table(
        base.url("reader") if source is None else source,
        table=table,
        name="visits",
        unit=dp.Unit("patient", column="patient"),
        budget=dp.Budget(epsilon=20, delta=1e-6),
        ledger=folder / "visits.ledger",
        categories={"ward": ["A", "B", "C"]},
    )


def events(table: Any) -> list[str]:
    return [entry.event for entry in table.account.ledger.account("visits").entries()]


def slowed(base: Base, seconds: float = PATIENCE) -> None:
    """A view that takes its time; `hurried` makes it a quick one again."""
    base.owner.execute(SLOWLY.format(seconds))
    base.owner.execute("GRANT SELECT ON slow TO reader")


def hurried(base: Base) -> None:
    base.owner.execute(SLOWLY.format(0).replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))


def when_asleep(base: Base, act: Callable[[psycopg.Connection[Any], int], None]) -> threading.Thread:
    """Something that is done to a session once it sleeps."""

    def wait() -> None:
        asleep = "SELECT pid FROM pg_stat_activity WHERE datname = %s AND wait_event = 'PgSleep'"
        with base.connect() as watching:
            while not (found := watching.execute(asleep, [base.name]).fetchall()):
                time.sleep(0.01)
            act(watching, found[0][0])

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def quiet(base: Base) -> None:
    """No session of ours is left in the middle of anything, and there is no temporary object."""
    deadline = time.monotonic() + PATIENCE
    while any(state != "idle" for state, _ in base.others()):
        assert time.monotonic() < deadline, base.others()
        time.sleep(0.01)
    made = "SELECT relname FROM pg_class WHERE relpersistence = 't'"
    assert base.owner.execute(made).fetchall() == []
