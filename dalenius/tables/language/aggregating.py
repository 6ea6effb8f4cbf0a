"""Aggregates and window functions in SQL, and expressions around them.

`Grouping` reads the expressions of a SELECT with GROUP BY as expressions over the keys, first, and then the
aggregates in the order they are met, each but once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import ErrorLevel, exp

from dalenius.errors import InvalidArgument
from dalenius.tables.language.aggregated import Aggregated, number
from dalenius.tables.language.compounds import PAIRED, formula, of_dates, paired, together
from dalenius.tables.language.expressions import Call, Column, Expression, Literal, call, case, literal
from dalenius.tables.language.reading import Node, Reader, only, shown
from dalenius.tables.language.refusals import refuse
from dalenius.tables.language.relations import Field, Fold
from dalenius.tables.schema import folded

_KINDS: dict[type[Node], str] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
}
_QUANTILES = (exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile)
_FRACTION = re.compile(r"(\d{1,400}(\.\d{0,400})?|\.\d{1,400})(e[+-]?\d{1,3})?", re.IGNORECASE)
"""A number that takes no long time to write out."""
_BY_ORDER = (
    exp.AnyValue, exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.ArgMax, exp.ArgMin,
    exp.GroupConcat, exp.ArrayAgg, exp.IgnoreNulls,
)  # fmt: skip


@dataclass
class Grouping:
    """Reads expressions over groups of rows."""

    rows: Reader
    """For what is inside an aggregate, and for the keys."""
    keys: Sequence[Expression]
    aggregates: list[Aggregated] = field(default_factory=list)
    fields: Sequence[Field] | None = None
    """Of the rows, where groups are those of the answer; None within units."""

    def reader(self, *, aliases_first: bool = False) -> Reader:
        """Of expressions over keys and aggregates; ORDER BY looks for names of the SELECT list first."""
        reader = Reader(self.rows.scope, self.rows.aliases)
        reader.special = lambda node: self._special(reader, node, aliases_first)
        return reader

    def _special(self, reader: Reader, node: Node, aliases_first: bool) -> Expression | None:
        is_name = isinstance(node, exp.Column) and not node.table
        if is_name and aliases_first and (found := reader.aliased(node.name)) is not None:
            return found
        if isinstance(node, exp.Grouping | exp.GroupingId):
            return self._added_up(node)
        compound = self._compound(node)
        if compound is not None:
            return compound
        aggregate = read_aggregate(self.rows, node)
        if aggregate is not None:
            return self._one(replace(aggregate, written=_written(node)))
        if isinstance(node, exp.Literal | exp.Boolean | exp.Null):
            return None
        expression = self.rows.attempt(node)
        if expression is not None and expression in self.keys:
            return Column(self.keys.index(expression), expression.type)
        return self._name(reader, node) if isinstance(node, exp.Column) else None

    def _added_up(self, node: Node) -> Expression:
        """GROUPING(a, b): a bit for each key, set where a group adds up over it, the last one lowest."""
        only(node, "expressions")
        found: Expression = literal(0)
        for each in node.expressions:
            key = self.rows.attempt(each)
            if self.fields is None or key not in self.keys:
                raise refuse("clause that is not known", shown(node))
            flag = Call("added_up", (literal(self.keys.index(key)),), "integer")
            found = flag if found == literal(0) else call("add", call("multiply", found, literal(2)), flag)
        return found

    def _compound(self, node: Node) -> Expression | None:
        """An aggregate of pairs, with or without FILTER."""
        inner, condition = node, None
        if isinstance(node, exp.Filter) and isinstance(node.this, PAIRED):
            only(node, "this", "expression")
            inner, condition = node.this, self.rows.read(node.expression.this)
        found = paired(inner, self.rows, condition)
        if found is None:
            return None
        if self.fields is None:
            raise refuse("aggregate that is not known within a unit", shown(node))
        names = name_of(inner.this), name_of(inner.expression)
        return formula(*found, names, self.fields, self._place)

    def _one(self, aggregate: Aggregated) -> Expression:
        """An aggregate of the answer may be of dates, and a quantile one of whole values."""
        if self.fields is None:
            return self._place(aggregate)
        dated = of_dates(aggregate, self._place)
        if dated is not None:
            return dated
        whole = aggregate.discrete and aggregate.argument is not None and aggregate.argument.type == "integer"
        found = self._place(replace(aggregate, discrete=False))
        return call("cast_integer", found) if whole else found

    def _name(self, reader: Reader, node: exp.Column) -> Expression:
        if self.rows.scope.find(node.name, node.table) is None:
            found = reader.aliased(node.name) if not node.table else None
            if found is not None:
                return found
            self.rows.scope.require(node.name, node.table)
        added = f"Add {node.name} to GROUP BY" if self.keys else f"Add GROUP BY {node.name}"
        raise InvalidArgument(
            f"{node.name} is neither in GROUP BY nor inside an aggregate.",
            remedy=f"{added}, or count the rows that have it: COUNT({node.name}).",
        )

    def _place(self, aggregate: Aggregated) -> Expression:
        if aggregate not in self.aggregates:
            self.aggregates.append(aggregate)
        return Column(len(self.keys) + self.aggregates.index(aggregate), aggregate.type)


def is_aggregate(node: Node) -> bool:
    """Whether it is an aggregate, with or without FILTER."""
    if isinstance(node, exp.Filter):
        return is_aggregate(node.this)
    return isinstance(node, exp.AggFunc | exp.WithinGroup) or _is_units(node)


def has_aggregate(node: Node) -> bool:
    """Whether there is an aggregate in it that is not a window's."""
    if isinstance(node, exp.Window | exp.Query):
        return False
    if is_aggregate(node):
        return True
    return any(has_aggregate(child) for child in node.iter_expressions())


