"""`dp.table` on Spark: a DataFrame or a table, others beside it, what is refused, and what stays."""

from __future__ import annotations

import math
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import dalenius as dp
from dalenius.errors import InvalidArgument, QueryFailed
from dalenius.privacy.unit import Unit
from dalenius.tables.engines.spark import open_spark
from dalenius.tables.engines.spark_broadcasts import _broadcast_stages
from dalenius.tables.engines.spark_settings import own_session
from dalenius.tables.engines.spark_words import SparkWords
from dalenius.tables.language.dialects import dialect_of
from dalenius.tables.rows import Rows

PATIENT = Unit("patient", column="patient")
VISITS = (
    "SELECT id % 40 AS patient, CASE id % 3 WHEN 0 THEN 'A' WHEN 1 THEN 'B' ELSE 'é' END AS ward,"
    " CAST(id % 7 AS DOUBLE) AS cost FROM range(400)"
)


def table(source: Any, folder: Path, **options: Any) -> Any:
    return dp.table(
        source, unit=PATIENT, budget=dp.Budget(epsilon=1000, delta=1e-5), ledger=folder / "l", **options
    )


def test_a_frame_is_asked(spark: Any, tmp_path: Path) -> None:
    visits = table(spark.sql(VISITS), tmp_path, name="visits", ranges={"cost": (0, 10)})
    release = visits.sql("SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward", epsilon=400)
    assert sorted(release.columns["ward"]) == ["A", "B", "é"]
    assert all(abs(count - 133) < 20 for count in release["n"])
    visits.close()


def test_a_profile_is_learned_as_everywhere(spark: Any, tmp_path: Path) -> None:
    rows = spark.sql(f"{VISITS} UNION ALL SELECT NULL, 'A', 1.0 FROM range(30)")
    visits = table(rows, tmp_path, name="visits")
    known = visits.learn(epsilon=300).facts.learned
    assert known is not None and abs(known.units[0] - 40) < 5 and abs(known.missing[0] - 30) < 5
    assert "search" not in [
        name for name, _ in visits.explain("SELECT SUM(cost) FROM visits", epsilon=1).lines
    ]
    visits.close()


def test_a_table_has_others_beside_it(spark: Any, tmp_path: Path) -> None:
    spark.sql(VISITS).write.mode("overwrite").saveAsTable("visits_stored")
    labs = spark.sql("SELECT id AS patient, CAST(id AS DOUBLE) AS result FROM range(40)")
    spark.sql("SELECT 'A' AS ward, 1 AS floor").createOrReplaceTempView("floors")
    try:
        visits = table(
            spark, tmp_path, table="default.visits_stored", private={"labs": labs}, public=["floors"]
        )
        joined = "SELECT COUNT(*) AS n FROM visits_stored AS v JOIN labs AS l ON v.patient = l.patient"
        assert visits.sql(joined, epsilon=400)["n"][0] == pytest.approx(400, abs=20)
        joined = "SELECT f.floor, COUNT(*) AS n FROM visits_stored AS v JOIN floors AS f ON v.ward = f.ward"
        assert visits.sql(f"{joined} GROUP BY 1", epsilon=400)["n"][0] == pytest.approx(134, abs=20)
        visits.close()
    finally:
        spark.sql("DROP TABLE visits_stored")
        spark.catalog.dropTempView("floors")


def left(spark: Any) -> tuple[Any, ...]:
    """What somebody would notice of us."""
    views = [row.viewName for row in spark.sql("SHOW VIEWS IN global_temp").collect()]
    kept = spark.sparkContext._jsc.getPersistentRDDs().size()
    return views, kept, dict(spark.conf.getAll), spark.sparkContext.getLocalProperty("spark.jobGroup.id")


