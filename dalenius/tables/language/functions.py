"""What each function gives, in Python: for formulas over released values, and for public keys.

`evaluate` never raises: where there is no value, or only NaN, it gives None, which is NULL. The names are
those of `expressions`, and `dialects` has the same functions in SQL.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from dalenius.tables.language.casting import GRAMMAR, LONGEST
from dalenius.tables.rows import KeyPart

MOST_DIGITS = 300
"""Places that numbers are rounded to, before or behind the point: there are no more in DOUBLE that matter."""
MOST_TEXT = 10_000
"""Characters that a text made by a function keeps; so that no query can grow a text without end."""


def evaluate(name: str, arguments: Sequence[KeyPart]) -> KeyPart:
    """The value of a function, None where it has none or is not known here."""
    try:
        if name in _WITH_NULLS:
            return _settled(_WITH_NULLS[name](*arguments))
        if name not in _STRICT or any(argument is None for argument in arguments):
            return None
        return _settled(_STRICT[name](*arguments))
    except (ValueError, TypeError, ArithmeticError, AttributeError):
        return None


def knows(name: str) -> bool:
    """Whether a function can be evaluated here."""
    return name in _STRICT or name in _WITH_NULLS


def truncated(part: str, when: date) -> date:
    """The beginning of the hour, day, week, month, quarter or year of a date, of the date's own type."""
    day = date(when.year, when.month, when.day)
    if part not in _BEGINNINGS:
        return _within_day(part, when)
    start = _BEGINNINGS[part](day)
    return datetime(start.year, start.month, start.day) if isinstance(when, datetime) else start


def _within_day(part: str, when: date) -> date:
    if not isinstance(when, datetime):
        return when
    fields = ("hour", "minute", "second")[: ("hour", "minute", "second").index(part) + 1]
    return datetime(when.year, when.month, when.day, **{field: getattr(when, field) for field in fields})


_BEGINNINGS: Mapping[str, Callable[[date], date]] = {
    "day": lambda day: day,
    "week": lambda day: day - timedelta(days=day.weekday()),
    "month": lambda day: day.replace(day=1),
    "quarter": lambda day: day.replace(month=3 * ((day.month - 1) // 3) + 1, day=1),
    "year": lambda day: day.replace(month=1, day=1),
    "decade": lambda day: day.replace(year=day.year - day.year % 10, month=1, day=1),
}

_PARTS: Mapping[str, Callable[[Any], int]] = {
    "year": lambda when: when.year,
    "quarter": lambda when: (when.month - 1) // 3 + 1,
    "month": lambda when: when.month,
    "week": lambda when: when.isocalendar()[1],
    "isoyear": lambda when: when.isocalendar()[0],
    "day": lambda when: when.day,
    "dayofweek": lambda when: when.isoweekday() % 7,
    "isodow": lambda when: when.isoweekday(),
    "dayofyear": lambda when: when.timetuple().tm_yday,
    "hour": lambda when: getattr(when, "hour", 0),
    "minute": lambda when: getattr(when, "minute", 0),
    "second": lambda when: getattr(when, "second", 0),
}


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip


def _settled(value: Any) -> KeyPart:
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, str):
        return value[:MOST_TEXT]
    return value if isinstance(value, bool | int | float | str | date) else None


def _case(*arguments: KeyPart) -> KeyPart:
    for when, then in zip(arguments[0:-1:2], arguments[1::2], strict=True):
        if when is not None and when:
            return then
    return arguments[-1]


def _and(*arguments: KeyPart) -> bool | None:
    if any(argument is not None and not argument for argument in arguments):
        return False
    return None if None in arguments else True


def _or(*arguments: KeyPart) -> bool | None:
    if any(argument for argument in arguments):
        return True
    return None if None in arguments else False


def _extreme(pick: Callable[..., Any]) -> Callable[..., Any]:
    def over(*arguments: KeyPart) -> Any:
        known = [argument for argument in arguments if argument is not None]
        return pick(known) if known else None

    return over


def _round(number: float, digits: float = 0) -> float:
    step = Fraction(10) ** -max(-MOST_DIGITS, min(MOST_DIGITS, int(digits)))
    whole = math.floor(abs(Fraction(number)) / step + Fraction(1, 2)) * step
    signed = -whole if number < 0 else whole
    return int(signed) if isinstance(number, int) else float(signed)


def _power(base: float, exponent: float) -> float:
    result = math.pow(base, exponent)
    return result if math.isfinite(result) else math.nan


def _substring(text: str, start: int, length: int | None = None) -> str:
    """As in SQL: from the start-th character; a negative start counts from the end."""
    first = start - 1 if start > 0 else len(text) + start if start < 0 else -1
    last = len(text) if length is None else first + length
    return text[max(first, 0) : max(last, 0)]


def like(text: str, pattern: str, *, ignoring_case: bool = False) -> bool:
    """SQL's LIKE, by hand and in linear space: % is any text, _ any character."""
    if ignoring_case:
        text, pattern = text.lower(), pattern.lower()
    reached = {0}
    for sign in pattern:
        if sign == "%":
            reached = set(range(min(reached, default=len(text) + 1), len(text) + 1))
        else:
            reached = {i + 1 for i in reached if i < len(text) and sign in ("_", text[i])}
    return len(text) in reached


def _date_diff(part: str, start: date, end: date) -> int:
    """How many ends of days, months and so on lie between."""
    first, last = (truncated(part, each) for each in (start, end))
    if part in ("month", "quarter", "year", "decade"):
        months = 12 * (last.year - first.year) + last.month - first.month
        return months // {"month": 1, "quarter": 3, "year": 12, "decade": 120}[part]
    seconds = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}[part]
    both = [
        datetime(each.year, each.month, each.day) if type(each) is date else each for each in (first, last)
    ]
    return (both[1] - both[0]) // timedelta(seconds=seconds)