def read_aggregate(rows: Reader, node: Node) -> Aggregated | None:
    """The aggregate that a node is; None where it is none."""
    if isinstance(node, exp.Filter):
        only(node, "this", "expression")
        inner = read_aggregate(rows, node.this)
        return None if inner is None else _filtered(inner, rows.read(node.expression.this))
    if _is_units(node):
        return Aggregated("units")
    if isinstance(node, exp.Count):
        return _count(rows, node)
    if isinstance(node, exp.CountIf):
        return _filtered(Aggregated("count"), rows.read(node.this))
    if isinstance(node, exp.ApproxDistinct):
        return Aggregated("distinct", rows.read(node.this))
    if isinstance(
        node, exp.Median | exp.WithinGroup | exp.PercentileCont | exp.PercentileDisc | exp.Quantile
    ):
        return _quantile(rows, node)
    if type(node) in _KINDS:
        only(node, "this")
        return Aggregated(_KINDS[type(node)], _plain(rows, node.this))
    if isinstance(node, _BY_ORDER):
        raise refuse("aggregate that depends on the order of rows", shown(node))
    if isinstance(node, exp.Mode):
        raise refuse("MODE beside another aggregate", "in a subquery or a condition")
    if isinstance(node, exp.AggFunc):
        raise refuse("aggregate that is not known", shown(node))
    return None


def _written(node: Node) -> str:
    """What is inside the aggregate; the whole of it where that is more than one expression."""
    inner = node.this if isinstance(node, exp.AggFunc) else None
    plain = isinstance(inner, exp.Expr) and not isinstance(inner, exp.Distinct | exp.Star)
    return name_of(inner if plain and inner is not None else node)


def _is_units(node: Node) -> bool:
    """units(), which counts units, whatever columns they are made of."""
    return isinstance(node, exp.Anonymous) and folded(str(node.this)) == "units" and not node.expressions


def _plain(rows: Reader, node: Node) -> Expression:
    if isinstance(node, exp.Distinct):
        raise refuse("DISTINCT in an aggregate other than COUNT")
    return rows.read(node)


def _count(rows: Reader, node: exp.Count) -> Aggregated:
    only(node, "this")
    if node.this is None or isinstance(node.this, exp.Star):
        return Aggregated("count")
    if isinstance(node.this, exp.Distinct):
        only(node.this, "expressions")
        counted = node.this.expressions
        alone = len(counted) == 1
        if alone and not isinstance(counted[0], exp.Tuple):
            return Aggregated("distinct", rows.read(counted[0]))
        values = [rows.read(each) for each in (counted[0].expressions if alone else counted)]
        return Aggregated("distinct", together(values, with_null=alone))
    value = rows.read(node.this)
    if isinstance(value, Literal) and value.value is not None:
        return Aggregated("count")
    return Aggregated("count_of", value)


