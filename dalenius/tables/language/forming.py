"""Where values lie by the form of expressions alone, whatever is declared, and whatever WHERE says.

The year of a date lies between 1 and 9999, whatever the dates are. That is no fact about the data, and nobody
meant so many groups: an end that an expression has by its form is told here from one that was stated.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from dalenius.tables.language.expressions import Expression, columns_of
from dalenius.tables.language.intervals import ANYTHING, Span, hull
from dalenius.tables.language.relations import (
    Distinct,
    Filter,
    Fold,
    JoinPublic,
    JoinUnit,
    Over,
    PerUnit,
    Project,
    Relation,
    UnionAll,
    Windowed,
)
from dalenius.tables.language.spans import span_of


def formed(relation: Relation, expression: Expression) -> Span:
    """Where an expression lies by its form alone."""
    fields = list(relation.facts.fields)
    for place in columns_of(expression):
        fields[place] = replace(fields[place], span=column_formed(relation, place))
    return span_of(expression, fields)


@lru_cache(maxsize=1024)
def column_formed(relation: Relation, place: int) -> Span:
    """Where a column lies by the form of the expressions that make it."""
    match relation:
        case Project(source, expressions):
            return formed(source, expressions[place])
        case Filter(source) | Distinct(source):
            return column_formed(source, place)
        case JoinPublic(source, other) | JoinUnit(source, other):
            width = len(source.facts.fields)
            return column_formed(source, place) if place < width else column_formed(other, place - width)
        case PerUnit(source, keys, folds):
            if place < len(keys):
                return formed(source, keys[place])
            return _repeated(source, folds[place - len(keys)])
        case Windowed(source, functions):
            width = len(source.facts.fields)
            if place < width:
                return column_formed(source, place)
            return _repeated(source, functions[place - width])
        case UnionAll(sources):
            return hull(*(column_formed(source, place) for source in sources))
    return ANYTHING


def _repeated(source: Relation, over: Fold | Over) -> Span:
    """The least, the greatest or a middle value of an expression lies where that does."""
    if over.argument is None or over.kind in ("count", "count_of", "distinct", "sum"):
        return ANYTHING
    return formed(source, over.argument)
