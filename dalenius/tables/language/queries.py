"""SELECT statements, as sqlglot parses them, read into relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dalenius.errors import InvalidArgument
from dalenius.tables.language.aggregating import Grouping, fold_of, has_aggregate
from dalenius.tables.language.expressions import Column, Expression, call, literal
from dalenius.tables.language.joining import condition_of, kind_of, moved
from dalenius.tables.language.lineage import (
    distinct,
    join_public,
    join_unit,
    keep,
    per_unit,
    project,
    scan,
    union_all,
    windowed,
)
from dalenius.tables.language.memberships import (
    Inside,
    asked_alone,
    correlated,
    joined,
    marked,
    memberships,
    outer_side,
    query_of,
    semi_join,
    split,
    with_null,
)
from dalenius.tables.language.reading import Node, Reader, only, shown
from dalenius.tables.language.refusals import refuse
from dalenius.tables.language.relations import JoinKind, Over, Relation
from dalenius.tables.language.scopes import Entry, Scope
from dalenius.tables.language.select_lists import aliases_of, items_of, key_nodes
from dalenius.tables.language.windows import read_window
from dalenius.tables.language.words import check_types
from dalenius.tables.schema import Schema, folded

_ODD = "LATERAL, UNNEST, PIVOT, VALUES or a recursive CTE"
_CLAUSES = (
    "expressions", "from_", "joins", "where", "group", "having", "qualify", "windows", "distinct", "order",
    "with_",
)  # fmt: skip


@dataclass(frozen=True)
class Environment:
    """The tables that a query may name: those of its WITH clauses first, then those of the schema."""

    schema: Schema
    named: Mapping[str, Relation] = field(default_factory=dict)

    def relation(self, name: str) -> Relation:
        """The relation of that name."""
        return self.named[folded(name)] if folded(name) in self.named else scan(self.schema.table(name))

    def opened(self, query: Node) -> Environment:
        """With the relations of a query's WITH clause."""
        clause, found = query.args.get("with_"), self
        if clause is None:
            return found
        if clause.args.get("recursive"):
            raise refuse(_ODD)
        for each in clause.expressions:
            only(each, "this", "alias", "materialized")
            relation = renamed(read_query(each.this, found), each.args["alias"])
            found = replace(found, named={**found.named, folded(each.alias): relation})
        return found


def read_query(node: Node, environment: Environment) -> Relation:
    """The relation that a query inside another one stands for."""
    if isinstance(node, exp.Subquery):
        only(node, "this", "alias", "with_")
        return read_query(node.this, environment.opened(node))
    environment = environment.opened(node)
    if isinstance(node, exp.Union) and not node.args.get("distinct"):
        only(node, "this", "expression", "with_", "order")
        return _union([read_query(each, environment) for each in (node.this, node.expression)])
    if isinstance(node, exp.SetOperation):
        raise refuse("UNION, INTERSECT or EXCEPT")
    if not isinstance(node, exp.Select):
        raise refuse(_ODD, type(node).__name__)
    return _select(node, environment)


def read_from(
    select: exp.Select, environment: Environment, *, outermost: bool = False
) -> tuple[Relation, Scope]:
    """The rows that FROM and WHERE leave, and the names of their columns."""
    clause = select.args.get("from_")
    if clause is None:
        raise refuse("query without a private table")
    relation, scope = _table(clause.this, environment)
    for join in select.args.get("joins") or ():
        relation, scope = _join(relation, scope, join, environment)
    if scope.padded and not outermost:
        raise refuse("public table LEFT JOIN private table")
    relation, scope = _asked(select, relation, scope, environment)
    where = select.args.get("where")
    if where is not None:
        condition = Reader(scope, aliases_of(select)).read(where.this)
        relation = keep(relation, check_types(condition, "boolean", "The condition of WHERE"))
    return relation, scope


def renamed(relation: Relation, alias: Node | None) -> Relation:
    """The relation with the column names that an alias gives."""
    names = [each.name for each in alias.args.get("columns") or ()] if alias is not None else []
    if not names:
        return relation
    fields = relation.facts.fields
    if len(names) > len(fields):
        raise InvalidArgument(
            "There are more names than columns.", remedy=f"Give at most {len(fields)} names."
        )
    shown = [*names, *(each.name for each in fields[len(names) :])]
    return project(relation, shown, [Column(i, each.type) for i, each in enumerate(fields)])


