"""MODE: the value with the most rows by noisy counts, which are asked for by group and value.

    SELECT g, MODE(x) FROM t GROUP BY g
        is of    SELECT g, x, COUNT(*) FROM t WHERE x IS NOT NULL GROUP BY g, x

in each group the value whose noisy count is the largest. It is computed from a released answer, so the charge
is that of the counts; a row counts once, whatever its value, so there is nothing to pay for the number of
values. Where values are not public they are selected privately, as groups are, and a group of which none is
shown has no mode. There are no error bars: how near to the largest a count is shows in the counts themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from dalenius.tables.language.aggregating import is_aggregate
from dalenius.tables.language.formulas import AggregateValue
from dalenius.tables.language.reading import Node, only, shown
from dalenius.tables.language.refusals import refuse
from dalenius.tables.question import After, Folded, Grouped, Named, Question, Shown

_CLAUSE = "MODE beside another aggregate"


def has_mode(select: exp.Select) -> bool:
    """Whether the SELECT list asks for a most frequent value."""
    return any(
        isinstance(node, exp.Mode) and not node.find_ancestor(exp.Subquery, exp.Window)
        for each in select.expressions
        for node in each.find_all(exp.Mode)
    )


def mode_question(select: exp.Select, read: Callable[[exp.Select], Question]) -> Question:
    """The question of a SELECT of keys and of one MODE, each by itself in its list."""
    items = [each.unalias() for each in select.expressions]
    modes = [each for each in items if is_aggregate(each)]
    if len(modes) != 1 or select.args.get("having"):
        raise refuse(_CLAUSE)
    value, condition = _parts(modes[0])
    keys = [each for each in items if each is not modes[0]]
    inner = select.copy()
    counted = exp.Count(this=exp.Star())
    inner.set("expressions", [exp.alias_(each.copy(), f"c{i}", quoted=True) for i, each in enumerate(keys)])
    inner.append("expressions", exp.alias_(value.copy(), "value", quoted=True))
    inner.append("expressions", exp.alias_(counted, "rows", quoted=True))
    group = inner.args.get("group")
    if group is None:
        inner.set("group", exp.Group(expressions=[value.copy()]))
    else:
        group.append("expressions", value.copy())
    there = exp.Not(this=exp.Is(this=exp.Paren(this=value.copy()), expression=exp.Null()))
    parts = [there] if condition is None else [there, exp.Paren(this=condition.copy())]
    for part in parts:
        inner = inner.where(part, copy=False)
    question = read(inner)
    count = len(keys)
    chosen = Folded("arg_max", AggregateValue(count), AggregateValue(count + 1))
    grouped = Grouped(tuple(map(AggregateValue, range(count))), (chosen,))
    # Keys come first, and then the mode: put into the order in which they are asked for.
    places = [count if each is modes[0] else keys.index(each) for each in items]
    columns = question.columns
    named = tuple(
        Named(each.alias, columns[place].type) for each, place in zip(select.expressions, places, strict=True)
    )
    steps = (grouped, Shown(tuple(map(AggregateValue, places))))
    return replace(question, after=After(steps, named))


def _parts(node: Node) -> tuple[Node, Node | None]:
    """Of what the mode is, and the condition of its FILTER."""
    condition = None
    if isinstance(node, exp.Filter):
        only(node, "this", "expression")
        node, condition = node.this, node.expression.this
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.Mode):
        by = node.expression.expressions
        if len(by) == 1:
            return by[0].this, condition
    if not isinstance(node, exp.Mode) or node.this is None:
        raise refuse(_CLAUSE, shown(node))
    only(node, "this")
    return node.this, condition
