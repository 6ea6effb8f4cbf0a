"""What the tests of tables run in other processes: a question that is stopped at a given place."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import dalenius as dp
from dalenius.errors import DaleniusError

QUESTION = "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward"
KEYS = ["A", "B", "C"]


def opened(source: str) -> Any:
    return dp.table(
        source,
        unit=dp.Unit("patient", column="patient_id"),
        budget=dp.Budget(epsilon=3, delta=1e-9),
        categories={"ward": KEYS},
    )


class Watched:
    """An engine that says when it is asked to read, and may wait then."""

    def __init__(self, engine: Any, wait: bool = False) -> None:
        self._engine, self._wait = engine, wait

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    @contextmanager
    def load(self, rows: Any) -> Iterator[Any]:
        print("reading", flush=True)
        if self._wait:
            sys.stdin.read()
        with self._engine.load(rows) as loaded:
            yield loaded


def ask(source: str, wait: bool = False) -> None:
    """Ask, and say what came of it."""
    table = opened(source)
    table._engine = Watched(table._engine, wait)
    try:
        print("released", table.sql(QUESTION, epsilon=0.5).receipt.entry.number, flush=True)
    except DaleniusError as error:
        print("refused", type(error).__name__, error, flush=True)
    except KeyboardInterrupt as stop:
        print("stopped", *stop.__notes__, flush=True)


def slowly(source: str) -> None:
    """Wait in the middle of reading, for whoever stops it."""
    ask(source, wait=True)


def full(source: str) -> None:
    """Ask where no file may grow beyond what the ledger has now, as on a full disk."""
    table = opened(source)
    assert "open" in [entry.event for entry in table.account.entries()]
    table._engine = Watched(table._engine)
    sizes = [path.stat().st_size for path in Path(source).parent.glob("visits.ledger*")]
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes), resource.RLIM_INFINITY))
    try:
        print("released", table.sql(QUESTION, epsilon=0.5), flush=True)
    except DaleniusError as error:
        print("refused", type(error).__name__, flush=True)


def killed(source: str) -> None:
    """Ask, and be killed at the first step of the ledger; again at the second, and so on, until all is done.

    Each time in a process and a folder of its own; what it says goes into a file there.
    """
    for place in count():
        folder = Path(source).with_name(f"place_{place}")
        folder.mkdir()
        child = os.fork()
        if child == 0:
            try:
                ask_until(str(shutil.copy(source, folder)), place, folder / "said")
            finally:
                os._exit(0 if sys.exc_info()[0] is None else 1)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != -signal.SIGKILL:
            break
    print(place)


def ask_until(source: str, place: int, said: Path) -> None:
    """Ask, and be killed at one step."""
    with said.open("w", buffering=1) as sys.stdout:
        table, places = opened(source), count()
        table._engine = Watched(table._engine)
        table.account.open()

        def hook(step: str) -> None:
            print("step", step)
            if next(places) == place:
                os.kill(os.getpid(), signal.SIGKILL)

        table.account.ledger.store.on_step = hook
        print("released", table.sql(QUESTION, epsilon=0.5).receipt.entry.number)


if __name__ == "__main__":
    # Whoever started the tests in the background has SIGINT ignored, and so would this process.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    {"ask": ask, "slowly": slowly, "full": full, "killed": killed}[sys.argv[1]](*sys.argv[2:])
