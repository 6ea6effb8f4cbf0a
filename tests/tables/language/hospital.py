"""A small hospital in DuckDB, and answers computed from `Rows` without any protection."""

from __future__ import annotations

import atexit
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import duckdb

from dalenius.privacy.unit import Unit
from dalenius.tables.language.formulas import Estimate, holds, value
from dalenius.tables.planning.afterwards import run_steps
from dalenius.tables.question import Aggregate, Question
from dalenius.tables.rows import Key
from dalenius.tables.schema import Private, Public, Schema

PATIENT = Unit("patient", column="patient_id")
VISITS = {
    "patient_id": "integer", "age": "integer", "ward": "text", "day": "date", "cost": "real",
    "seen": "moment", "urgent": "boolean",
}  # fmt: skip
STAYS = {"patient_id": "integer", "nights": "integer"}
WARDS = {"ward": "text", "region": "text"}

DATA = """
CREATE TABLE visits AS
    SELECT (i * i % 17)::BIGINT AS patient_id,
           CASE WHEN i % 11 = 0 THEN NULL ELSE (20 + i * 7 % 60)::INTEGER END AS age,
           CASE WHEN i % 13 = 0 THEN NULL ELSE chr(65 + (i % 4)::INTEGER) END AS ward,
           DATE '2024-01-01' + (i * 5 % 90)::INTEGER AS day,
           CASE WHEN i % 7 = 0 THEN NULL ELSE (i * 37 % 101) / 4 END AS cost,
           TIMESTAMP '2024-01-01 00:00:00' + to_minutes((i * 397)::BIGINT) AS seen,
           i % 3 = 0 AS urgent
    FROM range(300) AS t(i);
CREATE TABLE stays AS
    SELECT (i % 20)::BIGINT AS patient_id, (i % 5)::INTEGER AS nights FROM range(40) AS t(i);
CREATE TABLE wards AS SELECT * FROM (VALUES ('A', 'north'), ('B', 'south'), ('C', 'north'), ('Z', 'south'))
    AS t(ward, region);
CREATE TABLE each_row AS SELECT age, ward, cost FROM visits;
"""


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """The tables."""
    found = duckdb.connect()
    atexit.register(found.close)
    found.execute(DATA)
    return found


def rows_of(sql: str) -> list[dict[str, Any]]:
    """What DuckDB answers."""
    found = connection().cursor().execute(sql)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def hospital(unit: Unit = PATIENT, time: str | None = None, **facts: Any) -> Schema:
    """The tables with what is declared of `visits`."""
    each = Private("each_row", {name: VISITS[name] for name in ("age", "ward", "cost")}, Unit("row"))
    visits = Private("visits", VISITS, unit, time, **facts)
    if unit.window is not None:
        return Schema((visits,), rows_of)
    return Schema((visits, Private("stays", STAYS, unit), Public("wards", WARDS), each), rows_of)


def unprotected(
    question: Question, run: Callable[[str], list[dict[str, Any]]] = rows_of
) -> list[tuple[Any, ...]]:
    """The answer without clipping or noise, in the order asked for."""
    groups: dict[Key, list[Mapping[str, Any]]] = {key: [] for key in question.keys or ()}
    for row in run(question.rows.sql):
        key = tuple(row[f"key_{i}"] for i in range(question.rows.keys))
        identity = [row[f"unit_{i}"] for i in range(question.rows.units)]
        if None not in identity and (question.keys is None or key in groups):
            groups.setdefault(key, []).append(row)
    found = []
    for key, rows in _with_margins(question, groups):
        numbers = [_aggregate(each, rows) for each in question.aggregates]
        if question.having is None or holds(question.having, key, numbers):
            order = [value(by, key, numbers) for by, _, _ in question.order]
            found.append((order, tuple(value(each.formula, key, numbers) for each in question.outputs)))
    for place, (_, descending, first) in reversed(list(enumerate(question.order))):
        found.sort(key=lambda pair: _ranked(pair[0][place], descending, first))
    answers = [answer for _, answer in found]
    end = None if question.limit is None else question.offset + question.limit
    answers = answers[question.offset : end]
    if question.after is None:
        return answers
    rows = [tuple(Estimate(part) for part in answer) for answer in answers]
    return [tuple(each.value for each in row) for row in run_steps(rows, question.after.steps)]


def _with_margins(
    question: Question, groups: Mapping[Key, list[Mapping[str, Any]]]
) -> list[tuple[Key, list[Mapping[str, Any]]]]:
    """The groups; with GROUPING SETS those of each set, and after the keys whether they are added up."""
    if not question.sets:
        return list(groups.items())
    found: dict[Key, list[Mapping[str, Any]]] = {}
    for kept in question.sets:
        for key, rows in groups.items():
            part = tuple(each if i in kept else None for i, each in enumerate(key))
            flags = tuple(int(i not in kept) for i in range(len(key)))
            found.setdefault((*part, *flags), []).extend(rows)
    return list(found.items())


def _ranked(part: Any, descending: bool, first: bool) -> tuple[int, Any]:
    if part is None:
        return (-1 if first else 1), 0
    if isinstance(part, str):
        return 0, [-ord(letter) if descending else ord(letter) for letter in part]
    number = part if isinstance(part, int | float) else part.toordinal()
    return 0, -number if descending else number


def _aggregate(aggregate: Aggregate, rows: Sequence[Mapping[str, Any]]) -> Any:
    if aggregate.kind == "count":
        return len(rows)
    if aggregate.kind == "units":
        return len({tuple(row[name] for name in row if name.startswith("unit_")) for row in rows})
    kind = "distinct" if aggregate.kind == "distinct" else "value"
    values = [row[f"{kind}_{aggregate.column}"] for row in rows]
    values = [
        each for each in values if each is not None and not (isinstance(each, float) and math.isnan(each))
    ]
    if aggregate.kind in ("count_of", "distinct"):
        return len(set(values)) if aggregate.kind == "distinct" else len(values)
    return _STATISTICS[aggregate.kind](values, aggregate) if values else None


def _quantile(values: Sequence[float], aggregate: Aggregate) -> float:
    assert aggregate.fraction is not None
    ordered, place = sorted(values), float(aggregate.fraction) * (len(values) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


_STATISTICS: dict[str, Callable[[Sequence[float], Aggregate], Any]] = {
    "sum": lambda values, _: math.fsum(values),
    "avg": lambda values, _: math.fsum(values) / len(values),
    "min": lambda values, _: min(values),
    "max": lambda values, _: max(values),
    "quantile": _quantile,
    "var_samp": lambda values, _: statistics.variance(values) if len(values) > 1 else None,
    "var_pop": lambda values, _: statistics.pvariance(values),
    "stddev_samp": lambda values, _: statistics.stdev(values) if len(values) > 1 else None,
    "stddev_pop": lambda values, _: statistics.pstdev(values),
}
