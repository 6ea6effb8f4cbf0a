"""Expressions over the columns of a relation: a column by its place, a literal, or a function of others.

Columns are places, not names, so that nothing depends on how a query spells them. Only the functions listed
here exist; each is total, deterministic, and a function of the one row. `call` finds the type of a function
from those of its arguments, and refuses arguments that it has no meaning for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal as OneOf

from dalenius.errors import InvalidArgument
from dalenius.tables.language.functions import evaluate
from dalenius.tables.rows import KeyPart
from dalenius.tables.schema import Type, read_part

ExpressionType = Type | OneOf["null"]
WINDOWS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade")
"""What a date may be truncated to."""
PARTS = {
    "year": (1, 9999), "isoyear": (0, 10000), "quarter": (1, 4), "month": (1, 12), "week": (1, 53),
    "day": (1, 31), "dayofweek": (0, 6), "isodow": (1, 7), "dayofyear": (1, 366), "hour": (0, 23),
    "minute": (0, 59), "second": (0, 59),
}  # fmt: skip
"""What may be extracted from a date, and where it lies."""


@dataclass(frozen=True)
class Column:
    """The column at a place of a relation."""

    index: int
    type: ExpressionType


@dataclass(frozen=True)
class Literal:
    """A value written in the query."""

    value: KeyPart
    type: ExpressionType


@dataclass(frozen=True)
class Call:
    """A function of other expressions. "case" is when, then, when, then, …, else."""

    name: str
    arguments: tuple[Expression, ...]
    type: ExpressionType


Expression = Column | Literal | Call
NULL = Literal(None, "null")


def literal(value: KeyPart) -> Literal:
    """A value with the type it has in Python."""
    if isinstance(value, datetime):
        return Literal(value, "moment")
    names: Mapping[type, ExpressionType]
    names = {bool: "boolean", int: "integer", float: "real", str: "text", date: "date"}
    return Literal(value, names[type(value)]) if value is not None else NULL


def call(name: str, *arguments: Expression) -> Expression:
    """A function of these arguments, with its type; of literals alone, its value."""
    arguments = RULES[name].prepare(name, arguments)
    found = Call(name, arguments, RULES[name].type(arguments))
    return _folded(found) if all(isinstance(each, Literal) for each in arguments) else found


def columns_of(expression: Expression) -> frozenset[int]:
    """The places that an expression reads."""
    return frozenset(part.index for part in parts_of(expression) if isinstance(part, Column))


def parts_of(expression: Expression) -> Iterator[Expression]:
    """The expression and all that it is made of."""
    yield expression
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from parts_of(argument)


def substitute(expression: Expression, columns: Mapping[int, Expression]) -> Expression:
    """The expression with columns replaced."""
    match expression:
        case Column(index, _):
            return columns[index]
        case Call(name, arguments, type_):
            return Call(name, tuple(substitute(each, columns) for each in arguments), type_)
    return expression


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The conditions that must all hold."""
    if isinstance(condition, Call) and condition.name == "and":
        for argument in condition.arguments:
            yield from conjuncts(argument)
    else:
        yield condition


def as_type(expression: Expression, type_: ExpressionType) -> Expression:
    """The expression as a wider type that holds it: whole numbers as real ones, dates as moments."""
    if isinstance(expression, Literal) and type_ != "null":
        return Literal(read_part(expression.value, type_, "an expression"), type_)
    if expression.type == "null" and type_ not in ("null", "other"):
        return Call(f"cast_{type_}", (expression,), type_)
    widening = {("integer", "real"): "cast_real", ("date", "moment"): "cast_moment"}
    if (expression.type, type_) in widening:
        return Call(widening[expression.type, type_], (expression,), type_)
    return expression


