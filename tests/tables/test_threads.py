"""Several threads ask one table: each waits for memory before it is charged, and loses no answer."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import dalenius as dp
from dalenius.ledger import Account
from dalenius.tables.engines.duckdb import READER, DuckdbEngine
from dalenius.tables.rows import Rows
from dalenius.tables.sources.opening import open_source

THREADS, MEMORY = 6, "900MB"


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write("patient_id,ward\n")
        file.writelines(f"{i % 50},{'ABC'[i % 3]}\n" for i in range(600))
    return path


def test_a_packed_file_is_read_in_little_memory(visits: Path) -> None:
    """The buffers of one reader are far smaller than what a turn is given."""
    engine = open_source(visits, memory="150MB")
    assert READER > 150_000_000
    assert engine.public("SELECT COUNT(*) AS n FROM visits") == [{"n": 600}]
    engine.close()


def test_no_more_read_than_memory_has_room_for(visits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All others wait before they are charged, and none of their answers is lost."""
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    table = dp.table(
        str(visits),
        unit=dp.Unit("patient", column="patient_id"),
        budget=dp.Budget(epsilon=50),
        categories={"ward": ["A", "B", "C"]},
    )
    lock, reading, most, charged = threading.Lock(), [0], [0], [0]
    load, reserve = DuckdbEngine.load, Account.reserve

    @contextmanager
    def counted(self: DuckdbEngine, rows: Rows) -> Iterator[Any]:
        with lock:
            reading[0] += 1
            most[0] = max(most[0], reading[0])
        time.sleep(0.05)
        with load(self, rows) as loaded:
            yield loaded
        with lock:
            reading[0] -= 1
            charged[0] -= 1

    def counted_charge(self: Account, *args: Any, **kwargs: Any) -> Any:
        with lock:
            charged[0] += 1
            assert charged[0] <= 2
        return reserve(self, *args, **kwargs)

    monkeypatch.setattr(DuckdbEngine, "load", counted)
    monkeypatch.setattr(Account, "reserve", counted_charge)

    def ask(number: int) -> object:
        return table.sql(
            f"SELECT ward, COUNT(*) AS n FROM visits WHERE patient_id < {number} GROUP BY ward", epsilon=1
        )

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(ask, range(10, 10 + THREADS)))
    assert len(answers) == THREADS
    assert most[0] == 900_000_000 // READER == 2


def test_the_same_question_of_several_threads_is_charged_once(visits: Path) -> None:
    table = dp.table(str(visits), unit=dp.Unit("patient", column="patient_id"), budget=dp.Budget(epsilon=50))
    question = "SELECT COUNT(*) AS n FROM visits"
    begin = threading.Barrier(2)
    turns = table._engine._turns  # type: ignore[attr-defined]
    held = 0
    while turns.acquire(blocking=False):
        held += 1

    def ask(_: int) -> Any:
        begin.wait()
        return table.sql(question, epsilon=1)

    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask, i) for i in range(2)]
        time.sleep(0.1)
        turns.release()
        first, second = (one.result() for one in asked)
    assert held > 0
    assert str(first).splitlines()[0] == str(second).splitlines()[0]
    assert len([one for one in table.account.entries() if one.event == "reserve"]) == 1
