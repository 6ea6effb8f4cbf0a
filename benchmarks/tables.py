"""Tables: what bounding each person's contribution costs, over DuckDB's raw group-by and COUNT(DISTINCT).

    python3 -m venv build/bench-tables
    build/bench-tables/bin/pip install -r benchmarks/requirements-tables.txt -e .
    build/bench-tables/bin/python benchmarks/tables.py

The table is made afresh: 10 million rows of 1 million people in 1,000 groups, groups by Zipf's law and people
by Pareto's, as Parquet in a temporary folder. The report is printed and written to
benchmarks/results/tables.md. Each case has a process of its own; its CPU time, of all threads, is the median
of the repeats after a first that is not counted, its memory the most that the process had.
`--large 100000000` adds one run of that many rows under a limit of 4 GB of address space for data.

`--peers build/peers` measures other libraries (tables_peers.py), each in an environment of its own:

    python3 -m venv build/peers/qrlew
    build/peers/qrlew/bin/pip install -r benchmarks/requirements-tables-qrlew.txt

and so for pipelinedp, smartnoise and tumult (which needs Java 17); requirements-tables.txt is that of opendp.
A peer with no environment is run by this interpreter if it is installed here, and else left out.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

from measure import processor, table, version
from tables_peers import GROUPS, PEERS, peak

RESULTS = Path(__file__).parent / "results" / "tables.md"
LIMIT = 4 << 30
"""Bytes that the large run may have."""
RAW = "SELECT grp, count(*), sum(value) FROM t GROUP BY grp"
DISTINCT = "SELECT grp, count(DISTINCT user_id) FROM t GROUP BY grp"
QUESTIONS = (
    "SELECT ward, COUNT(*) AS visits, AVG(age) AS age FROM visits GROUP BY ward",
    "SELECT COUNT(*) FROM visits WHERE age >= 65",
    "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS p",
    "SELECT date_trunc('month', day) AS month, MEDIAN(age) FROM visits GROUP BY 1 ORDER BY 1",
    "WITH old AS (SELECT * FROM visits WHERE age > 80) SELECT COUNT(DISTINCT patient_id) FROM old",
)
HEAD = ("", "CPU s", "× raw", "× COUNT(DISTINCT)", "MiB at most")
TABLE = """\
{rows:,} rows, {people:,} people, {groups:,} groups; COUNT(*) and SUM of a value in each group, what each
person contributes bounded in L2. Medians of {repeats} repeats. Raw and COUNT(DISTINCT) are DuckDB's own, on
the same file: `{raw}`
and `{distinct}`.
"Dalenius" reads the rows, finds the shapes by which bounds are chosen, and the bounded totals; "prepared"
does the same with a stored copy that was made before ({prepare:.1f} s of CPU, once). A whole answer is read,
planned, charged to a ledger on disk, bounded by what is found privately, and noised; with keys and the range
of the value declared.
"""
PEER_HEAD = ("", "rows", "ready, CPU s", "answer, CPU s", "× raw", "MiB at most", "groups", "rows counted")
PEER_TABLE = """\
The same question, with noise: at most 20 rows of a person, values from 0 to 1,000, epsilon 1 and delta 1e-6,
the 1,000 groups public. Each in a process of its own; one answer, after a first that is not counted. CPU time
and memory are those of the process and of all that it started. "× raw" is the answer alone, over DuckDB's
`GROUP BY` of as many rows; imports are in neither column, and what comes before a first answer is in "ready".
A peer that takes too long for all rows has fewer, with fewer people in proportion.
{bounded}

- Dalenius is the whole answer. It finds its own bound, which is not 20 rows.
- OpenDP (Polars) draws 20 rows of each person. Its noise for a sum of floats grows with the length declared.
- SmartNoise SQL copies a pandas frame into SQLite to be ready, and draws 20 rows of each person there.
- Qrlew rewrites the query, which DuckDB runs. So many public groups cannot be declared: half of the budget
  goes to finding groups, and small ones are left out. It draws no rows: those of a person have less weight
  where their L2 norm over groups is above 20. Counts and sums below 0 are given as 0.
