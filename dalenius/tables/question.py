"""`Question`: what is asked, once SQL or Python was read: rows, groups, aggregates, and what is shown.

Everything here is public: it depends on the query, the types of the columns and the facts that the owner
declared, never on data.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dalenius.tables.language.basis import Basis
from dalenius.tables.language.formulas import Formula
from dalenius.tables.rows import Key, Rows

AggregateKind = Literal[
    "count", "count_of", "sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop",
    "quantile", "min", "max", "units", "distinct",
]  # fmt: skip


@dataclass(frozen=True)
class Interval:
    """Where values of an expression lie, by what is declared or by its form: both ends included."""

    lower: Fraction
    upper: Fraction


@dataclass(frozen=True)
class Aggregate:
    """One aggregate over the rows of a group.

    count           COUNT(*)
    count_of        COUNT(x): rows whose value is not NULL
    sum avg var_… stddev_… min max quantile      of the values that are not NULL
    units           COUNT(DISTINCT unit)
    distinct        COUNT(DISTINCT x)
    """

    kind: AggregateKind
    column: int | None = None
    """Of the rows' values, or of their distincts."""
    fraction: Fraction | None = None
    """Of a quantile: 1/2 for the median."""


@dataclass(frozen=True)
class Output:
    """A column of the answer: a formula over keys and aggregates."""

    name: str
    formula: Formula
    type: str = "null"
    """Of its values, as `expressions` has it."""


@dataclass(frozen=True)
class Chosen:
    """Rows of an answer for which a condition holds."""

    condition: Formula


@dataclass(frozen=True)
class Shown:
    """New columns from those of one row."""

    formulas: tuple[Formula, ...]


@dataclass(frozen=True)
class Window:
    """A function over the rows of an answer near a row: see `relations.Over`."""

    kind: str
    argument: Formula | None = None
    partition: tuple[Formula, ...] = ()
    order: tuple[tuple[Formula, bool, bool], ...] = ()
    rows: tuple[str, str] | None = None
    offset: int = 1


@dataclass(frozen=True)
class Windows:
    """The columns there are, and one more for each function."""

    functions: tuple[Window, ...]


@dataclass(frozen=True)
class Folded:
    """An aggregate over rows of an answer: count, count_of, sum, avg, min, max, median, distinct, arg_max."""

    kind: str
    argument: Formula | None = None
    by: Formula | None = None
    """Of arg_max: the argument where this is largest."""


@dataclass(frozen=True)
class Grouped:
    """A row for each value of the keys: first the keys, then the aggregates."""

    keys: tuple[Formula, ...]
    folds: tuple[Folded, ...]


@dataclass(frozen=True)
class Unique:
    """Each different row once."""


@dataclass(frozen=True)
class Sorted:
    """Rows in an order, and some of them."""

    order: tuple[tuple[Formula, bool, bool], ...]
    limit: int | None = None
    offset: int = 0


Step = Chosen | Shown | Windows | Grouped | Unique | Sorted


@dataclass(frozen=True)
class Named:
    """A column with its type."""

    name: str
    type: str


@dataclass(frozen=True)
class After:
    """What is computed from a released answer, and the columns there are in the end."""

    steps: tuple[Step, ...]
    columns: tuple[Named, ...]


@dataclass(frozen=True)
class Question:
    """A query that has been read. `text` is its normal form: equal questions have equal texts."""

    text: str
    rows: Rows
    key_names: tuple[str, ...]
    keys: tuple[Key, ...] | None
    """The public keys in order; None where they are to be selected privately; ((),) without GROUP BY."""
    intervals: tuple[Interval | None, ...]
    """Of each value of the rows; None where nothing is known."""
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[Output, ...]
    rows_per_unit: int | None = None
    """The most rows that a unit can have here, where that is known; it is enforced all the same."""
    groups_per_unit: int | None = None
    having: Formula | None = None
    order: tuple[tuple[Formula, bool, bool], ...] = ()
    """By what, whether descending, and whether NULL comes first."""
    limit: int | None = None
    offset: int = 0
    value_names: tuple[str, ...] = ()
    """How each value of the rows is written in the query, for people to read and for bounds to name."""
    never_null: tuple[bool, ...] = ()
    """Whether each value of the rows is there in every row; () where nothing is known. Where it is wrong, it
    costs accuracy, never privacy."""
    sets: tuple[tuple[int, ...], ...] = ()
    """Which keys each set of GROUPING SETS keeps, by their places; () where every group has all keys."""
    after: After | None = None
    """What is computed from the answer once it is released: post-processing, which costs nothing."""
    basis: Basis | None = None
    """Which rows of which table it is about, where that is plain."""

    @property
    def columns(self) -> tuple[Named, ...]:
        """The columns of the answer."""
        if self.after is not None:
            return self.after.columns
        return tuple(Named(each.name, each.type) for each in self.outputs)
