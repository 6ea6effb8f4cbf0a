"""What is computed from a released answer, as steps: an outer query over an answer, windows over groups.

    WITH c AS (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier) SELECT * FROM c WHERE n > 1000
    SELECT origin, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM flights GROUP BY origin

An answer is public once it is released, so anything may be computed from it, at no cost. The columns of the
answer are the first columns; every step makes of the columns before it those after it. Steps are public: they
are part of the question. In their formulas `AggregateValue(i)` is the i-th column.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalenius.tables.language.expressions import Call, Column, Expression, ExpressionType, Literal
from dalenius.tables.language.formulas import AggregateValue, Constant, Formula, Operation
from dalenius.tables.language.functions import knows
from dalenius.tables.language.refusals import refuse
from dalenius.tables.language.relations import (
    Distinct,
    Facts,
    Field,
    Filter,
    Fold,
    Over,
    PerUnit,
    Project,
    PublicScan,
    Relation,
    Windowed,
)
from dalenius.tables.question import (
    Chosen,
    Folded,
    Grouped,
    Named,
    Shown,
    Sorted,
    Step,
    Unique,
    Window,
    Windows,
)
from dalenius.tables.schema import Public

_TYPES: tuple[ExpressionType, ...] = ("boolean", "integer", "real", "text", "date", "moment", "other")
KINDS = (
    "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "first_value",
    "last_value", "nth_value", "count", "count_of", "sum", "avg", "min", "max", "median",
)  # fmt: skip
"""Functions that are computed over the rows of an answer."""


def answered(columns: Sequence[Named]) -> PublicScan:
    """A released answer, as a relation that everybody may read."""
    fields = tuple(Field(each.name, _type(each.type)) for each in columns)
    table = Public("answer", {f"c{i}": "text" for i in range(len(columns))})
    return PublicScan(table, Facts(fields, public=True))


def _type(name: str) -> ExpressionType:
    return next((each for each in _TYPES if each == name), "null")


def steps_of(relation: Relation, answer: Relation) -> tuple[Step, ...]:
    """The steps that lead from an answer to a relation over it alone."""
    if relation is answer:
        return ()
    match relation:
        case Project(source, expressions):
            return (*steps_of(source, answer), Shown(tuple(map(formula_of, expressions))))
        case Filter(source, condition):
            return (*steps_of(source, answer), Chosen(formula_of(condition)))
        case Distinct(source):
            return (*steps_of(source, answer), Unique())
        case Windowed(source, functions):
            return (*steps_of(source, answer), Windows(tuple(map(_window, functions))))
        case PerUnit(source, keys, folds):
            folded = tuple(_folded(each) for each in folds)
            return (*steps_of(source, answer), Grouped(tuple(map(formula_of, keys)), folded))
    raise refuse("JOIN or UNION of an answer")


def formula_of(expression: Expression) -> Formula:
    """An expression over the columns of a step."""
    match expression:
        case Column(index, _):
            return AggregateValue(index)
        case Literal(value, _):
            return Constant(value)
        case Call(name, arguments, _):
            if not knows(name):
                raise refuse("function outside aggregates that is not known", name)
            return Operation(name, tuple(map(formula_of, arguments)))


def sorted_by(
    count: int, shown: int, order: Sequence[tuple[bool, bool]], limit: int | None, offset: int
) -> tuple[Step, ...]:
    """Of `count` columns, the first are shown, in the order of the others."""
    by = tuple((AggregateValue(shown + i), *each) for i, each in enumerate(order))
    step: tuple[Step, ...] = (Sorted(by, limit, offset),) if by or limit is not None or offset else ()
    if count > shown:
        step += (Shown(tuple(AggregateValue(i) for i in range(shown))),)
    return step


def _window(function: Over) -> Window:
    if function.kind not in KINDS:
        raise refuse("function outside aggregates that is not known", function.kind)
    return Window(
        function.kind,
        None if function.argument is None else formula_of(function.argument),
        tuple(map(formula_of, function.partition)),
        tuple((formula_of(by), down, first) for by, down, first in function.order),
        function.rows,
        function.offset,
    )


def _folded(fold: Fold) -> Folded:
    return Folded(fold.kind, None if fold.argument is None else formula_of(fold.argument))
