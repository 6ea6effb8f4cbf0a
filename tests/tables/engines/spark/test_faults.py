"""What goes wrong: nothing is released uncharged, nothing is said about data, and work can go on."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from engines.spark.test_spark_table import VISITS, left, table
from interrupting import interrupt, interruptible

from dalenius.errors import QueryFailed
from dalenius.privacy.quantized import Grid
from dalenius.tables.engines.engine import MAGNITUDES, SIZES, SPREADS, Bounding, Measure
from dalenius.tables.engines.spark import open_spark
from dalenius.tables.engines.spark_kept import Kept
from dalenius.tables.engines.spark_workers import LIMBS
from dalenius.tables.rows import Range, Rows

__all__ = ["interruptible"]

COUNT = "SELECT COUNT(*) AS n FROM visits"
FAILING = "SELECT CASE WHEN id = 7 THEN raise_error('secret') ELSE id END AS patient FROM range(40)"


def events(visits: Any) -> list[str]:
    return [entry.event for entry in visits.account.entries()]


def test_a_task_that_fails_is_charged_and_says_nothing(spark: Any, tmp_path: Path) -> None:
    before = left(spark)
    visits = table(spark.sql(FAILING), tmp_path, name="visits")
    with pytest.raises(QueryFailed) as failed:
        visits.sql(COUNT, epsilon=1)
    assert "secret" not in str(failed.value) and failed.value.__context__ is None
    assert events(visits) == ["open", "reserve", "forfeit"]
    visits.close()
    assert left(spark) == before


def test_a_table_that_is_dropped_or_altered_after_it_was_explained(spark: Any, tmp_path: Path) -> None:
    spark.sql(VISITS).write.mode("overwrite").saveAsTable("visits")
    visits = table(spark, tmp_path, table="visits")
    summed = "SELECT SUM(cost) AS s FROM visits"
    visits.explain(summed, epsilon=1)
    spark.sql(VISITS).drop("cost").write.mode("overwrite").option("overwriteSchema", "true").saveAsTable(
        "visits"
    )
    with pytest.raises(QueryFailed):
        visits.sql(summed, epsilon=1)
    assert visits.sql(COUNT, epsilon=400)["n"][0] == pytest.approx(400, abs=20)
    spark.sql("DROP TABLE visits")
    with pytest.raises(QueryFailed):
        visits.sql(COUNT, epsilon=1)
    assert events(visits) == ["open", "reserve", "forfeit", "reserve", "commit", "reserve", "forfeit"]
    visits.close()


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_cancels_the_jobs(spark: Any) -> None:
    data = spark.range(10**8, numPartitions=2).selectExpr("id AS a", "CAST(id AS STRING) AS t")
    engine, before = open_spark(data, "data"), left(spark)
    heavy = "SELECT a AS unit_0, sha2(repeat(t, 10), 512) AS key_0 FROM data"
    status = spark.sparkContext.statusTracker()
    jobs: list[int] = []

    def when_at_work() -> None:
        while not jobs:
            time.sleep(0.05)
            jobs.extend(status.getActiveJobsIds())
        interrupt()

    with pytest.raises(KeyboardInterrupt), engine.load(Rows(heavy, 1, 1)) as loaded:
        threading.Thread(target=when_at_work).start()
        loaded.holders(most=1, salt=bytes(32))
    assert [status.getJobInfo(job).status for job in jobs] == ["FAILED"] * len(jobs)
    assert not status.getActiveJobsIds() and left(spark) == before
    assert engine.public("SELECT COUNT(*) AS n FROM data") == [{"n": 10**8}]
    engine.close()


def test_what_is_collected_is_no_more_than_groups(spark: Any) -> None:
    """Of a plan that is run, nothing passes through the driver but the keys that were asked for."""
    collected: list[tuple[int, str]] = []
    added: list[list[tuple[int, ...]]] = []

    class Watched(Kept):
        def fetch(self, sql: str) -> list[tuple[Any, ...]]:
            rows = super().fetch(sql)
            self.note(len(rows), self._session.sql(sql))
            return rows

        def bunches(self, sql: str, cut: Any, parts: int) -> str:
            self.note(0, self._session.sql(sql))
            return super().bunches(sql, cut, parts)

        def worked(self, name: str, work: Any, numbers: int) -> list[Any]:
            rows = super().worked(name, work, numbers)
            added.append([limbs.shape for _, limbs in rows])
            return rows

        def note(self, rows: int, frame: Any) -> None:
            collected.append((rows, frame._jdf.queryExecution().executedPlan().toString()))

    engine = open_spark(spark.sql(VISITS), "visits")
    rows = Rows("SELECT patient AS unit_0, ward AS key_0, cost AS value_0 FROM visits", 1, 1, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dalenius.tables.engines.spark.Kept", Watched)
        with engine.load(rows) as loaded:
            keys = list(loaded.holders(most=3, salt=bytes(32)))
            loaded.shapes(keys, norm="l2", presence=False)
            loaded.magnitudes(0)
            measures = [Measure("rows"), Measure("sum", 0, Range(Fraction(0), Fraction(8), Grid(0)))]
            loaded.totals(keys, measures, Bounding("l2", limit=Fraction(3)))
    engine.close()
    # Holders of three keys are counted by SQL; workers fill bins and six sums, each in one stretch.
    assert [count for count, _ in collected] == [3, 0, 0]
    assert added == [[(LIMBS, SIZES * SPREADS)], [(LIMBS, MAGNITUDES)], [(LIMBS, 6)]]
    assert any("BroadcastExchange" in plan for _, plan in collected)
    for _, plan in collected:
        for block in plan.split("BroadcastExchange")[1:]:
            below = [line for line in block.splitlines() if "Scan" in line]
            assert "Scan OneRowRelation" in below[0], plan
        assert "CollectLimit" not in plan


def java(spark: Any) -> int:
    """The process that runs everything in local mode."""
    return int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())


def test_a_disk_that_is_full(small: Any, tmp_path: Path) -> None:
    """No file may grow beyond a few bytes, while rows are put together by unit."""
    many = small.range(5000).selectExpr("id AS patient", "sha2(CAST(id AS STRING), 256) AS name")
    visits = table(many, tmp_path, name="visits")
    most = resource.prlimit(java(small), resource.RLIMIT_FSIZE)
    resource.prlimit(java(small), resource.RLIMIT_FSIZE, (1 << 14, most[1]))
    try:
        failing(visits, "SELECT COUNT(DISTINCT name) AS n FROM visits")
    finally:
        resource.prlimit(java(small), resource.RLIMIT_FSIZE, most)
    goes_on(visits, 5000)


def failing(visits: Any, query: str) -> None:
    with pytest.raises(QueryFailed) as failed:
        visits.sql(query, epsilon=1)
    assert "it stays charged, and nothing was released" in str(failed.value)
    assert failed.value.__context__ is None and failed.value.__cause__ is None


def goes_on(visits: Any, rows: int) -> None:
    """What failed was charged and not released; the next question is answered."""
    assert events(visits) == ["open", "reserve", "forfeit"]
    assert visits.sql(COUNT, epsilon=400)["n"][0] == pytest.approx(rows, abs=20)
    assert events(visits)[-1] == "commit"
    visits.close()


@pytest.mark.slow
def test_an_executor_that_is_killed_is_made_up_for(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "spark_child.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.stdout.splitlines() == ["answer 1000 1", "after 1"]
