"""`Basis`: which rows of which table a question is about, and which of its columns, where that is plain.

A profile of a table says something of a question only as far as the question's rows are rows of the table:
each at most once, and each with the columns that the table has. Filters and groups within units leave rows
out or put them together; joins may make more of them, and then nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dalenius.tables.language.expressions import Call, Column, Expression
from dalenius.tables.language.relations import (
    Distinct,
    Filter,
    JoinPublic,
    PerUnit,
    Project,
    Relation,
    Scan,
    Windowed,
)


@dataclass(frozen=True)
class Basis:
    """The private table below a question; columns by their names there, None where one is computed."""

    table: str
    keys: tuple[str | None, ...]
    values: tuple[str | None, ...]
    filtered: bool
    """Whether some of the table's rows may be left out, or put together."""


def basis_of(relation: Relation, keys: Sequence[Expression], values: Sequence[Expression]) -> Basis | None:
    """Return the basis of a question; None where its rows may be more than those of one table."""
    filtered, below = False, relation
    while not isinstance(below, Scan):
        match below:
            case Project(source) | Windowed(source):
                below = source
            case Filter(source) | Distinct(source) | PerUnit(source):
                below, filtered = source, True
            case JoinPublic(source) if below.once:
                below, filtered = source, True
            case _:
                return None
    names = list(below.table.columns)
    traced = [[_column(relation, each, names) for each in found] for found in (keys, values)]
    return Basis(below.table.name, tuple(traced[0]), tuple(traced[1]), filtered)


def _column(relation: Relation, expression: Expression, names: Sequence[str]) -> str | None:
    """The column of the scanned table that an expression is, by another type at most."""
    while True:
        if isinstance(expression, Call) and expression.name == "cast_real":
            (expression,) = expression.arguments[:1]
        if not isinstance(expression, Column):
            return None
        match relation:
            case Scan():
                return names[expression.index]
            case Project(source, expressions):
                relation, expression = source, expressions[expression.index]
            case Filter(source) | Distinct(source):
                relation = source
            case Windowed(source) | JoinPublic(source) if expression.index < len(source.facts.fields):
                relation = source
            case PerUnit(source, grouped) if expression.index < len(grouped):
                relation, expression = source, grouped[expression.index]
            case _:
                return None
