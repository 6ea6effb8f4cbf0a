"""What Python workers hand out is what the reference engine does; and where they cannot, SQL does it."""

from __future__ import annotations

import math
from contextlib import ExitStack, closing
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import nasty
import numpy as np
import pyarrow as pa
import pytest
from engines.conformance.on_spark import SparkSite
from engines.conformance.sites import loaded, seen
from engines.spark.test_spark_table import table as opened
from hypothesis import given
from hypothesis import strategies as st
from reference import ReferenceEngine
from sizes import slow

from dalenius.errors import InvalidArgument, QueryFailed
from dalenius.privacy.quantized import Grid
from dalenius.tables.engines import spark_kept
from dalenius.tables.engines.engine import MAGNITUDES, SIZES, SPREADS, Bounding, Measure
from dalenius.tables.engines.spark_workers import (
    LIMB,
    PART,
    STRETCH,
    Layout,
    Magnitudes,
    Shapes,
    Sums,
    Work,
    add_up,
    code,
    cut,
    limbs_of,
    numbers_of,
)
from dalenius.tables.rows import Range, Rows

UNITS = {
    False: (0, 1, -7, 40, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63)),
    True: ("", "a", "ä", "a\u0308", "日本"),
}
VALUES = tuple(math.nan if value is None else value for value in nasty.VALUES)


def rows_of(random: Random, layout: Layout) -> list[dict[str, Any]]:
    """Rows as they come to workers, with the place of their key as key_0; units of 32 bits, or more."""
    most = random.choice((6, 9))
    return [
        {f"unit_{i}": random.choice(UNITS[text][:most]) for i, text in enumerate(layout.texts)}
        | {"key_0": random.randrange(layout.keys)}
        | {f"value_{i}": random.choice(VALUES) for i in range(layout.values)}
        for _ in range(random.choice((1, 5, 60)))
    ]


def sent(rows: list[dict[str, Any]], layout: Layout) -> pa.RecordBatch:
    """The rows as Spark sends them; a unit's part follows from the unit."""
    units = [[row[f"unit_{i}"] for row in rows] for i in range(len(layout.texts))]
    part = [hash(tuple(unit)) % layout.parts for unit in zip(*units, strict=True)]
    at = [(row["key_0"] << PART) + one for row, one in zip(rows, part, strict=True)]
    kinds = [pa.string() if text else pa.int64() for text in layout.texts]
    columns = [pa.array(unit, kind) for unit, kind in zip(units, kinds, strict=True)]
    values = [pa.array([row[f"value_{i}"] for row in rows], pa.float64()) for i in range(layout.values)]
    names = [*(f"u{i}" for i in range(len(units))), "at", *(f"v{i}" for i in range(layout.values))]
    return pa.RecordBatch.from_arrays([*columns, pa.array(at, pa.int64()), *values], names=names)


def worked(batches: list[pa.RecordBatch], layout: Layout, work: Work, slots: int) -> Any:
    """All that Spark would do with them."""
    parts: dict[int, list[Any]] = {}
    for partition, batch in enumerate(batches):
        assert batch.schema == layout.sent
        for part, bunch in cut(partition, [batch.serialize().to_pybytes()], layout=layout):
            parts.setdefault(part, []).append((part, bunch))
    found = np.zeros(slots, object)
    for bunches in parts.values():
        for stretch, limbs in add_up(bunches, layout=layout, work=work, partitions=len(batches)):
            found[stretch * STRETCH : (stretch + 1) * STRETCH] += numbers_of(limbs)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_workers_find_what_the_reference_does(seed: int) -> None:
    random = Random(seed)
    texts = random.choice(((False,), (True,), (False, False), (True, False), (True, True, False)))
    layout = Layout(texts, random.choice((1, 2)), random.choice((1, 2, 5)), random.choice((1, 2, 7)), code())
    rows = rows_of(random, layout)
    start = random.randrange(len(rows))
    batches = [sent(some, layout) for some in (rows[:start], rows[start:]) if some]
    shape = Rows("", units=len(texts), keys=1, values=layout.values)
    table = nasty.Table({}, [], shape)
    keys = [(place,) for place in range(layout.keys)]
    measures = [one for one in nasty.measures(random, table) if one.kind != "distinct"]
    bounding = replace(nasty.bounding(random), groups=None)
    with ReferenceEngine(rows).load(shape) as truth:
        for norm in ("l2", "l1"):
            for presence in (False, True):
                found = worked(batches, layout, Shapes(norm, presence), SIZES * SPREADS)
                assert (found == truth.shapes(keys, norm=norm, presence=presence).ravel()).all()
        totals = truth.totals(keys, measures, bounding)
        found = worked(batches, layout, Sums(tuple(measures), bounding), totals.size)
        assert (found.reshape(totals.shape) == totals).all()
        for column in range(layout.values):
            found = worked(batches, replace(layout, keys=layout.keys), Magnitudes(column), MAGNITUDES)
            assert (found == truth.magnitudes(column)).all()


def test_workers_of_another_dalenius_refuse() -> None:
    layout = Layout((False,), 0, 1, 1, "other")
    with pytest.raises(RuntimeError):
        list(cut(0, iter([]), layout=layout))
    with pytest.raises(RuntimeError):
        list(add_up(iter([]), layout=layout, work=Shapes("l2", presence=False), partitions=0))


def cut_twice() -> tuple[Layout, list[Any]]:
    """Two partitions of rows, of which the second has none, cut into bunches of one part, with tallies."""
    layout = Layout((False,), 1, 1, 1, code())
    rows = [{"unit_0": i, "key_0": 0, "value_0": 1.0} for i in range(40_000)]
    whole = sent(rows, layout)
    batches = [[whole.serialize().to_pybytes()], []]
    return layout, [item for n, batch in enumerate(batches) for item in cut(n, batch, layout=layout)]


