"""`Dialect`: expressions in the SQL of one engine, each total: there is a value or NULL, and never an error.

Whatever the engine, the same expression has the same value on the same row. Whole numbers have 64 bits, and
are NULL where these do not hold them; real numbers are DOUBLE, whose overflows are infinities. NULL is: a
division by zero, a logarithm of zero, a root of a negative number, a cast that fails, a date outside the
years 1 to 9999.

A dialect has a template for each function of `expressions`, `{0}` and so on being its arguments:

    integer     of whole numbers, each given as `wide` writes it
    real        of numbers, each given as DOUBLE
    plain       of anything
    special     what needs more than a template

and says in its methods how values are read, written and put together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import ClassVar

from dalenius.errors import InvalidArgument
from dalenius.tables.language.expressions import (
    DUCKDB_ALONE,
    Call,
    Column,
    Expression,
    ExpressionType,
    Literal,
)
from dalenius.tables.language.functions import MOST_DIGITS
from dalenius.tables.language.refusals import refuse

Columns = Sequence[str] | Mapping[int, str]
"""The names that columns have in SQL, by their places."""
Templates = Mapping[str, str]
_LONGEST = 500_000
_TELLING = {
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "is_distinct", "is_null",
    "is_nan", "coalesce", "nullif", "least", "greatest", "sign", "power", "cast_boolean", "cast_text",
}  # fmt: skip
"""Functions that would tell NaN from NULL, or −0 from 0; through all others, NaN goes as NULL does."""
_JOINED: Templates = {"and": " AND ", "or": " OR "}


class Dialect(ABC):
    """The SQL of one engine."""

    name: ClassVar[str]
    """As sqlglot has it."""
    types: ClassVar[Mapping[str, str]]
    """Its name for each of our types."""
    integer: ClassVar[Templates]
    real: ClassVar[Templates]
    plain: ClassVar[Templates]

    def sql_of(self, expression: Expression, columns: Columns) -> str:
        """The expression in SQL, with the names that its columns have there."""
        match expression:
            case Column(index, _):
                return columns[index]
            case Literal(value, type_):
                return self.literal(value, type_)
            case Call("case", arguments, _):
                return _case([self.sql_of(each, columns) for each in arguments])
            case Call(name, arguments):
                written = self.canonical if name in _TELLING else self.sql_of
                return _short(self._call(expression, [written(each, columns) for each in arguments]))

    def canonical(self, expression: Expression, columns: Columns) -> str:
        """The expression in SQL, with one value for all that count as equal, and for no others.

        NaN is NULL, −0 is 0, and texts have no collation. Columns of relations are so from the scan on. So
        rows that are equal, by the order that breaks ties, are the same rows, and no expression can tell
        which of them came first.
        """
        sql = self.sql_of(expression, columns)
        if isinstance(expression, Call) and expression.type == "real":
            return _short(self.settled(sql))
        return sql if isinstance(expression, Column) else self.lettered(sql, expression.type)

    def _call(self, call: Call, sql: list[str]) -> str:
        name, types = call.name, [each.type for each in call.arguments]
        if name in self.integer and not {"real", "boolean"} & set(types):
            return self.filled(self.integer[name], [self.wide(each) for each in sql])
        if name in self.real:
            reals = [self.as_real(each, kind) for each, kind in zip(sql, types, strict=True)]
            return self.filled(self.real[name], reals)
        if name in self.plain:
            return self.filled(self.plain[name], sql)
        if name in _JOINED:
            return "(" + _JOINED[name].join(sql) + ")"
        if name in ("coalesce", "least", "greatest"):
            return f"{name.upper()}({', '.join(sql)})"
        if name.startswith("cast_"):
            return self.cast(sql[0], types[0], call.type)
        if name in DUCKDB_ALONE and name not in self.special:
            clause = "function that is not known" if name == "strptime" else "regular expression"
            raise refuse(clause, f"{name} on {self.name}")
        return self.special[name](sql, types, call.arguments)

    def filled(self, template: str, arguments: Sequence[str]) -> str:
        """A template of its arguments."""
        return template.format(*arguments)

    def literal(self, value: object, type_: ExpressionType) -> str:
        """A value in SQL, with its type."""
        if value is None:
            return f"CAST(NULL AS {self.types[type_]})"
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int):
            return f"CAST({value} AS {self.types['integer']})"
        if isinstance(value, float):
            return self.number(value)
        if isinstance(value, datetime):
            return self.moment(value)
        if isinstance(value, date):
            return f"DATE '{value.isoformat()}'"
        return self.text(str(value))

    def number(self, value: float) -> str:
        """A real number in SQL, to the last bit."""
        return f"CAST('{value!r}' AS {self.types['real']})"

    def moment(self, value: datetime) -> str:
        """A moment in SQL."""
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"

    def text(self, value: str) -> str:
        """A text in SQL."""
        return "'" + value.replace("'", "''") + "'"

    def quoted(self, name: str) -> str:
        """A name in SQL."""
        return '"' + name.replace('"', '""') + '"'

    # What differs from engine to engine.

    @property
    @abstractmethod
    def special(self) -> Mapping[str, Callable[..., str]]:
        """Functions that need more than a template: of SQL, types and expressions of their arguments."""

    @abstractmethod
    def wide(self, sql: str) -> str:
        """A whole number in a type where sums and products of two do not overflow."""

    @abstractmethod
    def settled(self, sql: str) -> str:
        """A real number: NaN is NULL, and −0 is 0."""

    @abstractmethod
    def lettered(self, sql: str, type_: ExpressionType) -> str:
        """A text that is compared letter by letter, whatever the connection would do; all else as it is."""

    @abstractmethod
    def within(self, sql: str, type_: ExpressionType) -> str:
        """A date, NULL outside the years 1 to 9999; all else as it is."""

    @abstractmethod
    def as_real(self, sql: str, type_: ExpressionType) -> str:
        """A number or a condition as DOUBLE."""

    @abstractmethod
    def cast(self, sql: str, source: ExpressionType, target: ExpressionType) -> str:
        """A value as another type, NULL where it does not fit."""

    @abstractmethod
    def read(self, sql: str, type_: ExpressionType) -> str:
        """A column of a source as one of our types, NULL where it does not fit.

        A text is compared letter by letter, whatever collation its column has. Of values of other types it is
        known only whether they are there: to make a text of them may fail.
        """

    @abstractmethod
    def identity(self, sql: str, type_: ExpressionType) -> str:
        """A column of the unit, of one type in all tables, that holds all of them apart: see `lineage`."""

    @abstractmethod
    def begin(self, window: str, moment: str) -> str:
        """The moment at which the window that holds a moment begins."""

    @abstractmethod
    def whole_sum(self, sql: str, over: str) -> str:
        """The sum of whole numbers, exact, NULL where 64 bits do not hold it."""

    @abstractmethod
    def median(self, sql: str, over: str) -> str:
        """The median of real numbers, the middle of two where their number is even."""

    @abstractmethod
    def in_steps(self, sql: str, ends: tuple[float, float], scale: float) -> str:
        """A real number held between two ends, times a scale, to the nearest whole number; sums are exact.

        Halves go away from zero.
        """

    def gathered(self, sql: str, over: str) -> tuple[str, str] | None:
        """Where no median is taken over a window: what gathers the values there, and `{0}`'s median.

        None where `median` does.
        """
        return None

    def total(self, sql: str, step: float) -> str:
        """Whole steps, each a power of two, which `sql` sums, as a real number."""
        return f"({self.as_real(sql, 'integer')} * {self.number(step)})"

    def extreme(self, kind: str, sql: str, type_: ExpressionType, over: str) -> str:
        """The least or the greatest value: `kind` is min or max."""
        return f"{kind.upper()}({sql}){over}"

    def distinct(self, sql: str, over: str) -> str:
        """How many different values there are."""
        return f"COUNT(DISTINCT {sql}){over}"

    def window(
        self, kind: str, order: Sequence[str], rows: tuple[str, str] | None
    ) -> tuple[Sequence[str], tuple[str, str] | None]:
        """The order and the frame of a window function: some have neither, or must have an order."""
        return order, rows


def literal_text(expression: Expression) -> str:
    """The text that an argument is."""
    assert isinstance(expression, Literal)
    return str(expression.value)


def literal_digits(expression: Expression) -> int:
    """The whole number that an argument is, as so many places behind the point."""
    assert isinstance(expression, Literal) and isinstance(expression.value, int)
    return max(-MOST_DIGITS, min(MOST_DIGITS, expression.value))


def _short(sql: str) -> str:
    """Some functions mention an argument twice, which doubles at every level of nesting."""
    if len(sql) > _LONGEST:
        raise InvalidArgument(
            "An expression is nested too deeply.", remedy="Compute a part of it in a subquery."
        )
    return sql


def _case(arguments: Sequence[str]) -> str:
    pairs = zip(arguments[0:-1:2], arguments[1::2], strict=True)
    branches = " ".join(f"WHEN {when} THEN {then}" for when, then in pairs)
    return f"CASE {branches} ELSE {arguments[-1]} END"
