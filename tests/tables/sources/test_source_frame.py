"""Objects in frames of pandas are read as their texts, and no object makes a frame fail."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import duckdb
import pandas
import pytest

from dalenius.errors import InvalidArgument
from dalenius.tables.engines.engine import WEIGHT, Bounding, Measure
from dalenius.tables.rows import Rows
from dalenius.tables.sources.opening import open_source

SIZE = 3000
ROWS = Rows("SELECT id AS unit_0, ward AS key_0, TRY_CAST(age AS DOUBLE) AS value_0 FROM visits", 1, 1, 1)


class Mute:
    """It has no text."""

    def __str__(self) -> str:
        raise ValueError


def frame(**odd: object) -> pandas.DataFrame:
    """Columns of objects; `odd` holds a value for each of several columns, far from the beginning."""
    columns = {"id": list(range(SIZE)), "ward": ["A"] * SIZE, "age": [float(i) for i in range(SIZE)]}
    for name, value in odd.items():
        columns[name][2501] = value
    return pandas.DataFrame({name: pandas.Series(column, dtype=object) for name, column in columns.items()})


ODD = [
    "x", "", [1], {"a": 1}, 10**30, b"\xff", "\ud800", Mute(), None, float("nan"), pandas.NaT, pandas.NA,
    Decimal("1e400"), datetime.date(2020, 1, 1), True,
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("column", ["id", "ward", "age"])
def test_one_object_changes_one_row(column: str, odd: object) -> None:
    engine = open_source(frame(**{column: odd}), "visits")
    assert engine.columns("visits") == {"id": "integer", "ward": "text", "age": "real"}
    with engine.load(ROWS) as loaded:
        found = loaded.totals([("A",)], [Measure("rows"), Measure("present", 0)], Bounding("l2", Fraction(1)))
    rows, present = (found[0] // WEIGHT).tolist()
    assert SIZE - 1 <= rows <= SIZE
    assert SIZE - 1 <= present <= SIZE
    engine.close()


def test_types_of_objects() -> None:
    day = datetime.date(2020, 1, 1)
    data = {"day": [day, None], "seen": [True, False], "at": [datetime.datetime(2020, 1, 1, 5), None],
            "code": ["007", "08"], "cost": [Decimal("1.5"), 2]}  # fmt: skip
    objects = pandas.DataFrame({name: pandas.Series(column, dtype=object) for name, column in data.items()})
    engine = open_source(objects, "visits", types={"code": "VARCHAR"})
    assert engine.columns("visits") == {
        "day": "date", "seen": "boolean", "at": "moment", "code": "text", "cost": "real",
    }  # fmt: skip
    assert engine.public("SELECT day, code, cost FROM visits") == [
        {"day": day, "code": "007", "cost": 1.5}, {"day": None, "code": "08", "cost": 2.0},
    ]  # fmt: skip
    engine.close()
    with pytest.raises(InvalidArgument, match="no column"):
        open_source(objects, "visits", types={"cod": "VARCHAR"})


def test_the_frame_stays_as_it_is_and_may_change() -> None:
    objects = frame()
    before = objects.copy(deep=True)
    engine = open_source(objects, "visits")
    with engine.load(ROWS) as loaded:
        assert loaded.holders(most=1, salt=bytes(32)) == {("A",): SIZE}
    pandas.testing.assert_frame_equal(objects, before)
    objects["ward"] = pandas.Series(["B"] * SIZE, dtype=object)
    with engine.load(ROWS) as loaded:
        assert loaded.holders(most=1, salt=bytes(32)) == {("B",): SIZE}
    engine.close()


def test_beside_a_connection() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits AS SELECT 1 AS id, 'A' AS ward")
    wards = pandas.DataFrame({"floor": pandas.Series([1] * SIZE + ["attic"], dtype=object)})
    engine = open_source(connection, "visits", more={"wards": wards})
    assert engine.columns("wards") == {"floor": "integer"}
    assert engine.public("SELECT count(*) AS n, count(floor) AS m FROM wards") == [{"n": SIZE + 1, "m": SIZE}]
    engine.close()
