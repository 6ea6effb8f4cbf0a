"""Dates and moments in PostgreSQL's SQL, within the years 1 to 9999."""

from __future__ import annotations

from collections.abc import Sequence

from dalenius.tables.language.dialects.dialect import literal_text
from dalenius.tables.language.dialects.postgres_numbers import bound
from dalenius.tables.language.expressions import Expression, ExpressionType

_WITHIN = {
    "date": "BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'",
    "moment": "BETWEEN TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999'",
}
_NAMED_PARTS = {"dayofweek": "dow", "dayofyear": "doy"}
_STEPS = {
    "second": ("1 second", 320_000_000_000, 1 / 31_556_952),
    "minute": ("1 minute", 5_300_000_000, 60 / 31_556_952),
    "hour": ("1 hour", 88_000_000, 3600 / 31_556_952),
    "day": ("1 day", 3_700_000, 1 / 365.2425),
    "week": ("7 days", 530_000, 7 / 365.2425),
    "month": ("1 month", 121_000, 1 / 12),
    "quarter": ("3 months", 40_000, 1 / 4),
    "year": ("1 year", 10_100, 1),
    "decade": ("10 years", 1_010, 10),
}
"""An interval, the most of them that are added, and the years in one: no date is made that there is not."""
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_YEAR = "CAST(date_part('year', {0}) AS bigint)"
_COUNTED = {
    "day": "CAST({0} AS date) - DATE '0001-01-01'",
    "week": "CAST({0} AS date) - DATE '0001-01-01'",
    "month": f"{_YEAR} * 12 + CAST(date_part('month', {{0}}) AS bigint)",
    "quarter": f"{_YEAR} * 4 + CAST(date_part('quarter', {{0}}) AS bigint)",
    "year": _YEAR,
    "decade": f"{_YEAR} / 10",
}
MICROSECONDS = (
    "CAST(CAST(date_part('epoch', date_trunc('second', {0})) AS bigint) AS numeric) * 1000000 "
    "+ CAST(date_part('microseconds', {0}) AS bigint) % 1000000"
)
"""Those since 1970 of a moment, exact; of the latest moments there are more than a bigint holds."""
EPOCH = f"(CAST({MICROSECONDS} AS float8) / 1000000)"


def within(sql: str, type_: ExpressionType) -> str:
    """A date, NULL outside the years 1 to 9999; all else as it is."""
    return bound(f"CASE WHEN {{0}} {_WITHIN[type_]} THEN {{0}} END", sql) if type_ in _WITHIN else sql


def extract(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    """A part of a date."""
    part = literal_text(arguments[0])
    found = f"date_part('{_NAMED_PARTS.get(part, part)}', CAST({sql[1]} AS timestamp))"
    return f"CAST({f'floor({found})' if part == 'second' else found} AS bigint)"


def truncated(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    """The beginning of the window that holds a date."""
    found = within(f"date_trunc('{literal_text(arguments[0])}', CAST({sql[1]} AS timestamp))", "moment")
    return f"CAST({found} AS date)" if types[1] == "date" else found


def difference(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    """How many beginnings of windows lie between two dates."""
    part = literal_text(arguments[0])
    if part in _SECONDS:
        counted = f"CAST(date_part('epoch', date_trunc('{part}', {{0}})) AS bigint) / {_SECONDS[part]}"
    else:
        counted = _COUNTED[part]
    first, last = (bound(counted, f"CAST({each} AS timestamp)") for each in sql[1:])
    # Weeks are those of seven days from the first date on.
    return f"CAST((({last}) - ({first})){' / 7' if part == 'week' else ''} AS bigint)"


def moved(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    """A date so many windows later."""
    interval, most, years = _STEPS[literal_text(arguments[0])]
    near = f"date_part('year', {{0}}) + {{1}} * CAST('{years!r}' AS float8) BETWEEN -100 AND 10100"
    found = bound(
        f"CASE WHEN {{1}} BETWEEN -{most} AND {most} THEN CASE WHEN {near} "
        f"THEN {{0}} + interval '{interval}' * CAST({{1}} AS float8) END END",
        f"CAST({sql[1]} AS timestamp)",
        sql[2],
    )
    return f"CAST({within(found, 'moment')} AS {'date' if types[1] == 'date' else 'timestamp'})"
