"""Where the values of an expression lie, and whether it may be NULL, from what is known of its columns.

Dates and moments are counted in days here (Python's ordinals, with fractions of a day), so that their ranges
are spans like any other; texts and the rest are `ANYTHING`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction

from dalenius.tables.language.expressions import PARTS, Call, Column, Expression, Literal, conjuncts
from dalenius.tables.language.functions import evaluate, truncated
from dalenius.tables.language.intervals import ANYTHING, SPANS, TRUTH, Span, exact, hull, round_to
from dalenius.tables.language.relations import Field

_COUNTED = ("boolean", "integer", "real", "date", "moment")
_DAY = 24 * 60 * 60 * 10**6
"""Microseconds."""
_STEPS = {"integer": Fraction(1), "date": Fraction(1), "moment": Fraction(1, _DAY)}
"""From one value to the next."""
_NEVER_NULL = {
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "and", "or", "not", "lower",
    "upper", "trim", "ltrim", "rtrim", "length", "concat", "starts_with", "ends_with", "contains",
    "like", "ilike", "date_trunc", "extract", "floor", "ceil", "trunc", "sign", "is_nan", "cast_text",
    "dayname", "monthname", "least", "greatest", "cast_real", "strftime",
    "position", "split_part", "atan", "regexp_matches", "regexp_full_match", "regexp_extract",
    "regexp_replace",
}  # fmt: skip
"""Functions that give NULL only where an argument is NULL."""
_FLIPPED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
}


def span_of(expression: Expression, fields: Sequence[Field]) -> Span:
    """Where the values lie that are not NULL."""
    match expression:
        case Column(index, type_):
            return fields[index].span if type_ in _COUNTED else ANYTHING
        case Literal(value, _):
            return _point(value)
        case Call("case", arguments, type_):
            return _case(arguments, fields) if type_ in _COUNTED else ANYTHING
        case Call("is_null", (argument,), _):
            return TRUTH if is_nullable(argument, fields) else Span.of(0, 0)
        case Call(name, arguments, type_):
            return _call(name, arguments, fields) if type_ in _COUNTED else ANYTHING


def is_nullable(expression: Expression, fields: Sequence[Field]) -> bool:
    """Whether NULL may come of it."""
    match expression:
        case Column(index, _):
            return fields[index].nullable
        case Literal(value, _):
            return value is None
        case Call("is_null" | "is_distinct", _, _):
            return False
        case Call("case", arguments, _):
            return any(is_nullable(each, fields) for each in (*arguments[1::2], arguments[-1]))
        case Call("coalesce", arguments, _):
            return all(is_nullable(each, fields) for each in arguments)
        case Call("cast_real", (argument,), _) if argument.type == "text":
            return True
        case Call(name, arguments, _):
            return name not in _NEVER_NULL or any(is_nullable(each, fields) for each in arguments)


def narrowed(fields: tuple[Field, ...], condition: Expression) -> tuple[Field, ...]:
    """The columns of the rows for which a condition is true."""
    known = list(fields)
    for each in conjuncts(condition):
        match each:
            case Call("not", (Call("is_null", (Column(index, _),), _),), _):
                known[index] = replace(known[index], nullable=False)
            case Call(name, (Column(index, type_), Literal() as bound), _) if name in _FLIPPED:
                known[index] = _bounded(known[index], name, bound, type_)
            case Call(name, (Literal() as bound, Column(index, type_)), _) if name in _FLIPPED:
                known[index] = _bounded(known[index], _FLIPPED[name], bound, type_)
            case Call("or", options, _):
                _listed(known, options)
    return tuple(known)


def days(span: Span) -> tuple[date, date] | None:
    """The first and the last day of a span."""
    ends = span.finite
    if ends is None or not date.min.toordinal() <= ends[0] <= ends[1] < date.max.toordinal() + 1:
        return None
    return date.fromordinal(math.floor(ends[0])), date.fromordinal(math.floor(ends[1]))


def ordinal(when: date) -> Fraction:
    """A date or a moment in days."""
    if not isinstance(when, datetime):
        return Fraction(when.toordinal())
    since = when - datetime(when.year, when.month, when.day, tzinfo=when.tzinfo)
    return when.toordinal() + Fraction(since // timedelta(microseconds=1), _DAY)


def _point(value: object) -> Span:
    if isinstance(value, bool | int | float) and not math.isnan(value):
        return Span(exact(value), exact(value))
    return Span(ordinal(value), ordinal(value)) if isinstance(value, date) else ANYTHING


def _case(arguments: Sequence[Expression], fields: Sequence[Field]) -> Span:
    branches = [each for each in (*arguments[1::2], arguments[-1]) if each != Literal(None, each.type)]
    return hull(*(span_of(each, fields) for each in branches))


def _call(name: str, arguments: Sequence[Expression], fields: Sequence[Field]) -> Span:
    spans = [span_of(each, fields) for each in arguments]
    match name:
        case "coalesce":
            return hull(*spans)
        case "least" | "greatest":
            sure = [
                span for span, each in zip(spans, arguments, strict=True) if not is_nullable(each, fields)
            ]
            return _extreme(name, spans, sure)
        case "cast_integer" if arguments[0].type in ("boolean", "integer", "real"):
            return round_to(spans[0])
        case "cast_real" if arguments[0].type in ("boolean", "integer", "real"):
            return spans[0]
        case "modulo" if all(each.type == "integer" for each in arguments):
            inner = SPANS["subtract"](SPANS["abs"](spans[1]), Span.of(1, 1))
            return SPANS["modulo"](spans[0], inner)
        case "extract":
            return _extracted(arguments[0], spans[1])
        case "date_trunc":
            return _truncated(arguments[0], spans[1])
        case "date_diff" if arguments[0] == Literal("day", "text"):
            return SPANS["subtract"](SPANS["floor"](spans[2]), SPANS["floor"](spans[1]))
        case "cast_moment" if arguments[0].type in ("date", "moment"):
            return spans[0]
        case "cast_date" if arguments[0].type in ("date", "moment"):
            return SPANS["floor"](spans[0])
        case _ if name in SPANS:
            return SPANS[name](*spans)
    return TRUTH if arguments and _is_condition(name) else ANYTHING


def _extreme(name: str, spans: Sequence[Span], sure: Sequence[Span]) -> Span:
    """The least or greatest of values, of which only `sure` ones are certainly there."""
    both = hull(*spans)
    if name == "least":
        return Span(both.low, min((span.high for span in sure), default=both.high))
    return Span(max((span.low for span in sure), default=both.low), both.high)


def _is_condition(name: str) -> bool:
    return name in (
        "starts_with",
        "ends_with",
        "contains",
        "like",
        "ilike",
        "is_nan",
        "is_distinct",
        "regexp_matches",
        "regexp_full_match",
    )


def _extracted(part: Expression, span: Span) -> Span:
    name = part.value if isinstance(part, Literal) else None
    ends = days(span)
    if name in ("year", "isoyear") and ends is not None:
        years = [evaluate("extract", [name, end]) for end in ends]
        if all(isinstance(year, int) for year in years):
            return Span(*(Fraction(str(year)) for year in years))
    return Span.of(*PARTS[name]) if isinstance(name, str) and name in PARTS else ANYTHING


def _truncated(window: Expression, span: Span) -> Span:
    ends = days(span)
    if ends is None or not isinstance(window, Literal):
        return ANYTHING
    try:
        first = truncated(str(window.value), ends[0])
    except (ValueError, OverflowError):
        return ANYTHING
    return Span(Fraction(first.toordinal()), span.high)


def _bounded(field: Field, name: str, bound: Literal, type_: str) -> Field:
    field = replace(field, nullable=False)
    if type_ not in _COUNTED or bound.type not in _COUNTED or bound.value is None:
        return field
    end, step = _point(bound.value).low, _STEPS.get(type_, Fraction(0))
    low, high = field.span.low, field.span.high
    if name in ("greater", "greater_equal", "equal"):
        low = max(low, end + step if name == "greater" else end)
    if name in ("less", "less_equal", "equal"):
        high = min(high, end - step if name == "less" else end)
    return replace(field, span=Span(low, high)) if low <= high else field


def _listed(known: list[Field], options: Sequence[Expression]) -> None:
    """x = 1 OR x = 2: the column lies among these."""
    spans = []
    places = set()
    for option in options:
        match option:
            case Call("equal", (Column(index, type_), Literal(value, kind)), _) if value is not None:
                places.add(index)
                spans.append(_point(value) if type_ in _COUNTED and kind in _COUNTED else ANYTHING)
            case _:
                return
    if len(places) == 1:
        index = places.pop()
        both = hull(*spans)
        low, high = max(both.low, known[index].span.low), min(both.high, known[index].span.high)
        span = Span(low, high) if low <= high else known[index].span
        known[index] = replace(known[index], span=span, nullable=False)
