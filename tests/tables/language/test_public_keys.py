"""Which groups are known without looking at private data, and that nothing else is."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest
from language.hospital import hospital, unprotected

from dalenius.errors import InvalidArgument
from dalenius.tables.language.parsing import ask
from dalenius.tables.schema import Schema

DECLARED: dict[str, Any] = {
    "categories": {"ward": ("A", "B", None)},
    "ranges": {
        "age": (20, 23),
        "day": ("2024-01-30", "2024-02-02"),
        "seen": ("2024-01-01", "2024-01-02T12:00:00"),
    },
}


def keys(key: str, where: str = "TRUE", schema: Schema | None = None) -> list[Any] | None:
    query = f"SELECT {key} AS k, COUNT(*) FROM visits WHERE {where} GROUP BY k"
    found = ask(query, schema or hospital(**DECLARED)).keys
    return None if found is None else [each[0] for each in found]


@pytest.mark.parametrize(
    ("key", "known"),
    [
        ("ward", ["A", "B", None]),
        ("age", [20, 21, 22, 23]),
        ("age // 2", [10, 11]),
        ("floor(age / 2) * 2", [20.0, 22.0]),
        ("day", [date(2024, 1, 30), date(2024, 1, 31), date(2024, 2, 1), date(2024, 2, 2)]),
        ("date_trunc('month', day)", [date(2024, 1, 1), date(2024, 2, 1)]),
        ("date_trunc('day', seen)", [datetime(2024, 1, 1), datetime(2024, 1, 2)]),
        ("seen", None),
        ("date_trunc('hour', seen)", None),
        ("dayname(day)", ["Tuesday", "Wednesday", "Thursday", "Friday"]),
        ("lower(ward)", ["a", "b", None]),
        ("coalesce(ward, 'none')", ["A", "B", "none"]),
        ("urgent", [False, True, None]),
        ("cost > 3", [False, True, None]),
        ("cost IS NULL", [False, True]),
        ("month(day)", [1, 2]),
        ("hour(seen)", [*range(24), None]),
        ("CASE WHEN cost > 9 THEN 'much' WHEN cost > 3 THEN 'some' END", ["much", "some", None]),
        ("cost", None),
        ("patient_id % 3", [0, 1, 2, -2, -1, None]),
        ("ward || cast(age AS VARCHAR)", [*(f"{ward}{age}" for age in range(20, 24) for ward in "AB"), None]),
    ],
)
def test_keys_by_what_is_declared_and_by_form(key: str, known: list[Any] | None) -> None:
    found = keys(key)
    assert found == known if known is None or found is None else set(found) == set(known)


def test_where_narrows_and_lists_keys() -> None:
    assert keys("ward", "ward IN ('B', 'Q')") == ["B"]
    assert keys("ward", "ward IN ('B', 'Q')", hospital()) == ["B", "Q"]
    assert keys("ward", "ward = 'B' OR urgent", hospital()) is None
    assert keys("age", "age > 21") == [22, 23]
    assert keys("age", "age BETWEEN 3 AND 5", hospital()) == [3, 4, 5]
    assert keys("date_trunc('month', seen)", "seen >= '2024-01-15' AND seen < '2024-03-01'", hospital()) == [
        datetime(2024, 1, 1), datetime(2024, 2, 1),
    ]  # fmt: skip
    assert keys("ward", "length(ward) > 0 AND ward <> 'A'") == ["B"]


def test_keys_of_public_tables() -> None:
    query = "SELECT {}, COUNT(*) FROM visits JOIN wards USING (ward) GROUP BY ALL"
    assert ask(query.format("ward"), hospital()).keys == (("A",), ("B",), ("C",), ("Z",))
    pairs = ask(query.format("region, ward"), hospital()).keys
    assert pairs == (("north", "A"), ("north", "C"), ("south", "B"), ("south", "Z"))
    assert len(ask(query.format("region, age"), hospital(ranges={"age": (1, 10)})).keys or ()) == 20
    left = "SELECT region, COUNT(*) FROM visits LEFT JOIN wards USING (ward) GROUP BY region"
    assert ask(left, hospital()).keys is None
    assert ask(query.format("ward"), Schema(hospital().tables)).keys is None


def test_public_tables_are_the_only_ones_read() -> None:
    asked: list[str] = []

    def read(sql: str) -> list[dict[str, Any]]:
        asked.append(sql)
        return [{"key_0": "A"}]

    ask(
        "SELECT ward, COUNT(*) FROM visits JOIN wards USING (ward) GROUP BY ward",
        Schema(hospital().tables, read),
    )
    assert len(asked) == 1 and "visits" not in asked[0]
    ask("SELECT age, COUNT(*) FROM visits GROUP BY age", Schema(hospital().tables, read))
    assert len(asked) == 1


def test_empty_groups_are_shown_and_others_are_not() -> None:
    answers = unprotected(
        ask("SELECT ward, COUNT(*) FROM visits GROUP BY ward", hospital(categories={"ward": ("A", "Y")}))
    )
    assert [ward for ward, _ in answers] == ["A", "Y"] and answers[1][1] == 0


def test_too_many_keys_are_selected_privately() -> None:
    assert keys("age", schema=hospital(ranges={"age": (0, 10**6)})) is None
    with pytest.raises(InvalidArgument, match="more than"):
        ask("SELECT age, COUNT(*) FROM visits GROUP BY age", hospital(), keys=range(200_000))


def test_keys_that_do_not_fit_are_refused() -> None:
    query = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"
    for given in ([1], [("A", "B")], {"age": [1]}, [float("nan")]):
        with pytest.raises(InvalidArgument):
            ask(query, hospital(), keys=given)


@pytest.mark.parametrize(
    "key",
    ["year(day)", "extract(year FROM seen)", "year(day) - 2000", "year(day) // 10", "dayofyear(day)",
     "patient_id % 1000", "hour(seen) * 60 + minute(seen)", "CASE WHEN urgent THEN year(day) ELSE 0 END"],
)  # fmt: skip
def test_many_keys_by_form_alone_are_selected_privately(key: str) -> None:
    assert keys(key, schema=hospital()) is None
    below = f"(SELECT patient_id, {key} AS k FROM visits)"
    for table in (below, f"(SELECT DISTINCT patient_id, k FROM {below})", f"({below} UNION ALL {below})"):
        assert ask(f"SELECT k, COUNT(*) FROM {table} GROUP BY k", hospital()).keys is None
    newest = f"(SELECT patient_id, MAX(k) AS k FROM {below} GROUP BY patient_id)"
    assert ask(f"SELECT k, COUNT(*) FROM {newest} GROUP BY k", hospital()).keys is None


def test_few_keys_by_form_are_public() -> None:
    assert keys("month(day)", schema=hospital()) == [*range(1, 13), None]
    assert keys("isodow(day)", schema=hospital()) == [*range(1, 8), None]
    assert keys("minute(seen)", schema=hospital()) == [*range(60), None]
    assert len(keys("width_bucket(cost, 0, 100, 10)", schema=hospital()) or ()) in (12, 13)


def test_years_are_public_where_days_are_declared_or_asked_for() -> None:
    declared = hospital(ranges={"day": ("1850-06-01", "2024-02-02")})
    assert keys("year(day)", schema=declared) == [*range(1850, 2025), None]
    asked = "day >= '2020-01-01' AND day < '2025-01-01'"
    assert keys("year(day)", asked, hospital()) == [*range(2020, 2025)]
    query = "SELECT y, COUNT(*) FROM (SELECT year(day) AS y FROM visits) WHERE y {} GROUP BY y"
    assert ask(query.format("BETWEEN 1850 AND 2024"), hospital()).keys == tuple(
        (y,) for y in range(1850, 2025)
    )
    assert ask(query.format(">= 1850"), hospital()).keys is None
    limited = hospital(rows_per_unit=150)
    visits = "SELECT n, COUNT(*) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY 1) GROUP BY n"
    assert len(ask(visits, limited).keys or ()) >= 150
