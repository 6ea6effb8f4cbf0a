"""Expressions in SQL, each total: whatever a row holds, there is a value or NULL, and never an error.

Whole numbers are computed in 128 bits and are NULL where 64 do not hold them; real numbers are DOUBLE, whose
overflows are infinities. What DuckDB would refuse or give as an infinity is NULL: a division by zero, a
logarithm of zero, a root of a negative number, a cast that fails, a date outside the years 1 to 9999.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime

from dalenius.errors import InvalidArgument
from dalenius.tables.language.expressions import Call, Column, Expression, ExpressionType, Literal
from dalenius.tables.language.functions import MOST_DIGITS, MOST_TEXT

SQL_TYPES: Mapping[str, str] = {
    "boolean": "BOOLEAN",
    "integer": "BIGINT",
    "real": "DOUBLE",
    "text": "VARCHAR",
    "date": "DATE",
    "moment": "TIMESTAMP",
    "other": "BOOLEAN",
    "null": "VARCHAR",
}
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
_LONGEST = 500_000
_TELLING = {
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "is_distinct", "is_null",
    "is_nan", "coalesce", "nullif", "least", "greatest", "sign", "power", "cast_boolean", "cast_text",
}  # fmt: skip
"""Functions that would tell NaN from NULL, or −0 from 0; through all others, NaN goes as NULL does."""
_NAMED_PARTS = {"dayofweek": "dow", "dayofyear": "doy"}


def sql_of(expression: Expression, columns: Sequence[str] | Mapping[int, str]) -> str:
    """The expression in SQL, with the names that its columns have there."""
    match expression:
        case Column(index, _):
            return columns[index]
        case Literal(value, type_):
            return sql_literal(value, type_)
        case Call("case", arguments, _):
            return _case([sql_of(each, columns) for each in arguments])
        case Call(name, arguments, type_):
            print_ = canonical if name in _TELLING else sql_of
            printed, types = [print_(each, columns) for each in arguments], [each.type for each in arguments]
            return _short(_call(name, printed, types, type_, arguments))


def canonical(expression: Expression, columns: Sequence[str] | Mapping[int, str]) -> str:
    """The expression in SQL, with one value for all that count as equal, and for no others.

    NaN is NULL, −0 is 0, and texts have no collation. Columns of relations are so from the scan on. So rows
    that are equal, by the order that breaks ties, are the same rows, and no expression can tell which of them
    came first.
    """
    sql = sql_of(expression, columns)
    if isinstance(expression, Call) and expression.type == "real":
        return _short(settled(sql))
    return sql if isinstance(expression, Column) else _plain_text(sql, expression.type)


def _short(sql: str) -> str:
    """Some functions mention an argument twice, which doubles at every level of nesting."""
    if len(sql) > _LONGEST:
        raise InvalidArgument(
            "An expression is nested too deeply.", remedy="Compute a part of it in a subquery."
        )
    return sql


def sql_literal(value: object, type_: ExpressionType) -> str:
    """A value in SQL, with its type."""
    if value is None:
        return f"CAST(NULL AS {SQL_TYPES[type_]})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return f"CAST({value} AS BIGINT)"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return quoted(str(value), "'")


def quoted(text: str, mark: str = '"') -> str:
    """A name or a text between marks."""
    return mark + text.replace(mark, mark + mark) + mark


def settled(sql: str) -> str:
    """A real number: NaN is NULL, and −0 is 0."""
    return f"CASE WHEN NOT isnan({sql}) THEN {sql} + CAST(0 AS DOUBLE) END"


def read(sql: str, type_: ExpressionType) -> str:
    """A column of a source as one of our types, NULL where it does not fit.

    A text is compared letter by letter, whatever collation its column has. Sources see to it that texts are
    UTF-8 (`source_kinds.valid`). Of values of other types it is known only whether they are there: to make a
    text of them may fail.
    """
    if type_ == "other":
        return f"CASE WHEN {sql} IS NOT NULL THEN TRUE END"
    if type_ == "text":
        return _plain_text(f"CAST({sql} AS VARCHAR)", type_)
    cast = f"TRY_CAST({sql} AS {SQL_TYPES[type_]})"
    return settled(cast) if type_ == "real" else within(cast, type_)


def _plain_text(sql: str, type_: ExpressionType) -> str:
    """A text that is compared letter by letter, whatever the connection would do; anything else as it is."""
    return f'({sql} COLLATE "binary")' if type_ == "text" else sql


def within(sql: str, type_: ExpressionType) -> str:
    """A date, NULL outside the years 1 to 9999."""
    return f"CASE WHEN {sql} {_WITHIN[type_]} THEN {sql} END" if type_ in _WITHIN else sql


def as_real(sql: str, type_: ExpressionType) -> str:
    """A number or a condition as DOUBLE."""
    if type_ == "boolean":
        return f"CAST(CAST({sql} AS INTEGER) AS DOUBLE)"
    return sql if type_ == "real" else f"CAST({sql} AS DOUBLE)"


def _case(arguments: Sequence[str]) -> str:
    pairs = zip(arguments[0:-1:2], arguments[1::2], strict=True)
    branches = " ".join(f"WHEN {when} THEN {then}" for when, then in pairs)
    return f"CASE {branches} ELSE {arguments[-1]} END"


def _call(
    name: str,
    sql: list[str],
    types: Sequence[ExpressionType],
    type_: ExpressionType,
    arguments: Sequence[Expression],
) -> str:
    if name in _INTEGER and not {"real", "boolean"} & set(types):
        return _INTEGER[name].format(*(f"CAST({each} AS HUGEINT)" for each in sql))
    if name in _REAL:
        return _REAL[name].format(*(as_real(each, kind) for each, kind in zip(sql, types, strict=True)))
    if name in _PLAIN:
        return _PLAIN[name].format(*sql)
    if name in _JOINED:
        return "(" + _JOINED[name].join(sql) + ")"
    if name in ("coalesce", "least", "greatest"):
        return f"{name.upper()}({', '.join(sql)})"
    if name.startswith("cast_"):
        return _cast(sql[0], types[0], type_)
    return _SPECIAL[name](sql, types, arguments)


def _cast(sql: str, source: ExpressionType, target: ExpressionType) -> str:
    if target == "boolean" and source in ("integer", "real"):
        return f"({sql} <> 0)"
    if target == "text" and source == "real":
        return f"CAST({sql} AS VARCHAR)"
    return within(f"TRY_CAST({sql} AS {SQL_TYPES[target]})", target)


def _round(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    digits = _whole(arguments[1]) if len(sql) == 2 else 0
    if types[0] == "integer":
        return _rounded_whole(sql[0], -digits)
    return f"round({as_real(sql[0], types[0])}{f', {digits}' if len(sql) == 2 else ''})"


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


def _extract(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    part = _text(arguments[0])
    return f"CAST(extract({_NAMED_PARTS.get(part, part)} FROM {sql[1]}) AS BIGINT)"


def _date_trunc(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    return within(f"CAST(date_trunc({sql[0]}, {sql[1]}) AS {SQL_TYPES[types[1]]})", types[1])


def _date_diff(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    return f"date_diff({sql[0]}, CAST({sql[1]} AS TIMESTAMP), CAST({sql[2]} AS TIMESTAMP))"


def _date_add(sql: Sequence[str], types: Sequence[ExpressionType], arguments: Sequence[Expression]) -> str:
    function, most = _STEPS[_text(arguments[0])]
    size = "BIGINT" if function in ("to_seconds", "to_minutes", "to_hours") else "INTEGER"
    steps = f"CAST(CASE WHEN {sql[2]} BETWEEN -{most} AND {most} THEN {sql[2]} END AS {size})"
    moved = within(f"(CAST({sql[1]} AS TIMESTAMP) + {function}({steps}))", "moment")
    return f"CAST({moved} AS {SQL_TYPES[types[1]]})"


def _text(expression: Expression) -> str:
    assert isinstance(expression, Literal)
    return str(expression.value)


def _whole(expression: Expression) -> int:
    assert isinstance(expression, Literal) and isinstance(expression.value, int)
    return max(-MOST_DIGITS, min(MOST_DIGITS, expression.value))


_INTEGER: Mapping[str, str] = {
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
_REAL: Mapping[str, str] = {
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
    "is_nan": "isnan({0})",
    "pi": "pi()",
}
_PLAIN: Mapping[str, str] = {
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
    "strftime": "strftime({0}, {1})",
    "dayname": "dayname({0})",
    "monthname": "monthname({0})",
    "epoch": "epoch(CAST({0} AS TIMESTAMP))",
}
_JOINED: Mapping[str, str] = {"and": " AND ", "or": " OR "}
_SPECIAL: Mapping[str, Callable[..., str]] = {
    "round": _round,
    "substring": _substring,
    "extract": _extract,
    "date_trunc": _date_trunc,
    "date_diff": _date_diff,
    "date_add": _date_add,
}
