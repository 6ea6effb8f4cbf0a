"""IN, EXISTS and semi-joins: whether a public table, or the same unit's records, hold a row's values.

    x IN (SELECT c FROM p)                         LEFT JOIN (SELECT c, COUNT(*) FROM p GROUP BY c) ON x = c
    EXISTS (SELECT … FROM p WHERE p.c = x AND …)   the same, of the rows of p for which the rest holds

Each is made of nodes of `lineage` alone. For a public p, a row is joined with one row of a public relation at
most, so what becomes of it is a function of that row and of public tables. For a private p the unit must be
among what is set equal: p is grouped within units, and joined with rows of the same unit, so a row depends on
its unit's records. All else would depend on the records of other units, and is refused.

Where it is not a condition of WHERE by itself, `x IN (…)` is NULL as in SQL: where x is, unless there are no
values, and where it is none of the values, and one of these is NULL. How many there are is public, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dalenius.tables.language.beliefs import unit_part
from dalenius.tables.language.expressions import (
    NULL,
    Call,
    Column,
    Expression,
    as_type,
    call,
    case,
    columns_of,
    conjuncts,
    literal,
)
from dalenius.tables.language.lineage import join_public, join_unit, keep, per_unit, shifted
from dalenius.tables.language.reading import Node, Reader, shown
from dalenius.tables.language.refusals import refuse
from dalenius.tables.language.relations import Fold, JoinKind, Relation
from dalenius.tables.language.scopes import Scope

Pair = tuple[Expression, Expression]
"""An expression over the rows outside, and one over the rows inside that it is equal to."""
_PLAIN = ("expressions", "from_", "joins", "where", "with_", "distinct")


@dataclass(frozen=True)
class Inside:
    """The rows of a subquery, and what of them is set equal to something outside."""

    relation: Relation
    pairs: tuple[Pair, ...]


def is_membership(node: Node) -> bool:
    """Whether it is IN or EXISTS of a subquery."""
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        return isinstance(node.expression.this, exp.Query)
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None)


def memberships(node: Node | None, *, within: bool = False) -> Iterator[Node]:
    """Those in an expression, outermost first, but for those of subqueries."""
    if node is None or (within and isinstance(node, exp.Query)):
        return
    if is_membership(node):
        yield node
        return
    for child in node.iter_expressions():
        yield from memberships(child, within=True)


def asked_alone(where: Node | None) -> list[Node]:
    """Those that are conditions of WHERE by themselves, so that NULL is as good as false there."""
    if where is None:
        return []
    condition = where.this
    parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    return [each for each in (part.unnest() for part in parts) if is_membership(each)]


def query_of(node: Node) -> Node:
    """The subquery of IN, = ANY or EXISTS."""
    if isinstance(node, exp.In):
        inner = node.args["query"]
    else:
        inner = node.expression.this if isinstance(node, exp.EQ) else node.this
    return inner.unnest() if isinstance(inner, exp.Subquery) else inner


def outer_side(node: Node) -> list[Node]:
    """What stands before IN; nothing for EXISTS."""
    if isinstance(node, exp.Exists):
        return []
    return list(node.this.expressions) if isinstance(node.this, exp.Tuple) else [node.this]


def correlated(select: Node, node: Node) -> exp.Select:
    """The SELECT of EXISTS, as plain as it must be."""
    odd = not isinstance(select, exp.Select) or any(
        value not in (None, False, []) for name, value in select.args.items() if name not in _PLAIN
    )
    if odd:
        raise refuse("subquery inside an expression", shown(node))
    assert isinstance(select, exp.Select)
    return select


def split(
    where: Node | None, outer: Reader, inner: Reader, node: Node
) -> tuple[list[Expression], list[Pair]]:
    """The conditions on the rows inside alone, and what they set equal to something outside."""
    alone: list[Expression] = []
    pairs: list[Pair] = []
    if where is None:
        return alone, pairs
    parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    for part in parts:
        condition = inner.attempt(part)
        if condition is not None:
            alone.append(condition)
            continue
        equal = part.unnest()
        if not isinstance(equal, exp.EQ):
            raise refuse("subquery inside an expression", shown(node))
        pairs.append(_pair(equal, outer, inner))
    return alone, pairs


def _pair(equal: exp.EQ, outer: Reader, inner: Reader) -> Pair:
    for here, there in ((equal.this, equal.expression), (equal.expression, equal.this)):
        found = inner.attempt(there)
        if found is not None:
            return outer.read(here), found
    return outer.read(equal.this), inner.read(equal.expression)


def joined(source: Relation, inside: Inside, node: Node, kind: JoinKind) -> tuple[Relation, Expression]:
    """The rows beside those of the subquery that hold the same values, and whether there are any."""
    inside = _by_columns(inside)
    keys = [here for _, here in inside.pairs]
    private = not inside.relation.facts.public
    if not keys or (private and source.facts.public):
        raise refuse("subquery inside an expression", shown(node))
    if private:
        parts = {unit_part(inside.relation, key) for key in keys}
        if inside.relation.facts.each_row or not parts >= set(range(inside.relation.facts.units)):
            raise refuse("subquery inside an expression", shown(node))
    held = per_unit(inside.relation, keys, [""] * len(keys), [Fold("count")])
    width = len(source.facts.fields)
    equal = [
        call("equal", there, Column(width + i, here.type)) for i, (there, here) in enumerate(inside.pairs)
    ]
    condition = call("and", *equal) if len(equal) > 1 else equal[0]
    relation = (join_unit if private else join_public)(source, held, condition, kind)
    return relation, call("not", call("is_null", Column(width + len(keys), "integer")))


def _by_columns(inside: Inside) -> Inside:
    """What is equal to something without columns is a condition on the rows inside, not on pairs."""
    relation, pairs = inside.relation, []
    for there, here in inside.pairs:
        if columns_of(there):
            pairs.append((there, here))
        else:
            relation = keep(relation, call("equal", here, there))
    return Inside(relation, tuple(pairs))


def with_null(source: Relation, inside: Inside, hit: Expression) -> tuple[Relation, Expression]:
    """x IN (…) as SQL has it, by how many values there are, and how many of them are not NULL."""
    (there, here), *others = inside.pairs
    if others:
        raise refuse("subquery inside an expression", "NOT IN of several columns")
    counts = per_unit(inside.relation, [], [], [Fold("count"), Fold("count_of", here)])
    width = len(source.facts.fields)
    relation = join_public(source, counts, literal(True), "inner")
    every, known = Column(width, "integer"), Column(width + 1, "integer")
    unknown = as_type(NULL, "boolean")
    empty = call("equal", every, literal(0))
    told = [(hit, literal(True)), (empty, literal(False)), (call("is_null", there), unknown)]
    return relation, case([*told, (call("less", known, every), unknown)], literal(False))


def semi_join(left: Relation, right: Relation, condition: Expression, node: Node, *, anti: bool) -> Relation:
    """The rows that have a match, or none, by equal values and by conditions on the rows of the match."""
    width, alone, pairs = len(left.facts.fields), [], []
    for each in conjuncts(condition):
        if each == literal(True):
            continue
        pair = _equal(each, width)
        if pair is not None:
            pairs.append((pair[0], shifted(pair[1], -width)))
        elif min(_places(each), default=-1) >= width:
            alone.append(shifted(each, -width))
        else:
            raise refuse("subquery inside an expression", shown(node))
    for each in alone:
        right = keep(right, each)
    relation, hit = joined(left, Inside(right, tuple(pairs)), node, "left" if anti else "inner")
    return keep(relation, call("not", hit)) if anti else relation


def _equal(condition: Expression, width: int) -> Pair | None:
    if not isinstance(condition, Call) or condition.name != "equal":
        return None
    first, second = condition.arguments
    for here, there in ((first, second), (second, first)):
        if max(_places(here), default=width) < width <= min(_places(there), default=-1):
            return here, there
    return None


def _places(expression: Expression) -> Sequence[int]:
    return sorted(columns_of(expression))


def marked(scope: Scope, marks: Mapping[Node, Expression]) -> Scope:
    """The scope in which these have been read."""
    return replace(scope, marks={**scope.marks, **marks})
