"""The temporary table of a question, what is left of it, and when an answer is given again for free."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from engines.postgres.asking import QUESTION, events, hurried, opened, quiet, slowed, when_asleep
from engines.postgres.bases import Base
from postgres_server import Server

import dalenius as dp
from dalenius.errors import InvalidArgument, QueryFailed
from dalenius.tables.engines.engine import Bounding, Measure
from dalenius.tables.engines.postgres import PostgresEngine
from dalenius.tables.engines.postgres_server import Address
from dalenius.tables.language.parsing import ask
from dalenius.tables.rows import Rows
from dalenius.tables.schema import Private, Schema

PATIENTS = 40
OURS = "SELECT relname FROM pg_class WHERE relpersistence = 't'"
FREE = "given again, free"


@pytest.fixture
def roomy(visits: Base) -> Iterator[Base]:
    """The reader may make temporary tables, and nothing else writes on the server."""
    visits.owner.execute(f"GRANT TEMPORARY ON DATABASE {visits.name} TO reader")
    visits.owner.execute("ALTER SYSTEM SET autovacuum = off")
    visits.owner.execute("SELECT pg_reload_conf()")
    yield visits
    visits.owner.execute("ALTER SYSTEM RESET autovacuum")
    visits.owner.execute("SELECT pg_reload_conf()")


def engine_of(base: Base, role: str = "reader") -> PostgresEngine:
    return PostgresEngine(Address(base.url(role)), {"visits": "visits"})


def rows_of(engine: PostgresEngine) -> Rows:
    unit = dp.Unit("patient", column="patient")
    schema = Schema((Private("visits", engine.columns("visits"), unit),), dialect="postgres")
    return ask(QUESTION, schema).rows


def read(loaded: Any) -> Any:
    keys = [("A",), ("B",), ("C",)]
    shapes = loaded.shapes(keys, norm="l2", presence=False)
    totals = loaded.totals(keys, [Measure("rows")], Bounding("l2", limit=Fraction(3)))
    return shapes.tolist(), totals.tolist()


def test_a_role_that_may_has_one_temporary_table_and_the_same_integers(roomy: Base) -> None:
    engine = engine_of(roomy)
    with engine.load(rows_of(engine)) as loaded:
        with_table, cursor = read(loaded), loaded._runner._cursor
        ((name,),) = cursor.execute(OURS).fetchall()
        assert name.startswith("dalenius_")
        assert cursor.execute(f"SELECT COUNT(*) FROM pg_temp.{name}").fetchone() == (PATIENTS,)
    quiet(roomy)
    roomy.owner.execute(f"REVOKE TEMPORARY ON DATABASE {roomy.name} FROM reader")
    with engine.load(rows_of(engine)) as loaded:
        assert read(loaded) == with_table
        assert loaded._runner._cursor.execute(OURS).fetchall() == []


@pytest.mark.parametrize("write", ["DELETE FROM public.visits", "CREATE TABLE public.mine (i int)"])
def test_what_may_write_reads_only_once_its_table_is_made(roomy: Base, write: str) -> None:
    engine = engine_of(roomy, "dalenius")
    with engine.load(rows_of(engine)) as loaded:
        assert loaded._runner._cursor.execute(OURS).fetchall()
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            loaded._runner._cursor.execute(write)
    quiet(roomy)


def test_nothing_is_left_of_an_answer_or_an_error(roomy: Base, tmp_path: Path) -> None:
    opened(roomy, tmp_path).sql(QUESTION, epsilon=0.5)
    quiet(roomy)
    roomy.owner.execute("CREATE VIEW failing AS SELECT patient, ward, 1 / (age - age) AS age FROM visits")
    roomy.owner.execute("GRANT SELECT ON failing TO reader")
    with pytest.raises(QueryFailed):
        opened(roomy, tmp_path, table="failing").sql("SELECT SUM(age) FROM visits", epsilon=0.5)
    quiet(roomy)


def test_nothing_is_left_of_a_session_that_is_ended(roomy: Base, tmp_path: Path) -> None:
    slowed(roomy)
    wrote: list[Any] = []

    def end(watching: psycopg.Connection[Any], pid: int) -> None:
        wrote.extend(watching.execute("SELECT backend_xid FROM pg_stat_activity WHERE pid = %s", [pid]))
        watching.execute("SELECT pg_terminate_backend(%s)", [pid])

    table, thread = opened(roomy, tmp_path, table="slow"), when_asleep(roomy, end)
    with pytest.raises(QueryFailed):
        table.sql(QUESTION, epsilon=0.5)
    thread.join()
    assert wrote[0][0] is not None, "its table was made"
    quiet(roomy)
    hurried(roomy)
    table.sql(QUESTION, epsilon=0.5)
    quiet(roomy)


def free(answer: dp.Release) -> bool:
    return any(FREE in step for step in answer.receipt.postprocessing)


def test_an_answer_is_given_again_though_a_table_was_made_for_it(roomy: Base, tmp_path: Path) -> None:
    table = opened(roomy, tmp_path)
    first = table.sql(QUESTION, epsilon=0.5)
    other = table.sql(QUESTION, epsilon=0.4)
    assert not free(first) and not free(other)
    again = [table.sql(QUESTION, epsilon=0.5), table.sql(QUESTION, epsilon=0.4)]
    assert all(map(free, again)) and [one.columns for one in again] == [first.columns, other.columns]
    assert events(table) == ["open", *["reserve", "commit"] * 2]
    roomy.owner.execute("DELETE FROM visits WHERE patient = 7")
    assert not free(table.sql(QUESTION, epsilon=0.5))
    assert events(table) == ["open", *["reserve", "commit"] * 3]


def test_while_others_write_no_snapshot_is_taken_for_another(roomy: Base) -> None:
    engine = engine_of(roomy)
    with roomy.connect() as writing, writing.transaction():
        writing.execute("DELETE FROM visits WHERE patient = 2")
        with engine.load(rows_of(engine)) as loaded:
            assert loaded._runner._cursor.execute(OURS).fetchall()
        assert engine._same == {}
        during = engine.version()
    assert engine.version() != during


def test_a_form_that_changes_after_the_snapshot_is_seen(visits: Base) -> None:
    engine = engine_of(visits)
    with engine._server.transaction() as cursor:
        engine._check(cursor, engine._tables)
    with engine._server.transaction() as cursor:
        visits.owner.execute("ALTER TABLE visits ALTER COLUMN age TYPE text")
        with pytest.raises(QueryFailed):
            engine._check(cursor, engine._tables)


def test_what_was_paid_for_is_handed_over_whatever_has_become_of_the_table(
    visits: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(visits, tmp_path)
    version, calls = table._engine.version, iter(range(9))

    def changing() -> str:
        if next(calls):
            visits.owner.execute("ALTER TABLE visits RENAME TO visitors")
        return str(version())

    monkeypatch.setattr(table._engine, "version", changing)
    assert table.sql(QUESTION, epsilon=0.5).receipt.entry
    assert next(calls) == 2 and events(table) == ["open", "reserve", "commit"]
    monkeypatch.undo()
    with pytest.raises(InvalidArgument, match="not as it was"):
        table.sql(QUESTION, epsilon=0.5)


@pytest.fixture
def replica(roomy: Base, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Base]:
    """A server that follows the tests' own."""
    first = roomy.server
    folder = first.folder / "replica"
    roomy.owner.close()
    first.stop(signal.SIGINT)
    folder.mkdir()
    shutil.copytree(first.folder / "data", folder / "data")
    (folder / "data" / "standby.signal").touch()
    if first.who:
        for path in (folder, *folder.rglob("*")):
            shutil.chown(path, first.who["user"], first.who["group"])
    first.start()
    roomy.owner = roomy.connect()
    second = Server(first.binaries, folder)
    second.start(f"primary_conninfo=host={first.folder} user=dalenius")
    found = Base(second, roomy.name)
    yield found
    found.owner.close()
    second.stop(signal.SIGINT)
    shutil.rmtree(folder)


def followed(base: Base, replica: Base) -> None:
    ((end,),) = base.owner.execute("SELECT pg_current_wal_flush_lsn()").fetchall()
    while replica.owner.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", [end]).fetchone() != (True,):
        time.sleep(0.01)


def test_a_replica_answers_and_tells_snapshots_apart_that_look_the_same(
    roomy: Base, replica: Base, tmp_path: Path
) -> None:
    table = opened(replica, tmp_path)
    table.sql(QUESTION, epsilon=0.5)
    engine = engine_of(replica)
    writers = [roomy.connect() for _ in range(3)]
    for patient, writing in enumerate(writers):
        writing.execute(f"BEGIN; DELETE FROM visits WHERE patient = {patient}")
    seen = []
    for writing in reversed(writers):
        writing.execute("COMMIT")
        followed(roomy, replica)
        seen.append(engine.version())
        writing.close()
    assert len(set(seen)) == 3