def test_a_session_stays_as_it_is(spark: Any) -> None:
    user = spark.newSession()
    user.conf.set("spark.sql.ansi.enabled", "true")
    user.conf.set("spark.sql.session.timeZone", "America/New_York")
    user.conf.set("spark.sql.caseSensitive", "true")
    user.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    user.conf.set("spark.sql.legacy.sizeOfNull", "true")
    data = user.sql(
        "SELECT id AS a, 'x' COLLATE UTF8_LCASE AS t, TIMESTAMP '2024-01-01 00:00:00' AS z FROM range(9)"
    )
    data.cache().count()
    before = left(user)
    engine = open_spark(data, "data")
    rows = "SELECT a AS unit_0, c AS key_0 FROM (SELECT a, CAST(a / 0 AS DOUBLE) AS c FROM data GROUP BY a)"
    with engine.load(Rows(rows, 1, 1)) as loaded:
        assert loaded.holders(most=1, salt=bytes(32)) == {(None,): 9}
        assert left(user)[0] == before[0]
    (row, *_) = engine.public(
        "SELECT CAST(z AS TIMESTAMP_NTZ) AS z, '\\\\' AS s, '${env:HOME}' AS v FROM data"
    )
    assert (row["z"].hour, row["s"], row["v"]) == (5, "\\", "${env:HOME}")
    engine.close()
    assert left(user) == before
    assert data.storageLevel.useMemory
    data.unpersist()


def test_a_closed_table_leaves_its_session_to_the_next(spark: Any) -> None:
    first = open_spark(spark.range(3).toDF("a"), "first")
    first.columns("first")
    session = first._ours
    second = open_spark(spark.range(3).toDF("a"), "second")
    assert second._ours is not session
    first.close()
    user = spark.newSession()
    user.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    third = open_spark(user.range(4).toDF("a"), "third")
    assert third._ours is session
    assert session.conf.get("spark.sql.files.ignoreCorruptFiles") == "true"
    assert not session.catalog.tableExists("first")
    third.close()
    fourth = open_spark(spark.range(4).toDF("a"), "third")
    assert fourth._ours is session
    assert session.conf.get("spark.sql.files.ignoreCorruptFiles") == "false"
    for engine in (second, fourth):
        engine.close()


def test_broadcasts_of_a_question_are_freed_with_it(spark: Any) -> None:
    user = spark.sql("SELECT id % 40 AS patient, id % 7 AS ward FROM range(400)")
    engine = open_spark(user, "visits")
    rows = Rows("SELECT patient AS unit_0, ward AS key_0 FROM visits", 1, 1)
    with engine.load(rows) as loaded:
        counts = loaded.shapes([(0,), (1,), (2,)], norm="l2", presence=False)
        assert counts.sum() == 40
        kept = loaded._kept
        stages = [stage for frame in _frames(kept) for stage in _broadcast_stages(_plan(frame))]
        assert stages
    assert not any(stage.resultOption().get().get().isValid() for stage in stages)
    engine.close()


def _frames(kept: Any) -> list[Any]:
    return [*kept._collected, *kept._frames.values()]


def _plan(frame: Any) -> Any:
    return frame._jdf.queryExecution().executedPlan()


def test_a_table_that_is_closed_twice_returns_its_session_once(spark: Any) -> None:
    first = open_spark(spark.range(3).toDF("a"), "first")
    first.close()
    first.close()
    engines = [open_spark(spark.range(3).toDF("a"), "first") for _ in range(2)]
    assert engines[0]._ours is not engines[1]._ours
    for engine in engines:
        engine.close()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT rand() AS x FROM range(3)",
        "SELECT current_timestamp() AS x",
        "SELECT monotonically_increasing_id() AS x FROM range(3)",
        "SELECT * FROM range(3) LIMIT 2",
        "SELECT * FROM range(3) WHERE id IN (SELECT id FROM range(3) LIMIT 1)",
        "SELECT first(id) AS x FROM range(3)",
    ],
)
def test_rows_that_may_change_are_refused(spark: Any, query: str) -> None:
    engine = open_spark(spark.sql(query), "data")
    with pytest.raises(InvalidArgument, match="other rows each time"):
        engine.columns("data")
    engine.close()


def test_names_that_are_not_clear_are_refused(spark: Any) -> None:
    engine = open_spark(spark.sql("SELECT 1 AS a, 2 AS A"), "data")
    with pytest.raises(InvalidArgument, match="same name"):
        engine.columns("data")
    engine.close()


def test_a_frame_of_something_else_is_refused(spark: Any) -> None:
    with pytest.raises(InvalidArgument, match="must be Spark's"):
        open_spark(spark.sql(VISITS), "visits", more={"labs": [1, 2]})


def test_spark_connect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Remote:
        __module__ = "pyspark.sql.connect.dataframe"

    with pytest.raises(InvalidArgument, match="Spark Connect"):
        open_spark(Remote(), "visits")


