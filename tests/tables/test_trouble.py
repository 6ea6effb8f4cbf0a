"""Kill, interrupt, a full disk, a broken file: nothing is released uncharged, and work can go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dalenius as dp
from dalenius.errors import InvalidArgument, LedgerFull, QueryFailed
from dalenius.ledger import Account

CHILD = Path(__file__).with_name("table_child.py")
QUESTION = "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward"
UNIT = dp.Unit("patient", column="patient_id")
BUDGET = dp.Budget(epsilon=3, delta=1e-9)


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """Visits to three wards, made up."""
    path = tmp_path / "visits.parquet"
    rows = "SELECT i % 1000 AS patient_id, ['A', 'B', 'C'][1 + i % 3] AS ward FROM range(50000) AS made(i)"
    duckdb.sql(f"COPY ({rows}) TO '{path}'")
    return path


def opened(visits: Path) -> Any:
    return dp.table(str(visits), unit=UNIT, budget=BUDGET, categories={"ward": ["A", "B", "C"]})


def child(what: str, *words: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, str(CHILD), what, *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)


def printed(what: str, *words: str) -> list[str]:
    """All that a child says, and that it ended well."""
    with child(what, *words) as run:
        said, _ = run.communicate()
    assert run.returncode == 0
    return said.splitlines()


def account(visits: Path) -> Account:
    return dp.Ledger(visits.with_suffix(".ledger")).account("visits")


def events(visits: Path) -> list[str]:
    return [entry.event for entry in account(visits).entries()]


def goes_on(visits: Path, spent: float) -> None:
    """The ledger is whole and holds what was spent; the next question is answered."""
    seen = account(visits)
    assert seen.ledger.verify(costs=True) and seen.ledger.reservations() == []
    assert (float(seen.spent) > 0) == (spent > 0)
    said = printed("ask", str(visits))
    assert said[-1].startswith("released")


def test_a_question_in_another_process_is_charged_and_released(visits: Path) -> None:
    assert printed("ask", str(visits)) == ["reading", "released 2"]
    assert events(visits) == ["open", "reserve", "commit"]
    assert printed("ask", str(visits)) == ["released 2"], "again: free, and nothing is read"


def test_an_interrupt_while_reading_is_charged_and_releases_nothing(visits: Path) -> None:
    with child("slowly", str(visits)) as run:
        assert run.stdout is not None and run.stdout.readline() == "reading\n"
        run.send_signal(signal.SIGINT)
        said, _ = run.communicate()
    assert said.startswith("stopped") and "entry 2 of visits: it stays charged" in said
    assert events(visits) == ["open", "reserve", "forfeit"]
    goes_on(visits, spent=0.5)


def test_a_kill_while_reading_stays_charged_and_is_swept(visits: Path) -> None:
    with child("slowly", str(visits)) as run:
        assert run.stdout is not None and run.stdout.readline() == "reading\n"
        run.kill()
        said, _ = run.communicate()
    assert said == "" and run.returncode == -signal.SIGKILL
    assert events(visits) == ["open", "reserve", "forfeit"], "swept when the ledger is opened"
    goes_on(visits, spent=0.5)


def test_a_kill_at_any_step_of_the_ledger_releases_nothing_uncharged(visits: Path) -> None:
    (last,) = printed("killed", str(visits))
    steps = []
    for place in range(int(last) + 1):
        there = visits.with_name(f"place_{place}") / visits.name
        said = (there.with_name("said")).read_text().splitlines()
        steps.append(said[-1])
        charged = "reserve" in events(there)
        assert charged or ("reading" not in said and "released 2" not in said)
        assert account(there).ledger.reservations() == [] and account(there).ledger.verify()
    assert steps[-1] == "released 2" and len(steps) > 5
    assert {"step begin", "step before commit", "step after commit", "step drop reservation"} <= set(steps)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of a process are those of Unix")
def test_a_full_disk_reads_nothing_and_charges_nothing(visits: Path) -> None:
    opened(visits).account.open()
    (said,) = printed("full", str(visits))
    assert said.startswith("refused Ledger"), "and nothing was read"
    assert events(visits) == ["open"]
    goes_on(visits, spent=0)


def test_a_disk_that_is_full_at_the_end_releases_nothing_and_stays_charged(visits: Path) -> None:
    table = opened(visits)
    table.account.open()

    def hook(step: str) -> None:
        if step == "drop reservation":
            raise LedgerFull("The disk is full.", remedy="Make room on it.")

    table.account.ledger.store.on_step = hook
    with pytest.raises(LedgerFull, match="stays charged"):
        table.sql(QUESTION, epsilon=0.5)
    table.account.ledger.store.on_step = None
    assert float(table.account.spent) > 0 and events(visits)[:2] == ["open", "reserve"]
    assert table.sql(QUESTION, epsilon=0.5).receipt.entry is not None


def test_a_file_that_is_broken_from_the_start_is_named_and_costs_nothing(visits: Path) -> None:
    visits.write_bytes(visits.read_bytes()[:-100])
    with pytest.raises(InvalidArgument, match="cannot be opened; nothing was charged") as refused:
        opened(visits)
    assert refused.value.remedy
    assert not visits.with_suffix(".ledger").exists()


def test_a_file_that_breaks_later_is_charged_and_releases_nothing(visits: Path) -> None:
    whole, table = visits.read_bytes(), opened(visits)
    visits.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(QueryFailed, match="entry 2 of visits: it stays charged, and nothing was released"):
        table.sql(QUESTION, epsilon=0.5)
    assert events(visits) == ["open", "reserve", "forfeit"]
    visits.write_bytes(whole)
    goes_on(visits, spent=0.5)


def test_what_went_wrong_is_not_told(visits: Path) -> None:
    """An engine may speak of data: none of its words pass."""
    table = opened(visits)

    class Talkative:
        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

        def load(self, rows: Any) -> Any:
            raise RuntimeError("could not convert 'Ana Lima, HIV positive'")

    engine = table._engine
    table._engine = Talkative()
    with pytest.raises(QueryFailed) as refused:
        table.sql(QUESTION, epsilon=0.5)
    assert "Ana" not in str(refused.value)
    assert refused.value.__cause__ is None and refused.value.__context__ is None
    assert events(visits) == ["open", "reserve", "forfeit"]