def _filtered(aggregate: Aggregated, condition: Expression) -> Aggregated:
    """The aggregate of the rows for which a condition holds: of a value that is NULL elsewhere."""
    if aggregate.kind == "units":
        raise refuse("clause that is not known", "units() with FILTER")
    if aggregate.argument is None:
        return Aggregated("count_of", case([(condition, literal(1))]))
    return replace(aggregate, argument=case([(condition, aggregate.argument)]))


def _quantile(rows: Reader, node: Node) -> Aggregated:
    if isinstance(node, exp.Median):
        only(node, "this")
        return Aggregated("quantile", _plain(rows, node.this), Fraction(1, 2))
    if isinstance(node, exp.WithinGroup):
        only(node, "this", "expression")
        by = node.expression.expressions
        if not isinstance(node.this, _QUANTILES) or len(by) != 1:
            raise refuse("aggregate that is not known", shown(node))
        fraction = _fraction(node.this.this)
        if by[0].args.get("desc"):
            fraction = 1 - fraction
        return Aggregated("quantile", rows.read(by[0].this), fraction, discrete=_is_discrete(node.this))
    only(node, "this", "expression", "quantile")
    fraction = _fraction(node.args.get("quantile") or node.expression)
    return Aggregated("quantile", _plain(rows, node.this), fraction, discrete=_is_discrete(node))


def _is_discrete(node: Node) -> bool:
    """Whether a quantile is one of the values: DuckDB's QUANTILE is, QUANTILE_CONT lies between two."""
    return isinstance(node, exp.PercentileDisc | exp.Quantile)


def several(node: Node) -> list[tuple[str, Node]]:
    """The quantiles of a list, each with its fraction as it is written; nothing where there is no list."""
    inner = node.this if isinstance(node, exp.WithinGroup) else node
    if not isinstance(inner, _QUANTILES):
        return []
    place = next((name for name, value in inner.args.items() if isinstance(value, exp.Array)), None)
    if place is None:
        return []
    found = []
    for each in inner.args[place].expressions:
        copy = node.copy()
        (copy if inner is node else copy.this).set(place, each.copy())
        found.append((each.name, copy))
    return found


def _fraction(node: Node | None) -> Fraction:
    """A literal between 0 and 1, as the decimal it is written as."""
    written = str(node.this) if isinstance(node, exp.Literal) and not node.is_string else ""
    if _FRACTION.fullmatch(written) and Fraction(written) <= 1:
        return Fraction(written)
    raise InvalidArgument("A quantile needs one fraction from 0 to 1.", remedy="Write 0.5 for the median.")


def fold_of(aggregate: Aggregated) -> Fold:
    """An aggregate within a unit."""
    kind, argument = aggregate.kind, aggregate.argument
    if kind == "quantile" and aggregate.fraction == Fraction(1, 2) and not aggregate.discrete:
        kind = "median"
    if kind not in ("count", "count_of", "sum", "avg", "min", "max", "median", "distinct"):
        raise refuse("aggregate that is not known within a unit", kind)
    return Fold(kind, argument if kind in ("count_of", "min", "max", "distinct") else number(argument))


def name_of(node: Node, scope_name: str | None = None) -> str:
    """What a column of the answer is called where the query gives it no name: avg_age, count, ward."""
    if isinstance(node, exp.Column):
        return scope_name or node.name
    if _is_units(node):
        return "units"
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return "count"
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
        return "_".join(["count_distinct", *(each.name for each in node.this.expressions if each.name)])
    if isinstance(node, exp.AggFunc) and isinstance(node.this, exp.Column):
        return f"{folded(node.sql_name())}_{folded(node.this.name)}"
    return node.sql(
        dialect="duckdb", normalize=True, normalize_functions="lower", unsupported_level=ErrorLevel.IGNORE
    )
