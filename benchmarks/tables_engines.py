"""The same question on PostgreSQL and on Spark, over each engine's own raw group-by.

    pip install -e '.[postgres,spark]' pyarrow
    python benchmarks/tables_engines.py [--rows 10000000] [--only postgres] [--large 30000000]

Tables are those of benchmarks/tables.py. A PostgreSQL server is started in a temporary folder, with its own
settings but for shared buffers of 1 GB; Spark runs in local mode on two threads. An answer is a whole one:
read, planned, charged to a ledger on disk, bounded by what is found privately, and noised, with keys and the
range of the value declared. CPU time is that of this process and of all that belong to the engine.

Then the tests of the engines are run, and what they tried is counted: conformance with the reference engine
and with DuckDB, neighbouring databases, and faults. `--no-tests` leaves them out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from measure import processor, table, version
from tables import RAW, table_of
from tables_peers import GROUPS

import dalenius as dp

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "tables_engines.md"
QUERY = "SELECT grp, COUNT(*) AS n, SUM(value) AS total FROM t GROUP BY grp"
KEYS = [f"g{i:04d}" for i in range(GROUPS)]
CONFORMANCE = "tests/tables/engines/conformance"
FAULTS = {
    "duckdb": "tests/tables/test_trouble.py",
    "postgres": "tests/tables/engines/postgres/test_faults.py",
    "spark": "tests/tables/engines/spark/test_faults.py",
}
WARMING = 3
"""Rounds that are not counted."""
UNIT, BUDGET = dp.Unit("person", column="user_id"), dp.Budget(epsilon=50, delta=1e-6)


@dataclass(frozen=True)
class Cost:
    """Seconds of CPU of each repeat, and of the clock."""

    cpu: list[float]
    wall: list[float]

    def cells(self, raw: Cost) -> list[str]:
        cpu, wall = statistics.median(self.cpu), statistics.median(self.wall)
        return [f"{cpu:.2f}", f"{cpu / statistics.median(raw.cpu):.1f}", f"{wall:.2f}"]


def spent(root: int) -> float:
    """Seconds of CPU of a process, of those that it started and of those that have ended."""
    parents: dict[int, list[int]] = {}
    own: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        process = int(path.parent.name)
        parents.setdefault(int(fields[1]), []).append(process)
        own[process] = sum(int(field) for field in fields[11:15])
    found, waiting = 0.0, [root]
    while waiting:
        process = waiting.pop()
        found += own.get(process, 0.0)
        waiting += parents.get(process, [])
    return found / os.sysconf("SC_CLK_TCK")


def measured(calls: Sequence[Callable[[], object]], repeats: int) -> list[Cost]:
    """What calls cost that are made in turn, after some rounds by which an engine has compiled itself."""
    costs = [Cost([], []) for _ in calls]
    for round_ in range(WARMING + repeats):
        for call, cost in zip(calls, costs, strict=True):
            before, start = spent(os.getpid()), time.perf_counter()
            call()
            if round_ >= WARMING:
                cost.wall.append(time.perf_counter() - start)
                cost.cpu.append(spent(os.getpid()) - before)
    return costs


def answering(source: Any, folder: Path, **named: Any) -> Callable[[], object]:
    """A whole answer, each at a price of its own so that none is remembered."""
    ledger = folder / f"{time.monotonic_ns()}.ledger"
    visits = dp.table(
        source, unit=UNIT, budget=BUDGET, ledger=ledger, account="t", ranges={"value": (0, 1000)}, **named
    )
    prices = (1 + n / 1000 for n in count())
    return lambda: visits.sql(QUERY, epsilon=next(prices), keys=KEYS)


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """The address of a PostgreSQL server of our own."""
    sys.path.insert(0, str(ROOT / "tests"))
    from postgres_server import Server, find_binaries

    found = find_binaries()
    assert found is not None, "PostgreSQL is not installed"
    one = Server(found, folder)
    one.create()
    one.start("shared_buffers=1GB", "max_wal_size=8GB")
    try:
        yield one.url("public")
    finally:
        one.stop()


def filled(url: str, path: Path) -> None:
    """Copy the table into the database."""
    import psycopg
    import pyarrow.parquet as pq

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS t")
        connection.execute("CREATE TABLE t (user_id bigint, grp text, value float8)")
        with connection.cursor().copy("COPY t FROM STDIN") as copy:
            for batch in pq.ParquetFile(path).iter_batches(100_000):
                columns = [column.to_pylist() for column in batch.columns]
                copy.write(
                    "".join(
                        f"{user}\t{group}\t{value!r}\n" for user, group, value in zip(*columns, strict=True)
                    )
                )
        connection.execute("VACUUM ANALYZE t")


def on_postgres(folder: Path, rows: int, repeats: int) -> list[list[str]]:
    """Rows of the table about PostgreSQL."""
    import psycopg

    place = Path(tempfile.mkdtemp(prefix="dalenius-"))
    if os.getuid() == 0:
        shutil.chown(place, "postgres")
    with server(place) as url, psycopg.connect(url, autocommit=True) as connection:
        filled(url, table_of(folder, rows))
        ours = answering(url, folder, name="t", table="t")
        raw, answer = measured([lambda: connection.execute(RAW).fetchall(), ours], repeats)
        name = f"PostgreSQL {connection.info.server_version // 10000}"
    shutil.rmtree(place, ignore_errors=True)
    return _lines(name, rows, raw, answer)


@contextmanager
def session(folder: Path) -> Iterator[Any]:
    """Spark in local mode, on two threads."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    made = SparkSession.builder.master("local[2]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "6g",
        "spark.local.dir": str(folder),
        "spark.sql.shuffle.partitions": "8",
        "spark.log.level": "ERROR",
    }
    for name, value in settings.items():
        made = made.config(name, value)
    found = made.getOrCreate()
    try:
        yield found
    finally:
        found.stop()