def _text(value: KeyPart) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return str(value) if isinstance(value, int | str | date) else None


def _told(type_: str, value: Any) -> Any:
    """A text that says a value of a type, without blanks; all else as it is."""
    if isinstance(value, str) and not (len(value) <= LONGEST and re.fullmatch(GRAMMAR[type_], value)):
        raise ValueError
    return value.strip(" ") if isinstance(value, str) else value


def _iso(when: Any) -> str:
    return when if isinstance(when, str) else str(when.isoformat())


def _integer(value: Any) -> int:
    whole = int(_told("integer", value)) if isinstance(value, str) else round(value)
    return whole if -(2**63) <= whole < 2**63 else int("no value")


_WITH_NULLS: Mapping[str, Callable[..., Any]] = {
    "case": _case,
    "coalesce": lambda *each: next((value for value in each if value is not None), None),
    "and": _and,
    "or": _or,
    "is_null": lambda value: value is None,
    "least": _extreme(min),
    "greatest": _extreme(max),
    "nullif": lambda a, b: None if a is not None and a == b else a,
    "is_distinct": lambda a, b: a != b,
}

_STRICT: Mapping[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "integer_divide": lambda a, b: math.trunc(Fraction(a) / Fraction(b)),
    "modulo": lambda a, b: a - b * math.trunc(Fraction(a) / Fraction(b)),
    "negate": lambda a: -a,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "round": _round,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "sqrt": math.sqrt,
    "cbrt": math.cbrt,
    "ln": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "exp": math.exp,
    "power": _power,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "atan": math.atan,
    "asin": math.asin,
    "acos": math.acos,
    "atan2": math.atan2,
    "to_float": lambda a: struct.unpack("f", struct.pack("f", a))[0],
    "pi": lambda: math.pi,
    "not": lambda a: not a,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "lower": str.lower,
    "upper": str.upper,
    "trim": lambda text: text.strip(" "),
    "ltrim": lambda text: text.lstrip(" "),
    "rtrim": lambda text: text.rstrip(" "),
    "length": len,
    "concat": lambda a, b: a + b,
    "substring": _substring,
    "replace": lambda text, old, new: text.replace(old, new) if old else text,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": lambda text, part: part in text,
    "position": lambda text, part: text.find(part) + 1,
    "split_part": lambda text, between, place: (text.split(between) + [""] * place)[place - 1],
    "like": like,
    "ilike": lambda text, pattern: like(text, pattern, ignoring_case=True),
    "date_trunc": truncated,
    "extract": lambda part, when: _PARTS[part](when),
    "date_diff": _date_diff,
    "held": lambda number, least, most: min(max(number, least), most),
    "day_from_number": lambda number: date(2000, 1, 1) + timedelta(days=round(number)),
    "moment_from_number": lambda number: datetime(2000, 1, 1) + timedelta(microseconds=round(number * 10**6)),
    "dayname": lambda when: _DAYS[when.weekday()],
    "monthname": lambda when: _MONTHS[when.month - 1],
    "cast_integer": _integer,
    "cast_real": lambda value: float(_told("real", value)),
    "cast_text": _text,
    "cast_date": lambda when: date.fromisoformat(_iso(_told("date", when))[:10]),
    "cast_moment": lambda when: datetime.fromisoformat(_iso(_told("moment", when))),
    "cast_boolean": lambda value: bool(value) if not isinstance(value, str) else None,
}
