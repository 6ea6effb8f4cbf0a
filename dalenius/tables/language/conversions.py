"""CAST and TRY_CAST, read into our expressions: more handlers for `reading`.

    BOOLEAN, VARCHAR, DATE, TIMESTAMP    our own types
    DOUBLE                               our own type of real numbers
    BIGINT, HUGEINT                      our own type of whole numbers: NULL where 64 bits do not hold it
    TINYINT … UBIGINT                    a whole number, NULL outside of the type
    FLOAT                                a real number to the nearest of 32 bits, NULL beyond the largest
    DECIMAL(p, s)                        a real number to s places, halves away from zero; NULL from 10^(p−s)
    TIMESTAMP_S, TIMESTAMP_MS            a moment to the second; milliseconds are refused

A real number under a name of another type is not the number that DuckDB computes with afterwards: what is
computed from a DECIMAL is a DOUBLE here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from dalenius.tables.language.expressions import (
    NULL,
    Expression,
    ExpressionType,
    Literal,
    as_type,
    call,
    case,
    literal,
)
from dalenius.tables.language.reading import HANDLERS, Node, Reader, only, whole_of
from dalenius.tables.language.refusals import refuse

TYPES: Mapping[ExpressionType, str] = {
    "boolean": "BOOLEAN",
    "integer": "TINYINT SMALLINT INT BIGINT INT128 UTINYINT USMALLINT UINT UBIGINT UINT128 MEDIUMINT",
    "real": "FLOAT DOUBLE DECIMAL UDECIMAL DECIMAL32 DECIMAL64 DECIMAL128 BIGDECIMAL",
    "text": "TEXT VARCHAR CHAR NCHAR NVARCHAR",
    "date": "DATE",
    "moment": "TIMESTAMP TIMESTAMPNTZ DATETIME TIMESTAMP_S TIMESTAMP_MS",
}
_BITS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32}
_UNSIGNED = {"UTINYINT": 8, "USMALLINT": 16, "UINT": 32, "UBIGINT": 64, "UINT128": 128}
_MOST_DIGITS = 38
_DIGITS = 9
"""Places behind those kept, by half of which a DOUBLE that was read from digits may be off."""


def cast_to(value: Expression, to: exp.DataType) -> Expression:
    """The value as a type that a query names."""
    kind = str(to.this.name if hasattr(to.this, "name") else to.this)
    type_ = next((type_ for type_, names in TYPES.items() if kind in names.split()), None)
    if type_ is None or kind == "TIMESTAMP_MS":
        raise refuse("function that is not known", f"CAST to {kind}")
    plain = value if value.type == type_ else call(f"cast_{type_}", value)
    if kind in _BITS:
        half = 2 ** (_BITS[kind] - 1)
        return _held(plain, -half, half - 1)
    if kind in _UNSIGNED:
        return _held(plain, 0, min(2 ** _UNSIGNED[kind], 2**63) - 1)
    if kind == "FLOAT":
        return call("to_float", plain)
    if type_ == "real" and kind != "DOUBLE":
        return _decimal(value, plain, to)
    return call("date_trunc", literal("second"), plain) if kind == "TIMESTAMP_S" else plain


def _held(value: Expression, least: int, most: int) -> Expression:
    """A whole number, NULL outside of a range."""
    if isinstance(value, Literal) and isinstance(value.value, int) and least <= value.value <= most:
        return value
    above = call("greater_equal", value, literal(least))
    return case([(call("and", above, call("less_equal", value, literal(most))), value)])


def _decimal(value: Expression, plain: Expression, to: exp.DataType) -> Expression:
    """A real number to so many places, NULL where it has too many digits before the point."""
    digits, places = _precision(to)
    if value.type == "text":
        # A DOUBLE may be just below the half that its digits say.
        near = call("multiply", call("sign", plain), literal(10.0 ** -(places + _DIGITS)))
        plain = call("add", plain, near)
    rounded = call("round", plain, literal(places))
    if isinstance(rounded, Literal) and isinstance(rounded.value, int | float):
        return rounded if abs(rounded.value) < 10 ** (digits - places) else as_type(NULL, "real")
    return case([(call("less", call("abs", rounded), literal(10.0 ** (digits - places))), rounded)])


def _precision(to: exp.DataType) -> tuple[int, int]:
    """How many digits, and how many of them behind the point: DECIMAL alone is DECIMAL(18, 3)."""
    given = [whole_of(each.this) for each in to.expressions]
    digits, places = [*given, 0][:2] if given else (18, 3)
    if len(given) > 2 or not 0 < digits <= _MOST_DIGITS or not 0 <= places <= digits:
        raise refuse("function that is not known", "CAST to DECIMAL with these digits")
    return digits, places


def _cast(reader: Reader, node: Node) -> Expression:
    only(node, "this", "to")
    return cast_to(reader.read(node.this), node.args["to"])


_MORE: dict[type[Node], Callable[[Reader, Node], Expression]] = {exp.Cast: _cast, exp.TryCast: _cast}
HANDLERS.update(_MORE)
