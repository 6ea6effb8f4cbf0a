"""Where Spark compiles queries and cuts rows into parts, as it does for people, all is the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from engines.conformance.comparing import compare_values
from engines.conformance.on_spark import SparkSite
from engines.conformance.sites import Site
from engines.conformance.test_expressions import drawn, some
from engines.conformance.test_integers import batch, compare, wide


@pytest.fixture(scope="module")
def compiled(spark: Any) -> Iterator[Site]:
    zone = spark.conf.get("spark.sql.session.timeZone")
    with closing(SparkSite(spark)) as site:
        yield site
    spark.conf.set("spark.sql.session.timeZone", zone)


def test_expressions(compiled: Site) -> None:
    compare_values(compiled, drawn(0, some(3, 4)))


def test_integers(compiled: Site) -> None:
    compare(compiled, wide())


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1000, 1050))
def test_expressions_at_length(compiled: Site, number: int) -> None:
    compare_values(compiled, drawn(number, some(3)))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1000, 1050))
def test_integers_at_length(compiled: Site, number: int) -> None:
    batch(compiled, number)
