"""A session of its own, one of whose executors is killed.

Prints what became of a question, and whether another can be asked afterwards.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from dalenius.errors import QueryFailed
from dalenius.tables.engines.spark import open_spark
from dalenius.tables.rows import Rows

ROWS = 300_000
QUESTION = Rows("SELECT a AS unit_0, k AS key_0 FROM data", 1, 1)


def started(master: str, folder: str) -> Any:
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.log.level": "OFF",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def executors() -> list[int]:
    """Those that descend from this process."""
    parents, found = {}, []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat, said = (entry / "stat").read_text(), (entry / "cmdline").read_bytes()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
            if b"CoarseGrainedExecutorBackend" in said and b"java" in said.split(b"\0")[0]:
                found.append(int(entry.name))
    return [one for one in found if _below(one, parents)]


def _below(one: int, parents: dict[int, int]) -> bool:
    while one > 1:
        if one == os.getpid():
            return True
        one = parents.get(one, 0)
    return False


def kill_one(killed: list[int]) -> None:
    time.sleep(4)
    for one in executors()[:1]:
        os.kill(one, signal.SIGKILL)
        killed.append(one)


def main(folder: str) -> None:
    spark = started("local-cluster[2,1,512]", folder)
    slow = "length(sha2(repeat(cast(id AS STRING), 2000), 256))"
    data = spark.range(ROWS, numPartitions=8).selectExpr("id % 1000 AS a", f"{slow} AS k")
    engine, killed = open_spark(data, "data"), list[int]()
    threading.Thread(target=kill_one, args=(killed,), daemon=True).start()
    try:
        with engine.load(QUESTION) as loaded:
            print("answer", sum(loaded.holders(most=1, salt=bytes(32)).values()), len(killed))
    except QueryFailed as failed:
        print("failed", failed.__context__ is None)
    print("after", engine.public("SELECT 1 AS one")[0]["one"])
    engine.close()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
