"""What an engine must do: read rows, bound what each unit contributes, and hand back integers.

    with engine.load(rows) as loaded:                     # now data is read
        loaded.holders(most=4, salt=salt)                 # private keys, and how many units hold each
        loaded.shapes(keys, norm="l2", presence=False)    # units by the size and spread of what they add
        loaded.magnitudes(0)                              # where the values of column 0 lie
        loaded.totals(keys, measures, bounding)           # sums of the bounded contributions

Every integer is a sum over units of what one unit contributes, which is bounded as the method says, whatever
the data are. An engine raises nothing that depends on data: what it cannot read gives NULL, and what fails
for other reasons is a `QueryFailed` with no word of the engine's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.rows import Key, Range, Rows

Integers = NDArray[np.int64] | NDArray[np.object_]
"""Sums; Python's own integers where 64 bits might not hold them."""

WEIGHT = 1 << 14
"""The weight of a row of a unit that is not clipped; clipped units have smaller whole weights."""
SIZES, SPREADS = 64, 16
"""Bins of `shapes`."""
MAGNITUDES = 2 * 256 + 1
"""Bins of `magnitudes`."""
MASS = 1 << 20
"""What the bins of one unit in `magnitudes` add up to, at most."""


@dataclass(frozen=True)
class Measure:
    """Something that is summed in each group, over rows with their weights.

    rows       1                                             at most 1 a row
    present    1 where value is not NULL                     at most 1
    sum        the steps of value in its range               at most max |steps|
    squares    (steps²) >> shift                             at most max steps² >> shift
    tree       1 in each of the `levels` nodes above the leaf where value falls: level 1 has 2 nodes,
               level L has 2^L; nodes of level 1 come first. The leaf is ⌊(steps − least)·2^L / (count)⌋
               with steps from least to least + count − 1
    units      1 for each group that a unit is in, with the weight of its own bounding
    distinct   1 for each value of a distinct column in a group, of the pairs (group, value) that the
               bounding leaves to each unit; no weights
    """

    kind: Literal["rows", "present", "sum", "squares", "tree", "units", "distinct"]
    column: int | None = None
    """Of `value_…`, or of `distinct_…`."""
    range: Range | None = None
    shift: int = 0
    levels: int = 0

    @property
    def width(self) -> int:
        """How many integers it has in each group."""
        return 2 ** (self.levels + 1) - 2 if self.kind == "tree" else 1


@dataclass(frozen=True)
class Bounding:
    """What a unit may contribute.

    Rows with a key that is not asked for are dropped first. With n(g) the rows of a unit in group g, all its
    rows get the weight
        norm "l2":  W = min(WEIGHT, ⌊WEIGHT·limit/√(Σ n(g)²)⌋),  so that √(Σ (W n(g))²) ≤ limit·WEIGHT
        norm "l1":  W = min(WEIGHT, ⌊WEIGHT·limit/Σ n(g)⌋),      so that Σ W n(g) ≤ limit·WEIGHT
    With `groups`, a unit keeps only its rows in the `groups` groups of least keyed hash of (unit, key),
    before that. For measure `units` the same holds with n(g) = 1 and `presence` in place of `limit`. For
    `distinct` a unit keeps its `pairs` pairs (group, value) of least keyed hash. Engines that count in 64
    bits may give no weight at all to a unit with 2^30 rows in one group, or whose Σ n(g)² is above 2^60.
    """

    norm: Literal["l2", "l1"]
    limit: Fraction = Fraction(1)
    presence: Fraction = Fraction(1)
    pairs: int = 1
    groups: int | None = None
    salt: bytes = b""
    """Key of the hashes, 32 random bytes, drawn afresh for each query and never shown."""


class Loaded(Protocol):
    """Rows that have been read."""

    def holders(self, *, most: int, salt: bytes) -> Mapping[Key, int]:
        """How many units hold each key, of the at most `most` keys of least keyed hash that each unit keeps.

        One unit changes at most `most` counts, each by 1. The mapping tells what is there: it is private.
        """

    def shapes(self, keys: Sequence[Key], *, norm: Literal["l2", "l1"], presence: bool) -> NDArray[np.int64]:
        """How many units fall in each bin (SIZES × SPREADS), each unit in exactly one; none where it has no
        row with one of the keys.

        The size of a unit is its norm of n(g) (of 1 for each of its groups with `presence`), the spread its
        Σ n(g) over that norm; both in bins of half an octave: bin ⌈2·log₂ x⌉, held within the table, so that
        bin b holds sizes above 2^((b−1)/2) and up to 2^(b/2).
        """

    def magnitudes(self, column: int) -> NDArray[np.int64]:
        """Where values lie: bins of a sign and an octave, from the most negative on; zero in the middle.

        Bin 256 + j (j ≥ 1) holds values from 2^(j−129) up to below 2^(j−128), ends held; 256 − j the same
        below zero; bin 256 holds 0. Each unit spreads MASS evenly over its rows that have a value: a bin that
        holds m of its r rows gets ⌊MASS·m/r⌋. So a unit adds at most MASS in all.
        """

    def totals(self, keys: Sequence[Key], measures: Sequence[Measure], bounding: Bounding) -> Integers:
        """One row for each key, in their order, and one column for each integer of each measure."""


class Engine(Protocol):
    """Where tables are."""

    dialect: str
    """As sqlglot names it."""

    def columns(self, table: str) -> Mapping[str, str]:
        """The names of a table's columns in order, each with its type; no data is read.

        Types are "boolean", "integer", "real", "text", "date", "moment" (a time stamp) and "other".
        """

    def version(self) -> str:
        """What changes when the data may have: size and time of a file, never a digest of data."""

    def turn(self) -> AbstractContextManager[object]:
        """Wait until there is memory for one more reader, and hold it; taken before a question is charged."""

    def load(self, rows: Rows) -> AbstractContextManager[Loaded]:
        """Read rows. Leaving the block lets go of everything, also by an interrupt."""

    def public(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query on public tables."""

    def same(self, table: str, other: str) -> bool:
        """Whether two names stand for the same rows, or for some that are the same; no data is read."""

    def close(self) -> None:
        """Let go of the source."""
