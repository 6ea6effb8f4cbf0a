"""DuckDB's SQL. Whole numbers are computed in 128 bits; real numbers overflow to infinities by themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from dalenius.tables.language.casting import FALSE, GRAMMAR, LONGEST, TRUE
from dalenius.tables.language.dialects.dialect import Dialect, Templates, literal_digits, literal_text
from dalenius.tables.language.expressions import Expression, ExpressionType
from dalenius.tables.language.functions import MOST_TEXT

_WITHIN = {
    "date": "BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'",
    "moment": "BETWEEN TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999'",
}
_PLACES = 100_000
"""Beyond this no place in a text is looked for."""
_STEPS = {
    "second": ("to_seconds", 320_000_000_000),
    "minute": ("to_minutes", 5_300_000_000),
    "hour": ("to_hours", 88_000_000),
    "day": ("to_days", 3_700_000),
    "week": ("to_weeks", 530_000),
    "month": ("to_months", 121_000),
    "quarter": ("to_quarters", 40_000),
    "year": ("to_years", 10_100),
    "decade": ("to_decades", 1_010),
}
_ZEROS = 20
"""No whole number of 64 bits has as many digits."""
_NAMED_PARTS = {"dayofweek": "dow", "dayofyear": "doy"}
_INTEGER: Templates = {
    "add": "TRY_CAST({0} + {1} AS BIGINT)",
    "subtract": "TRY_CAST({0} - {1} AS BIGINT)",
    "multiply": "TRY_CAST({0} * {1} AS BIGINT)",
    "modulo": "TRY_CAST({0} % CASE WHEN {1} <> 0 THEN {1} END AS BIGINT)",
    "integer_divide": "TRY_CAST({0} // CASE WHEN {1} <> 0 THEN {1} END AS BIGINT)",
    "negate": "TRY_CAST(-({0}) AS BIGINT)",
    "abs": "TRY_CAST(abs({0}) AS BIGINT)",
    "floor": "TRY_CAST({0} AS BIGINT)",
    "ceil": "TRY_CAST({0} AS BIGINT)",
    "trunc": "TRY_CAST({0} AS BIGINT)",
    "sign": "CAST(sign({0}) AS BIGINT)",
}
_REAL: Templates = {
    "add": "({0} + {1})",
    "subtract": "({0} - {1})",
    "multiply": "({0} * {1})",
    "divide": "({0} / CASE WHEN {1} <> 0 THEN {1} END)",
    "modulo": "({0} % CASE WHEN {1} <> 0 THEN {1} END)",
    "negate": "(-({0}))",
    "abs": "abs({0})",
    "sign": "CAST(sign({0}) AS BIGINT)",
    "floor": "floor({0})",
    "ceil": "ceil({0})",
    "trunc": "trunc({0})",
    "sqrt": "CASE WHEN {0} >= 0 THEN sqrt({0}) END",
    "cbrt": "cbrt({0})",
    "ln": "ln(CASE WHEN {0} > 0 THEN {0} END)",
    "log10": "log10(CASE WHEN {0} > 0 THEN {0} END)",
    "log2": "log2(CASE WHEN {0} > 0 THEN {0} END)",
    "exp": "exp({0})",
    "power": "pow({0}, {1})",
    "sin": "sin(CASE WHEN isfinite({0}) THEN {0} END)",
    "cos": "cos(CASE WHEN isfinite({0}) THEN {0} END)",
    "tan": "tan(CASE WHEN isfinite({0}) THEN {0} END)",
    "atan": "atan({0})",
    "asin": "asin(CASE WHEN {0} BETWEEN -1 AND 1 THEN {0} END)",
    "acos": "acos(CASE WHEN {0} BETWEEN -1 AND 1 THEN {0} END)",
    "atan2": "atan2({0}, {1})",
    "to_float": "CAST(TRY_CAST({0} AS FLOAT) AS DOUBLE)",
    "is_nan": "isnan({0})",
    "pi": "pi()",
}
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
    "like": "({0} LIKE {1})",
    "ilike": "({0} ILIKE {1})",
    "lower": "lower({0})",
    "upper": "upper({0})",
    "trim": "trim({0})",
    "ltrim": "ltrim({0})",
    "rtrim": "rtrim({0})",
    "length": "length({0})",
    "concat": f"left({{0}} || {{1}}, {MOST_TEXT})",
    "replace": f"left(replace({{0}}, {{1}}, {{2}}), {MOST_TEXT})",
    "starts_with": "starts_with({0}, {1})",
    "ends_with": "ends_with({0}, {1})",
    "contains": "contains({0}, {1})",
    "position": "CAST(strpos({0}, {1}) AS BIGINT)",
    "strftime": "strftime({0}, {1})",
    "dayname": "dayname({0})",
    "monthname": "monthname({0})",
    "epoch": "epoch(CAST({0} AS TIMESTAMP))",
}


class Duckdb(Dialect):
    """DuckDB's SQL."""

    name: ClassVar[str] = "duckdb"
    types: ClassVar[Mapping[str, str]] = {
        "boolean": "BOOLEAN",
        "integer": "BIGINT",
        "real": "DOUBLE",
        "text": "VARCHAR",
        "date": "DATE",
        "moment": "TIMESTAMP",
        "other": "BOOLEAN",
        "null": "VARCHAR",
    }
    integer: ClassVar[Templates] = _INTEGER
    real: ClassVar[Templates] = _REAL
    plain: ClassVar[Templates] = _PLAIN

    @property
    def special(self) -> Mapping[str, Callable[..., str]]:
        """See `Dialect`."""
        return {
            "round": self._round,
            "substring": _substring,
            "split_part": _split_part,
            "regexp_matches": _regular("regexp_matches"),
            "regexp_full_match": _regular("regexp_full_match"),
            "regexp_extract": _regular("regexp_extract"),
            "regexp_replace": _regular("regexp_replace"),
            "strptime": lambda sql, *_: self.within(f"try_strptime({sql[0]}, {sql[1]})", "moment"),
            "extract": _extract,
            "date_trunc": self._date_trunc,
            "date_diff": _date_diff,
            "date_add": self._date_add,
        }

    def wide(self, sql: str) -> str:
        """See `Dialect`."""
        return f"CAST({sql} AS HUGEINT)"

    def settled(self, sql: str) -> str:
        """See `Dialect`."""
        return f"CASE WHEN NOT isnan({sql}) THEN {sql} + CAST(0 AS DOUBLE) END"

    def lettered(self, sql: str, type_: ExpressionType) -> str:
        """See `Dialect`."""
        return f'({sql} COLLATE "binary")' if type_ == "text" else sql

    def within(self, sql: str, type_: ExpressionType) -> str:
        """See `Dialect`."""
        return f"CASE WHEN {sql} {_WITHIN[type_]} THEN {sql} END" if type_ in _WITHIN else sql

    def as_real(self, sql: str, type_: ExpressionType) -> str:
        """See `Dialect`."""
        if type_ == "boolean":
            return f"CAST(CAST({sql} AS INTEGER) AS DOUBLE)"
        return sql if type_ == "real" else f"CAST({sql} AS DOUBLE)"

    def cast(self, sql: str, source: ExpressionType, target: ExpressionType) -> str:
        """See `Dialect`."""
        if source == "text" and target != "text":
            return self._read_text(sql, target)
        if target == "boolean" and source in ("integer", "real"):
            return f"({sql} <> 0)"
        if target == "text" and source == "real":
            return f"CAST({sql} AS VARCHAR)"
        return self.within(f"TRY_CAST({sql} AS {self.types[target]})", target)

    def read(self, sql: str, type_: ExpressionType) -> str:
        """See `Dialect`. Sources see to it that texts are UTF-8 (`sources.kinds.valid`)."""
        if type_ == "other":
            return f"CASE WHEN {sql} IS NOT NULL THEN TRUE END"
        if type_ == "text":
            return self.lettered(f"CAST({sql} AS VARCHAR)", type_)
        cast = f"TRY_CAST({sql} AS {self.types[type_]})"
        return self.settled(cast) if type_ == "real" else self.within(cast, type_)

    def identity(self, sql: str, type_: ExpressionType) -> str:
        """See `Dialect`."""
        return f"TRY_CAST({sql} AS {'HUGEINT' if type_ == 'integer' else self.types[type_]})"

    def begin(self, window: str, moment: str) -> str:
        """See `Dialect`."""
        return self.within(f"date_trunc('{window}', {moment})", "moment")

    def whole_sum(self, sql: str, over: str) -> str:
        """See `Dialect`."""
        return f"TRY_CAST(SUM({sql}){over} AS BIGINT)"

    def median(self, sql: str, over: str) -> str:
        """See `Dialect`."""
        return f"MEDIAN({sql}){over}"

    def in_steps(self, sql: str, ends: tuple[float, float], scale: float) -> str:
        """See `Dialect`."""
        low, high = (self.number(end) for end in ends)
        held = f"LEAST(GREATEST({sql}, {low}), {high})"
        return (
            f"CASE WHEN {sql} IS NOT NULL THEN TRY_CAST(round({held} * {self.number(scale)}) AS HUGEINT) END"
        )

    def _read_text(self, sql: str, target: ExpressionType) -> str:
        if target == "boolean":
            return f"CASE WHEN lower({sql}) IN {TRUE} THEN TRUE WHEN lower({sql}) IN {FALSE} THEN FALSE END"
        read = f"TRY_CAST(trim({sql}) AS {self.types[target]})"
        written = f"length({sql}) <= {LONGEST} AND regexp_full_match({sql}, '{GRAMMAR[target]}')"
        return self.within(f"CASE WHEN {written} THEN {read} END", target)

    def _round(
        self, sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]
    ) -> str:
        digits = literal_digits(arguments[1]) if len(sql) == 2 else 0
        if types[0] == "integer":
            return _rounded_whole(sql[0], -digits)
        return f"round({self.as_real(sql[0], types[0])}{f', {digits}' if len(sql) == 2 else ''})"

    def _date_trunc(
        self, sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]
    ) -> str:
        return self.within(f"CAST(date_trunc({sql[0]}, {sql[1]}) AS {self.types[types[1]]})", types[1])

    def _date_add(
        self, sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]
    ) -> str:
        function, most = _STEPS[literal_text(arguments[0])]
        size = "BIGINT" if function in ("to_seconds", "to_minutes", "to_hours") else "INTEGER"
        steps = f"CAST(CASE WHEN {sql[2]} BETWEEN -{most} AND {most} THEN {sql[2]} END AS {size})"
        moved = self.within(f"(CAST({sql[1]} AS TIMESTAMP) + {function}({steps}))", "moment")
        return f"CAST({moved} AS {self.types[types[1]]})"