def counted(layout: Layout, items: list[Any]) -> int:
    work = Sums((Measure("rows"),), Bounding("l2"))
    found = list(add_up(items, layout=layout, work=work, partitions=2))
    return int(sum(numbers_of(limbs)[0] for _, limbs in found)) >> 14


def test_all_rows_that_are_sent_are_added_up_in_any_order() -> None:
    layout, items = cut_twice()
    assert len(items) > 4
    assert counted(layout, items) == counted(layout, items[::-1]) == 40_000


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("fault", ["lost", "doubled"])
def test_a_bunch_or_a_tally_that_is_lost_or_doubled_fails(place: int, fault: str) -> None:
    layout, items = cut_twice()
    at = (*range(3), -1, -2)[place]
    items.insert(0, items[at]) if fault == "doubled" else items.pop(at)
    with pytest.raises(RuntimeError, match="Rows were"):
        counted(layout, items)


def test_a_part_of_which_everything_is_lost_fails() -> None:
    layout, _ = cut_twice()
    with pytest.raises(RuntimeError, match="lost"):
        counted(layout, [])


def test_rows_that_spark_loses_are_not_left_out_of_an_answer(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store of shuffled rows that has one bunch less than was written."""
    really = spark_kept.Kept.bunches

    def bunches(kept: Any, *given: Any) -> str:
        name = really(kept, *given)
        moved, partitions = kept._moved[name]
        kept._moved[name] = moved.mapPartitions(lambda items: islice(items, 1, None)), partitions
        return name

    monkeypatch.setattr(spark_kept.Kept, "bunches", bunches)
    visits = opened(spark.range(100).withColumnRenamed("id", "patient"), tmp_path, name="visits")
    with pytest.raises(QueryFailed, match="nothing was released"):
        visits.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    assert [entry.event for entry in visits.account.entries()] == ["open", "reserve", "forfeit"]
    visits.close()


@pytest.mark.parametrize("keys", [[("a",)], [("nobody",)]])
def test_a_range_that_is_too_fine_is_refused_whoever_has_rows(spark: Any, keys: Any) -> None:
    fine = Measure("sum", 0, Range(Fraction(0), Fraction(2**70), Grid(0)))
    data = [{"unit_0": 1, "key_0": "a", "value_0": 1.0}]
    table = nasty.Table(
        {"unit_0": "BIGINT", "key_0": "VARCHAR", "value_0": "DOUBLE"}, data, Rows("", 1, 1, 1)
    )
    with closing(SparkSite(spark.newSession())) as site, loaded(site, table) as found:
        with pytest.raises(InvalidArgument, match="more steps"):
            found.totals(keys, [fine], Bounding("l2"))
        assert found.totals(keys, [], Bounding("l2")).shape == (1, 0)


@given(st.lists(st.integers(-(2**120), 2**120), min_size=1))
def test_limbs_add_up(numbers: list[int]) -> None:
    limbs = limbs_of(np.array(numbers, object))
    assert numbers_of(np.array(limbs)).tolist() == numbers
    assert sum(int(limb.sum()) << LIMB * i for i, limb in enumerate(limbs)) == sum(numbers)
    assert all(((limb >= 0) & (limb < 2**LIMB)).all() for limb in limbs[:-1])


def found(spark: Any, table: nasty.Table, random: Random) -> list[Any]:
    """Everything that workers may be asked for."""
    keys = table.keys[:5] or [(None,) * table.rows.keys]
    measures, bounding = nasty.measures(random, table, 2**30), nasty.bounding(random)
    measures = [one for one in measures if one.kind != "distinct"]
    bounding = replace(bounding, groups=None)
    with closing(SparkSite(spark.newSession())) as site, ExitStack() as open_now:
        truth = open_now.enter_context(ReferenceEngine(seen(table).data).load(table.rows))
        both = (truth, open_now.enter_context(loaded(site, table)))
        answers = [[one.shapes(keys, norm="l2", presence=False) for one in both]]
        answers += [[one.magnitudes(column) for one in both] for column in range(table.rows.values)]
        answers += [[one.totals(keys, measures, bounding) for one in both]]
    return answers


def some_table(units: tuple[str, ...]) -> nasty.Table:
    random = Random(str(units))
    while True:
        table = nasty.table(random, nasty.PRINTED, units)
        if len(table.data) > 10 and table.rows.units and table.rows.values and table.rows.keys:
            return table


@pytest.mark.parametrize(
    "unit", ["BIGINT", "VARCHAR", "TIMESTAMP", *slow(["INTEGER", "HUGEINT", "DATE", "BOOLEAN"])]
)
def test_units_of_every_type_travel(spark: Any, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    really = spark_kept.Kept.worked

    def worked(*given: Any) -> list[Any]:
        used.append(given)
        return really(*given)

    monkeypatch.setattr(spark_kept.Kept, "worked", worked)
    for truth, ours in found(spark, some_table((unit,)), Random(unit)):
        assert (truth == ours).all()
    assert len(used) >= 3


@pytest.mark.parametrize("why", ["real units", *slow(["other workers"])])
def test_without_workers_sql_does_it(spark: Any, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(spark_kept.Kept, "worked")
    if why == "other workers":
        monkeypatch.setattr(spark_kept, "able", lambda context, session: False)
    table = some_table(("DOUBLE",) if why == "real units" else ("BIGINT",))
    for truth, ours in found(spark, table, Random(why)):
        assert (truth == ours).all()
