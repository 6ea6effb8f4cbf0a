"""Aggregates that are formulas of others: of pairs of numbers, of dates, of several columns.

    COVAR_POP(y, x)    AVG(p) − AVG(y′ − a)·AVG(x′ − b), p = (y′ − a)(x′ − b)
    COVAR_SAMP         the same times n/(n − 1), with n pairs
    CORR               COVAR_POP / √(VAR_POP(y′)·VAR_POP(x′)), held between −1 and 1
    REGR_SLOPE(y, x)   COVAR_POP / VAR_POP(x′), and the other REGR_… from the same parts
    MIN(day)           the day of MIN(days since 2000-01-01); of moments, in seconds

y′ and x′ are the values of rows where both are there; a and b are the middles of their ranges, where these
are public, else 0. Each part is an average or a variance of an expression of one row, whose values are
clamped to a range like those of any other: a row adds at most max |p| to the sum of products
(docs/proofs/tables.md). Error bars are those of formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from fractions import Fraction

from sqlglot import exp

from dalenius.tables.language.aggregated import Aggregated, number
from dalenius.tables.language.expressions import Call, Expression, as_type, call, case, literal
from dalenius.tables.language.reading import Node, Reader, only
from dalenius.tables.language.refusals import refuse
from dalenius.tables.language.relations import Field
from dalenius.tables.language.spans import span_of

Place = Callable[[Aggregated], Expression]
ORIGIN, ORIGIN_SECONDS = date(2000, 1, 1), 946_684_800.0
"""The day from which days are counted where dates are aggregated, and its seconds since 1970."""
_PAIRS: Mapping[type[Node], str] = {
    exp.Corr: "corr",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.RegrSlope: "regr_slope",
    exp.RegrIntercept: "regr_intercept",
    exp.RegrR2: "regr_r2",
    exp.RegrCount: "regr_count",
    exp.RegrAvgx: "regr_avgx",
    exp.RegrAvgy: "regr_avgy",
    exp.RegrSxx: "regr_sxx",
    exp.RegrSyy: "regr_syy",
    exp.RegrSxy: "regr_sxy",
}
PAIRED = tuple(_PAIRS)


def paired(
    node: Node, rows: Reader, condition: Expression | None
) -> tuple[str, Expression, Expression] | None:
    """The name of an aggregate of pairs, and its two columns where both are there; None where it is none."""
    if type(node) not in _PAIRS:
        return None
    only(node, "this", "expression")
    both = [_real(rows.read(each)) for each in (node.this, node.expression)]
    there = [call("not", call("is_null", each)) for each in both]
    when = call("and", *there, *([] if condition is None else [condition]))
    first, second = (case([(when, each)]) for each in both)
    return _PAIRS[type(node)], first, second


def formula(
    name: str,
    y: Expression,
    x: Expression,
    names: tuple[str, str],
    fields: Sequence[Field],
    place: Place,
) -> Expression:
    """An aggregate of pairs, made of others; `names` are how the query writes its two columns."""
    return _Pairs(y, x, names, fields, place).formula(name)


class _Pairs:
    """The parts of aggregates of pairs."""

    def __init__(
        self, y: Expression, x: Expression, names: tuple[str, str], fields: Sequence[Field], place: Place
    ) -> None:
        self.y, self.x, self.place = y, x, place
        self.names = {y: names[0], x: names[1]}
        self.middles = [_middle(each, fields) for each in (y, x)]

    def formula(self, name: str) -> Expression:
        """The aggregate of that name."""
        match name:
            case "covar_pop":
                return self.covariance()
            case "covar_samp":
                count = held(as_type(self.count(), "real"), 2.0, 2.0**60)
                factor = call("divide", count, call("subtract", count, literal(1)))
                return call("multiply", self.covariance(), factor)
            case "corr":
                spread = call(
                    "sqrt", call("multiply", self.of("var_pop", self.y), self.of("var_pop", self.x))
                )
                return held(call("divide", self.covariance(), spread), -1.0, 1.0)
            case "regr_r2":
                both = call("multiply", self.of("var_pop", self.y), self.of("var_pop", self.x))
                squared = call("power", self.covariance(), literal(2))
                return held(call("divide", squared, both), 0.0, 1.0)
            case "regr_slope":
                return self.slope()
            case "regr_intercept":
                below = call("multiply", self.slope(), self.of("avg", self.x))
                return call("subtract", self.of("avg", self.y), below)
            case "regr_count":
                return self.count()
            case "regr_avgx" | "regr_avgy":
                return self.of("avg", self.x if name == "regr_avgx" else self.y)
            case "regr_sxx" | "regr_syy":
                spread = self.of("var_pop", self.x if name == "regr_sxx" else self.y)
                return call("multiply", self.count(), spread)
        return call("multiply", self.count(), self.covariance())

    def of(self, kind: str, column: Expression) -> Expression:
        """An aggregate of one of the two columns."""
        written = self.names.get(column, " * ".join(self.names.values()))
        return self.place(Aggregated(kind, column, written=written))

    def count(self) -> Expression:
        """How many pairs there are."""
        return self.of("count_of", self.x)

    def slope(self) -> Expression:
        """Of the line through the pairs."""
        return call("divide", self.covariance(), self.of("var_pop", self.x))

    def covariance(self) -> Expression:
        """The average product of deviations from the middles, less the product of their averages."""
        products = call("multiply", _less(self.y, self.middles[0]), _less(self.x, self.middles[1]))
        means = (
            _less(self.of("avg", self.y), self.middles[0]),
            _less(self.of("avg", self.x), self.middles[1]),
        )
        return call("subtract", self.of("avg", products), call("multiply", *means))


def held(value: Expression, least: float, most: float) -> Expression:
    """A released number between two ends."""
    return Call("held", (value, literal(least), literal(most)), "real")


def of_dates(aggregate: Aggregated, place: Place) -> Expression | None:
    """The least, largest or middle of dates or moments; None where the aggregate is of something else."""
    argument, ordered = aggregate.argument, aggregate.kind in ("min", "max", "quantile")
    if argument is None or not ordered or argument.type not in ("date", "moment"):
        return None
    if argument.type == "date":
        counted, name = call("date_diff", literal("day"), literal(ORIGIN), argument), "day_from_number"
    else:
        counted, name = (
            call("subtract", call("epoch", argument), literal(ORIGIN_SECONDS)),
            "moment_from_number",
        )
    since = "days" if argument.type == "date" else "seconds"
    written = f"{since} from {ORIGIN} to {aggregate.written}"
    found = place(Aggregated(aggregate.kind, counted, aggregate.fraction, written))
    return Call(name, (found,), argument.type)


def together(values: Sequence[Expression], *, with_null: bool) -> Expression:
    """Several values as one text, equal where all of them are: each after its length.

    NULL is told from all texts; without `with_null` it makes the whole NULL.
    """
    whole: Expression = literal("")
    for each in values:
        text = each if each.type == "text" else call("cast_text", each)
        size = call("concat", call("cast_text", call("length", text)), literal(":"))
        whole = call(
            "concat", whole, case([(call("is_null", text), literal("~"))], call("concat", size, text))
        )
    if with_null:
        return whole
    there = [call("not", call("is_null", each)) for each in values]
    return case([(call("and", *there) if len(there) > 1 else there[0], whole)])


def _real(value: Expression) -> Expression:
    found = number(value)
    if found is None:
        raise refuse("aggregate of texts or dates")
    return found if found.type == "real" else call("cast_real", found)


def _middle(value: Expression, fields: Sequence[Field]) -> Fraction:
    """The middle of a range that is public; 0 where there is none."""
    ends = span_of(value, fields).finite
    middle = Fraction(0) if ends is None else (ends[0] + ends[1]) / 2
    return middle if abs(middle) < 2**60 else Fraction(0)


def _less(value: Expression, middle: Fraction) -> Expression:
    return call("subtract", value, literal(float(middle))) if middle else value
