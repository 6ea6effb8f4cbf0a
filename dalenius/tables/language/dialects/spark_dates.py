"""Dates and moments in Spark's SQL. Moments have no zone, and are days and microseconds since 1970."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dalenius.tables.language.dialects.dialect import Templates, literal_text
from dalenius.tables.language.expressions import Expression, ExpressionType

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_STEPS = {
    "second": 320_000_000_000,
    "minute": 5_300_000_000,
    "hour": 88_000_000,
    "day": 3_700_000,
    "week": 530_000,
    "month": 121_000,
    "quarter": 40_000,
    "year": 10_100,
    "decade": 1_010,
}
"""How far a moment is moved at the most."""
_DAYS_IN = {"day": 1, "week": 7}
_MONTHS_IN = {"month": 1, "quarter": 3, "year": 12, "decade": 120}


def _day(sql: str) -> str:
    return f"CAST({sql} AS DATE)"


def _micros(sql: str) -> str:
    return f"unix_micros(CAST(CAST({sql} AS TIMESTAMP_NTZ) AS TIMESTAMP))"


def _listed(names: Sequence[str], place: str) -> str:
    return f"get(array({', '.join(repr(name) for name in names)}), {place} - 1)"


def _padded(sql: str, width: int) -> str:
    return f"lpad({sql}, {width}, '0')"


PLAIN: Templates = {
    "dayname": _listed(_DAYS, f"dayofweek({_day('{0}')})"),
    "monthname": _listed(_MONTHS, f"month({_day('{0}')})"),
    "epoch": f"(CAST({_micros('{0}')} AS DOUBLE) / 1000000D)",
}
_PARTS: Mapping[str, str] = {
    "year": f"year({_day('{0}')})",
    "isoyear": f"extract(YEAROFWEEK FROM {_day('{0}')})",
    "quarter": f"quarter({_day('{0}')})",
    "month": f"month({_day('{0}')})",
    "week": f"weekofyear({_day('{0}')})",
    "day": f"day({_day('{0}')})",
    "dayofweek": f"(dayofweek({_day('{0}')}) - 1)",
    "isodow": f"(weekday({_day('{0}')}) + 1)",
    "dayofyear": f"dayofyear({_day('{0}')})",
    "hour": "hour(CAST({0} AS TIMESTAMP_NTZ))",
    "minute": "minute(CAST({0} AS TIMESTAMP_NTZ))",
    "second": "second(CAST({0} AS TIMESTAMP_NTZ))",
}


def extract(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    """A part of a date, as a whole number."""
    return f"CAST({_PARTS[literal_text(arguments[0])].format(sql[1])} AS BIGINT)"


def date_trunc(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    """The beginning of a part of a date, of the date's own type."""
    return truncated(literal_text(arguments[0]), sql[1], types[1])


def truncated(part: str, sql: str, type_: ExpressionType) -> str:
    """The same, where the part is known."""
    if part in _SECONDS:
        if type_ == "date":
            return sql
        return f"CAST(date_trunc('{part.upper()}', CAST({sql} AS TIMESTAMP)) AS TIMESTAMP_NTZ)"
    if part == "day":
        start = _day(sql)
    elif part == "decade":
        start = f"make_date(year({_day(sql)}) - year({_day(sql)}) % 10, 1, 1)"
    else:
        start = f"trunc({_day(sql)}, '{part.upper()}')"
    return start if type_ == "date" else f"CAST({start} AS TIMESTAMP_NTZ)"


