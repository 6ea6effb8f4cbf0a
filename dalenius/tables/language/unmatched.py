"""A public table whose rows are all kept: those without a match must add nothing, as they belong to nobody.

    SELECT a.name, COUNT(f.dest) FROM airports a LEFT JOIN flights f ON a.faa = f.dest GROUP BY a.name

The join is an inner one here. A row without a match has NULL in every column of the private table; where
each aggregate is of an expression that is NULL in such a row, it is the same without that row. The groups
come from the public table, and all of them are shown.
"""

from __future__ import annotations

from collections.abc import Collection

from dalenius.tables.language.aggregating import Grouping
from dalenius.tables.language.expressions import Call, Column, Expression, Literal, columns_of
from dalenius.tables.language.refusals import refuse

_CLAUSE = "public table LEFT JOIN private table"
_ALL = ("coalesce", "least", "greatest", "and", "or")
"""Functions that are NULL only where all of their arguments are."""
_NEVER = ("is_null", "is_distinct", "nullif")
"""Functions of which nothing is said here."""


def check_unmatched(padded: Collection[int], grouping: Grouping) -> None:
    """Refuse a question that rows without a match would add to."""
    if not padded:
        return
    if any(columns_of(key) & set(padded) for key in grouping.keys):
        raise refuse(_CLAUSE, "grouped by a column of the private table")
    for aggregate in grouping.aggregates:
        missing = aggregate.argument is not None and is_missing(aggregate.argument, padded)
        if not missing and aggregate.kind != "units":
            raise refuse(_CLAUSE, aggregate.kind)


def is_missing(expression: Expression, padded: Collection[int]) -> bool:
    """Whether an expression is NULL wherever these columns are."""
    match expression:
        case Column(index, _):
            return index in padded
        case Literal(value, _):
            return value is None
        case Call("case", arguments, _):
            return all(is_missing(each, padded) for each in (*arguments[1::2], arguments[-1]))
        case Call(name, arguments, _) if name in _ALL:
            return all(is_missing(each, padded) for each in arguments)
        case Call(name, _, _) if name in _NEVER:
            return False
        case Call(_, arguments, _):
            return any(is_missing(each, padded) for each in arguments)
