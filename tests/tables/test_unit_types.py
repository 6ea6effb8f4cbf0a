"""No unit, by an extreme moment of its own, makes a question fail; other types are refused as units."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import dalenius as dp
from dalenius.errors import InvalidArgument

QUESTIONS = (
    "SELECT COUNT(*) AS n FROM t",
    "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward",
    "SELECT COUNT(DISTINCT ward) AS n FROM t",
    "SELECT COUNT(DISTINCT unit) AS n FROM t",
    "SELECT seen, COUNT(*) AS n FROM t GROUP BY seen",
)


def opened(kind: pa.DataType, values: list[int], folder: Path) -> dp.Table:
    units = pa.array(values, pa.int64()).cast(kind)
    data = pa.table({"unit": units, "ward": ["a"] * len(values), "seen": units})
    unit, budget = dp.Unit("patient", column="unit"), dp.Budget(100, 1e-5)
    return dp.table(data, unit=unit, budget=budget, ledger=folder / "l", name="t")


@pytest.mark.parametrize("extreme", [2**62, -(2**62), 2**63 - 2, -(2**63) + 2])
@pytest.mark.parametrize("step", ["s", "ms", "us", "ns"])
def test_an_extreme_moment_makes_nothing_fail(step: str, extreme: int, tmp_path: Path) -> None:
    table = opened(pa.timestamp(step), [*range(50), extreme], tmp_path)
    for question in QUESTIONS:
        assert table.sql(question, epsilon=5).receipt.entry


@pytest.mark.parametrize("extreme", [[], [2**62]])
@pytest.mark.parametrize("kind", [pa.duration("s"), pa.duration("ms"), pa.duration("us"), pa.time64("us")])
def test_a_unit_of_another_type_is_refused_whatever_it_holds(
    kind: pa.DataType, extreme: list[int], tmp_path: Path
) -> None:
    with pytest.raises(InvalidArgument, match="cannot be told by unit"):
        opened(kind, [*range(50), *extreme], tmp_path)
