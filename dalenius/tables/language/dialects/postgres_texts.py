"""Texts in PostgreSQL's SQL. All of them have the collation "C": they are compared by their bytes.

Lower and upper case are simple, letter by letter: those of ASCII, and of the alphabets in `_ALPHABETS`
(Latin, Greek, Cyrillic, Armenian); all other letters stay as they are. What a cast reads is said by the
grammars of `casting`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

from dalenius.tables.language.casting import FALSE, INTEGER, LONGEST, MOMENT, REAL, TRUE
from dalenius.tables.language.dialects.dialect import literal_text
from dalenius.tables.language.dialects.postgres_numbers import (
    BELOW,
    INFINITY,
    LEAST,
    MOST,
    ZERO,
    bound,
    number,
    once,
)
from dalenius.tables.language.expressions import Expression, ExpressionType
from dalenius.tables.language.expressions import Literal as Written
from dalenius.tables.language.functions import MOST_TEXT

_ALPHABETS = (range(0x80, 0x590), range(0x1E00, 0x1F00))
_ODD = {"lower": {"İ": "i"}, "upper": {"ß": "ẞ"}}
"""Letters that Python makes two of."""
_PLACES = 100_000
"""Beyond this no place in a text is looked for."""
_BLANKS = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""What `trim` removes: the separators of Unicode that are spaces."""
_LARGEST = 1 << 28
"""Bytes of a text that a function may make on its way."""


def text(value: str) -> str:
    """A text in SQL, compared by its bytes."""
    return "(CAST('" + value.replace("'", "''") + '\' AS text) COLLATE "C")'


@cache
def cased(name: str) -> str:
    """The template of `lower` or of `upper`."""
    fold: Callable[[str], str] = str.lower if name == "lower" else str.upper
    letters = [chr(place) for alphabet in _ALPHABETS for place in alphabet]
    pairs = {letter: _ODD[name].get(letter, fold(letter)) for letter in letters}
    pairs = {letter: other for letter, other in pairs.items() if other != letter and len(other) == 1}
    table = f"'{''.join(pairs)}', '{''.join(pairs.values())}'"
    plain = f"{name}({{0}})"
    return f"CASE WHEN octet_length({{0}}) = length({{0}}) THEN {plain} ELSE translate({plain}, {table}) END"


def trimmed(name: str) -> str:
    """The template of `btrim`, `ltrim` or `rtrim`."""
    return f"{name}({{0}}, '{_BLANKS}')"


REPLACE = (
    f"CASE WHEN CAST(octet_length({{0}}) AS bigint) * (octet_length({{2}}) + 1) < {_LARGEST} "
    f"THEN left(replace({{0}}, {{1}}, {{2}}), {MOST_TEXT}) END"
)
CONCAT = f"left(left({{0}}, {MOST_TEXT}) || left({{1}}, {MOST_TEXT}), {MOST_TEXT})"