def on_spark(spark: Any, folder: Path, rows: int, repeats: int) -> list[list[str]]:
    """Rows of the table about Spark."""
    frame = spark.read.parquet(str(table_of(folder, rows)))
    frame.createOrReplaceTempView("t")
    ours = answering(frame, folder, name="t")
    raw, answer = measured([lambda: spark.sql(RAW).collect(), ours], repeats)
    return _lines(f"Spark {spark.version}", rows, raw, answer)


def _lines(name: str, rows: int, raw: Cost, answer: Cost) -> list[list[str]]:
    return [
        [name, f"{rows:,}", "raw GROUP BY", *raw.cells(raw)],
        [name, f"{rows:,}", "Dalenius, the whole answer", *answer.cells(raw)],
    ]


def tried() -> list[list[str]]:
    """How many tests of each kind there are on each engine, and how they ended."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "tables")]
    from engines.conformance.sites import PAIRS

    lines = []
    for engine, faults in FAULTS.items():
        suites = {
            "conformance": [CONFORMANCE, "-k", f"{engine} and not neighbours"],
            f"{PAIRS[engine]} pairs of neighbouring databases": [
                CONFORMANCE,
                "-k",
                f"{engine} and neighbours",
            ],
            "faults": [faults],
        }
        for kind, chosen in suites.items():
            command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *chosen]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            lines.append([engine, kind, done.stdout.strip().splitlines()[-1].strip("= ")])
    return lines


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rows", type=int, default=10_000_000)
    arguments.add_argument("--large", type=int, default=30_000_000, help="rows of the last run on Spark")
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--only", default="", choices=["", "postgres", "spark"])
    arguments.add_argument("--no-tests", action="store_true")
    arguments.add_argument(
        "--folder", type=Path, help="where tables are kept; a temporary folder if left out"
    )
    arguments.add_argument("--output", type=Path, default=RESULTS)
    asked = arguments.parse_args()
    lines: list[list[str]] = []
    with ExitStack() as open_now:
        folder = asked.folder or Path(open_now.enter_context(tempfile.TemporaryDirectory()))
        if asked.only != "spark":
            lines += on_postgres(folder, asked.rows, asked.repeats)
        if asked.only != "postgres":
            spark = open_now.enter_context(session(folder))
            for rows in sorted({asked.rows // 10, asked.rows, asked.large}):
                repeats = asked.repeats if rows <= asked.rows else 1
                lines += on_spark(spark, folder, rows, repeats)
    report = written(lines, [] if asked.no_tests else tried(), asked.repeats)
    asked.output.write_text(report)
    print(report)


def written(lines: list[list[str]], tests: list[list[str]], repeats: int) -> str:
    head = ["engine", "rows", "", "CPU s", "× raw", "wall s"]
    suites = f"\n## What the tests try\n\n{table(['engine', 'what', 'pytest'], tests)}" if tests else ""
    return f"""# The same question on PostgreSQL and on Spark

{processor()}; dalenius {version("dalenius")}, psycopg {version("psycopg")}, pyspark {version("pyspark")}.
People are a tenth of the rows, {GROUPS:,} groups; medians of {repeats} rounds, one at the largest size, of
raw and answer in turn, after {WARMING} rounds that are not counted. Raw is the engine's own
`{RAW}`. An answer is a whole one:
`{QUERY}`,
with keys and the range of the value declared; bounds are found privately, all is charged to a ledger on disk.
CPU seconds are those of all processes and threads, the engine's included.

{table(head, lines)}{suites}"""


if __name__ == "__main__":
    main()
