"""A session of Spark, and the sites of the conformance suite."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from engines.conformance.on_duckdb import DuckdbSite
from engines.conformance.sites import SITES, Site

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.log.level": "OFF",
    # Tests run each plan once or twice: what is compiled thoroughly does not pay.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with two cores; without Java tests are skipped, or fail where DALENIUS_REQUIRE names it."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        missing = pytest.fail if "spark" in os.environ.get("DALENIUS_REQUIRE", "") else pytest.skip
        missing("Java is not installed: apt-get install openjdk-17-jre-headless")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    made = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        made = made.config(name, value)
    session = made.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse"))).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def small(spark: Any) -> Any:
    """A session that is quick with few rows: nothing is compiled, and nothing is cut into parts."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return session


@pytest.fixture(scope="module", params=SITES)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Each engine in turn."""
    if request.param == "duckdb":
        yield DuckdbSite()
    elif request.param == "postgres":
        from engines.conformance.on_postgres import PostgresSite

        with closing(PostgresSite(request.getfixturevalue("postgres"))) as found:
            yield found
    else:
        from engines.conformance.on_spark import SparkSite

        with closing(SparkSite(request.getfixturevalue("small"))) as found:
            yield found