def date_diff(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    """How many beginnings of a part lie between two dates; of weeks, how many whole ones."""
    part = literal_text(arguments[0])
    start, end = (_place(part, each) for each in sql[1:])
    if part == "week":
        return f"(({end} - {start}) DIV 7)"
    return f"CAST({end} - {start} AS BIGINT)"


def _place(part: str, sql: str) -> str:
    day = _day(sql)
    if part in _SECONDS:
        seconds = f"unix_seconds(CAST(CAST({sql} AS TIMESTAMP_NTZ) AS TIMESTAMP))"
        return f"floor({seconds} / {_SECONDS[part]})"
    if part in _DAYS_IN:
        return f"unix_date({day})"
    if part in ("month", "quarter"):
        return f"(year({day}) * {12 // _MONTHS_IN[part]} + {part}({day}))"
    return f"floor(year({day}) / {_MONTHS_IN[part] // 12})"


def date_add(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    """A date so many steps later; the last of a month where the month has no such day."""
    part = literal_text(arguments[0])
    most = _STEPS[part]
    steps = f"CASE WHEN {sql[2]} BETWEEN -{most} AND {most} THEN {sql[2]} END"
    if part in _SECONDS:
        moved = _moment(f"{_micros(sql[1])} + ({steps}) * {_SECONDS[part] * 1_000_000}L")
        return moved if types[1] == "moment" else _day(moved)
    if part in _DAYS_IN:
        day = f"date_add({_day(sql[1])}, CAST(({steps}) * {_DAYS_IN[part]} AS INT))"
    else:
        day = f"add_months({_day(sql[1])}, CAST(({steps}) * {_MONTHS_IN[part]} AS INT))"
    if types[1] == "date":
        return day
    return _moment(f"{_micros(day)} + pmod({_micros(sql[1])}, 86400000000L)")


def _moment(micros: str) -> str:
    return f"CAST(timestamp_micros({micros}) AS TIMESTAMP_NTZ)"


def strftime(text: Callable[[str], str], sql: Sequence[str], arguments: Sequence[Expression]) -> str:
    """A date as a text of a given form."""
    form, when, parts, plain = literal_text(arguments[1]), sql[0], [], ""
    places = iter(range(len(form)))
    for i in places:
        if form[i] != "%" or i + 1 == len(form):
            plain += form[i]
            continue
        next(places)
        if form[i + 1] == "%":
            plain += "%"
            continue
        parts += [text(plain)] * bool(plain)
        parts, plain = [*parts, _FORMS[form[i + 1]](when)], ""
    parts += [text(plain)] * bool(plain)
    return f"CASE WHEN {when} IS NOT NULL THEN concat({', '.join(parts) or text('')}) END"


def _part(name: str, width: int) -> Callable[[str], str]:
    return lambda when: _padded(_PARTS[name].format(when), width)


def _week(first: str) -> Callable[[str], str]:
    # The first such day of the year begins week 1.
    return lambda when: _padded(f"floor((dayofyear({_day(when)}) + 6 - {first.format(_day(when))}) / 7)", 2)


_FORMS: Mapping[str, Callable[[str], str]] = {
    "Y": _part("year", 4),
    "y": lambda when: _padded(f"year({_day(when)}) % 100", 2),
    "m": _part("month", 2),
    "d": _part("day", 2),
    "H": _part("hour", 2),
    "I": lambda when: _padded(f"(hour(CAST({when} AS TIMESTAMP_NTZ)) + 11) % 12 + 1", 2),
    "M": _part("minute", 2),
    "S": _part("second", 2),
    "f": lambda when: _padded(f"pmod({_micros(when)}, 1000000L)", 6),
    "j": _part("dayofyear", 3),
    "p": lambda when: f"CASE WHEN hour(CAST({when} AS TIMESTAMP_NTZ)) < 12 THEN 'AM' ELSE 'PM' END",
    "A": lambda when: PLAIN["dayname"].format(when),
    "a": lambda when: f"left({PLAIN['dayname'].format(when)}, 3)",
    "B": lambda when: PLAIN["monthname"].format(when),
    "b": lambda when: f"left({PLAIN['monthname'].format(when)}, 3)",
    "U": _week("(dayofweek({0}) - 1)"),
    "W": _week("weekday({0})"),
    "u": lambda when: f"CAST({_PARTS['isodow'].format(when)} AS STRING)",
    "w": lambda when: f"CAST({_PARTS['dayofweek'].format(when)} AS STRING)",
    "V": _part("week", 2),
    "G": _part("isoyear", 4),
}
