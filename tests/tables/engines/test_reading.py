"""An interrupt stops what an engine of DuckDB does, whenever it comes, and leaves nothing at work."""

from __future__ import annotations

import threading
import time

import duckdb
import pytest
from interrupting import interrupt, interruptible

from dalenius.tables.engines.reading import read

__all__ = ["interruptible"]

ENDLESS = "SELECT count(*) FROM range(10000000) AS a, range(10000000) AS b WHERE a.range + b.range = -1"


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_between_two_statements_stops_the_next_one() -> None:
    connection, ended = duckdb.connect(":memory:"), threading.Event()

    def work() -> None:
        try:
            connection.execute("SELECT 1")
            interrupt()
            # The main thread heeds it meanwhile, when there is no statement to be stopped.
            time.sleep(0.5)
            connection.execute(ENDLESS)
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        read(connection, work)
    assert ended.is_set()
    assert connection.execute("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize("started", [False, True])
def test_an_interrupt_while_the_thread_starts(started: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    connection, working = duckdb.connect(":memory:"), threading.Event()
    really = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if started:
            really(thread)
            working.wait()
        raise KeyboardInterrupt

    def work() -> None:
        working.set()
        connection.execute(ENDLESS)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(KeyboardInterrupt):
        read(connection, work)
    assert working.is_set() == started
    assert connection.execute("SELECT 1").fetchall() == [(1,)]
