"""SELECTs over an answer, read: windows over groups are taken apart into an answer and what is made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from dalenius.errors import InvalidArgument
from dalenius.tables.language.afterwards import answered, sorted_by, steps_of
from dalenius.tables.language.aggregating import is_aggregate, name_of
from dalenius.tables.language.grouping_sets import flat
from dalenius.tables.language.normal_form import with_text
from dalenius.tables.language.queries import Environment, read_query
from dalenius.tables.language.reading import Node, only, whole_of
from dalenius.tables.language.refusals import refuse
from dalenius.tables.question import After, Named, Question
from dalenius.tables.schema import Schema, folded

_ANSWER = "answer"


def is_distinct(select: exp.Select, *, aggregated: bool) -> bool:
    """Whether SELECT DISTINCT asks for the values there are; of groups, it changes nothing."""
    clause = select.args.get("distinct")
    if clause is None:
        return False
    only(clause)
    if aggregated or select.args.get("group"):
        raise refuse("SELECT DISTINCT of an answer")
    return True


def is_windowed(select: exp.Select) -> bool:
    """Whether windows are asked for over the groups of an answer."""
    over = [*select.expressions, select.args.get("qualify"), select.args.get("order")]
    windowed = any(_has_window(each) for each in over if each is not None)
    grouped = select.args.get("group") or any(_aggregated(each) for each in select.expressions)
    return windowed and bool(grouped)


def answer_below(select: exp.Select) -> exp.Select | None:
    """The SELECT with aggregates that a query reads, with the WITH clause it needs; None where it is none."""
    clause = select.args.get("from_")
    if clause is None or select.args.get("joins"):
        return None
    source, tables = clause.this, select.args.get("with_")
    named = {folded(each.alias): each.this for each in tables.expressions} if tables is not None else {}
    inner: Node | None = None
    if isinstance(source, exp.Subquery):
        inner = source.this
    elif isinstance(source, exp.Table) and folded(source.name) in named:
        inner = named[folded(source.name)]
    inner = inner.unnest() if isinstance(inner, exp.Subquery) else inner
    if not isinstance(inner, exp.Select) or not _is_answer(inner, named):
        return None
    return _with_needed(inner, tables)


def _is_answer(select: exp.Select, named: dict[str, Node]) -> bool:
    if any(map(_aggregated, select.expressions)):
        return True
    source = select.args.get("from_")
    below = source.this if source is not None else None
    below = named.get(folded(below.name)) if isinstance(below, exp.Table) else below
    below = below.unnest() if isinstance(below, exp.Subquery) else below
    return isinstance(below, exp.Select) and below is not select and _is_answer(below, named)


def _with_needed(inner: exp.Select, tables: Node | None) -> exp.Select:
    """The inner SELECT with those of the WITH clause outside that it reads, however far down."""
    inner = inner.copy()
    if tables is None:
        return inner
    known = {folded(each.alias): each for each in tables.expressions}
    needed: set[str] = set()
    open_now = [inner]
    while open_now:
        for table in open_now.pop().find_all(exp.Table):
            name = folded(table.name)
            if name in known and name not in needed:
                needed.add(name)
                open_now.append(known[name].this)
    own = inner.args["with_"].expressions if inner.args.get("with_") else []
    kept = [known[name].copy() for name in known if name in needed]
    if kept or own:
        inner.set("with_", exp.With(expressions=[*kept, *own], recursive=tables.args.get("recursive")))
    return inner


def outer_question(
    inner: exp.Select, outer: exp.Select, schema: Schema, read: Callable[[exp.Select], Question]
) -> Question:
    """The question that the inner SELECT asks, and what the outer one makes of its answer."""
    question = read(inner)
    below = answered(_renamed(outer, question.columns))
    select, source = outer.copy(), outer.args["from_"].this
    name = source.alias or (source.name if isinstance(source, exp.Table) else _ANSWER) or _ANSWER
    alias = source.args.get("alias")
    columns = alias.args.get("columns") if alias is not None else None
    table = exp.Table(this=exp.to_identifier(_ANSWER, quoted=True))
    table.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=columns))
    select.set("from_", exp.From(this=table))
    select.set("with_", None)
    order, limit, offset = _order(select), *_ends(select)
    relation = read_query(select, Environment(schema, {_ANSWER: below}))
    fields = relation.facts.fields
    kept = len(fields) - len(order)
    steps = (*steps_of(relation, below), *sorted_by(len(fields), kept, order, limit, offset))
    named = [
        Named(name, each.type)
        for name, each in zip(_apart([f.name for f in fields[:kept]]), fields, strict=False)
    ]
    earlier = () if question.after is None else question.after.steps
    return with_text(replace(question, after=After((*earlier, *steps), tuple(named))))


def _renamed(outer: exp.Select, columns: tuple[Named, ...]) -> tuple[Named, ...]:
    """The columns with the names that the WITH clause gives them."""
    source, tables = outer.args["from_"].this, outer.args.get("with_")
    for each in tables.expressions if tables is not None else ():
        if isinstance(source, exp.Table) and folded(each.alias) == folded(source.name):
            names = [name.name for name in each.args["alias"].args.get("columns") or ()]
            if len(names) > len(columns):
                raise InvalidArgument(
                    "There are more names than columns.", remedy=f"Give at most {len(columns)} names."
                )
            given = [Named(name, old.type) for name, old in zip(names, columns, strict=False)]
            return (*given, *columns[len(names) :])
    return columns


def _apart(names: list[str]) -> list[str]:
    """Names, no two of them alike."""
    found: list[str] = []
    for name in names:
        fresh, number = name, 1
        while fresh in found:
            fresh, number = f"{name}_{number}", number + 1
        found.append(fresh)
    return found


def _order(select: exp.Select) -> list[tuple[bool, bool]]:
    """What it is ordered by, as columns at the end of the SELECT list: whether down, and NULL first."""
    clause = select.args.get("order")
    select.set("order", None)
    named = {folded(each.alias): each.this for each in select.expressions if each.alias}
    items, found = list(select.expressions), []
    for place, each in enumerate(clause.expressions if clause is not None else ()):
        only(each, "this", "desc", "nulls_first")
        by = each.this
        if isinstance(by, exp.Literal) and not by.is_string:
            if not 1 <= whole_of(by) <= len(items):
                raise InvalidArgument(
                    f"There is no column {by.name}.", remedy=f"Use a place from 1 to {len(items)}."
                )
            by = items[whole_of(by) - 1].unalias()
        elif isinstance(by, exp.Column) and not by.table and folded(by.name) in named:
            by = named[folded(by.name)]
        if select.args.get("distinct"):
            raise refuse("SELECT DISTINCT of an answer", "with ORDER BY")
        select.append("expressions", exp.alias_(by.copy(), f"order {place}", quoted=True))
        found.append((bool(each.args.get("desc")), bool(each.args.get("nulls_first"))))
    return found


def _ends(select: exp.Select) -> tuple[int | None, int]:
    """LIMIT and OFFSET, taken out of the SELECT."""
    found = []
    for name in ("limit", "offset"):
        clause = select.args.get(name)
        if clause is not None:
            only(clause, "expression")
        found.append(None if clause is None else max(0, whole_of(clause.expression)))
        select.set(name, None)
    return found[0], found[1] or 0


def apart(select: exp.Select) -> tuple[exp.Select, exp.Select]:
    """A grouped SELECT with windows as the answer that they are over, and a SELECT over that."""
    return _Apart(select).both()


class _Apart:
    """A grouped SELECT with windows, being taken apart."""

    def __init__(self, select: exp.Select) -> None:
        self.select = select
        self.aliases: dict[str, Node] = {
            folded(each.alias): each.this for each in select.expressions if each.alias
        }
        self.taken: list[Node] = []
        group = select.args.get("group")
        self.keys: list[Node] = []
        for each in group.expressions if group is not None else ():
            self.keys += flat(self._resolved(each))
        if group is not None and group.args.get("all"):
            self.keys = [
                each.unalias()
                for each in select.expressions
                if not _aggregated(each) and not _has_window(each)
            ]

    def both(self) -> tuple[exp.Select, exp.Select]:
        """The inner and the outer SELECT."""
        outer = exp.Select(
            expressions=[
                exp.alias_(self._over(each.unalias()), each.alias or name_of(each), quoted=True)
                for each in self.select.expressions
            ],
            from_=exp.From(this=exp.Table(this=exp.to_identifier(_ANSWER, quoted=True))),
        )
        for name in ("qualify", "order", "windows", "limit", "offset", "distinct"):
            clause = self.select.args.get(name)
            if clause is not None:
                clause = [self._over(each) for each in clause] if name == "windows" else self._over(clause)
                outer.set(name, clause)
        inner = self.select.copy()
        for name in ("qualify", "order", "windows", "limit", "offset", "distinct"):
            inner.set(name, None)
        inner.set(
            "expressions",
            [exp.alias_(each.copy(), f"c{i}", quoted=True) for i, each in enumerate(self.taken)],
        )
        group = inner.args.get("group")
        if group is not None:
            # Places and names of the SELECT list are another list's now.
            group.set("expressions", [self._resolved(each).copy() for each in group.expressions])
            if group.args.get("all"):
                group.set("all", None)
                group.set("expressions", [each.copy() for each in self.keys])
        self._check(inner)
        if any(map(_has_window, self.taken)):
            raise refuse("window in a grouped or outermost SELECT", "inside an aggregate")
        return inner, outer

    def _check(self, inner: exp.Select) -> None:
        having = inner.args.get("having")
        for column in having.find_all(exp.Column) if having is not None else ():
            if not column.table and folded(column.name) in self.aliases:
                column.replace(self.aliases[folded(column.name)].copy())

    def _resolved(self, key: Node) -> Node:
        """What a place or a name of the SELECT list stands for, in sets of keys too."""
        if isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            return type(key)(expressions=[self._resolved(each).copy() for each in key.expressions])
        if isinstance(key, exp.Paren):
            return self._resolved(key.this)
        if isinstance(key, exp.Literal) and not key.is_string:
            place = whole_of(key)
            if not 1 <= place <= len(self.select.expressions):
                raise InvalidArgument(
                    f"There is no column {place}.",
                    remedy=f"Use a place from 1 to {len(self.select.expressions)}.",
                )
            item: Node = self.select.expressions[place - 1].unalias()
            return item
        if isinstance(key, exp.Column) and not key.table and folded(key.name) in self.aliases:
            return self.aliases[folded(key.name)]
        return key

    def _over(self, node: Node, *, called: bool = False) -> Node:
        """The node over the columns of the inner SELECT; `called` is the function that a window calls."""
        if not called and (
            is_aggregate(node) or isinstance(node, exp.Grouping | exp.GroupingId) or node in self.keys
        ):
            return self._column(node)
        if isinstance(node, exp.Column) and not node.table and folded(node.name) in self.aliases:
            inner = self.aliases[folded(node.name)]
            if inner != node:
                return self._over(inner)
        copy = node.copy()
        for name, value in node.args.items():
            if isinstance(value, exp.Expr):
                copy.set(name, self._over(value, called=isinstance(node, exp.Window) and name == "this"))
            elif isinstance(value, list):
                copy.set(name, [self._over(e) if isinstance(e, exp.Expr) else e for e in value])
        return copy

    def _column(self, node: Node) -> Node:
        if node not in self.taken:
            self.taken.append(node)
        return exp.column(exp.to_identifier(f"c{self.taken.index(node)}", quoted=True))


def _has_window(node: Node) -> bool:
    if isinstance(node, exp.Window):
        return True
    return not isinstance(node, exp.Query) and any(map(_has_window, node.iter_expressions()))


def _aggregated(node: Node) -> bool:
    """Whether there is an aggregate in it, inside of windows too, that is not a window's own function."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        own = node.this
        parts = [*own.iter_expressions(), *(each for each in node.iter_expressions() if each is not own)]
        return any(map(_aggregated, parts))
    return is_aggregate(node) or any(map(_aggregated, node.iter_expressions()))
