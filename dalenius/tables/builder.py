"""Questions in Python: the same nodes, the same plan and the same bill as the SQL they stand for.

    table.where("age > 20").group_by("ward").agg(agg.count(), agg.mean("age")).release(epsilon=0.5)
    table.with_columns(decade="age // 10").group_by("decade").agg(agg.median("cost").alias("cost"))

Columns are named as they are; whatever is no column's name is read as an expression of SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dalenius.errors import DaleniusError, InvalidArgument
from dalenius.privacy import numbers
from dalenius.tables.arguments import check_keys
from dalenius.tables.question import Question
from dalenius.tables.schema import Schema, folded

if TYPE_CHECKING:
    from sqlglot import exp

    from dalenius.release import Release
    from dalenius.tables.asked import Asked
    from dalenius.tables.explanation import Explanation
    from dalenius.tables.language.public_keys import Given


@dataclass(frozen=True)
class Agg:
    """An aggregate of a column or an expression, made by `agg`."""

    function: str
    argument: str | None = None
    fraction: float | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        named = self.argument is None and self.function in ("count", "units")
        if not named and not (isinstance(self.argument, str) and self.argument.strip()):
            raise InvalidArgument(
                "An aggregate is taken of a column or an expression, as a text.",
                remedy='Write it in quotes: dp.agg.mean("age").',
            )

    def alias(self, name: str) -> Agg:
        """The same under a name of your own."""
        if not isinstance(name, str) or not name.strip():
            raise InvalidArgument("A name must be a text.", remedy='Write it in quotes: .alias("visits").')
        return replace(self, name=name)


class Aggregates:
    """The aggregates there are; each may be given a name with `.alias(name)`."""

    def count(self, column: str | None = None) -> Agg:
        """How many rows there are, or how many have a value in a column."""
        return Agg("count", column)

    def sum(self, column: str) -> Agg:
        """The sum."""
        return Agg("sum", column)

    def mean(self, column: str) -> Agg:
        """The mean of the values that are there."""
        return Agg("avg", column)

    def variance(self, column: str) -> Agg:
        """The variance of a sample."""
        return Agg("var_samp", column)

    def std(self, column: str) -> Agg:
        """The standard deviation of a sample."""
        return Agg("stddev_samp", column)

    def min(self, column: str) -> Agg:
        """The least value, as far as can be told privately."""
        return Agg("min", column)

    def max(self, column: str) -> Agg:
        """The largest value, as far as can be told privately."""
        return Agg("max", column)

    def median(self, column: str) -> Agg:
        """The median."""
        return Agg("median", column)

    def quantile(self, column: str, fraction: float) -> Agg:
        """The value that this fraction of the values lies below."""
        return Agg("quantile_cont", column, float(numbers.probability(fraction, "fraction")))

    def count_distinct(self, column: str) -> Agg:
        """How many different values there are."""
        return Agg("count_distinct", column)

    def units(self) -> Agg:
        """How many units there are."""
        return Agg("units")


agg = Aggregates()


@dataclass(frozen=True, repr=False)
class Query:
    """A question in the making. Every method gives a new one."""

    schema: Schema
    table: str
    asked: Callable[..., Asked] | None = None
    """Takes this query and epsilon=: `Table.ask`."""
    _stages: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    _clauses: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def where(self, condition: str) -> Query:
        """The rows for which a condition is true."""
        return replace(self, _stages=(*self._stages, ("where", (condition,))))

    def with_columns(self, **expressions: str) -> Query:
        """With more columns."""
        return replace(self, _stages=(*self._stages, ("columns", tuple(expressions.items()))))

    def select(self, *columns: str, **expressions: str) -> Query:
        """With these columns only."""
        named = (*((column, column) for column in columns), *expressions.items())
        return replace(self, _stages=(*self._stages, ("select", named)))

    def group_by(self, *keys: str) -> Query:
        """By groups of these columns or expressions."""
        return self._with("group", keys)

    def agg(self, *aggregates: Agg) -> Query:
        """With these aggregates of each group."""
        for each in aggregates:
            _check_aggregate(each)
        return self._with("agg", aggregates)

    def having(self, condition: str) -> Query:
        """The groups for which a condition on the answer is true."""
        return self._with("having", (condition,))

    def order_by(self, *columns: str, descending: bool = False) -> Query:
        """The answer in this order."""
        return self._with("order", (columns, descending))

    def limit(self, number: int) -> Query:
        """The first rows of the answer only."""
        if not isinstance(number, int) or not 0 <= number < 10**18:
            raise InvalidArgument("A limit must be a number of rows.", remedy="Give one such as 10.")
        return self._with("limit", (number,))

    def question(self, *, keys: Given | None = None) -> Question:
        """The question, as SQL would put it."""
        from dalenius.tables.language.parsing import question_of

        check_keys(keys)
        return question_of(self._outermost(), self.schema, keys)

    @property
    def sql(self) -> str:
        """The same question in SQL."""
        return self._outermost().sql(dialect="duckdb")

    def release(self, *, epsilon: Any, **options: Any) -> Release:
        """Answer the question and charge it; options are those of `Table.sql`."""
        return self.ask(epsilon=epsilon, **options).run()

    def explain(self, *, epsilon: Any, **options: Any) -> Explanation:
        """What the same call of `release` would cost: see `Table.explain`. Nothing is spent or read."""
        return self.ask(epsilon=epsilon, **options).explanation

    def ask(self, *, epsilon: Any, **options: Any) -> Asked:
        """Read and plan the question once: see `Table.ask`. Nothing is spent or read."""
        if self.asked is None:
            raise InvalidArgument(
                "This question is not asked of a table.", remedy="Begin with table.group_by(…)."
            )
        return self.asked(self, epsilon=epsilon, **options)

    def __repr__(self) -> str:
        try:
            text = self.sql
        except DaleniusError:
            text = f"of {self.table}"
        return f"<Query {text if len(text) <= _SHOWN else f'{text[: _SHOWN - 1]}…'}>"

    def _with(self, clause: str, values: Sequence[Any]) -> Query:
        return replace(self, _clauses={**self._clauses, clause: tuple(values)})

    def _outermost(self) -> exp.Select:
        from sqlglot import exp

        select, names = self._source()
        keys = [_expression(key, names) for key in self._clauses.get("group", ())]
        shown = [_aggregated(each, names) for each in self._clauses.get("agg", ())]
        select = select.select(*(key.copy() for key in keys), *shown)
        if keys:
            select = select.group_by(*keys)
        for condition in self._clauses.get("having", ()):
            select = select.having(_expression(condition, names))
        columns, descending = self._clauses.get("order", ((), False))
        if columns:
            order = [
                exp.Ordered(this=_expression(each, names), desc=descending, nulls_first=False)
                for each in columns
            ]
            select = select.order_by(*order)
        for number in self._clauses.get("limit", ()):
            select = select.limit(number)
        return select

    def _source(self) -> tuple[exp.Select, set[str]]:
        """SELECT … FROM … WHERE …, without its list, and the names of the columns there."""
        from sqlglot import exp

        table = self.schema.table(self.table)
        names = {folded(name) for name in table.columns}
        select = exp.Select().from_(_quoted(table.name))
        for stage, values in self._stages:
            if stage == "where":
                select = select.where(_expression(values[0], names))
                continue
            listed = [exp.alias_(_expression(text, names), name, quoted=True) for name, text in values]
            stars = [exp.Star()] if stage == "columns" else []
            inner = select.select(*stars, *listed)
            new = {folded(name) for name, _ in values}
            if stage == "columns" and new & names:
                inner = select.select(
                    exp.Star(except_=[exp.column(_identifier(name)) for name, _ in values]), *listed
                )
            names = names | new if stage == "columns" else new
            select = exp.Select().from_(inner.subquery())
        return select, names


_SHOWN = 100
"""Letters of a query in its repr."""


def _check_aggregate(each: object) -> None:
    if isinstance(each, Agg):
        return
    called = getattr(each, "__name__", each if isinstance(each, str) else "")
    known = called if hasattr(Aggregates, str(called)) else "count"
    raise InvalidArgument(
        "An aggregate is made by calling a function of dp.agg.",
        remedy=f"Pass dp.agg.{known}({'' if known in ('count', 'units') else '…'}).",
    )


def _quoted(name: str) -> exp.Table:
    from sqlglot import exp

    return exp.Table(this=_identifier(name))


def _identifier(name: str) -> exp.Identifier:
    from sqlglot import exp

    return exp.Identifier(this=name, quoted=True)


def _expression(text: str, names: set[str]) -> exp.Expr:
    """A column where there is one of that name, else an expression of SQL."""
    from sqlglot import exp

    from dalenius.tables.language.parsing import parsed

    if not isinstance(text, str):
        raise InvalidArgument(
            "A column or an expression must be a text.", remedy='Write each in quotes: "age", "ward".'
        )
    if folded(text) in names:
        return exp.Column(this=_identifier(text))
    select = parsed(f"SELECT {text}")
    clauses = {name for name, value in select.args.items() if value}
    if clauses - {"expressions"} or len(select.expressions) != 1:
        raise InvalidArgument(f"{text!r} is not one expression.", remedy="Write one column or expression.")
    found: exp.Expr = select.expressions[0]
    return found


def _aggregated(each: Agg, names: set[str]) -> exp.Expr:
    from sqlglot import exp

    argument = _expression(each.argument, names) if each.argument is not None else None
    nodes: dict[str, Callable[[], exp.Expr]] = {
        "count": lambda: exp.Count(this=argument or exp.Star(), big_int=True),
        "count_distinct": lambda: exp.Count(this=exp.Distinct(expressions=[argument]), big_int=True),
        "sum": lambda: exp.Sum(this=argument),
        "avg": lambda: exp.Avg(this=argument),
        "var_samp": lambda: exp.Variance(this=argument),
        "stddev_samp": lambda: exp.StddevSamp(this=argument),
        "min": lambda: exp.Min(this=argument),
        "max": lambda: exp.Max(this=argument),
        "median": lambda: exp.Median(this=argument),
        "quantile_cont": lambda: exp.PercentileCont(
            this=argument, expression=exp.Literal.number(repr(each.fraction))
        ),
        "units": lambda: exp.Anonymous(this="units"),
    }
    node = nodes[each.function]()
    return node if each.name is None else exp.alias_(node, each.name, quoted=True)