@dataclass(frozen=True)
class Rule:
    """How many arguments of which types a function takes, and the type it gives."""

    takes: tuple[frozenset[ExpressionType], ...]
    gives: ExpressionType | Callable[[Sequence[Expression]], ExpressionType]
    optional: int = 0
    alike: bool = False
    """All arguments of one type, whatever their number."""

    def prepare(self, name: str, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
        """The arguments, made alike where they must be."""
        if self.alike:
            arguments = _alike(name, arguments)
        elif not len(self.takes) - self.optional <= len(arguments) <= len(self.takes):
            raise _wrong(name, f"takes {len(self.takes)} arguments")
        takes = self.takes * len(arguments) if self.alike else self.takes
        for argument, types in zip(arguments, takes, strict=False):
            if argument.type == "other" and argument.type not in types:
                raise not_known(name.replace("_", " "))
            if argument.type not in types and argument.type != "null":
                raise _wrong(name, f"has no meaning for a {argument.type}")
        return arguments

    def type(self, arguments: Sequence[Expression]) -> ExpressionType:
        """Of the function, given those of its arguments."""
        return self.gives if isinstance(self.gives, str) else self.gives(arguments)


def not_known(what: str) -> InvalidArgument:
    """Of a column whose type is "other", it is known only whether a value is there."""
    return InvalidArgument(
        f"{what} needs the values of a column whose type has no meaning here, such as a time or a list.",
        remedy="Make a number or a text of the column in the source, or count its values with COUNT(x).",
    )


def _wrong(name: str, why: str) -> InvalidArgument:
    shown = name.replace("_", " ")
    return InvalidArgument(
        f"{shown} {why}.",
        remedy="Convert with CAST(… AS …), to one of BIGINT, DOUBLE, VARCHAR, DATE, TIMESTAMP.",
    )


def _alike(name: str, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    wanted = common_type(name, arguments)
    return tuple(as_type(argument, wanted) for argument in arguments)


def common_type(name: str, arguments: Sequence[Expression]) -> ExpressionType:
    """The type that all arguments have or widen to; a text literal takes the type of a date beside it."""
    types = {argument.type for argument in arguments} - {"null"}
    if len(types) <= 1:
        return next(iter(types), "null")
    for pair, wide in (({"integer", "real"}, "real"), ({"date", "moment"}, "moment")):
        if types == pair:
            return "real" if wide == "real" else "moment"
    others = {each.type for each in arguments if each.type != "text"} - {"null"}
    if all(isinstance(each, Literal) for each in arguments if each.type == "text") and len(others) == 1:
        return next(iter(others))
    raise _wrong(name, f"cannot take {' and '.join(sorted(types))} together")


def _folded(found: Call) -> Expression:
    values = [each.value for each in found.arguments if isinstance(each, Literal)]
    result = evaluate(found.name, values)
    wide = isinstance(result, int) and not -(2**63) < result < 2**63
    if result is None or wide or found.type == "null" or found.type == "other":
        return found
    return Literal(read_part(result, found.type, "an expression"), found.type)


def _first(arguments: Sequence[Expression]) -> ExpressionType:
    return next((each.type for each in arguments if each.type != "null"), "null")


def _whole(arguments: Sequence[Expression]) -> ExpressionType:
    return "integer" if all(each.type in ("integer", "null") for each in arguments) else "real"


def _branches(arguments: Sequence[Expression]) -> ExpressionType:
    return _first([*arguments[1::2], arguments[-1]])


_NUMBER: frozenset[ExpressionType] = frozenset({"integer", "real"})
_INTEGER: frozenset[ExpressionType] = frozenset({"integer"})
_TEXT: frozenset[ExpressionType] = frozenset({"text"})
_TRUTH: frozenset[ExpressionType] = frozenset({"boolean"})
_DATE: frozenset[ExpressionType] = frozenset({"date", "moment"})
_PLAIN: frozenset[ExpressionType] = frozenset({"boolean", "integer", "real", "text", "date", "moment"})
_ANY: frozenset[ExpressionType] = _PLAIN | {"other"}

RULES: Mapping[str, Rule] = {
    **{name: Rule((_NUMBER, _NUMBER), _whole) for name in ("add", "subtract", "multiply", "modulo")},
    **{name: Rule((_NUMBER,), _whole) for name in ("negate", "abs", "floor", "ceil", "trunc")},
    **{
        name: Rule((_NUMBER,), "real")
        for name in (
            "sqrt", "cbrt", "ln", "log10", "log2", "exp", "sin", "cos", "tan", "atan", "asin", "acos",
            "to_float",
        )
    },
    **{name: Rule((_NUMBER, _NUMBER), "real") for name in ("divide", "power", "atan2")},
    "integer_divide": Rule((_INTEGER, _INTEGER), "integer"),
    "sign": Rule((_NUMBER,), "integer"),
    "round": Rule((_NUMBER, _INTEGER), lambda each: _whole(each[:1]), optional=1),
    "pi": Rule((), "real"),
    **{
        name: Rule((_PLAIN,), "boolean", alike=True)
        for name in (
            "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "is_distinct",
        )
    },
    **{name: Rule((_TRUTH,), "boolean", alike=True) for name in ("and", "or")},
    "not": Rule((_TRUTH,), "boolean"),
    "is_null": Rule((_ANY,), "boolean"),
    "is_nan": Rule((_NUMBER,), "boolean"),
    **{name: Rule((_PLAIN,), _first, alike=True) for name in ("coalesce", "nullif", "least", "greatest")},
    **{name: Rule((_TEXT,), "text") for name in ("lower", "upper", "trim", "ltrim", "rtrim")},
    "length": Rule((_TEXT,), "integer"),
    "concat": Rule((_TEXT, _TEXT), "text"),
    "substring": Rule((_TEXT, _INTEGER, _INTEGER), "text", optional=1),
    "replace": Rule((_TEXT, _TEXT, _TEXT), "text"),
    **{
        name: Rule((_TEXT, _TEXT), "boolean")
        for name in ("starts_with", "ends_with", "contains", "like", "ilike")
    },
    "position": Rule((_TEXT, _TEXT), "integer"),
    "split_part": Rule((_TEXT, _TEXT, _INTEGER), "text"),
    **{name: Rule((_TEXT, _TEXT, _TEXT), "boolean") for name in ("regexp_matches", "regexp_full_match")},
    "regexp_extract": Rule((_TEXT, _TEXT, _INTEGER, _TEXT), "text"),
    "regexp_replace": Rule((_TEXT, _TEXT, _TEXT, _TEXT), "text"),
    "strptime": Rule((_TEXT, _TEXT), "moment"),
    "date_trunc": Rule((_TEXT, _DATE), lambda each: each[1].type),
    "extract": Rule((_TEXT, _DATE), "integer"),
    "epoch": Rule((_DATE,), "real"),
    "date_diff": Rule((_TEXT, _DATE, _DATE), "integer"),
    "date_add": Rule((_TEXT, _DATE, _INTEGER), lambda each: each[1].type),
    "strftime": Rule((_DATE, _TEXT), "text"),
    "dayname": Rule((_DATE,), "text"),
    "monthname": Rule((_DATE,), "text"),
    **{f"cast_{type_}": Rule((_NUMBER | _TRUTH | _TEXT,), type_) for type_ in ("boolean", "integer", "real")},
    **{f"cast_{type_}": Rule((_DATE | _TEXT,), type_) for type_ in ("date", "moment")},
    "cast_text": Rule((_PLAIN,), "text"),
}  # fmt: skip
"""Every function there is, but for "case", which `case` makes."""
DUCKDB_ALONE = ("regexp_matches", "regexp_full_match", "regexp_extract", "regexp_replace", "strptime")
"""Functions that are total on DuckDB and may fail, or take any time, on other engines."""


def case(branches: Sequence[tuple[Expression, Expression]], otherwise: Expression = NULL) -> Expression:
    """CASE WHEN … THEN … ELSE … END."""
    if any(when.type not in ("boolean", "null") for when, _ in branches):
        raise _wrong("case", "needs conditions that are true or false")
    values = _alike("case", (*(then for _, then in branches), otherwise))
    flat = [part for (when, _), then in zip(branches, values, strict=False) for part in (when, then)]
    return Call("case", (*flat, values[-1]), _branches((*flat, values[-1])))
