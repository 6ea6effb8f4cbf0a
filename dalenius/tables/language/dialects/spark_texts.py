"""Texts in Spark's SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalenius.tables.language.dialects.dialect import literal_text
from dalenius.tables.language.expressions import Expression, ExpressionType, Literal

BLANKS = "".join(chr(point) for point in (0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000))
"""What is trimmed: all that Unicode calls a space."""
_PLACES = 100_000
"""Beyond this no place in a text is looked for."""


def like(text: Callable[[str], str], verb: str, sql: Sequence[str], arguments: Sequence[Expression]) -> str:
    """LIKE, where `\\` is a letter like any other."""
    pattern = literal_text(arguments[1]).replace("\\", "\\\\")
    return f"({sql[0]} {verb} {text(pattern)})"


def substring(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    """A part of a text; a negative start counts from the end, and a negative length goes backwards."""
    start, *lengths = [
        f"CASE WHEN {each} BETWEEN -{_PLACES} AND {_PLACES} THEN {each} END" for each in sql[1:]
    ]
    if _whole(arguments[1]) > 0 and (not lengths or _whole(arguments[2]) >= 0):
        places = ", ".join(str(min(_whole(each), _PLACES)) for each in arguments[1:])
        known = all(_whole(each) <= _PLACES for each in arguments[1:])
        return f"substring({sql[0]}, {places})" if known else f"CASE WHEN FALSE THEN {sql[0]} END"
    # Places are counted from 0 here: where the part begins, and where it ends.
    size = f"char_length({sql[0]})"
    first = f"(({start}) + CASE WHEN {sql[1]} > 0 THEN -1 WHEN {sql[1]} = 0 THEN -1 ELSE {size} END)"
    last = f"({first} + ({lengths[0]}))" if lengths else f"GREATEST({first}, {size})"
    begin, end = f"GREATEST(LEAST({first}, {last}), 0)", f"GREATEST({first}, {last}, 0)"
    cut = f"substring({sql[0]}, CAST({begin} + 1 AS INT), CAST({end} - {begin} AS INT))"
    return f"CASE WHEN {' AND '.join(f'({each}) IS NOT NULL' for each in (start, *lengths))} THEN {cut} END"


def of_real(sql: str) -> str:
    """A real number as a text: the digits that tell it apart, with an exponent where there are many zeros.

    Java's digits: before Java 19 there is sometimes one more than is needed.
    """
    digits = "replace(regexp_replace(split_part(s, 'E', 1), '[.]0$', ''), '.', '')"
    power = "CAST(split_part(s, 'E', 2) AS INT)"
    plain = f"rpad({digits}, GREATEST({power} + 1, length({digits})), '0')"
    pointed = (
        f"left({plain}, {power} + 1) || '.' || CASE WHEN length({plain}) > {power} + 1 "
        f"THEN substring({plain}, {power} + 2) ELSE '0' END"
    )
    sign = f"CASE WHEN {power} < 0 THEN '-' ELSE '+' END"
    short = f"regexp_replace(split_part(s, 'E', 1), '[.]0$', '') || 'e' || {sign}"
    told = (
        "CASE WHEN s = 'Infinity' THEN 'inf' WHEN s = '4.9E-324' THEN '5e-324' "
        "WHEN NOT contains(s, 'E') THEN s "
        f"WHEN {power} = -4 THEN '0.000' || {digits} "
        f"WHEN {power} BETWEEN 0 AND 15 THEN {pointed} "
        f"ELSE {short} || lpad(abs({power}), GREATEST(2, length(abs({power}))), '0') END"
    )
    bare = f"CASE WHEN startswith(v, '-') THEN '-' || get(transform(array(substring(v, 2)), s -> {told}), 0) "
    bare += f"ELSE get(transform(array(v), s -> {told}), 0) END"
    return f"get(transform(array(CAST({sql} AS STRING)), v -> {bare}), 0)"


def _whole(argument: Expression) -> int:
    """The whole number that an argument is, −1 where it is none or below zero."""
    if isinstance(argument, Literal) and isinstance(argument.value, int):
        return max(argument.value, -1)
    return -1