def _rounded_whole(sql: str, zeros: int) -> str:
    """A whole number to so many zeros at its end, halves away from zero."""
    if zeros <= 0:
        return sql
    step = 10 ** min(zeros, _ZEROS)
    wide, half = f"CAST({sql} AS HUGEINT)", step // 2
    return f"TRY_CAST(sign({wide}) * ((abs({wide}) + {half}) // {step}) * {step} AS BIGINT)"


def _substring(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    places = [f"CASE WHEN {each} BETWEEN -{_PLACES} AND {_PLACES} THEN {each} END" for each in sql[1:]]
    return f"substring({', '.join([sql[0], *places])})"


def _regular(name: str) -> Callable[..., str]:
    """A function of a regular expression; the options come last, and the number of a group before them."""

    def printed(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
        given = [
            *sql[:2],
            *(
                str(literal_digits(sql_)) if sql_.type == "integer" else each
                for each, sql_ in zip(sql[2:-1], arguments[2:-1], strict=True)
            ),
        ]
        options = [sql[-1]] if literal_text(arguments[-1]) else []
        return (
            f"left({name}({', '.join([*given, *options])}), {MOST_TEXT})"
            if name in _MADE
            else (f"{name}({', '.join([*given, *options])})")
        )

    return printed


_MADE = ("regexp_extract", "regexp_replace")
"""Functions of regular expressions that make texts."""


def _split_part(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    return f"split_part({sql[0]}, {sql[1]}, {literal_digits(arguments[2])})"


def _extract(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    part = literal_text(arguments[0])
    return f"CAST(extract({_NAMED_PARTS.get(part, part)} FROM {sql[1]}) AS BIGINT)"


def _date_diff(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    return f"date_diff({sql[0]}, CAST({sql[1]} AS TIMESTAMP), CAST({sql[2]} AS TIMESTAMP))"
