"""Joins in SQL: of which kind, on what condition, and which names are to be seen after them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Literal

from sqlglot import exp

from dalenius.errors import InvalidArgument
from dalenius.tables.language.expressions import Expression, call, literal
from dalenius.tables.language.lineage import (
    shifted,
)
from dalenius.tables.language.reading import Reader, only
from dalenius.tables.language.refusals import refuse
from dalenius.tables.language.scopes import Entry, Scope
from dalenius.tables.language.words import check_types
from dalenius.tables.schema import folded


def kind_of(join: exp.Join) -> Literal["inner", "left", "right", "semi", "anti"]:
    """Of which kind it is; those that are not known are refused."""
    side, kind = str(join.args.get("side") or ""), str(join.args.get("kind") or "")
    method = str(join.args.get("method") or "")
    odd = method not in ("", "NATURAL") or side not in ("", "LEFT", "RIGHT")
    if odd or kind not in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI"):
        raise refuse("FULL, ASOF or POSITIONAL join", f"{method} {side} {kind}".strip())
    only(join, "this", "side", "kind", "on", "using", "method")
    if kind in ("SEMI", "ANTI"):
        return "semi" if kind == "SEMI" else "anti"
    return "left" if side == "LEFT" else "right" if side == "RIGHT" else "inner"


def moved(scope: Scope, by: int) -> Scope:
    """The same names, for columns that stand further on."""
    return Scope(tuple(replace(each, expression=shifted(each.expression, by)) for each in scope.entries))


def condition_of(
    join: exp.Join, left: Scope, right: Scope, *, kept: Literal["left", "right"] = "left"
) -> tuple[Expression, Scope]:
    """What a join asks for, and the names after it: those of USING once, of the side that is kept."""
    both = Scope((*left.entries, *right.entries))
    if join.args.get("on") is not None:
        condition = Reader(both).read(join.args["on"])
        return check_types(condition, "boolean", "The condition of JOIN"), both
    using = [each.name for each in join.args.get("using") or ()]
    if join.args.get("method"):
        using = _common(left, right)
    if not using:
        return literal(True), both
    equal = [call("equal", left.require(name), right.require(name)) for name in using]
    hidden = {folded(name) for name in using}
    condition = equal[0] if len(equal) == 1 else call("and", *equal)
    if kept == "right":
        return condition, Scope((*_hidden(left, hidden), *right.entries))
    return condition, Scope((*left.entries, *_hidden(right, hidden)))


def _hidden(scope: Scope, names: Collection[str]) -> Iterator[Entry]:
    """The columns of a scope, some of them to be seen after their table's name only."""
    return (replace(each, hidden=each.hidden or folded(each.name) in names) for each in scope.entries)


def _common(left: Scope, right: Scope) -> list[str]:
    """The names that both sides of a NATURAL join have."""
    names = {folded(each.name) for each in right.entries if not each.hidden}
    found = [each.name for each in left.entries if not each.hidden and folded(each.name) in names]
    if not found:
        raise InvalidArgument(
            "The two sides of NATURAL JOIN have no column in common.",
            remedy="Write JOIN … ON, with the columns that are equal.",
        )
    return list(dict.fromkeys(found))