def _select(select: exp.Select, environment: Environment) -> Relation:
    if select.args.get("limit") or select.args.get("offset") or select.args.get("fetch"):
        raise refuse("LIMIT in a subquery")
    only(select, *_CLAUSES)
    relation, scope = read_from(select, environment)
    items = items_of(select, scope)
    grouped = select.args.get("group") or any(has_aggregate(node) for _, node in items)
    relation = (_grouped if grouped else _plain)(select, relation, scope, items)
    return _distinct(select, relation)


def _distinct(select: exp.Select, relation: Relation) -> Relation:
    clause = select.args.get("distinct")
    if clause is None:
        return relation
    only(clause)
    return distinct(relation)


def _plain(
    select: exp.Select, relation: Relation, scope: Scope, items: Sequence[tuple[str, Node]]
) -> Relation:
    """A SELECT without groups, with its windows."""
    functions: list[Over] = []
    named = {folded(each.this.name): each for each in select.args.get("windows") or ()}
    width, rows = len(relation.facts.fields), Reader(scope, aliases_of(select))
    source = relation

    def over(node: Node) -> Expression | None:
        if not isinstance(node, exp.Window):
            return None
        function = read_window(rows, _defined(node, named))
        if function not in functions:
            functions.append(function)
        place = width + functions.index(function)
        return Column(place, windowed(source, functions).facts.fields[place].type)

    reader = Reader(scope, aliases_of(select), over)
    expressions = [reader.read(node) for _, node in items]
    qualify = select.args.get("qualify")
    condition = reader.read(qualify.this) if qualify is not None else None
    if functions:
        relation = windowed(relation, functions)
    if condition is not None:
        relation = keep(relation, check_types(condition, "boolean", "The condition of QUALIFY"))
    return project(relation, [name for name, _ in items], expressions)


def _defined(node: exp.Window, named: Mapping[str, Node]) -> exp.Window:
    """A window with what the WINDOW clause says of its name."""
    alias = node.args.get("alias")
    if alias is None:
        return node
    if folded(alias.name) not in named:
        raise InvalidArgument(f"There is no window {alias.name}.", remedy="Define it in a WINDOW clause.")
    clause = named[folded(alias.name)]
    parts = {name: clause.args.get(name) for name in ("partition_by", "order", "spec")}
    return exp.Window(this=node.this, **parts)


def _grouped(
    select: exp.Select, relation: Relation, scope: Scope, items: Sequence[tuple[str, Node]]
) -> Relation:
    """A SELECT with groups: within each unit, unless the relation is public."""
    if select.args.get("qualify") is not None:
        raise refuse("window in a grouped or outermost SELECT")
    rows = Reader(scope, aliases_of(select))
    keys = list(dict.fromkeys(rows.read(node) for node in key_nodes(select, scope)))
    grouping = Grouping(rows, keys)
    reader = grouping.reader()
    expressions = [reader.read(node) for _, node in items]
    having = select.args.get("having")
    condition = reader.read(having.this) if having is not None else None
    folds = [fold_of(aggregate) for aggregate in grouping.aggregates]
    relation = per_unit(relation, keys, [""] * len(keys), folds)
    if condition is not None:
        relation = keep(relation, check_types(condition, "boolean", "The condition of HAVING"))
    return project(relation, [name for name, _ in items], expressions)


def _union(sources: Sequence[Relation]) -> Relation:
    widths = {len(source.facts.fields) for source in sources}
    if len(widths) > 1:
        raise InvalidArgument(
            "UNION ALL of different columns.", remedy="Select as many columns on both sides."
        )
    return union_all(_aligned(sources))


def _aligned(sources: Sequence[Relation]) -> list[Relation]:
    """The relations with columns of common types."""
    columns = [[Column(i, each.type) for i, each in enumerate(source.facts.fields)] for source in sources]
    typed = [call("coalesce", *each) for each in zip(*columns, strict=True)]
    wanted = [each.arguments for each in typed if not isinstance(each, Column) and hasattr(each, "arguments")]
    return [
        project(source, [each.name for each in source.facts.fields], [every[i] for every in wanted])
        for i, source in enumerate(sources)
    ]


