"""The worst values of every type, and random expressions over them."""

from __future__ import annotations

from datetime import date, datetime
from functools import cache

import duckdb
from hypothesis import strategies as st

from dalenius.tables.language.expressions import (
    DUCKDB_ALONE,
    PARTS,
    RULES,
    WINDOWS,
    Column,
    Expression,
    Literal,
    call,
    case,
    literal,
)
from dalenius.tables.schema import Type

COLUMNS: dict[str, Type] = {
    "i": "integer", "h": "integer", "x": "real", "d": "real", "t": "text", "e": "text", "b": "boolean",
    "day": "date", "m": "moment", "z": "moment", "blob": "other", "span": "other",
}  # fmt: skip
_DATA = """
SET TimeZone = 'UTC';
CREATE TYPE mood AS ENUM ('', 'sad', '1e999');
CREATE TABLE nasty (i BIGINT, h HUGEINT, x DOUBLE, d DECIMAL(38, 10), t VARCHAR, e mood, b BOOLEAN, day DATE,
                    m TIMESTAMP, z TIMESTAMPTZ, blob BLOB, span INTERVAL);
INSERT INTO nasty VALUES
 (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
 (0, 0, 0, 0, '', '', TRUE, '0001-01-01', '0001-01-01', '0001-01-01', '', INTERVAL 0 DAY),
 (-9223372036854775808, -170141183460469231731687303715884105727, '-inf',
  -9999999999999999999999999999.9999999999,
  'NaN', 'sad', FALSE, '-infinity', '-infinity', '-infinity', '\\x00\\xFF', INTERVAL (-2147483648) MONTH),
 (9223372036854775807, 170141183460469231731687303715884105727, 'inf',
  9999999999999999999999999999.9999999999,
  '99999-01-01', '1e999', TRUE, 'infinity', 'infinity', 'infinity', 'abc', INTERVAL 178956970 YEAR),
 (-1, 18446744073709551615, 'nan', 0.0000000001, '2024-02-30', 'sad', NULL, '5881580-07-10',
  '294247-01-10 04:00:54.775806', '290000-01-01', 'e', INTERVAL 1 MONTH),
 (1, 1, '-0.0', 1, '9223372036854775808', '', FALSE, '9999-12-31', '9999-12-31 23:59:59.999999',
  '9999-12-31', 'x', INTERVAL 30 DAY),
 (7, -7, 1.7976931348623157e308, -0.5, 'İß🙂é%_\\', '', TRUE, '2024-02-29', '2024-02-29 12:34:56.789',
  '2024-02-29 23:59:59.999', 'y', INTERVAL (-1) MICROSECOND),
 (2147483648, 4294967296, 5e-324, 2.5, '2024-01-01 00:00:00 Europe/Nowhere', 'sad', TRUE, '4714-01-01 (BC)',
  '0044-03-15 (BC)', '1970-01-01', 'z', INTERVAL 5 DAY),
 (-3, 3, -2.5, 3.5, ' 12 ', 'sad', FALSE, '0001-01-02', '1969-12-31 23:59:59', '1969-12-31', 'q', NULL),
 (100000, 12, 1e19, 12, repeat('a', 70000), 'sad', TRUE, '1582-10-10', '1582-10-10', '1582-10-10', 'q', NULL);
CREATE OR REPLACE TABLE nasty AS SELECT row_number() OVER () - 1 AS line, * FROM nasty;
"""


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """The table `nasty`, with the number of each `line`."""
    found = duckdb.connect()
    found.execute(_DATA)
    return found


def columns(type_: str) -> list[Column]:
    """The columns of a type, at their places."""
    return [Column(i, kind) for i, kind in enumerate(COLUMNS.values()) if kind == type_]


