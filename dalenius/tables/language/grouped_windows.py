"""Windows over groups: a grouped SELECT is taken apart into an answer and a SELECT with windows over it.

SELECT ward, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM visits GROUP BY ward
is    SELECT ward AS c0, COUNT(*) AS c1 FROM visits GROUP BY ward
and   SELECT c0 AS ward, c1 / SUM(c1) OVER () AS share FROM answer
"""

from __future__ import annotations

from sqlglot import exp

from dalenius.errors import InvalidArgument
from dalenius.tables.language.aggregating import is_aggregate, name_of
from dalenius.tables.language.grouping_sets import flat
from dalenius.tables.language.reading import Node, whole_of
from dalenius.tables.language.refusals import refuse
from dalenius.tables.schema import folded

ANSWER = "answer"
"""What the answer is called in the SELECT over it."""


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
                each.unalias() for each in select.expressions if not aggregated(each) and not has_window(each)
            ]

    def both(self) -> tuple[exp.Select, exp.Select]:
        """The inner and the outer SELECT."""
        outer = exp.Select(
            expressions=[
                exp.alias_(self._over(each.unalias()), each.alias or name_of(each), quoted=True)
                for each in self.select.expressions
            ],
            from_=exp.From(this=exp.Table(this=exp.to_identifier(ANSWER, quoted=True))),
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
        if any(map(has_window, self.taken)):
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


def has_window(node: Node) -> bool:
    """Whether there is a window in it, but for those of subqueries."""
    if isinstance(node, exp.Window):
        return True
    return not isinstance(node, exp.Query) and any(map(has_window, node.iter_expressions()))


def aggregated(node: Node) -> bool:
    """Whether there is an aggregate in it, inside of windows too, that is not a window's own function."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        own = node.this
        parts = [*own.iter_expressions(), *(each for each in node.iter_expressions() if each is not own)]
        return any(map(aggregated, parts))
    return is_aggregate(node) or any(map(aggregated, node.iter_expressions()))
