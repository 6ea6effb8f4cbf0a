"""Joins in SQL: of which kind, on what condition, and which names are to be seen after them."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dalenius.tables.language.expressions import Expression, call, literal
from dalenius.tables.language.lineage import (
    shifted,
)
from dalenius.tables.language.reading import Reader, only
from dalenius.tables.language.refusals import refuse
from dalenius.tables.language.relations import JoinKind
from dalenius.tables.language.scopes import Scope
from dalenius.tables.language.words import check_types
from dalenius.tables.schema import folded


def kind_of(join: exp.Join) -> JoinKind:
    """Inner or left; any other kind is refused."""
    side, kind = str(join.args.get("side") or ""), str(join.args.get("kind") or "")
    odd = join.args.get("method") or side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER", "CROSS")
    if odd:
        raise refuse("RIGHT, FULL, SEMI, ANTI, ASOF, NATURAL or POSITIONAL join", f"{side} {kind}".strip())
    only(join, "this", "side", "kind", "on", "using")
    return "left" if side == "LEFT" else "inner"


def moved(scope: Scope, by: int) -> Scope:
    """The same names, for columns that stand further on."""
    return Scope(tuple(replace(each, expression=shifted(each.expression, by)) for each in scope.entries))


def condition_of(join: exp.Join, left: Scope, right: Scope) -> tuple[Expression, Scope]:
    """What a join asks for, and the names after it: those of USING are there once."""
    both = Scope((*left.entries, *right.entries))
    if join.args.get("on") is not None:
        condition = Reader(both).read(join.args["on"])
        return check_types(condition, "boolean", "The condition of JOIN"), both
    using = [each.name for each in join.args.get("using") or ()]
    if not using:
        return literal(True), both
    equal = [call("equal", left.require(name), right.require(name)) for name in using]
    hidden = {folded(name) for name in using}
    entries = (replace(each, hidden=each.hidden or folded(each.name) in hidden) for each in right.entries)
    return equal[0] if len(equal) == 1 else call("and", *equal), Scope((*left.entries, *entries))