def substring(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    """From a place on; places before the first count from the end, and a length below 0 goes back."""
    plain = [
        each.value for each in arguments[1:] if isinstance(each, Written) and isinstance(each.value, int)
    ]
    if len(plain) == len(sql) - 1 and 0 < plain[0] <= _PLACES and 0 <= plain[-1] <= _PLACES:
        return f"substr({sql[0]}, {', '.join(map(str, plain))})"
    places = [
        bound(f"CASE WHEN {{0}} BETWEEN -{_PLACES} AND {_PLACES} THEN {{0}} END", each) for each in sql[1:]
    ]
    first = "CASE WHEN p > 0 THEN p - 1 WHEN p < 0 THEN length(t) + p WHEN p = 0 THEN -1 END"
    length = "l" if len(sql) == 3 else "length(t) - f"
    ends = f"SELECT t, f, f + {length} AS e FROM"
    bindings = f"{sql[0]} AS t, {places[0]} AS p" + (f", {places[1]} AS l" if len(sql) == 3 else "")
    more = ", l" if len(sql) == 3 else ""
    from_, to = "greatest(least(f, e), 0)", "greatest(f, e)"
    return (
        f"(SELECT substr(t, CAST({from_} + 1 AS integer), CAST(greatest({to} - {from_}, 0) AS integer)) "
        f"FROM ({ends} (SELECT t, {first} AS f{more} FROM (SELECT {bindings} OFFSET 0) AS s OFFSET 0) AS s "
        f"OFFSET 0) AS s WHERE e IS NOT NULL)"
    )


def read_text(sql: str, target: ExpressionType) -> str:
    """A text as another type, NULL where it is not written as the grammar says."""
    return once("{0}" if target == "text" else _READ[target], sql)


def _matches(sql: str, grammar: str) -> str:
    doubled = grammar.replace("{", "{{").replace("}", "}}")
    return f"length({sql}) <= {LONGEST} AND {sql} ~ '^({doubled})$'"


_DECIMAL = f"CASE WHEN {_matches('{0}', REAL)} THEN CAST({{0}} AS numeric) END"
_LAST_DAY = "make_date(y, m, 1) + interval '1 month' - interval '1 day'"


def _moment() -> str:
    # The two ends of a year's digits are looked at, as there is no year 0.
    parts = ", ".join(
        f"CASE WHEN {_matches('b', MOMENT)} THEN CAST(substr(b, {place}, {width}) AS integer) END AS {name}"
        for name, place, width in (("y", 1, 4), ("m", 6, 2), ("d", 9, 2))
    )
    trimmed_once = "SELECT btrim({0}) AS b OFFSET 0"
    return (
        "(SELECT CASE WHEN y > 0 AND m BETWEEN 1 AND 12 THEN CASE WHEN d BETWEEN 1 AND "
        f"date_part('day', {_LAST_DAY}) THEN CAST(b AS timestamp) END END "
        f"FROM (SELECT b, {parts} FROM ({trimmed_once}) AS s OFFSET 0) AS s)"
    )


_READ = {
    "boolean": f"CASE WHEN lower({{0}}) IN {TRUE} THEN TRUE WHEN lower({{0}}) IN {FALSE} THEN FALSE END",
    "integer": f"CASE WHEN {_matches('{0}', INTEGER)} THEN CASE WHEN CAST({{0}} AS numeric) BETWEEN {LEAST} "
    f"AND {MOST} THEN CAST({{0}} AS bigint) END END",
    "real": "(SELECT CASE WHEN n >= 1.797693134862315807e308 THEN " + INFINITY + " "
    "WHEN n <= -1.797693134862315807e308 THEN " + BELOW + " "
    "WHEN abs(n) > 2.4703282292062328e-324 THEN CAST(t AS float8) WHEN n IS NOT NULL THEN " + ZERO + " END "
    "FROM (SELECT {0} AS t, " + _DECIMAL + " AS n OFFSET 0) AS s)",
    "moment": _moment(),
    "date": f"CAST({_moment()} AS date)",
}


_SHORTEST = (
    "(SELECT CASE WHEN CAST(c AS float8) = {0} THEN c ELSE t END FROM (SELECT t, "
    "CAST(trim_scale(round(CAST(split_part(t, 'e', 1) AS numeric), 15)) AS text) || 'e' "
    "|| split_part(t, 'e', 2) AS c FROM (SELECT CAST({0} AS text) AS t OFFSET 0) AS s OFFSET 0) AS s)"
)
"""PostgreSQL writes a digit more where the shortest text lies in the middle of two real numbers."""


def written_real(sql: str) -> str:
    """A real number as its shortest text, with a point or an exponent."""
    shown, whole = "CAST({0} AS text)", "{0} = trunc({0})"
    return bound(
        f"CASE WHEN {{0}} = {INFINITY} THEN 'inf' WHEN {{0}} = {BELOW} THEN '-inf' "
        f"WHEN abs({{0}}) < {number(1e15)} THEN {shown} || CASE WHEN {whole} THEN '.0' ELSE '' END "
        f"WHEN abs({{0}}) < {number(1e16)} THEN CAST(CAST({shown} AS numeric) AS text) "
        f"|| CASE WHEN {whole} THEN '.0' ELSE '' END "
        f"WHEN abs({{0}}) < {number(1e23)} THEN {_SHORTEST} ELSE {shown} END",
        sql,
    )


_DIRECTIVES = {
    "Y": "YYYY", "m": "MM", "d": "DD", "H": "HH24", "M": "MI", "S": "SS", "j": "DDD", "a": "Dy", "A": "FMDay",
    "b": "Mon", "B": "FMMonth", "p": "AM", "I": "HH12", "u": "ID", "V": "IW", "G": "IYYY", "f": "US",
}  # fmt: skip
_WEEKS = "lpad(CAST(floor((date_part('doy', {0}) + 6 - {1}) / 7) AS text), 2, '0')"
_DERIVED = {
    "y": "right(to_char({0}, 'YYYY'), 2)",
    "w": "CAST(date_part('dow', {0}) AS text)",
    "U": _WEEKS.replace("{1}", "date_part('dow', {0})"),
    "W": _WEEKS.replace("{1}", "(date_part('isodow', {0}) - 1)"),
}


def strftime(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    """A date as the text that a format describes."""
    parts = " || ".join(_formatted(literal_text(arguments[1]))) or "CASE WHEN {0} IS NOT NULL THEN '' END"
    return once(f"({parts})", f"CAST({sql[0]} AS timestamp)")


def _formatted(form: str) -> Iterator[str]:
    plain = iter(form)
    for letter in plain:
        directive = next(plain, "") if letter == "%" else ""
        if directive in _DIRECTIVES:
            yield f"to_char({{0}}, '{_DIRECTIVES[directive]}')"
        elif directive in _DERIVED:
            yield _DERIVED[directive]
        else:
            shown = (directive or letter).replace("'", "''").replace("{", "{{").replace("}", "}}")
            yield f"CASE WHEN {{0}} IS NOT NULL THEN '{shown}' END"
