"""What Spark hands out is what the reference engine does, integer by integer."""

from __future__ import annotations

from random import Random
from typing import Any

import nasty
import pytest
from engines.spark.spark_tables import keys_of, opened, seen
from reference import ReferenceEngine, name


def counted(holders: Any) -> dict[object, int]:
    return {tuple(name(part) for part in key): count for key, count in holders.items()}


@pytest.mark.parametrize("seed", range(5))
def test_equal_to_the_reference(spark: Any, seed: int) -> None:
    compare(spark, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_equal_to_the_reference_at_length(spark: Any, seed: int) -> None:
    compare(spark, seed)


def compare(spark: Any, seed: int) -> None:
    random = Random(seed)
    table = nasty.table(random)
    while not table.data:
        table = nasty.table(random)
    keys = [key for key in keys_of(table) if random.random() < 0.8] or [(None,) * table.rows.keys]
    measures, bounding, salt = (
        nasty.measures(random, table, 2**30),
        nasty.bounding(random),
        random.randbytes(32),
    )
    engine, rows = opened(spark, table)
    with ReferenceEngine(seen(table)).load(table.rows) as truth, engine.load(rows) as loaded:
        most = random.choice((1, 2, 100))
        found = counted(loaded.holders(most=most, salt=salt))
        assert found == counted(truth.holders(most=most, salt=salt))
        norm, presence = random.choice(("l2", "l1")), random.random() < 0.5
        shapes = loaded.shapes(keys, norm=norm, presence=presence)
        assert (shapes == truth.shapes(keys, norm=norm, presence=presence)).all()
        for column in range(table.rows.values):
            assert (loaded.magnitudes(column) == truth.magnitudes(column)).all()
        sums, wanted = loaded.totals(keys, measures, bounding), truth.totals(keys, measures, bounding)
        assert (sums == wanted).all(), (measures, sums, wanted)
    engine.close()
