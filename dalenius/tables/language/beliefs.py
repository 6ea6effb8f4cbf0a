"""What is known of the columns of a relation: found from the columns below and the expression alone.

Only `unit_part` has to do with privacy, and even it only decides what is refused: what is printed goes by the
hidden columns. All else is belief, which costs accuracy where it is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date

from dalenius.tables.language.expressions import Call, Column, Expression, Literal, columns_of
from dalenius.tables.language.intervals import ANYTHING, Span, exact, multiply
from dalenius.tables.language.relations import (
    Field,
    Fold,
    Over,
    Part,
    Relation,
)
from dalenius.tables.language.spans import is_nullable, ordinal, span_of
from dalenius.tables.schema import End, Private, Public, Type, as_known, own


def unit_part(source: Relation, expression: Expression) -> int | None:
    """Which column of the unit an expression is, by where it comes from."""
    fields = source.facts.fields
    match expression:
        case Column(index, _):
            part = fields[index].part
            return part.index if part is not None and part.window is None else None
        case Call("date_trunc", (Literal(window, _), Column(index, _)), _):
            part = fields[index].part
            return part.index if part is not None and part.window == window else None
    return None


def is_part(source: Relation, expression: Expression) -> bool:
    """Whether an expression is a column of the unit, or the time that its windows are cut by."""
    if isinstance(expression, Column) and source.facts.fields[expression.index].part is not None:
        return True
    return unit_part(source, expression) is not None


def field_of(source: Relation, expression: Expression, name: str) -> Field:
    """A column with this expression."""
    fields = source.facts.fields
    if isinstance(expression, Column):
        return replace(fields[expression.index], name=name)
    index = unit_part(source, expression)
    return Field(
        name,
        expression.type,
        span_of(expression, fields),
        is_nullable(expression, fields),
        None if index is None else Part(index),
        is_fixed(source, expression),
    )


def is_fixed(source: Relation, expression: Expression) -> bool:
    """Whether an expression is the same in all rows of a unit."""
    fields = source.facts.fields
    return unit_part(source, expression) is not None or all(fields[i].fixed for i in columns_of(expression))


def unit_types(table: Private) -> tuple[Type, ...]:
    """Of the hidden columns of a table."""
    columns = dict(typed_columns(table))
    if table.unit.column is None:
        return ()
    identity = columns[own(columns, table.unit.column)]
    if table.unit.missing == "each row":
        # The number of a row that has no identity, 0 where it has one.
        return (identity, "integer")
    return (identity,) if table.unit.window is None else (identity, "moment")


def typed_columns(table: Private | Public) -> Iterable[tuple[str, Type]]:
    """The columns of a table in order, with their types."""
    return ((name, as_known(type_)) for name, type_ in table.columns.items())


def declared(table: Private, name: str, type_: Type) -> Field:
    """A column of a private table, with what its owner says of it."""
    columns = dict(typed_columns(table))
    is_unit = table.unit.column is not None and own(columns, table.unit.column) == name
    is_time = table.unit.window is not None and table.time is not None and own(columns, table.time) == name
    part = Part(0) if is_unit else Part(1, table.unit.window) if is_time else None
    span = _declared_span(*table.ranges[name]) if name in table.ranges else ANYTHING
    fixed = is_unit or table.units == 0
    return Field(name, type_, span, name not in table.not_null, part, fixed)


def _declared_span(low: End, high: End) -> Span:
    first, last = (ordinal(end) if isinstance(end, date) else exact(end) for end in (low, high))
    return Span(first, last)


def united(fields: Sequence[Field]) -> Field:
    """A column of UNION ALL: what is known of it is known of every branch."""
    first = fields[0]
    spans = Span(min(field.span.low for field in fields), max(field.span.high for field in fields))
    alike = all(field.part == first.part for field in fields)
    part = first.part if alike else None
    fixed = part is not None and part.window is None
    return Field(first.name, first.type, spans, any(field.nullable for field in fields), part, fixed)


def fold_field(source: Relation, fold: Fold, *, fixed: bool) -> Field:
    """An aggregate within a unit."""
    if fold.kind in ("count", "count_of", "distinct"):
        most = source.facts.rows_per_unit if source.facts.rows_per_unit is not None else math.inf
        return Field("", "integer", Span.of(0, most), nullable=False, fixed=fixed)
    assert fold.argument is not None
    span = span_of(fold.argument, source.facts.fields)
    if fold.kind == "sum":
        span = _summed(span, source.facts.rows_per_unit)
    keeps = fold.kind in ("min", "max") or (fold.kind == "sum" and fold.argument.type == "integer")
    return Field(
        "", fold.argument.type if keeps and fold.argument.type != "null" else "real", span, fixed=fixed
    )


def _summed(span: Span, rows: int | None) -> Span:
    if rows is None:
        return Span.of(0 if span.low >= 0 else -math.inf, 0 if span.high <= 0 else math.inf)
    return multiply(span, Span.of(1, rows))


def over_field(source: Relation, function: Over) -> Field:
    """A window function within a unit."""
    ranks = ("row_number", "rank", "dense_rank", "ntile")
    if function.kind in ranks:
        return Field("", "integer", Span.of(1, source.facts.rows_per_unit or math.inf), nullable=False)
    if function.kind in ("percent_rank", "cume_dist"):
        return Field("", "real", Span.of(0, 1), nullable=False)
    if function.kind in ("lag", "lead", "first_value", "last_value", "nth_value"):
        assert function.argument is not None
        return replace(field_of(source, function.argument, ""), nullable=True, part=None, fixed=False)
    whole = not function.order and all(is_fixed(source, each) for each in function.partition)
    return fold_field(source, Fold(function.kind, function.argument), fixed=whole)
