"""The SELECT list and what a query groups by: names, stars written out, places and names of the list."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dalenius.errors import InvalidArgument
from dalenius.tables.language.aggregating import has_aggregate, name_of, several
from dalenius.tables.language.grouping_sets import grouping_sets
from dalenius.tables.language.reading import Node, only, whole_of
from dalenius.tables.language.refusals import refuse
from dalenius.tables.language.scopes import Scope
from dalenius.tables.schema import folded


def aliases_of(select: exp.Select) -> dict[str, Node]:
    """The names that a SELECT list gives to expressions."""
    return {folded(each.alias): each.this for each in select.expressions if isinstance(each, exp.Alias)}


def items_of(select: exp.Select, scope: Scope) -> list[tuple[str, Node]]:
    """The SELECT list with names, stars written out."""
    items: list[tuple[str, Node]] = []
    for each in select.expressions:
        star = each.this if isinstance(each, exp.Column) and isinstance(each.this, exp.Star) else each
        if isinstance(star, exp.Star):
            items += _starred(star, each.text("table") if star is not each else "", scope)
        elif isinstance(each, exp.Alias):
            items.append((each.alias, each.this))
        else:
            items.append((name_of(each, _own_name(each, scope)), each))
    return [each for name, node in items for each in _spread(name, node)]


def _spread(name: str, node: Node) -> list[tuple[str, Node]]:
    """A list of quantiles as a column for each of them, which its fraction names."""
    return [(f"{name}_{fraction}", each) for fraction, each in several(node)] or [(name, node)]


def key_nodes(select: exp.Select, scope: Scope) -> list[Node]:
    """What a query groups by: a number is an item of the SELECT list, ALL every item without aggregates."""
    group = select.args.get("group")
    if group is None:
        return []
    if any(group.args.get(each) for each in ("grouping_sets", "cube", "rollup", "totals")):
        raise refuse("GROUPING SETS, ROLLUP or CUBE")
    only(group, "expressions", "all")
    items = [node for _, node in items_of(select, scope)]
    if group.args.get("all"):
        return [node for node in items if not has_aggregate(node)]
    return [_ordinal(node, items) for node in group.expressions]


def key_sets(select: exp.Select, scope: Scope) -> list[tuple[Node, ...]]:
    """What a query groups by, set by set, the finest first."""
    group = select.args["group"]
    only(group, "expressions")
    items = [node for _, node in items_of(select, scope)]
    return [tuple(_ordinal(key, items) for key in keys) for keys in grouping_sets(group)]


def _ordinal(node: Node, items: Sequence[Node]) -> Node:
    if isinstance(node, exp.Cube | exp.Rollup | exp.GroupingSets):
        raise refuse("GROUPING SETS, ROLLUP or CUBE")
    if not isinstance(node, exp.Literal) or node.is_string:
        return node
    place = whole_of(node)
    if not 1 <= place <= len(items):
        raise InvalidArgument(f"There is no column {place}.", remedy=f"Use a place from 1 to {len(items)}.")
    return items[place - 1]


def _own_name(node: Node, scope: Scope) -> str | None:
    """A column's name as its table spells it."""
    if not isinstance(node, exp.Column):
        return None
    found = scope.find(node.name, node.table)
    return next((entry.name for entry in scope.entries if entry.expression == found and entry.name), None)


def _starred(star: exp.Star, table: str, scope: Scope) -> list[tuple[str, Node]]:
    only(star, "except_")
    left_out = {folded(each.name) for each in star.args.get("except_") or ()}
    entries = [
        each
        for each in scope.entries
        if (not table and not each.hidden) or folded(each.table) == folded(table)
    ]
    return [
        (each.name, exp.column(exp.to_identifier(each.name, quoted=True), table=each.table or None))
        for each in entries
        if folded(each.name) not in left_out
    ]
