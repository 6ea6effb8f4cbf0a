"""PostgreSQL's SQL, from version 13 on, with functions of pg_catalog alone.

It has neither TRY_CAST nor quiet overflows: see `postgres_numbers`. NaN is NULL from the scan on. Settings of
the connection that change what is printed or read are the engine's to make: `engines.postgres`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from dalenius.errors import InvalidArgument
from dalenius.tables.language.dialects import postgres_dates as dates
from dalenius.tables.language.dialects import postgres_texts as texts
from dalenius.tables.language.dialects.dialect import Dialect, Templates, literal_digits
from dalenius.tables.language.dialects.postgres_numbers import (
    BELOW,
    INFINITY,
    INTEGER,
    LEAST,
    MOST,
    REAL,
    ZERO,
    bound,
    number,
    rounded,
    rounded_to,
)
from dalenius.tables.language.expressions import Expression, ExpressionType

_PLAIN: Templates = {
    "not": "(NOT {0})",
    "is_null": "({0} IS NULL)",
    "nullif": "CASE WHEN {0} IS DISTINCT FROM {1} THEN {0} END",
    "is_distinct": "({0} IS DISTINCT FROM {1})",
    "equal": "({0} = {1})",
    "not_equal": "({0} <> {1})",
    "less": "({0} < {1})",
    "less_equal": "({0} <= {1})",
    "greater": "({0} > {1})",
    "greater_equal": "({0} >= {1})",
    "like": "({0} LIKE {1} ESCAPE '')",
    "trim": texts.trimmed("btrim"),
    "ltrim": texts.trimmed("ltrim"),
    "rtrim": texts.trimmed("rtrim"),
    "length": "CAST(length({0}) AS bigint)",
    "concat": texts.CONCAT,
    "replace": texts.REPLACE,
    "starts_with": "starts_with({0}, {1})",
    "ends_with": "(right({0}, length({1})) = {1})",
    "position": "CAST(strpos({0}, {1}) AS bigint)",
    "contains": "(strpos({0}, {1}) > 0)",
    "dayname": "to_char({0}, 'FMDay')",
    "monthname": "to_char({0}, 'FMMonth')",
}
_HALF = f"CASE WHEN abs({{0}}) < {number(1e-323)} THEN {ZERO} ELSE {{0}} * {number(0.5)} END"
_FULL = 2.0**62
_FAR = (
    f"CAST(CAST(trunc({{0}} / {number(2.0**45)}) AS bigint) AS numeric) * {2**45} "
    f"+ CAST({{0}} - trunc({{0}} / {number(2.0**45)}) * {number(2.0**45)} AS bigint)"
)
"""A real number that is whole, up to 2^100, as a decimal one; a cast would round it."""
_EDGE = "1.7976931348623157e308"
_READ = {
    "integer": f"CASE WHEN {{0}} BETWEEN {LEAST} AND {MOST} THEN CAST({{0}} AS bigint) END",
    # Texts take the type that the column has: real numbers of 64 bits, or decimal ones of any size.
    "real": f"CASE WHEN abs({{0}}) <= '{_EDGE}' THEN CASE WHEN abs({{0}}) >= '5e-324' "
    f"THEN CAST({{0}} AS float8) WHEN {{0}} IS NOT NULL THEN {ZERO} END "
    f"WHEN {{0}} = 'NaN' THEN NULL WHEN {{0}} > '0' THEN {INFINITY} WHEN {{0}} < '0' THEN {BELOW} END",
    "date": "CASE WHEN {0} >= '0001-01-01' AND {0} < '10000-01-01' THEN CAST({0} AS date) END",
    "moment": "CASE WHEN {0} >= '0001-01-01' AND {0} < '10000-01-01' THEN CAST({0} AS timestamp) END",
    "other": "CASE WHEN num_nonnulls({0}) = 1 THEN TRUE END",
    "boolean": "{0}",
}


class Postgres(Dialect):
    """PostgreSQL's SQL."""

    name: ClassVar[str] = "postgres"
    types: ClassVar[Mapping[str, str]] = {
        "boolean": "boolean",
        "integer": "bigint",
        "real": "float8",
        "text": "text",
        "date": "date",
        "moment": "timestamp",
        "other": "boolean",
        "null": "text",
    }
    integer: ClassVar[Templates] = INTEGER
    real: ClassVar[Templates] = REAL
    plain: ClassVar[Templates] = _PLAIN

    @property
    def special(self) -> Mapping[str, Callable[..., str]]:
        """See `Dialect`."""
        return {
            "round": self._round,
            "lower": lambda sql, *_: bound(texts.cased("lower"), sql[0]),
            "upper": lambda sql, *_: bound(texts.cased("upper"), sql[0]),
            "ilike": _ilike,
            "epoch": lambda sql, *_: bound(dates.EPOCH, f"CAST({sql[0]} AS timestamp)"),
            "substring": texts.substring,
            "split_part": lambda sql, _, given: f"split_part({sql[0]}, {sql[1]}, {literal_digits(given[2])})",
            "strftime": texts.strftime,
            "extract": dates.extract,
            "date_trunc": dates.truncated,
            "date_diff": dates.difference,
            "date_add": dates.moved,
        }

    def filled(self, template: str, arguments: Sequence[str]) -> str:
        """See `Dialect`."""
        return bound(template, *arguments)

    def literal(self, value: object, type_: ExpressionType) -> str:
        """See `Dialect`. A bare constant has a meaning of its own in GROUP BY."""
        if isinstance(value, bool):
            return f"CAST({value} AS boolean)"
        return super().literal(value, type_)

    def number(self, value: float) -> str:
        """See `Dialect`."""
        return number(value)

    def text(self, value: str) -> str:
        """See `Dialect`."""
        if "\0" in value:
            raise InvalidArgument(
                "PostgreSQL has no texts that hold the character of code 0.", remedy="Leave it out."
            )
        return texts.text(value)

    def wide(self, sql: str) -> str:
        """See `Dialect`. What is wider is asked for only where 64 bits are nearly full."""
        return f"CAST({sql} AS bigint)"

    def settled(self, sql: str) -> str:
        """See `Dialect`. There is no NaN."""
        return f"({sql} + {ZERO})"

    def lettered(self, sql: str, type_: ExpressionType) -> str:
        """See `Dialect`."""
        return f'({sql} COLLATE "C")' if type_ in ("text", "null") else sql

    def within(self, sql: str, type_: ExpressionType) -> str:
        """See `Dialect`."""
        return dates.within(sql, type_)

    def as_real(self, sql: str, type_: ExpressionType) -> str:
        """See `Dialect`."""
        if type_ == "boolean":
            return f"CAST(CAST({sql} AS integer) AS float8)"
        return sql if type_ == "real" else f"CAST({sql} AS float8)"

    def cast(self, sql: str, source: ExpressionType, target: ExpressionType) -> str:
        """See `Dialect`."""
        if source == "text":
            return texts.read_text(sql, target)
        if target == "boolean" and source in ("integer", "real"):
            return f"({sql} <> 0)"
        if target == "text":
            return texts.written_real(sql) if source == "real" else f"CAST({sql} AS text)"
        if source == "real" and target == "integer":
            ends = f"{{0}} >= {number(-(2.0**63))} AND {{0}} < {number(2.0**63)}"
            return bound(f"CASE WHEN {ends} THEN CAST({{0}} AS bigint) END", sql)
        if source == "boolean":
            return f"CAST(CAST({sql} AS integer) AS {self.types[target]})"
        return f"CAST({sql} AS {self.types[target]})"

    def read(self, sql: str, type_: ExpressionType) -> str:
        """See `Dialect`. The engine shows each column in one of a few types: see `engines.postgres_types`."""
        return self.lettered(sql, type_) if type_ == "text" else _READ[type_].format(sql)

    def identity(self, sql: str, type_: ExpressionType) -> str:
        """See `Dialect`."""
        return f"CAST({sql} AS {'numeric' if type_ == 'integer' else self.types[type_]})"

    def begin(self, window: str, moment: str) -> str:
        """See `Dialect`."""
        return self.within(f"date_trunc('{window}', {moment})", "moment")

    def whole_sum(self, sql: str, over: str) -> str:
        """See `Dialect`."""
        total = f"SUM({sql}){over}"
        return f"CASE WHEN {total} BETWEEN {LEAST} AND {MOST} THEN CAST({total} AS bigint) END"

    def total(self, sql: str, step: float) -> str:
        """See `Dialect`. Nothing is bound here: in a subquery, a window would be of one row."""
        whole = self.as_real(sql, "integer")
        product = f"({whole} * {self.number(step)})"
        if step <= 1:
            return product
        most = self.number(math.ldexp(1.0, 1025 - math.frexp(step)[1]))
        far = f"CASE WHEN {whole} > {ZERO} THEN {INFINITY} WHEN {whole} < {ZERO} THEN {BELOW} END"
        return f"CASE WHEN abs({whole}) < {most} THEN {product} ELSE {far} END"

    def median(self, sql: str, over: str) -> str:
        """See `Dialect`. Over no window: see `gathered`."""
        low, high = (f"percentile_disc(0.5) WITHIN GROUP (ORDER BY {sql}{way})" for way in ("", " DESC"))
        middle = bound(REAL["add"], bound(_HALF, low), bound(_HALF, high))
        return f"CASE WHEN COUNT({sql}) % 2 = 1 THEN {low} ELSE {middle} END"

    def gathered(self, sql: str, over: str) -> tuple[str, str]:
        """See `Dialect`."""
        values = f"array_agg({sql}) FILTER (WHERE {sql} IS NOT NULL){over}"
        return values, f"(SELECT {self.median('v', '')} FROM unnest({{0}}) AS gathered (v))"

    def extreme(self, kind: str, sql: str, type_: ExpressionType, over: str) -> str:
        """See `Dialect`."""
        if type_ == "boolean":
            return f"{'bool_and' if kind == 'min' else 'bool_or'}({sql}){over}"
        return super().extreme(kind, sql, type_, over)

    def in_steps(self, sql: str, ends: tuple[float, float], scale: float) -> str:
        """See `Dialect`. GREATEST takes no notice of NULL, which stays what it is."""
        low, high = (self.number(end) for end in ends)
        held = f"LEAST(GREATEST({{0}}, {low}), {high})"
        steps = rounded(f"({held} * {self.number(scale)})")
        whole = f"CAST({steps} AS bigint)"
        if max(abs(end) * scale for end in ends) >= _FULL:
            whole = f"CASE WHEN abs({held}) < {self.number(_FULL / scale)} THEN CAST({whole} AS numeric) "
            whole += f"ELSE {_FAR.format(f'({held} * {self.number(scale)})')} END"
        far = f"abs({held}) >= {self.number(0.25 / scale)}"
        return bound(f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {far} THEN {whole} ELSE 0 END", sql)

    def _round(
        self, sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]
    ) -> str:
        digits = literal_digits(arguments[1]) if len(sql) == 2 else 0
        if types[0] == "integer":
            return _rounded_whole(sql[0], digits)
        real = self.as_real(sql[0], types[0])
        return rounded_to(real, digits) if len(sql) == 2 else rounded(real)


def _rounded_whole(sql: str, digits: int) -> str:
    """A whole number to so many zeros at its end, halves away from zero."""
    if digits >= 0:
        return sql
    found = f"round(CAST({{0}} AS numeric), {max(digits, -20)})"
    return bound(f"CASE WHEN {found} BETWEEN {LEAST} AND {MOST} THEN CAST({found} AS bigint) END", sql)


def _ilike(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    text, pattern = (bound(texts.cased("lower"), each) for each in sql)
    return f"({text} LIKE {pattern} ESCAPE '')"
