"""SELECTs over an answer, read into the question that it answers and the steps that follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from dalenius.errors import InvalidArgument
from dalenius.tables.language.afterwards import answered, sorted_by, steps_of
from dalenius.tables.language.grouped_windows import ANSWER, aggregated, has_window
from dalenius.tables.language.normal_form import with_text
from dalenius.tables.language.queries import Environment, read_query
from dalenius.tables.language.reading import Node, only, whole_of
from dalenius.tables.language.refusals import refuse
from dalenius.tables.question import After, Named, Question
from dalenius.tables.schema import Schema, folded


def is_distinct(select: exp.Select, *, grouped: bool) -> bool:
    """Whether SELECT DISTINCT asks for the values there are; of groups, it changes nothing."""
    clause = select.args.get("distinct")
    if clause is None:
        return False
    only(clause)
    if grouped or select.args.get("group"):
        raise refuse("SELECT DISTINCT of an answer")
    return True


def is_windowed(select: exp.Select) -> bool:
    """Whether windows are asked for over the groups of an answer."""
    over = [*select.expressions, select.args.get("qualify"), select.args.get("order")]
    windowed = any(has_window(each) for each in over if each is not None)
    grouped = select.args.get("group") or any(aggregated(each) for each in select.expressions)
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
    if any(map(aggregated, select.expressions)):
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
    name = source.alias or (source.name if isinstance(source, exp.Table) else ANSWER) or ANSWER
    alias = source.args.get("alias")
    columns = alias.args.get("columns") if alias is not None else None
    table = exp.Table(this=exp.to_identifier(ANSWER, quoted=True))
    table.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=columns))
    select.set("from_", exp.From(this=table))
    select.set("with_", None)
    if isinstance(source, exp.Table):
        _scalars(select, source.name)
    order, limit, offset = _order(select), *_ends(select)
    relation = read_query(select, Environment(schema, {ANSWER: below}))
    fields = relation.facts.fields
    kept = len(fields) - len(order)
    steps = (*steps_of(relation, below), *sorted_by(len(fields), kept, order, limit, offset))
    named = [
        Named(name, each.type)
        for name, each in zip(_apart([f.name for f in fields[:kept]]), fields, strict=False)
    ]
    earlier = () if question.after is None else question.after.steps
    return with_text(replace(question, after=After((*earlier, *steps), tuple(named))))


def _scalars(select: exp.Select, name: str) -> None:
    """Read (SELECT SUM(n) FROM c) over the answer c as SUM(n) OVER (), and WHERE after it."""
    found = [each for each in select.find_all(exp.Subquery) if _is_scalar(each, name)]
    plain = not any(select.args.get(each) for each in ("group", "distinct", "qualify", "windows"))
    if not found or not plain or any(map(has_window, select.expressions)):
        return
    for each in found:
        value = each.this.expressions[0].unalias().copy()
        for aggregate in list(value.find_all(exp.AggFunc)):
            window = exp.Window(this=aggregate.copy())
            value = window if aggregate is value else value
            aggregate.replace(window)
        each.replace(exp.Paren(this=value))
    where = select.args.get("where")
    if where is not None:
        select.set("qualify", exp.Qualify(this=where.this))
        select.set("where", None)


def _is_scalar(node: exp.Subquery, name: str) -> bool:
    """Whether it is one aggregate of the whole of an answer."""
    inner = node.this
    if (
        not isinstance(inner, exp.Select)
        or len(inner.expressions) != 1
        or not aggregated(inner.expressions[0])
    ):
        return False
    source = inner.args.get("from_")
    alone = all(not value for key, value in inner.args.items() if key not in ("expressions", "from_"))
    named = (
        source is not None and isinstance(source.this, exp.Table) and folded(source.this.name) == folded(name)
    )
    return alone and named


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
