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
    basis: Basis | None = None
    """Which rows of which table it is about, where that is plain."""