- PipelineDP holds the rows as Python tuples to be ready, and draws 20 of each person with its local backend.
- Tumult Analytics starts Spark to be ready, with as many partitions as there are cores and 8 GB for Java. It
  keeps 20 rows of each person, and answers the count and the sum one after the other.
"""


@dataclass(frozen=True)
class Measured:
    """Seconds of CPU of each repeat, and MiB at the most."""

    seconds: list[float]
    peak: float
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def generate(path: Path, rows: int, seed: int = 7) -> None:
    """Write the table, a million rows at a time."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    people = max(rows // 10, 1)
    draw = np.random.default_rng(seed)
    names = pa.array([f"g{i:04d}" for i in range(GROUPS)])
    groups, activity = 1 / np.arange(1, GROUPS + 1), draw.pareto(1.5, people) + 1
    by_group, by_person = np.cumsum(groups / groups.sum()), np.cumsum(activity / activity.sum())
    schema = pa.schema([("user_id", pa.int64()), ("grp", pa.string()), ("value", pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 1_000_000):
            size = min(1_000_000, rows - start)
            # Looked up in order, which is quick, and then shuffled. The last sum may be below 1 by rounding.
            found = np.searchsorted(by_person, np.sort(draw.random(size)))
            person = draw.permutation(np.minimum(found, people - 1))
            group = np.minimum(np.searchsorted(by_group, draw.random(size)), GROUPS - 1)
            value = np.round(draw.gamma(2, 20, size), 2)
            writer.write_table(pa.table([person, names.take(pa.array(group)), value], schema=schema))


def table_of(folder: Path, rows: int) -> Path:
    """The table of so many rows, made once, in a folder of its own: the ledger lies beside it."""
    path = folder / str(rows) / "t.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True)
        generate(path, rows)
    return path


def raw(path: str, sql: str) -> Callable[[], object]:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{path}')")
    return lambda: connection.execute(sql).fetchall()


def asked(engine: object) -> Callable[[], object]:
    """Load, find shapes, and sum: what a query does between its reservation and its noise."""
    from dalenius.privacy.quantized import Grid
    from dalenius.tables.engines.engine import Bounding, Measure
    from dalenius.tables.rows import Range

    keys = [(f"g{i:04d}",) for i in range(GROUPS)]
    measures = [Measure("rows"), Measure("sum", 0, Range(Fraction(0), Fraction(1000), Grid(-6)))]

    def ask() -> object:
        with engine.load(question()) as loaded:
            loaded.shapes(keys, norm="l2", presence=False)
            return loaded.totals(keys, measures, Bounding("l2", Fraction(20)))

    return ask


def question() -> object:
    from dalenius.tables.rows import Rows

    return Rows("SELECT user_id AS unit_0, grp AS key_0, value AS value_0 FROM t", 1, 1, 1)


def dalenius(path: str) -> Callable[[], object]:
    from dalenius.tables.sources.opening import open_source

    return asked(open_source(path, "t"))


def prepared(path: str) -> Callable[[], object]:
    from dalenius.tables.sources.opening import open_source
    from dalenius.tables.sources.prepared import prepare

    return asked(prepare(open_source(path, "t"), question()))


def answer(path: str, *, ready: bool = False) -> Callable[[], object]:
    """The whole of a question: read, planned, charged on disk, bounded, noised, kept."""
    import dalenius as dp

    unit, budget = dp.Unit("person", column="user_id"), dp.Budget(epsilon=1000, delta=1e-6)
    opened = dp.table(path, name="t", unit=unit, budget=budget, ranges={"value": (0, 1000)})
    keys = [f"g{i:04d}" for i in range(GROUPS)]
    if ready:
        opened.prepare("grp")
    epsilons = iter(range(2000 if ready else 1000, 3000))
    query = "SELECT grp, COUNT(*) AS n, SUM(value) AS total FROM t GROUP BY grp"
    # Another epsilon each time, as a question that was asked before is answered from what was released.
    return lambda: opened.sql(query, epsilon=Fraction(next(epsilons), 1000), keys=keys)


CASES: dict[str, Callable[[str], Callable[[], object]]] = {
    "raw": lambda path: raw(path, RAW),
    "distinct": lambda path: raw(path, DISTINCT),
    "dalenius": dalenius,
    "prepared": prepared,
    "answer": answer,
    "answer_prepared": lambda path: answer(path, ready=True),
}
NAMES = {
    "raw": "raw GROUP BY",
    "distinct": "raw COUNT(DISTINCT)",
    "dalenius": "Dalenius",
    "prepared": "Dalenius, prepared",
    "answer": "Dalenius, the whole answer",
    "answer_prepared": "Dalenius, the whole answer, prepared",
}


def measure(case: str, path: str, repeats: int) -> None:
    """In a process of its own: print the seconds of each repeat, and the most memory."""
    seconds = []
    start = time.process_time()
    call = CASES[case](path)
    made = time.process_time() - start
    for _ in range(repeats + (repeats > 1)):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    print(json.dumps({"seconds": seconds[1:] or seconds, "peak": peak(), "made": made}))


def run(case: str, path: Path, repeats: int, *, limit: int | None = None) -> tuple[Measured, float]:
    """What a case takes, and what it took to make it ready."""
    command = [sys.executable, "-W", "ignore", __file__, "--case", case, "--path", str(path)]
    command += ["--repeats", str(repeats)]

    def held() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=held)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["failed"]
        return Measured([float("nan")], float("nan"), lines[-1][:80]), 0.0
    said = json.loads(done.stdout.splitlines()[-1])
    return Measured(said["seconds"], said["peak"]), said["made"]


def engines(folder: Path, rows: int, repeats: int) -> str:
    """The table of the engine: CPU time and memory of each case."""
    path = table_of(folder / "engines", rows)
    _, prepare = run("prepared", path, 1)
    found = {case: run(case, path, repeats)[0] for case in CASES}
    lines = [_line(NAMES[case], one, found["raw"], found["distinct"]) for case, one in found.items()]
    said = TABLE.format(
        rows=rows,
        people=rows // 10,
        groups=GROUPS,
        repeats=repeats,
        prepare=prepare,
        raw=RAW,
        distinct=DISTINCT,
    )
    return f"{said}\n{table(HEAD, lines)}"


def _line(name: str, one: Measured, base: Measured, distinct: Measured) -> Sequence[str]:
    if one.note:
        return (name, one.note, "–", "–", "–")
    ratios = (f"{one.median / base.median:.1f}", f"{one.median / distinct.median:.2f}")
    return (name, f"{one.median:.3f}", *ratios, f"{one.peak:,.0f}")


def peers(folder: Path, rows: int, repeats: int, environments: Path) -> str:
    """The table of the peers: each on as many rows as it can take, over raw DuckDB on the same rows."""
    # Not the files of the other table: what was released from them would be answered again from the ledger.
    folder = folder / "peers"
    found = {case: python for case in PEERS if (python := interpreter(case, environments))}
    sizes = {case: min(rows, PEERS[case].most) for case in found}
    base, lines, kept = {}, [], []
    for size in sorted({rows, *sizes.values()}, reverse=True):
        path = table_of(folder, size)
        base[size] = run("raw", path, repeats)[0].median
        own, _ = run("answer", path, repeats)
        line = (f"{own.median:.2f}", f"{own.median / base[size]:.1f}", f"{own.peak:,.0f}")
        lines.append(("Dalenius", f"{size:,}", "–", *line, f"{GROUPS:,}", "–"))
        kept.append(f"{bounded(path):,} of {size:,}")
    for case, python in found.items():
        lines.append(_peer(case, python, table_of(folder, sizes[case]), base[sizes[case]], sizes[case]))
    said = PEER_TABLE.format(bounded=f"Rows that are left with 20 of each person: {'; '.join(kept)}.")
    missing = [PEERS[case].name for case in PEERS if case not in found]
    note = f"\nLeft out, with no environment: {', '.join(missing)}.\n" if missing else ""
    return f"## Peers\n\n{said}\n{table(PEER_HEAD, lines)}{note}"


def interpreter(case: str, environments: Path) -> str | None:
    """The interpreter of a peer's own environment, or this one where the peer is installed, or none."""
    own = environments / case / "bin" / "python"
    if own.exists():
        return str(own)
    return sys.executable if find_spec(PEERS[case].modules[0].partition(".")[0]) else None


def bounded(path: Path) -> int:
    """How many rows are left if no person has more than 20."""
    kept = "SELECT sum(least(n, 20)) FROM (SELECT count(*) AS n FROM t GROUP BY user_id)"
    return int(raw(str(path), kept)()[0][0])


def _peer(case: str, python: str, path: Path, base: float, size: int) -> Sequence[str]:
    command = [python, "-W", "ignore", str(Path(__file__).with_name("tables_peers.py")), case, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["failed"]
        return (PEERS[case].name, f"{size:,}", lines[-1][:80], *["–"] * 5)
    said = json.loads(done.stdout.splitlines()[-1])
    name = f"{PEERS[case].name} {said['version']}"
    times = (f"{said['ready']:.2f}", f"{said['seconds']:.2f}", f"{said['seconds'] / base:,.0f}")
    return (name, f"{size:,}", *times, f"{said['peak']:,.0f}", f"{said['groups']:,}", f"{said['rows']:,.0f}")


def asking(folder: Path, repeats: int) -> str:
    """What `explain` takes, and a first answer from a CSV file at the command line."""
    import dalenius as dp

    path = folder / "visits.csv"
    lines = [f"{i % 2000},{'ABC'[i % 3]},{18 + i % 70},2026-01-{1 + i % 28:02}" for i in range(10_000)]
    path.write_text("\n".join(["patient_id,ward,age,day", *lines]))
    unit = ("--unit-column", "patient_id", "--epsilon", "0.5", "--budget", "3", "--delta", "1e-9")
    command = [sys.executable, "-m", "dalenius", "query", str(path), QUESTIONS[0], *unit]
    first = []
    for _ in range(repeats + 1):
        (folder / "visits.ledger").unlink(missing_ok=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        first.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    ledger = dp.Ledger.memory()
    account = ledger.open(
        "visits", unit=dp.Unit("patient", column="patient_id"), budget=dp.Budget(epsilon=1000, delta=1e-9)
    )
    visits = dp.table(path, unit=account.unit, account=account)
    rows = []
    for query in QUESTIONS:
        times = []
        for i in range(repeats + 1):
            start = time.process_time()
            f"{visits.explain(query, epsilon=Fraction(500 + i, 1000))}"
            times.append(time.process_time() - start)
        rows.append([f"`{query}`", f"{1e3 * statistics.median(times[1:]):.1f}"])
    said = (
        "A first answer from a CSV file of 10,000 lines, by `dalenius query`: "
        f"{statistics.median(first[1:]):.2f} s of CPU, imports included.\n"
        "`explain`, shown, at an epsilon that it has not seen:\n"
    )
    return f"## Asking\n\n{said}\n{table(['question', 'CPU ms'], rows)}"


def large(folder: Path, rows: int) -> str:
    """Many rows, once, with little memory."""
    path = folder / "large.parquet"
    generate(path, rows)
    base, _ = run("raw", path, 1)
    one, _ = run("dalenius", path, 1, limit=LIMIT)
    said = one.note or (
        f"{one.median:.1f} s of CPU, {one.median / base.median:.1f} × raw; {one.peak:,.0f} MiB at the most"
    )
    return f"## {rows:,} rows in {LIMIT >> 30} GiB of data\n\nDalenius, one run: {said}.\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Measure bounded contributions against DuckDB's raw queries."
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--large", type=int, default=0, help="rows of one more run, in 4 GiB")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peers", type=Path, help="the folder of the peers' environments")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the report is written")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.case:
        measure(chosen.case, chosen.path, chosen.repeats)
        return
    names = ", ".join(f"{name} {version(name)}" for name in ("dalenius", "duckdb", "numpy"))
    page = [f"# Tables\n\n{processor()}, Python {platform.python_version()}; {names}.\n"]
    with tempfile.TemporaryDirectory() as folder:
        page.append(f"## Bounded totals\n\n{engines(Path(folder), chosen.rows, chosen.repeats)}")
        if chosen.peers:
            page.append(peers(Path(folder), chosen.rows, chosen.repeats, chosen.peers))
        page.append(asking(Path(folder), chosen.repeats))
        if chosen.large:
            page.append(large(Path(folder), chosen.large))
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text("\n".join(page), encoding="utf-8")
    print("\n".join(page))


if __name__ == "__main__":
    main()
