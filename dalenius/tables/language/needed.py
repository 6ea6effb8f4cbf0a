"""The columns of the rows that aggregates need, each but once."""

from __future__ import annotations

from collections.abc import Sequence

from dalenius.tables.language.aggregated import Aggregated, number
from dalenius.tables.language.beliefs import unit_part
from dalenius.tables.language.expressions import Column, Expression, call, case, literal
from dalenius.tables.language.lineage import check_known
from dalenius.tables.language.relations import Relation
from dalenius.tables.language.spans import is_nullable
from dalenius.tables.question import Aggregate, AggregateKind


class Needed:
    """The columns of the rows that aggregates need, each but once."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation
        self.values: list[Expression] = []
        self.distincts: list[Expression] = []
        self.all_rows = False
        self._written: dict[Expression, str] = {}

    def place(self, aggregate: Aggregated) -> Aggregate:
        """The aggregate with the place of its column."""
        argument, fields = aggregate.argument, self.relation.facts.fields
        if aggregate.kind == "distinct" and argument is not None:
            return self._distinct(argument)
        if aggregate.kind == "units" and self.relation.facts.units:
            self.all_rows = True
            return Aggregate("units")
        if argument is None or (aggregate.kind == "count_of" and not is_nullable(argument, fields)):
            self.all_rows = True
            return Aggregate("count")
        if aggregate.kind == "count_of":
            return Aggregate("count_of", self._value(_presence(argument), aggregate.written))
        summed = number(argument)
        assert summed is not None
        return Aggregate(_kind(aggregate.kind), self._value(summed, aggregate.written), aggregate.fraction)

    def names(self) -> tuple[str, ...]:
        """How the query writes each value."""
        fields = self.relation.facts.fields
        return tuple(
            fields[each.index].name if isinstance(each, Column) else self._written.get(each, "1")
            for each in self.values
        )

    def never_null(self) -> tuple[bool, ...]:
        """Whether each value is there in every row that is read."""
        alone = not self.all_rows and len(self.values) == 1 and not self.distincts
        return tuple(alone or not is_nullable(each, self.relation.facts.fields) for each in self.values)

    def fill(self, keys: Sequence[Expression]) -> None:
        """Rows have a column, even where nothing of them matters but their number."""
        if not self.relation.facts.units and not keys and not self.values and not self.distincts:
            self.values.append(literal(1))

    def _distinct(self, argument: Expression) -> Aggregate:
        if self.relation.facts.told == {0} and unit_part(self.relation, argument) == 0:
            self.all_rows = True
            return Aggregate("units")
        check_known(self.relation, [argument], "COUNT(DISTINCT …)")
        return Aggregate("distinct", _index(self.distincts, argument))

    def _value(self, expression: Expression, written: str) -> int:
        self._written.setdefault(expression, written)
        return _index(self.values, expression)


def _index(columns: list[Expression], expression: Expression) -> int:
    if expression not in columns:
        columns.append(expression)
    return columns.index(expression)


def _presence(argument: Expression) -> Expression:
    """A number that is NULL where the argument is."""
    if argument.type in ("integer", "real"):
        return argument
    return case([(call("not", call("is_null", argument)), literal(1))])


def _kind(name: str) -> AggregateKind:
    kinds: tuple[AggregateKind, ...] = (
        "sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop", "quantile", "min", "max",
    )  # fmt: skip
    return next(kind for kind in kinds if kind == name)