def _table(node: Node, environment: Environment) -> tuple[Relation, Scope]:
    """A table or a subquery of FROM."""
    if isinstance(node, exp.Subquery):
        relation = read_query(node, environment)
    elif isinstance(node, exp.Table):
        if not isinstance(node.this, exp.Identifier) or node.args.get("sample"):
            raise refuse("table function, file or sample in FROM", shown(node))
        if any(node.args.get(each) for each in ("pivots", "laterals", "joins")):
            raise refuse(_ODD)
        only(node, "this", "alias")
        relation = environment.relation(node.name)
    elif isinstance(node, exp.TableSample):
        raise refuse("table function, file or sample in FROM")
    else:
        raise refuse(_ODD, type(node).__name__)
    relation = renamed(relation, node.args.get("alias"))
    name = node.alias or (node.name if isinstance(node, exp.Table) else "")
    entries = (Entry(name, each.name, Column(i, each.type)) for i, each in enumerate(relation.facts.fields))
    return relation, Scope(tuple(entries))


def _join(left: Relation, scope: Scope, join: exp.Join, environment: Environment) -> tuple[Relation, Scope]:
    kind = kind_of(join)
    right, other = _table(join.this, environment)
    if scope.padded:
        raise refuse("public table LEFT JOIN private table", "before another JOIN")
    if kind in ("semi", "anti"):
        beside = moved(other, len(left.facts.fields))
        condition, _ = condition_of(join, scope, beside)
        return semi_join(left, right, condition, join, anti=kind == "anti"), scope
    alike = left.facts.public == right.facts.public
    # The rows of the first relation stand first: a private one, or the one whose rows are all kept.
    swapped = kind == "right" if alike else left.facts.public
    first, second = (right, left) if swapped else (left, right)
    width = len(first.facts.fields)
    scope, other = (moved(scope, width), other) if swapped else (scope, moved(other, width))
    condition, names = condition_of(join, scope, other, kept="right" if kind == "right" else "left")
    how: JoinKind = "inner" if kind == "inner" else "left"
    if how == "left" and (kind == "right") != swapped:
        # Rows of a public table without a match belong to nobody: `question` sees that they add nothing.
        how, names = "inner", replace(names, padded=frozenset(range(width)))
    both_private = not first.facts.public and not second.facts.public
    return (join_unit if both_private else join_public)(first, second, condition, how), names


def _asked(
    select: exp.Select, relation: Relation, scope: Scope, environment: Environment
) -> tuple[Relation, Scope]:
    """The rows beside what IN and EXISTS ask for, and the scope in which these have been read."""
    where = select.args.get("where")
    marks: dict[Node, Expression] = {}
    alone = asked_alone(where)
    parts = [where, *select.expressions, select.args.get("group")]
    for node in dict.fromkeys(each for part in parts for each in memberships(part)):
        outer = Reader(marked(scope, marks), aliases_of(select))
        inside = _inside(node, outer, environment)
        by_itself = node in alone
        relation, found = joined(relation, inside, node, "inner" if by_itself else "left")
        if by_itself:
            found = literal(True)
        elif not isinstance(node, exp.Exists) and inside.relation.facts.public:
            relation, found = with_null(relation, inside, found)
        marks[node] = found
    return relation, marked(scope, marks)


def _inside(node: Node, outer: Reader, environment: Environment) -> Inside:
    """The rows of the subquery of IN or EXISTS, and what of them is set equal to something outside."""
    inner, here = query_of(node), outer_side(node)
    if here:
        relation = read_query(inner, environment)
        fields = relation.facts.fields
        if len(fields) != len(here):
            raise InvalidArgument(
                "IN compares another number of columns than its subquery has.",
                remedy=f"Select {len(here)} in the subquery.",
            )
        columns = [Column(i, each.type) for i, each in enumerate(fields)]
        return Inside(relation, tuple(zip(map(outer.read, here), columns, strict=True)))
    select = correlated(inner, node)
    plain = select.copy()
    plain.set("where", None)
    environment = environment.opened(plain)
    relation, scope = read_from(plain, environment)
    alone, pairs = split(select.args.get("where"), outer, Reader(scope), node)
    for condition in alone:
        relation = keep(relation, check_types(condition, "boolean", "The condition of WHERE"))
    return Inside(relation, tuple(pairs))