_LITERALS: dict[str, st.SearchStrategy[Literal]] = {
    "integer": st.integers(-(2**63) + 1, 2**63 - 1).map(literal)
    | st.sampled_from([0, 1, -1, 2]).map(literal),
    "real": st.floats(allow_nan=False).map(literal),
    "text": st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4).map(
        literal
    )
    | st.sampled_from(["2024-01-01", "1e400", "nan", "%", "\\"]).map(literal),
    "boolean": st.booleans().map(literal),
    "date": st.dates(date(1, 1, 1), date(9999, 12, 31)).map(literal),
    "moment": st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(literal),
}
_PATTERNS = st.sampled_from(["", "a*", "(a|b)+$", "^.*é", "[^a]{2,}", "(a*)*b", "\\\\"]).map(literal)
_SMALL = st.integers(-400, 400).map(literal)
_FIXED: dict[str, dict[int, st.SearchStrategy[Literal]]] = {
    "round": {1: _SMALL},
    "date_trunc": {0: st.sampled_from(WINDOWS).map(literal)},
    "date_diff": {0: st.sampled_from(WINDOWS).map(literal)},
    "date_add": {0: st.sampled_from(["day", "week", "month", "quarter", "year", "decade"]).map(literal)},
    "extract": {0: st.sampled_from(sorted(PARTS)).map(literal)},
    "strftime": {1: st.sampled_from(["%Y-%m-%d", "%H:%M:%S", "%j %a %b %p %I %y %U %W", "%f"]).map(literal)},
    "like": {1: _LITERALS["text"]},
    "ilike": {1: _LITERALS["text"]},
    "replace": {1: _LITERALS["text"], 2: _LITERALS["text"]},
    "split_part": {1: st.sampled_from(["-", "a", "\\"]).map(literal), 2: st.integers(1, 9).map(literal)},
    "regexp_matches": {1: _PATTERNS, 2: st.sampled_from(["", "i", "s"]).map(literal)},
    "regexp_full_match": {1: _PATTERNS, 2: st.sampled_from(["", "i", "s"]).map(literal)},
    "regexp_extract": {1: _PATTERNS, 2: st.integers(0, 9).map(literal), 3: st.just("").map(literal)},
    "regexp_replace": {1: _PATTERNS, 2: st.just("x$").map(literal), 3: st.just("g").map(literal)},
    "strptime": {1: st.sampled_from(["%d.%m.%Y", "%Y-%m-%d", "%H:%M %p", "%j"]).map(literal)},
}  # fmt: skip


@st.composite
def expressions(draw: st.DrawFn, type_: str, depth: int = 3) -> Expression:
    """Any expression of a type."""
    if depth == 0 or type_ == "other" or draw(st.integers(0, 4)) == 0:
        leaves = st.sampled_from(columns(type_)) if columns(type_) else st.nothing()
        return draw(leaves | _LITERALS[type_] if type_ in _LITERALS else leaves)
    makers = sorted(name for name in RULES if name in _MAKES[type_] and name not in DUCKDB_ALONE)
    name = draw(st.sampled_from([*makers, "case"]))
    if name == "case":
        branch = draw(expressions("boolean", depth - 1)), draw(expressions(type_, depth - 1))
        return case([branch], draw(expressions(type_, depth - 1)))
    return draw(applied(name, type_, depth))


@st.composite
def applied(draw: st.DrawFn, name: str, type_: str = "", depth: int = 2) -> Expression:
    """A function of any arguments."""
    takes = RULES[name].takes[1 if name == "date_add" else -1] if RULES[name].takes else {"real"}
    kinds = sorted(kind for kind in takes if kind != "other")
    wanted = type_ or draw(st.sampled_from(kinds))
    return call(name, *(draw(_argument(name, place, wanted, depth - 1)) for place in range(_arity(name))))


def _arity(name: str) -> int:
    return 2 if RULES[name].alike else len(RULES[name].takes)


def _argument(name: str, place: int, type_: str, depth: int) -> st.SearchStrategy[Expression]:
    if name in _FIXED and place in _FIXED[name]:
        return _FIXED[name][place]
    if name in _SAME and not (name == "date_add" and place == 2):
        return expressions(type_, depth)
    takes = RULES[name].takes[0 if RULES[name].alike else place]
    kinds = sorted(kind for kind in takes if kind != "other" or name in ("is_null", "cast_text"))
    if RULES[name].alike and len(kinds) > 1:
        kinds = ["text"] if name.endswith("equal") else ["real"] if name.startswith("less") else ["date"]
    return st.sampled_from(kinds).flatmap(lambda kind: expressions(kind, depth))


_SAME = {
    "coalesce", "nullif", "least", "greatest", "add", "subtract", "multiply", "modulo", "negate", "abs",
    "floor", "ceil", "trunc", "date_trunc", "date_add",
}  # fmt: skip


def _makes(type_: str) -> set[str]:
    numbers = {"add", "subtract", "multiply", "modulo", "negate", "abs", "floor", "ceil", "trunc"}
    found = {name for name, rule in RULES.items() if rule.gives == type_}
    found |= {"coalesce", "nullif", "least", "greatest"}
    if type_ in ("integer", "real"):
        found |= numbers
    if type_ in ("date", "moment"):
        found |= {"date_trunc", "date_add"}
    return found


_MAKES = {type_: _makes(type_) for type_ in _LITERALS}
