"""All values that an expression may have, where that is known without looking at private data.

A function of columns with declared categories or short ranges takes its values on these; NULL is then
among them only if it was declared or the function makes it. Where the form of an expression says what it
can be (CASE, a comparison, the month of a date), NULL is among the values wherever the expression may be
NULL.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from itertools import product

from dalenius.tables.language.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
    parts_of,
)
from dalenius.tables.language.forming import column_formed, formed
from dalenius.tables.language.functions import evaluate, knows
from dalenius.tables.language.intervals import Span
from dalenius.tables.language.relations import (
    Distinct,
    Filter,
    JoinPublic,
    JoinUnit,
    PerUnit,
    Project,
    Relation,
    Scan,
    UnionAll,
    Windowed,
)
from dalenius.tables.language.spans import days, is_nullable, ordinal, span_of
from dalenius.tables.rows import KeyPart

MOST = 100_000
"""Groups that are listed; where there are more, they are selected privately."""
_BY_FORM = 100
"""Groups that are listed by the form of an expression alone: of years there are 9,999, most of them empty."""
_EVALUATED = 20_000
"""Values on which an expression is evaluated."""
_HOURS = ("hour", "minute", "second")


def values_of(relation: Relation, expression: Expression) -> list[KeyPart] | None:
    """All values that an expression may have, where they are known and few."""
    by_columns = _evaluated(relation, expression)
    if by_columns is not None:
        return by_columns
    fields = relation.facts.fields
    null: list[KeyPart] = [None] if is_nullable(expression, fields) else []
    match expression:
        case Call("case", arguments, _):
            return _united(relation, (*arguments[1::2], arguments[-1]))
        case Call("coalesce", arguments, _):
            united = _united(relation, arguments)
            return united if united is None or null else [value for value in united if value is not None]
    if isinstance(expression, Column):
        return None
    if expression.type == "boolean":
        return [False, True, *null]
    if expression.type != "integer":
        return None
    numbers = _told(span_of(expression, fields), formed(relation, expression), expression.type)
    return None if numbers is None else [*numbers, *null]


def _told(span: Span, form: Span, type_: str) -> list[KeyPart] | None:
    """The values of a span, where they are few by nature or both of its ends were stated by somebody."""
    found = _counted(span, type_)
    stated = span.low != form.low and span.high != form.high
    return found if found is None or stated or len(found) <= _BY_FORM else None


def _evaluated(relation: Relation, expression: Expression) -> list[KeyPart] | None:
    """The values on all values of the columns that are read."""
    if any(isinstance(part, Call) and not knows(part.name) for part in parts_of(expression)):
        return None
    places = sorted(columns_of(expression))
    daily = _daily(expression)
    domains = [
        _midnights(relation, place) if place in daily else _column(relation, place) for place in places
    ]
    known = [domain for domain in domains if domain is not None]
    if len(known) < len(domains) or math.prod(map(len, known)) > _EVALUATED:
        return None
    assignments = (dict(zip(places, choice, strict=True)) for choice in product(*known))
    return list(dict.fromkeys(worth(expression, assignment) for assignment in assignments))


def _daily(expression: Expression) -> frozenset[int]:
    """The columns of moments of which only the day matters."""
    if not isinstance(expression, Call):
        return frozenset()
    match expression:
        case Call("date_trunc" | "extract", (Literal(part, _), Column(index, "moment")), _) if (
            part not in _HOURS
        ):
            return frozenset({index})
        case Call("cast_date" | "dayname" | "monthname", (Column(index, "moment"),), _):
            return frozenset({index})
    below = [(_daily(each), columns_of(each)) for each in expression.arguments]
    return frozenset().union(*(daily for daily, _ in below)) - frozenset().union(
        *(each - daily for daily, each in below)
    )


def _midnights(relation: Relation, place: int) -> list[KeyPart] | None:
    found = _counted(relation.facts.fields[place].span, "date")
    return (
        None
        if found is None
        else [datetime(day.year, day.month, day.day) for day in found if isinstance(day, date)]
    )


def worth(expression: Expression, columns: Mapping[int, KeyPart]) -> KeyPart:
    """The value of an expression where its columns have these values."""
    match expression:
        case Column(index, _):
            return columns[index]
        case Literal(value, _):
            return value
        case Call(name, arguments, _):
            return evaluate(name, [worth(each, columns) for each in arguments])


@lru_cache(maxsize=1024)
def _column(relation: Relation, place: int) -> list[KeyPart] | None:
    """The values of a column, as far as nodes below tell; what a node knows of its range narrows them."""
    found = _from_below(relation, place)
    field = relation.facts.fields[place]
    if found is None and field.type in ("integer", "date"):
        found = _told(field.span, column_formed(relation, place), field.type)
        return found if found is None or not field.nullable else [*found, None]
    if found is None or field.type not in ("integer", "real", "date", "moment"):
        return found
    return [value for value in found if value is None or _inside(value, field.span)]


def _from_below(relation: Relation, place: int) -> list[KeyPart] | None:
    match relation:
        case Scan():
            return _declared(relation, place)
        case Project(source, expressions):
            return values_of(source, expressions[place])
        case Filter(source, condition):
            return _filtered(source, condition, place)
        case JoinPublic(source) | Windowed(source) if place < len(source.facts.fields):
            return _column(source, place)
        case JoinUnit(source, other, _, kind):
            width = len(source.facts.fields)
            return _column(source, place) if place < width else _beside(_column(other, place - width), kind)
        case Distinct(source):
            return _column(source, place)
        case PerUnit(source, keys) if place < len(keys):
            return values_of(source, keys[place])
        case UnionAll(sources):
            parts = [_column(source, place) for source in sources]
            return None if None in parts else _merged(part for part in parts if part is not None)
    return None


def _beside(values: list[KeyPart] | None, kind: str) -> list[KeyPart] | None:
    return values if values is None or kind == "inner" else list(dict.fromkeys([*values, None]))


def _declared(relation: Scan, place: int) -> list[KeyPart] | None:
    field = relation.facts.fields[place]
    if field.name in relation.table.categories:
        return list(relation.table.categories[field.name])
    if field.type == "boolean":
        return [False, True, None] if field.nullable else [False, True]
    return _counted(field.span, field.type)


def _counted(span: Span, type_: str) -> list[KeyPart] | None:
    """The whole numbers or days of a span, where they are few."""
    ends = span.finite
    if ends is None or ends[1] - ends[0] > MOST:
        return None
    if type_ == "integer":
        return list(range(math.ceil(ends[0]), math.floor(ends[1]) + 1))
    between = days(span) if type_ == "date" else None
    if between is None:
        return None
    return [between[0] + timedelta(days=i) for i in range((between[1] - between[0]).days + 1)]


def _filtered(source: Relation, condition: Expression, place: int) -> list[KeyPart] | None:
    """The values that a condition lists for a column, and no others of those known."""
    known = _column(source, place)
    for each in conjuncts(condition):
        options = each.arguments if isinstance(each, Call) and each.name == "or" else (each,)
        listed = [_equal_to(option, place) for option in options]
        values = [value.value for value in listed if value is not None]
        if len(values) == len(listed):
            known = values if known is None else [value for value in known if value in values]
    return known


def _equal_to(condition: Expression, place: int) -> Literal | None:
    match condition:
        case Call("equal", (Column(index, _), Literal() as value), _) if index == place:
            return value
        case Call("equal", (Literal() as value, Column(index, _)), _) if index == place:
            return value
    return None


def _united(relation: Relation, expressions: Sequence[Expression]) -> list[KeyPart] | None:
    parts = [values_of(relation, each) for each in expressions]
    return None if None in parts else _merged(part for part in parts if part is not None)


def _merged(parts: Iterable[Sequence[KeyPart]]) -> list[KeyPart]:
    return list(dict.fromkeys(value for part in parts for value in part))


def _inside(value: KeyPart, span: Span) -> bool:
    number = ordinal(value) if isinstance(value, date) else value
    return not isinstance(number, int | float | Fraction) or span.low <= number <= span.high
