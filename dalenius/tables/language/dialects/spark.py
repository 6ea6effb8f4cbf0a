"""Spark's SQL, without ANSI errors: what has no value is NULL, and whole numbers are computed by `try_…`.

A session of ours reads it (`engines.spark`), whose settings are fixed: the zone is UTC, names are taken as
they are written, `\\` in a text is written twice, and nothing raises that has another way. Texts are bytes of
UTF-8, compared as such. NaN is equal to itself and above everything, as in DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from dalenius.tables.language.casting import FALSE, GRAMMAR, LONGEST, TRUE
from dalenius.tables.language.dialects import spark_dates, spark_texts
from dalenius.tables.language.dialects.dialect import Dialect, Templates, literal_digits
from dalenius.tables.language.expressions import Call, Expression, ExpressionType
from dalenius.tables.language.functions import MOST_TEXT

_WITHIN = {
    "date": "BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'",
    "moment": "BETWEEN TIMESTAMP_NTZ '0001-01-01 00:00:00' AND TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'",
}
_WHOLE = "4503599627370496D"
"""From 2^52 on, real numbers are whole."""
_INFINITE = "double('inf')"
_HALF = 2**45
_LIMIT = 2.0**62
_ZEROS = 20
"""No whole number of 64 bits has as many digits."""
_UNFRAMED = {
    "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead",
}  # fmt: skip
"""Window functions that have an order, and no frame."""
_INTEGER: Templates = {
    "add": "try_add({0}, {1})",
    "subtract": "try_subtract({0}, {1})",
    "multiply": "try_multiply({0}, {1})",
    "modulo": "({0} % {1})",
    "integer_divide": "CASE WHEN {1} = -1 THEN try_subtract(0L, {0}) ELSE {0} DIV {1} END",
    "negate": "try_subtract(0L, {0})",
    "abs": "CASE WHEN {0} < 0 THEN try_subtract(0L, {0}) ELSE {0} END",
    "floor": "{0}",
    "ceil": "{0}",
    "trunc": "{0}",
    "sign": "CAST(sign({0}) AS BIGINT)",
}
_REAL: Templates = {
    "add": "({0} + {1})",
    "subtract": "({0} - {1})",
    "multiply": "({0} * {1})",
    "divide": "({0} / {1})",
    "modulo": "({0} % {1})",
    "negate": "(-({0}))",
    "abs": "abs({0})",
    "sign": "CAST(sign({0}) AS BIGINT)",
    "floor": f"CASE WHEN abs({{0}}) < {_WHOLE} THEN CAST(floor({{0}}) AS DOUBLE) ELSE {{0}} END",
    "ceil": f"CASE WHEN abs({{0}}) < {_WHOLE} THEN CAST(ceil({{0}}) AS DOUBLE) ELSE {{0}} END",
    "trunc": f"CASE WHEN abs({{0}}) < {_WHOLE} THEN CAST(CAST({{0}} AS BIGINT) AS DOUBLE) ELSE {{0}} END",
    "sqrt": "CASE WHEN {0} >= 0 THEN sqrt({0}) END",
    "cbrt": "cbrt({0})",
    "ln": "ln(CASE WHEN {0} > 0 THEN {0} END)",
    "log10": "log10(CASE WHEN {0} > 0 THEN {0} END)",
    "log2": "log2(CASE WHEN {0} > 0 THEN {0} END)",
    "exp": "exp({0})",
    "power": f"CASE WHEN abs({{0}}) = 1 AND abs({{1}}) = {_INFINITE} THEN 1D ELSE pow({{0}}, {{1}}) END",
    "sin": f"sin(CASE WHEN abs({{0}}) < {_INFINITE} THEN {{0}} END)",
    "cos": f"cos(CASE WHEN abs({{0}}) < {_INFINITE} THEN {{0}} END)",
    "tan": f"tan(CASE WHEN abs({{0}}) < {_INFINITE} THEN {{0}} END)",
    "atan": "atan({0})",
    "asin": "asin(CASE WHEN {0} BETWEEN -1 AND 1 THEN {0} END)",
    "acos": "acos(CASE WHEN {0} BETWEEN -1 AND 1 THEN {0} END)",
    "atan2": "atan2({0}, {1})",
    "to_float": f"CASE WHEN abs({{0}}) = {_INFINITE} OR abs({{0}}) < 3.4028235677973366E38D "
    "THEN CAST(CAST({0} AS FLOAT) AS DOUBLE) END",
    "is_nan": "CASE WHEN {0} IS NOT NULL THEN isnan({0}) END",
    "pi": "pi()",
}
_PLAIN: Templates = {
    "not": "(NOT {0})",
    "is_null": "({0} IS NULL)",
    "nullif": "CASE WHEN NOT ({0} <=> {1}) THEN {0} END",
    "is_distinct": "(NOT ({0} <=> {1}))",
    "equal": "({0} = {1})",
    "not_equal": "({0} <> {1})",
    "less": "({0} < {1})",
    "less_equal": "({0} <= {1})",
    "greater": "({0} > {1})",
    "greater_equal": "({0} >= {1})",
    "lower": "lower({0})",
    "upper": "upper({0})",
    "trim": f"trim(BOTH '{spark_texts.BLANKS}' FROM {{0}})",
    "ltrim": f"trim(LEADING '{spark_texts.BLANKS}' FROM {{0}})",
    "rtrim": f"trim(TRAILING '{spark_texts.BLANKS}' FROM {{0}})",
    "length": "CAST(char_length({0}) AS BIGINT)",
    "concat": f"left({{0}} || {{1}}, {MOST_TEXT})",
    "replace": f"left(replace({{0}}, {{1}}, {{2}}), {MOST_TEXT})",
    "starts_with": "startswith({0}, {1})",
    "ends_with": "endswith({0}, {1})",
    "position": "CAST(instr({0}, {1}) AS BIGINT)",
    "contains": "contains({0}, {1})",
    **spark_dates.PLAIN,
}


class Spark(Dialect):
    """Spark's SQL."""

    name: ClassVar[str] = "spark"
    types: ClassVar[Mapping[str, str]] = {
        "boolean": "BOOLEAN",
        "integer": "BIGINT",
        "real": "DOUBLE",
        "text": "STRING",
        "date": "DATE",
        "moment": "TIMESTAMP_NTZ",
        "other": "BOOLEAN",
        "null": "STRING",
    }
    integer: ClassVar[Templates] = _INTEGER
    real: ClassVar[Templates] = _REAL
    plain: ClassVar[Templates] = _PLAIN

    @property
    def special(self) -> Mapping[str, Callable[..., str]]:
        """See `Dialect`."""
        return {
            "round": self._round,
            "like": lambda sql, types, arguments: spark_texts.like(self.text, "LIKE", sql, arguments),
            "ilike": lambda sql, types, arguments: spark_texts.like(self.text, "ILIKE", sql, arguments),
            "substring": spark_texts.substring,
            "split_part": lambda sql, _, given: f"split_part({sql[0]}, {sql[1]}, {literal_digits(given[2])})",
            "strftime": lambda sql, types, arguments: spark_dates.strftime(self.text, sql, arguments),
            "extract": spark_dates.extract,
            "date_trunc": lambda *each: self.within(spark_dates.date_trunc(*each), each[1][1]),
            "date_diff": spark_dates.date_diff,
            "date_add": lambda *each: self.within(spark_dates.date_add(*each), each[1][1]),
        }

    def _call(self, call: Call, sql: list[str]) -> str:
        if call.name in ("least", "greatest") and len(sql) == 1:
            return sql[0]
        return super()._call(call, sql)

    def moment(self, value: datetime) -> str:
        """See `Dialect`."""
        return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"

    def text(self, value: str) -> str:
        """See `Dialect`."""
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def quoted(self, name: str) -> str:
        """See `Dialect`."""
        return "`" + name.replace("`", "``") + "`"

    def wide(self, sql: str) -> str:
        """See `Dialect`: 64 bits, as the functions above notice what these do not hold."""
        return f"CAST({sql} AS BIGINT)"

    def settled(self, sql: str) -> str:
        """See `Dialect`."""
        return f"(nanvl({sql}, CAST(NULL AS DOUBLE)) + 0D)"

    def lettered(self, sql: str, type_: ExpressionType) -> str:
        """See `Dialect`: texts are so from the scan on, and functions of them as well."""
        return sql

    def within(self, sql: str, type_: ExpressionType) -> str:
        """See `Dialect`."""
        return f"CASE WHEN {sql} {_WITHIN[type_]} THEN {sql} END" if type_ in _WITHIN else sql

    def as_real(self, sql: str, type_: ExpressionType) -> str:
        """See `Dialect`."""
        return sql if type_ == "real" else f"CAST({sql} AS DOUBLE)"

    def cast(self, sql: str, source: ExpressionType, target: ExpressionType) -> str:
        """See `Dialect`."""
        if source == "null":
            return f"CAST(NULL AS {self.types[target]})"
        if target == "boolean" and source in ("integer", "real"):
            return f"({sql} <> 0)"
        if target == "text" and source == "real":
            return spark_texts.of_real(sql)
        if target == "integer" and source == "real":
            low, high = self.number(-(2.0**63)), self.number(2.0**63)
            return f"CASE WHEN {sql} >= {low} AND {sql} < {high} THEN CAST(rint({sql}) AS BIGINT) END"
        if source == "text" and target == "boolean":
            return f"CASE WHEN lower({sql}) IN {TRUE} THEN TRUE WHEN lower({sql}) IN {FALSE} THEN FALSE END"
        if source == "text" and target in GRAMMAR:
            told = self.text(f"^(?:{GRAMMAR[target]})\\z")
            sql = f"trim(CASE WHEN length({sql}) <= {LONGEST} AND {sql} RLIKE {told} THEN {sql} END)"
        return self.within(f"CAST({sql} AS {self.types[target]})", target)

    def read(self, sql: str, type_: ExpressionType) -> str:
        """See `Dialect`. A text that is no UTF-8 is NULL; a date may be so far off that it has no moment."""
        if type_ == "other":
            return f"CASE WHEN {sql} IS NOT NULL THEN TRUE END"
        if type_ == "text":
            return f"try_validate_utf8(CAST({sql} AS STRING) COLLATE UTF8_BINARY)"
        if type_ == "integer":
            return f"try_cast({sql} AS BIGINT)"
        cast = f"CAST({sql} AS {self.types[type_]})"
        if type_ == "moment":
            near = f"CAST({sql} AS DATE) BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
            return f"CASE WHEN {near} THEN {cast} END"
        return self.settled(cast) if type_ == "real" else self.within(cast, type_)

    def identity(self, sql: str, type_: ExpressionType) -> str:
        """See `Dialect`."""
        return f"CAST({sql} AS {'DECIMAL(38, 0)' if type_ == 'integer' else self.types[type_]})"

    def begin(self, window: str, moment: str) -> str:
        """See `Dialect`."""
        return self.within(spark_dates.truncated(window, moment, "moment"), "moment")

    def whole_sum(self, sql: str, over: str) -> str:
        """See `Dialect`: of the upper and the lower half of each number, so that nothing overflows."""
        wide = self.wide(sql)
        upper = f"CAST(SUM(shiftright({wide}, 32)){over} AS DECIMAL(20, 0))"
        lower = f"CAST(SUM({wide} & 4294967295L){over} AS DECIMAL(20, 0))"
        return f"try_cast({upper} * CAST(4294967296L AS DECIMAL(10, 0)) + {lower} AS BIGINT)"

    def median(self, sql: str, over: str) -> str:
        """See `Dialect`."""
        upper, lower = (f"get(a, CAST((size(a) - {less}) DIV 2 AS INT))" for less in (0, 1))
        middle = f"CASE WHEN size(a) % 2 = 1 THEN {upper} ELSE 0.5D * {lower} + 0.5D * {upper} END"
        return f"get(transform(array(sort_array(collect_list({sql}){over})), a -> {middle}), 0)"

    def in_steps(self, sql: str, ends: tuple[float, float], scale: float) -> str:
        """See `Dialect`: a real number of more than 64 bits becomes a decimal in two halves."""
        low, high = (self.number(end) for end in ends)
        steps = f"round(LEAST(GREATEST({sql}, {low}), {high}) * {self.number(scale)})"
        whole = f"CAST(CAST({steps} AS BIGINT) AS DECIMAL(28, 0))"
        if max(abs(end) for end in ends) * scale >= _LIMIT:
            half = self.number(float(_HALF))
            upper = f"CAST(CAST({steps} / {half} AS BIGINT) AS DECIMAL(20, 0))"
            lower = f"CAST(CAST({steps} % {half} AS BIGINT) AS DECIMAL(20, 0))"
            whole = f"CAST({upper} * CAST({_HALF}L AS DECIMAL(14, 0)) + {lower} AS DECIMAL(28, 0))"
        return f"CASE WHEN {sql} IS NOT NULL THEN {whole} END"

    def window(
        self, kind: str, order: Sequence[str], rows: tuple[str, str] | None
    ) -> tuple[Sequence[str], tuple[str, str] | None]:
        """See `Dialect`."""
        return (order or ["TRUE"], None) if kind in _UNFRAMED else (order, rows)

    def _round(
        self, sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]
    ) -> str:
        digits = literal_digits(arguments[1]) if len(sql) == 2 else 0
        if types[0] == "integer":
            return self._rounded_whole(sql[0], -digits)
        real, step = self.as_real(sql[0], types[0]), self.number(10.0 ** abs(digits))
        if not digits:
            return f"round({real})"
        rounded = f"round({real} * {step}) / {step}" if digits > 0 else f"round({real} / {step}) * {step}"
        # A number that overflows on the way stays as it is.
        return f"CASE WHEN abs({rounded}) < {_INFINITE} THEN {rounded} ELSE {real} END"

    def _rounded_whole(self, sql: str, zeros: int) -> str:
        """A whole number to so many zeros at its end, halves away from zero."""
        if zeros <= 0:
            return sql
        step = 10 ** min(zeros, _ZEROS)
        wide, half = f"CAST({sql} AS DECIMAL(21, 0))", f"CAST('{step // 2}' AS DECIMAL(21, 0))"
        tall = f"CAST('{step}' AS DECIMAL(21, 0))"
        rest = f"((abs({wide}) + {half}) % {tall})"
        rounded = f"(abs({wide}) + {half} - {rest})"
        return f"try_cast(CASE WHEN {wide} < 0 THEN -{rounded} ELSE {rounded} END AS BIGINT)"
