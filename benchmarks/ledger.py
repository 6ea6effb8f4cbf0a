"""The ledger: what a charge costs as it grows, over one raw fsynced insert, and beside OpenDP's filter.

    python3 -m venv build/bench-ledger
    build/bench-ledger/bin/pip install -r benchmarks/requirements-ledger.txt -e .
    build/bench-ledger/bin/python benchmarks/ledger.py

OpenDP is left out where it is not installed. The report is printed and written to
benchmarks/results/ledger.md. Times are medians of calls that take turns with the raw insert on the same disk,
since disks have moods; the ratio is the median of the ratios of each round.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from measure import milliseconds, one_thread, processor, table, version

RESULTS = Path(__file__).parent / "results" / "ledger.md"
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
BATCH = 50_000
"""Entries that are filled in at once."""
ROUND = 1_500
"""Small writes before anything is timed: until a log has come round once, each makes its file grow."""
QUERIES = (100, 1_000, 2_000, 4_000)
"""Where OpenDP is timed."""
NEXT = 20
"""Queries of OpenDP that are timed at each place."""
CHARGES = """\
Medians of {repeats} rounds; in each a raw insert, a record, and a reservation with its commit take turns on
one disk, where 4 KiB are written and safe after {fsync} ms. The raw insert is one row as long as an entry,
in a transaction of its own that is on the disk when it ends (SQLite, WAL, synchronous=FULL). The logs of
both have come round once before, so that their files do not grow. The ratio is that of the times by the clock
on the wall, round by round. What a charge adds to the insert is computing, and so the same on every disk: the
longer a disk takes, the smaller the ratio.
"""
PEER = """\
Its odometer and its filter in memory, the median of {next} queries: make_fully_adaptive_composition without
and with make_privacy_filter (opendp issue 2909). Nothing is kept on disk, and each query draws one number.
What the filter does for a query grows with the number of queries before it; what a charge costs does not.
"""
Call = Callable[[], object]
Times = tuple[float, float]
"""Seconds by the clock on the wall, and of the processor."""


def seconds(call: Call) -> Times:
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - processor


def rounds(calls: Sequence[Call], repeats: int) -> list[list[Times]]:
    """The times of each call, in turns, after a first one that is not counted."""
    for call in calls:
        call()
    turns = [[seconds(call) for call in calls] for _ in range(repeats)]
    return [list(times) for times in zip(*turns, strict=True)]


def median(times: Sequence[Times], which: int) -> float:
    return statistics.median(pair[which] for pair in times)


class Raw:
    """One row in a transaction that is on the disk when it ends: the least that a durable charge can cost."""

    def __init__(self, path: Path, body: str) -> None:
        self.connection, self.body = sqlite3.connect(path, isolation_level=None), body
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute(
            "CREATE TABLE entries (number INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT"
        )
        for _ in range(ROUND):
            self.insert()

    def insert(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute("INSERT INTO entries (body) VALUES (?)", (self.body,))
        self.connection.execute("COMMIT")


class Filled:
    """A ledger whose account has had as many charges as asked for; the losses take turns."""

    def __init__(self, folder: Path) -> None:
        import dalenius as dp
        from dalenius.losses import DiscreteLaplace, Gaussian, Pure

        self.path = folder / "people.ledger"
        self.ledger = dp.Ledger(self.path)
        budget = dp.Budget(epsilon=10, delta=1e-6)
        self.people = self.ledger.open("people", unit=dp.Unit("person"), budget=budget)
        self.losses = (Gaussian(4000), DiscreteLaplace(10**6), Pure(1e-6), Gaussian(8000))
        self.turn = 0
        for _ in range(ROUND):
            with self.ledger.store.write(durable=False) as transaction:
                transaction.add_reservation(1, "people", "", "")
                transaction.drop_reservation(1)

    @property
    def loss(self):
        self.turn += 1
        return self.losses[self.turn % len(self.losses)]

    def fill(self, count: int) -> None:
        """Entries as `record` writes them, many in one transaction, each total following from the last."""
        while (missing := count - self.entries) > 0:
            self._add(min(missing, BATCH))

    @property
    def entries(self) -> int:
        with self.ledger.store.read() as held:
            return held.head().number

    def _add(self, count: int) -> None:
        from dalenius.ledger.charge import Charge, charge

        terms = self.people.terms
        asked = {loss: Charge(loss, loss, terms.price(loss), "ana", "wards") for loss in self.losses}
        with self.ledger.store.write(durable=False) as transaction:
            state = self.ledger.state(transaction)
            for _ in range(count):
                charge(transaction, terms, asked[self.loss], "record", state=state)

    def record(self) -> None:
        self.people.record(self.loss, by="ana", purpose="wards")

    def reserve_and_commit(self) -> None:
        self.people.reserve(self.loss, by="ana", purpose="wards").end("commit")


def charges(filled: Filled, raw: Raw, repeats: int) -> list[str]:
    """One row of the table, at the size that the ledger has now."""
    size = filled.entries
    base, record, both = rounds([raw.insert, filled.record, filled.reserve_and_commit], repeats)
    cells = [f"{size:,}", _ms(median(base, 0)), _ms(median(base, 1))]
    for times in (record, both):
        ratio = statistics.median(mine[0] / its[0] for mine, its in zip(times, base, strict=True))
        cells += [_ms(median(times, 0)), _ms(median(times, 1)), f"{ratio:.2f}"]
    return cells


def fsynced(folder: Path) -> float:
    """Seconds to write 4 KiB over what is there and to wait for the disk."""
    with (folder / "block").open("wb", buffering=0) as file:

        def call() -> None:
            file.seek(0)
            file.write(bytes(4096))
            os.fdatasync(file.fileno())

        (times,) = rounds([call], 201)
    return median(times, 0)


def opening(path: Path, repeats: int) -> Times:
    """A ledger opened, its account found, and what is left of it."""
    import dalenius as dp

    def call() -> None:
        with dp.Ledger(path) as ledger:
            ledger.account("people").left  # noqa: B018

    (times,) = rounds([call], repeats)
    return median(times, 0), median(times, 1)


def verification(path: Path) -> tuple[int, Times, float, float]:
    """In a process of its own: entries, times, and the MiB of memory before and at the most."""
    command = [sys.executable, __file__, "--verify", str(path)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(said[0]), (float(said[1]), float(said[2])), float(said[3]), float(said[4])


def verify(path: str) -> None:
    import dalenius as dp

    with dp.Ledger(path) as ledger:
        ledger.account("people").left  # noqa: B018
        before, found = _peak(), []
        wall, processor = seconds(lambda: found.append(ledger.verify()))
        print(found[0], wall, processor, before, _peak())


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def opendp(places: Sequence[int], filtered: bool) -> list[float]:
    """Seconds of a query after so many before it, in memory: a Gaussian under zero-concentrated privacy."""
    import opendp.prelude as peer

    peer.enable_features("contrib")
    space = peer.atom_domain(T=float, nan=False), peer.absolute_distance(T=float)
    query = peer.m.make_gaussian(*space, scale=4000.0)
    root = peer.c.make_fully_adaptive_composition(*space, output_measure=peer.zero_concentrated_divergence())
    start = peer.c.make_privacy_filter(root, d_in=1.0, d_out=1.0) if filtered else root
    answers, asked, found = start(0.0), 0, []
    for place in places:
        for _ in range(place - asked):
            answers(query)
        found.append(statistics.median(seconds(lambda: answers(query))[0] for _ in range(NEXT)))
        asked = place + NEXT
    return found


def peers(places: Sequence[int]) -> str:
    if find_spec("opendp") is None:
        return "OpenDP is not installed.\n"
    rows = zip(places, opendp(places, False), opendp(places, True), strict=True)
    head = ("queries before", "ms, odometer alone", "ms, privacy filter")
    return table(head, [(f"{n:,}", _ms(alone), _ms(limited)) for n, alone, limited in rows])


def _ms(value: float) -> str:
    return milliseconds(1e3 * value)


def report(folder: Path, sizes: Sequence[int], places: Sequence[int], repeats: int) -> str:
    filled, fsync = Filled(folder), fsynced(folder)
    filled.fill(sizes[0])
    (newest,) = filled.people.entries(newest=1)
    raw, rows = Raw(folder / "raw", newest.body), []
    for size in sizes:
        filled.fill(size)
        rows.append(charges(filled, raw, repeats))
    filled.ledger.close()
    wall, cpu = opening(filled.path, 5)
    count, times, before, most = verification(filled.path)
    head = ("entries", "raw ms", "CPU", "record ms", "CPU", "× raw", "reserve and commit ms", "CPU", "× raw")
    versions = ", ".join(f"{name} {version(name)}" for name in ("dalenius", "opendp"))
    return "\n".join(
        [
            "# The ledger\n",
            f"{processor()}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version};",
            f"{versions}.\n",
            "## One charge\n",
            CHARGES.format(repeats=repeats, fsync=_ms(fsync)),
            table(head, rows),
            f"## Opening, and verify, at {count:,} entries\n",
            table(
                ("", "s", "CPU s", "MiB before", "MiB at most"),
                [
                    ("open, find the account, what is left", f"{wall:.3f}", f"{cpu:.3f}", "–", "–"),
                    ("verify", f"{times[0]:.1f}", f"{times[1]:.1f}", f"{before:.0f}", f"{most:.0f}"),
                ],
            ),
            "## OpenDP\n",
            PEER.format(next=NEXT),
            peers(places),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the ledger against a raw insert and OpenDP.")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=SIZES, help="entries at which a charge is timed"
    )
    parser.add_argument("--queries", type=int, nargs="+", default=QUERIES, help="where OpenDP is timed")
    parser.add_argument("--repeats", type=int, default=201, help="rounds per size")
    parser.add_argument("--folder", type=Path, default=None, help="a folder on the disk to measure")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the report is written")
    parser.add_argument("--verify", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    one_thread()
    if chosen.verify:
        verify(chosen.verify)
        return
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        page = report(Path(folder), chosen.sizes, chosen.queries, chosen.repeats)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
