"""DuckDB's types in the words of `Engine.columns`, and columns as values that Python can tell apart."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime

from dalenius.errors import InvalidArgument
from dalenius.tables.rows import Key, KeyPart

INTEGERS = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
}  # fmt: skip
"""Those that a HUGEINT can hold."""
_KINDS = (
    ("boolean", "BOOLEAN"),
    ("integer", r"DECIMAL\(\d+,\s*0\)"),
    ("real", r"FLOAT|DOUBLE|DECIMAL\(\d+,\s*\d+\)"),
    ("text", r"VARCHAR|UUID|ENUM\(.*\)"),
    ("date", "DATE"),
    ("moment", r"TIMESTAMP(_S|_MS|_NS)?( WITH TIME ZONE)?"),
)


def kind_of(type_name: str) -> str:
    """What `Engine.columns` calls one of DuckDB's types.

    Decimals without places are whole numbers, as a HUGEINT holds them all, and a UUID is its text. UHUGEINT
    is none of these: what no HUGEINT holds could not be told apart.
    """
    if type_name in INTEGERS:
        return "integer"
    found = (kind for kind, names in _KINDS if re.fullmatch(names, type_name, re.DOTALL))
    return next(found, "other")


def key_of(column: str, type_name: str) -> str:
    """SQL for a grouping column as a value that a `Key` holds: of two groups no one key is made later."""
    kind = kind_of(type_name)
    if kind == "real" and type_name != "DOUBLE":
        return f"CAST({column} AS DOUBLE)"
    if kind == "date":
        return _within(column, "DATE '0001-01-01'", "DATE '9999-12-31'")
    if kind == "moment":
        plain = column if type_name == "TIMESTAMP" else f"TRY(make_timestamp(epoch_us({column})))"
        return _within(plain, "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'")
    if kind == "integer" and type_name not in INTEGERS:
        return f"CAST({column} AS HUGEINT)"
    return f"CAST({column} AS VARCHAR)" if kind in ("text", "other") and type_name != "VARCHAR" else column


def _within(column: str, lower: str, upper: str) -> str:
    # Python has no such dates as the year 12,000 or infinity: they are read as NULL.
    return f"CASE WHEN {column} BETWEEN {lower} AND {upper} THEN {column} END"


def places(keys: Sequence[Key]) -> Mapping[tuple[object, ...], int]:
    """Where each key stands among those asked for, by its name; the same key twice is refused."""
    found = {name(key): place for place, key in enumerate(keys)}
    if len(found) < len(keys):
        raise InvalidArgument("A key is listed twice.", remedy="List each key once.")
    return found


def name(key: Key) -> tuple[object, ...]:
    """What a key is told apart by, as GROUP BY does: NaN is NaN, −0 is 0, 1 is 1.0 but not TRUE.

    A date is the moment at which it begins.
    """
    return tuple(part if type(part) is str else _name(part) for part in key)


def _name(part: KeyPart) -> object:
    if isinstance(part, bool):
        return "boolean", part
    if isinstance(part, float) and math.isnan(part):
        return ("nan",)
    if isinstance(part, datetime):
        return part.astimezone(UTC).replace(tzinfo=None) if part.tzinfo else part
    return datetime(part.year, part.month, part.day) if isinstance(part, date) else part
