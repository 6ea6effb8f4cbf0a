"""Sessions that end, timeouts, full disks, changed tables, interrupts: charged or refused; work goes on."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from engines.postgres.asking import QUESTION, events, hurried, opened, quiet, slowed, when_asleep
from engines.postgres.bases import Base
from interrupting import interrupt, interruptible

from dalenius.errors import InvalidArgument, QueryFailed
from dalenius.tables.engines import postgres_server

__all__ = ["interruptible"]

SECRET = "Ana Lima"


def goes_on(base: Base, table: Any, charged: int) -> None:
    """What failed was charged so often and never released; the next question is answered."""
    assert events(table) == ["open", *["reserve", "forfeit"] * charged]
    assert table.account.ledger.verify(costs=True) and table.account.ledger.reservations() == []
    quiet(base)
    table.sql(QUESTION, epsilon=0.5)
    assert events(table)[-2:] == ["reserve", "commit"]
    quiet(base)


def says_nothing(refused: pytest.ExceptionInfo[QueryFailed]) -> None:
    assert "it stays charged, and nothing was released" in str(refused.value)
    assert refused.value.__cause__ is None and refused.value.__context__ is None
    for word in ("psycopg", "connection", "statement", "canceling", "slow", "sleep", SECRET):
        assert word not in str(refused.value)


def failing(table: Any) -> None:
    with pytest.raises(QueryFailed) as refused:
        table.sql(QUESTION, epsilon=0.5)
    says_nothing(refused)


def test_a_session_that_is_ended_by_the_server(visits: Base, tmp_path: Path) -> None:
    slowed(visits)
    table = opened(visits, tmp_path, table="slow")
    thread = when_asleep(
        visits, lambda watching, pid: watching.execute("SELECT pg_terminate_backend(%s)", [pid])
    )
    failing(table)
    thread.join()
    hurried(visits)
    goes_on(visits, table, charged=1)


def test_a_statement_that_takes_too_long(visits: Base, tmp_path: Path) -> None:
    slowed(visits)
    table = opened(
        visits, tmp_path, f"{visits.url('reader')}&options=-cstatement_timeout%3D2000", table="slow"
    )
    failing(table)
    hurried(visits)
    goes_on(visits, table, charged=1)


def test_a_disk_that_is_full(visits: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_server, "_MEMORY", 0)
    visits.owner.execute(
        "CREATE TABLE many AS SELECT i AS patient, 'A' AS ward FROM generate_series(1, 30000) AS m (i)"
    )
    visits.owner.execute("GRANT SELECT ON many TO reader; ANALYZE many")
    visits.owner.execute(
        "ALTER ROLE reader SET work_mem = '64kB'; ALTER ROLE reader SET temp_file_limit = '64kB'"
    )
    try:
        table = opened(visits, tmp_path, table="many")
        failing(table)
    finally:
        visits.owner.execute("ALTER ROLE reader RESET ALL")
    goes_on(visits, table, charged=1)


def test_a_view_that_fails_on_a_row_is_charged_and_says_nothing_of_it(visits: Base, tmp_path: Path) -> None:
    visits.owner.execute(
        f"CREATE VIEW failing AS SELECT patient, ward, CAST('{SECRET}' || age AS integer) AS age FROM visits"
    )
    visits.owner.execute("GRANT SELECT ON failing TO reader")
    table = opened(visits, tmp_path, table="failing")
    with pytest.raises(QueryFailed) as refused:
        table.sql("SELECT SUM(age) FROM visits", epsilon=0.5)
    says_nothing(refused)
    goes_on(visits, table, charged=1)


CHANGES = {
    "another type": "ALTER TABLE visits ALTER COLUMN patient TYPE text",
    "a new column": "ALTER TABLE visits ADD COLUMN name text",
    "a column gone": "ALTER TABLE visits DROP COLUMN age",
    "renamed": "ALTER TABLE visits RENAME TO visitors",
    "dropped": "DROP TABLE visits",
    "another table": "DROP TABLE visits; CREATE TABLE visits AS SELECT 1 AS patient, 'A' AS ward",
    "no right": "REVOKE SELECT ON visits FROM reader",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_that_changes_between_explain_and_run(visits: Base, tmp_path: Path, change: str) -> None:
    table = opened(visits, tmp_path)
    table.explain(QUESTION, epsilon=0.5)
    visits.owner.execute(CHANGES[change])
    with pytest.raises(InvalidArgument, match="not as it was when it was opened; nothing was charged"):
        table.sql(QUESTION, epsilon=0.5)
    assert float(table.account.spent) == 0
    # Where that is not seen in time, nothing is read, and the charge stays.
    table._engine.version = lambda: "as before"
    failing(table)
    assert events(table) == ["open", "reserve", "forfeit"]
    quiet(visits)


def test_a_role_that_may_not_read(visits: Base, tmp_path: Path) -> None:
    visits.owner.execute("REVOKE SELECT ON visits FROM reader")
    with pytest.raises(InvalidArgument, match=r'may not read the table visits.*ON "public"\."visits"'):
        opened(visits, tmp_path)
    assert not (tmp_path / "visits.ledger").exists()
    visits.owner.execute("GRANT SELECT (patient, ward) ON visits TO reader")
    table = opened(visits, tmp_path)
    assert list(table.columns) == ["patient", "ward"]
    table.sql(QUESTION, epsilon=0.5)


def test_a_server_that_is_stopped_and_started_again(visits: Base, tmp_path: Path) -> None:
    table = opened(visits, tmp_path)
    visits.owner.close()
    visits.server.stop(signal.SIGINT)
    try:
        for ask in (lambda: table.sql(QUESTION, epsilon=0.5), lambda: opened(visits, tmp_path)):
            with pytest.raises(InvalidArgument, match="does not answer; nothing was charged") as refused:
                ask()
            assert refused.value.__context__ is None
    finally:
        visits.server.start()
    visits.owner = visits.connect()
    assert float(table.account.spent) == 0
    table.sql(QUESTION, epsilon=0.5)
    quiet(visits)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_cancels_the_statement_on_the_server(visits: Base, tmp_path: Path) -> None:
    slowed(visits)
    table = opened(visits, tmp_path, table="slow")
    thread = when_asleep(visits, lambda watching, pid: interrupt())
    with pytest.raises(KeyboardInterrupt) as stopped:
        table.sql(QUESTION, epsilon=0.5)
    thread.join()
    assert "it stays charged" in stopped.value.__notes__[0] and stopped.value.__context__ is None
    hurried(visits)
    goes_on(visits, table, charged=1)


def test_a_connection_that_was_handed_in_is_usable_after_a_failure(visits: Base, tmp_path: Path) -> None:
    slowed(visits)
    with psycopg.connect(visits.url("reader")) as connection:
        connection.execute("SET statement_timeout = 2000; SET timezone = 'Asia/Tokyo'")
        connection.commit()
        table = opened(visits, tmp_path, connection, table="slow")
        failing(table)
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert connection.execute("SHOW timezone").fetchone() == ("Asia/Tokyo",)
        with pytest.raises(InvalidArgument, match="in the middle of a transaction"):
            table.sql(QUESTION, epsilon=0.5)
        connection.rollback()
        hurried(visits)
        goes_on(visits, table, charged=1)
        assert connection.execute("SHOW search_path").fetchone() == ('"$user", public',)
    with pytest.raises(InvalidArgument, match="The connection is closed"):
        table.sql(QUESTION, epsilon=0.1)
