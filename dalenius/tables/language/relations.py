"""Relations: a dozen frozen nodes, each with its `Facts`, made by the functions of `lineage` only.

What every node keeps: a private relation has, before the columns that a query sees, `facts.units` hidden
columns that are the unit. They travel along whatever a SELECT list says and whatever columns are called. A
node that puts rows together (JoinUnit, Distinct, PerUnit, Windowed) does so within equal hidden columns only.
So, by induction over the nodes, every row belongs to one unit and depends on that unit's records and on
public tables only. Where rows without an identity are units of their own, a scan numbers them in a hidden
column, and no node puts two scans together, as the numbers of two scans of one table are not the same. Where
every row is a unit of its own there are no hidden columns, and no node that puts rows together or makes more
of them is allowed.

Two nodes are the same only if they are one: comparing trees would take long where parts are used many times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dalenius.privacy.unit import Unit
from dalenius.tables.language.expressions import Expression, ExpressionType
from dalenius.tables.language.intervals import ANYTHING, Span
from dalenius.tables.schema import Private, Public, Type

JoinKind = Literal["inner", "left"]


@dataclass(frozen=True)
class Part:
    """What a column has to do with the i-th column of the unit: it is that, or the time of its window."""

    index: int
    window: str | None = None
    """The window that makes the unit out of this column; None where the column itself is it."""


@dataclass(frozen=True)
class Field:
    """A column that a query sees, with what is known of it. All of it is found anew at every node."""

    name: str
    type: ExpressionType
    span: Span = ANYTHING
    nullable: bool = True
    part: Part | None = None
    fixed: bool = False
    """Whether all rows of one unit have the same value here."""


@dataclass(frozen=True)
class Facts:
    """What is known of a relation."""

    fields: tuple[Field, ...]
    public: bool
    unit_types: tuple[Type, ...] = ()
    """Of the hidden columns."""
    unit: Unit | None = None
    """Whose records the rows are, whatever its column is called; None where they are public."""
    rows_per_unit: int | None = None
    numbered: bool = False
    """Whether the last hidden column is the number of a row without an identity, which is its own unit."""
    weight: int = 1
    """How many nodes there are below, a node that is used twice counted twice, as it is printed twice."""

    @property
    def units(self) -> int:
        """How many hidden columns are the unit."""
        return len(self.unit_types)

    @property
    def told(self) -> frozenset[int]:
        """The hidden columns that a query must name to name the unit: all but the numbers of rows."""
        return frozenset(range(self.units - self.numbered))

    @property
    def each_row(self) -> bool:
        """Whether every row is a unit of its own."""
        return not self.public and self.units == 0


@dataclass(frozen=True, eq=False)
class Scan:
    """A private table."""

    table: Private
    facts: Facts


@dataclass(frozen=True, eq=False)
class PublicScan:
    """A public table."""

    table: Public
    facts: Facts


@dataclass(frozen=True, eq=False)
class Project:
    """New columns from those of one row."""

    source: Relation
    expressions: tuple[Expression, ...]
    facts: Facts


@dataclass(frozen=True, eq=False)
class Filter:
    """The rows for which a condition is true."""

    source: Relation
    condition: Expression
    facts: Facts


@dataclass(frozen=True, eq=False)
class JoinPublic:
    """Rows beside those of a public relation. The condition reads the columns of both, source first.

    With `once`, only rows of the public relation that are alone in `matched`, its columns that the condition
    sets equal, are used, so that no row is found twice.
    """

    source: Relation
    other: Relation
    condition: Expression
    kind: JoinKind
    facts: Facts
    once: bool = False
    matched: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class JoinUnit:
    """Rows beside rows of the same unit, where the condition holds too."""

    source: Relation
    other: Relation
    condition: Expression
    kind: JoinKind
    facts: Facts


@dataclass(frozen=True, eq=False)
class UnionAll:
    """The rows of each, one after another."""

    sources: tuple[Relation, ...]
    facts: Facts


@dataclass(frozen=True, eq=False)
class Distinct:
    """Each different row of a unit once."""

    source: Relation
    facts: Facts


@dataclass(frozen=True)
class Fold:
    """An aggregate over the rows of one unit: count, count_of, sum, avg, min, max, median or distinct."""

    kind: str
    argument: Expression | None = None


@dataclass(frozen=True, eq=False)
class PerUnit:
    """One row for each unit and each value of the keys: first the keys, then the folds."""

    source: Relation
    keys: tuple[Expression, ...]
    folds: tuple[Fold, ...]
    facts: Facts


@dataclass(frozen=True)
class Over:
    """A function over the rows of one unit near a row."""

    kind: str
    argument: Expression | None = None
    partition: tuple[Expression, ...] = ()
    order: tuple[tuple[Expression, bool, bool], ...] = ()
    """By what, whether descending, whether NULL comes first."""
    rows: tuple[str, str] | None = None
    """The frame in rows: of "UNBOUNDED PRECEDING", "3 PRECEDING", "CURRENT ROW" and so on."""
    offset: int = 1
    """Of lag, lead, nth_value and ntile."""


@dataclass(frozen=True, eq=False)
class Windowed:
    """The columns of the source, and one more for each function."""

    source: Relation
    functions: tuple[Over, ...]
    facts: Facts


Relation = (
    Scan | PublicScan | Project | Filter | JoinPublic | JoinUnit | UnionAll | Distinct | PerUnit | Windowed
)
