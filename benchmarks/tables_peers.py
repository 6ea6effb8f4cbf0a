"""Peers of benchmarks/tables.py, each run by the interpreter of its own environment, all asked the same.

    build/peers/pipelinedp/bin/python benchmarks/tables_peers.py pipelinedp FILE.parquet

The question is COUNT(*) and SUM(value) by group, with at most 20 rows of a person, values from 0 to 1,000,
and epsilon 1 and delta 1e-6 for both together. A function here makes a peer ready and returns the call that
answers; each call has a budget of its own. Dalenius need not be installed. What was measured is printed as
JSON: CPU seconds of the process and of all that it started, and the most memory of each of them, added up.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from measure import version

GROUPS = 1_000
ROWS = 20
"""Rows of a person that are kept."""
HIGHEST = 1000.0
EPSILON, DELTA = 1.0, 1e-6
QUERY = "SELECT grp, COUNT(*) AS n, SUM(value) AS total FROM t GROUP BY grp"

Answer = list[tuple[str, float, float]]
"""Of each group: its name, its rows, and its sum."""


def keys() -> list[str]:
    return [f"g{i:04d}" for i in range(GROUPS)]


def opendp(path: str) -> Callable[[], Answer]:
    import opendp.prelude as peer
    import polars as pl

    peer.enable_features("contrib")
    # As few as the largest table has: the noise of a sum of floats grows with it.
    most = 2**24
    public = pl.LazyFrame({"grp": keys()})
    value = pl.col("value").fill_nan(0.0).fill_null(0.0)

    def answer() -> Answer:
        context = peer.Context.compositor(
            data=pl.scan_parquet(path),
            privacy_unit=peer.unit_of(contributions=1, identifier=pl.col("user_id")),
            privacy_loss=peer.loss_of(epsilon=EPSILON, delta=DELTA),
            split_evenly_over=1,
            margins=[
                peer.polars.Margin(max_length=most),
                peer.polars.Margin(by=["grp"], max_length=most, max_groups=GROUPS),
            ],
        )
        query = context.query().truncate_per_group(ROWS).group_by("grp")
        totals = query.agg(peer.len(signed=True), value.dp.sum((0.0, HIGHEST)))
        return totals.with_keys(public).release().collect().rows()

    return answer


def pipelinedp(path: str) -> Callable[[], Answer]:
    import pipeline_dp as peer
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    rows = list(zip(*(table[name].to_pylist() for name in ("user_id", "grp", "value")), strict=True))
    wanted = peer.AggregateParams(
        metrics=[peer.Metrics.COUNT, peer.Metrics.SUM],
        max_contributions=ROWS,
        min_value=0.0,
        max_value=HIGHEST,
    )
    columns = peer.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )

    def answer() -> Answer:
        budget = peer.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
        engine = peer.DPEngine(budget, peer.LocalBackend())
        found = engine.aggregate(rows, wanted, columns, public_partitions=keys())
        budget.compute_budgets()
        return [(key, one.count, one.sum) for key, one in found]

    return answer


def smartnoise(path: str) -> Callable[[], Answer]:
    import pandas as pd
    import snsql as peer

    columns = {
        "user_id": {"type": "int", "private_id": True},
        "grp": {"type": "string"},
        "value": {"type": "float", "lower": 0.0, "upper": HIGHEST},
    }
    # Keys that are not censored are taken as public. Epsilon and delta are those of one column.
    bounds = {"max_ids": ROWS, "sample_max_ids": True, "censor_dims": False, "clamp_counts": False}
    reader = peer.from_connection(
        pd.read_parquet(path),
        engine="pandas",
        metadata={"": {"": {"t": {**columns, **bounds}}}},
        privacy=peer.Privacy(epsilon=EPSILON / 2, delta=DELTA / 2),
    )
    return lambda: [tuple(row) for row in reader.execute(QUERY)[1:]]


def qrlew(path: str) -> Callable[[], Answer]:
    import duckdb
    import pyqrlew as peer
    import sqlalchemy as sa

    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{path}')")
    (rows,) = connection.execute("SELECT count(*) FROM t").fetchone()
    # Its schemas are read from a database that SQLAlchemy can open: a table of one row in SQLite, whose size
    # is then declared.
    engine = sa.create_engine("sqlite://", poolclass=sa.pool.StaticPool)
    with engine.begin() as sqlite:
        sqlite.execute(sa.text("CREATE TABLE t (user_id BIGINT, grp TEXT, value FLOAT)"))
        sqlite.execute(sa.text("INSERT INTO t VALUES (0, '', 0)"))
    read = peer.Dataset.from_database("t", engine)
    size = read.size.replace('"size": "1"', f'"size": "{rows}"')
    name = '{"uuid": "t", "name": "t", "spec": {"transformed": {"transform": "t"}}}'
    dataset = peer.Dataset.from_str(name, read.schema, size).with_range(None, "t", "value", 0.0, HIGHEST)

    def answer() -> Answer:
        private = dataset.relation(QUERY).rewrite_with_differential_privacy(
            dataset,
            [("t", [], "user_id")],
            {"epsilon": EPSILON, "delta": DELTA},
            max_multiplicity=ROWS,
            max_multiplicity_share=1.0,
            max_privacy_unit_groups=ROWS,
        )
        return connection.execute(private.relation().to_query(peer.Dialect.PostgreSql)).fetchall()

    return answer


def tumult(path: str) -> Callable[[], Answer]:
    from pyspark.sql import SparkSession
    from tmlt import analytics as peer

    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.driver.memory": "8g",
        "spark.sql.shuffle.partitions": os.cpu_count(),
        "spark.sql.warehouse.dir": Path(path).parent / "warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[*]")
    for option, value in options.items():
        builder = builder.config(option, str(value))
    spark = builder.getOrCreate()
    half = peer.ApproxDPBudget(EPSILON / 2, DELTA / 2)

    def answer() -> Answer:
        session = peer.Session.from_dataframe(
            privacy_budget=peer.ApproxDPBudget(EPSILON, DELTA),
            source_id="t",
            dataframe=spark.read.parquet(path),
            protected_change=peer.AddRowsWithID(id_column="user_id"),
        )
        groups = peer.KeySet.from_dict({"grp": keys()})
        bounded = peer.QueryBuilder("t").enforce(peer.MaxRowsPerID(ROWS)).groupby(groups)
        counts = dict(session.evaluate(bounded.count(), half).collect())
        sums = dict(session.evaluate(bounded.sum("value", 0, HIGHEST), half).collect())
        return [(key, counts[key], sums[key]) for key in counts]

    return answer


@dataclass(frozen=True)
class Peer:
    """A library, what of it is imported before the clock starts, and how many rows it can take here."""

    name: str
    package: str
    modules: tuple[str, ...]
    most: int
    ready: Callable[[str], Callable[[], Answer]]


PEERS = {
    "opendp": Peer("OpenDP", "opendp", ("opendp.prelude", "polars"), 10_000_000, opendp),
    "smartnoise": Peer("SmartNoise SQL", "smartnoise-sql", ("snsql", "pyarrow"), 10_000_000, smartnoise),
    "qrlew": Peer("Qrlew", "pyqrlew", ("pyqrlew", "duckdb"), 10_000_000, qrlew),
    "pipelinedp": Peer(
        "PipelineDP", "pipeline-dp", ("pipeline_dp", "pyarrow.parquet"), 1_000_000, pipelinedp
    ),
    "tumult": Peer(
        "Tumult Analytics", "tmlt.analytics", ("tmlt.analytics", "pyspark.sql"), 1_000_000, tumult
    ),
}


def processes() -> Iterator[tuple[int, list[str]]]:
    """This process and all those below it: the number of each, and its fields in /proc from the third on."""
    fields = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields[int(path.parent.name)] = path.read_text().rpartition(") ")[2].split()
        except OSError:  # It has ended.
            continue
    found = [os.getpid()]
    for process in found:
        found += [child for child, its in fields.items() if int(its[1]) == process]
        yield process, fields[process]


def spent() -> float:
    """Seconds of CPU of this process and of all below it, ended or not."""
    # User and system time, and those of children that have ended.
    ticks = sum(int(ticks) for _, fields in processes() for ticks in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def peak() -> float:
    """MiB that this process and those below it had at the most, each for itself."""
    return sum(_peak(process) for process, _ in processes()) / 1024


def _peak(process: int) -> int:
    # Not ru_maxrss, which starts from what the parent had.
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def measure(case: str, path: str) -> dict[str, object]:
    """What a peer takes to be ready, and to answer after a first answer that is not counted."""
    peer = PEERS[case]
    for module in peer.modules:
        import_module(module)
    start = spent()
    call = peer.ready(path)
    ready = spent() - start
    call()
    start = spent()
    answer = call()
    seconds = spent() - start
    return {
        "version": version(peer.package),
        "ready": ready,
        "seconds": seconds,
        "peak": peak(),
        "groups": len(answer),
        "rows": sum(float(rows) for _, rows, _ in answer),
        "sum": sum(float(total) for _, _, total in answer),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure one peer, in its own environment.")
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("path", help="the rows, as Parquet")
    chosen = parser.parse_args()
    print(json.dumps(measure(chosen.peer, chosen.path)))


if __name__ == "__main__":
    main()
