"""`Aggregated`: an aggregate of rows, as a query asks for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from dalenius.tables.language.expressions import Expression, ExpressionType, call
from dalenius.tables.language.refusals import refuse


@dataclass(frozen=True)
class Aggregated:
    """An aggregate of rows: count, count_of, distinct, sum, …, quantile; a FILTER is part of the argument."""

    kind: str
    argument: Expression | None = None
    fraction: Fraction | None = None
    written: str = field(default="", compare=False)
    """How the query writes what is aggregated."""
    discrete: bool = False
    """Whether a quantile is to be one of the values."""

    @property
    def type(self) -> ExpressionType:
        """Of its value."""
        if self.kind in ("count", "count_of", "distinct", "units"):
            return "integer"
        if self.argument is not None and self.kind in ("min", "max"):
            return self.argument.type
        whole = self.argument is not None and self.argument.type in ("integer", "boolean")
        return "integer" if whole and self.kind == "sum" else "real"


def number(argument: Expression | None) -> Expression | None:
    """An expression of which sums and quantiles can be taken."""
    if argument is not None and argument.type == "boolean":
        return call("cast_integer", argument)
    if argument is not None and argument.type == "null":
        return call("cast_real", argument)
    if argument is not None and argument.type not in ("integer", "real"):
        raise refuse("aggregate of texts or dates")
    return argument