def test_types_have_their_names(spark: Any) -> None:
    data = spark.sql(
        "SELECT TRUE AS b, 1Y AS i1, 1L AS i8, 1BD AS w, 1.5BD AS d, 1F AS f, 'a' AS t,"
        " 'a' COLLATE UNICODE_CI AS c, DATE '2024-01-01' AS day, TIMESTAMP_NTZ '2024-01-01 00:00:00' AS n,"
        " TIMESTAMP '2024-01-01 00:00:00' AS z, X'00' AS x, array(1) AS a, map(1, 2) AS m, struct(1) AS s,"
        " INTERVAL '1' DAY AS v, parse_json('1') AS j"
    )
    engine = open_spark(data, "data")
    kinds = engine.columns("data")
    engine.close()
    wanted = {"b": "boolean", "day": "date", "n": "moment", "z": "moment", "t": "text", "c": "text"}
    wanted |= dict.fromkeys(("i1", "i8", "w"), "integer") | dict.fromkeys(("d", "f"), "real")
    assert kinds == wanted | dict.fromkeys(("x", "a", "m", "s", "v", "j"), "other")


def test_an_error_says_nothing(spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    engine = open_spark(spark.sql("SELECT id AS a, raise_error('secret') AS x FROM range(3)"), "data")
    rows = Rows("SELECT a AS unit_0, CAST(x AS STRING) AS key_0 FROM data", 1, 1)
    with pytest.raises(QueryFailed) as failed, engine.load(rows) as loaded:
        loaded.holders(most=1, salt=bytes(32))
    assert failed.value.__context__ is None and failed.value.__cause__ is None
    assert "secret" not in str(failed.value) and "secret" not in capfd.readouterr().err
    assert engine.public("SELECT COUNT(*) AS n FROM data") == [{"n": 3}]
    engine.close()


def test_keys_reach_spark_as_they_are(spark: Any) -> None:
    texts = ["", "a", "NULL", "it's", '"', "\\", "\\u0041", "\n\t\0", "ä", "日本", "😀", "[1,2]", " x "]
    reals = [0.0, -1.5, 0.1, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan]
    days = [date(1, 1, 1), date(1582, 10, 10), date(1970, 1, 1), date(9999, 12, 31)]
    moments = [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(9999, 12, 31, 1, 2, 3)]
    columns: list[tuple[str, list[Any]]] = [
        ("text", texts),
        ("real", reals),
        ("date", days),
        ("moment", moments),
        ("boolean", [True, False]),
        ("integer", [0, -1, 2**63 - 1, -(2**63)]),
    ]
    session = own_session(spark)
    for kind, values in columns:
        listed = SparkWords(dialect_of("spark")).listed([("integer", range(len(values))), (kind, values)])
        found = session.sql(f"SELECT * FROM {listed} AS a(place, k) ORDER BY place").collect()
        assert [repr(row.k) for row in found] == [repr(value) for value in values]


def test_one_account_has_windows_by_one_column(spark: Any, tmp_path: Path) -> None:
    data = spark.sql(
        "SELECT id % 9 AS patient, date_add(DATE '2024-01-01', CAST(id AS INT)) AS admitted,"
        " date_add(DATE '2024-01-01', CAST(7 * id AS INT)) AS billed FROM range(90)"
    )
    options: dict[str, Any] = {
        "unit": Unit("patient", column="patient", window="week"),
        "budget": dp.Budget(epsilon=10, delta=1e-5),
        "ledger": tmp_path / "l",
        "name": "visits",
    }
    first = dp.table(data, time="admitted", **options)
    first.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    with pytest.raises(InvalidArgument, match="time by admitted"):
        dp.table(data, time="billed", **options)
    with pytest.raises(InvalidArgument, match="time by admitted"):
        dp.table(data, time="billed", name="visits", account=first.account)
    first.close()


def test_a_private_table_is_not_public_as_well(spark: Any, tmp_path: Path) -> None:
    spark.sql(VISITS).write.mode("overwrite").saveAsTable("visits_stored")
    try:
        stored = spark.table("visits_stored")
        for public in (["visits_stored"], {"keys": stored}, {"keys": spark.table("default.visits_stored")}):
            with pytest.raises(InvalidArgument, match="same data"):
                table(spark, tmp_path, table="default.visits_stored", name="visits", public=public)
            with pytest.raises(InvalidArgument, match="same data"):
                table(stored, tmp_path, name="visits", public=public)
        wards = spark.sql("SELECT 'A' AS ward")
        table(stored, tmp_path, name="visits", public={"wards": wards}).close()
    finally:
        spark.sql("DROP TABLE visits_stored")
