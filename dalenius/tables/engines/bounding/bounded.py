"""`BoundedRows`: the methods of `Loaded` as SQL that an engine runs; only sums by group come back.

A unit's rows are counted by group (cells), and its Σ n(g)², Σ n(g) and number of groups, its shape, say what
weight it has. Rows are then joined with the weight of their unit, and summed up. Shapes of units are asked
for more than once, and stored by the engine where it can.

Whatever the data are, nothing here overflows. A unit with 2^30 rows or more in one group, or with Σ n(g)²
above 2^60, has weight 0, and counts as the largest there is: by its own rows, whatever those of others are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.engines.bounding.asked import Asked
from dalenius.tables.engines.bounding.cells import Cells
from dalenius.tables.engines.bounding.summing import leaf, sum_of
from dalenius.tables.engines.bounding.weighing import bins, guess, magnitude, weight
from dalenius.tables.engines.bounding.words import Words
from dalenius.tables.engines.engine import (
    MAGNITUDES,
    MASS,
    SIZES,
    SPREADS,
    WEIGHT,
    Bounding,
    Integers,
    Measure,
)
from dalenius.tables.engines.kernel_weights import Norm
from dalenius.tables.rows import Key, Rows

Table = Sequence[Sequence[Any]]


class Runner(Protocol):
    """What an engine does with SQL."""

    def fetch(self, sql: str) -> Table:
        """The rows of a query, of which there are no more than groups, leaves or bins."""

    def store(self, sql: str) -> str:
        """What goes behind FROM for the rows of a query: a table of them, or the query in parentheses."""


@dataclass(frozen=True)
class _Weighed:
    """Rows as `r` with what says their weights."""

    rows: str
    weight: str
    presence: str


class BoundedRows:
    """Rows that an engine holds.

    `source` is what goes behind FROM for them, `kinds` tells of each of their columns which of the kinds of
    `Engine.columns` it is, and `packed` whether a unit is one number of 64 bits that is best packed.
    """

    def __init__(
        self,
        words: Words,
        runner: Runner,
        source: str,
        rows: Rows,
        kinds: Mapping[str, str],
        *,
        packed: bool = False,
    ) -> None:
        self._words, self._runner, self._rows = words, runner, rows
        self._cells = Cells(words, source, rows, kinds, packed)
        self._keys = tuple(kinds[f"key_{i}"] for i in range(rows.keys))
        self._stored: dict[tuple[Key, ...], str] = {}

    def holders(self, *, most: int, salt: bytes) -> Mapping[Key, int]:
        """See `Loaded`."""
        found = self._runner.fetch(self._cells.holders(most, salt))
        return {tuple(row[:-1]): int(row[-1]) for row in found}

    def shapes(self, keys: Sequence[Key], *, norm: Norm, presence: bool) -> NDArray[np.int64]:
        """See `Loaded`."""
        sums = np.zeros((SIZES, SPREADS), np.int64)
        asked = self._asked(keys)
        if not keys:
            return sums
        if not self._rows.units:
            ((sums[0, 0],),) = self._runner.fetch(f"SELECT COUNT(*) FROM {self._cells.rows(asked)} AS r")
            return sums
        size, spread = bins(self._words, norm, presence=presence)
        binned = f"SELECT {size} AS size, {spread} AS spread FROM {self._units(asked)} AS s"
        sql = f"SELECT size, spread, COUNT(*) FROM ({binned}) AS b GROUP BY size, spread"
        for row, column, count in self._runner.fetch(sql):
            sums[int(row), int(column)] = int(count)
        return sums

    def magnitudes(self, column: int) -> NDArray[np.int64]:
        """See `Loaded`."""
        sums = np.zeros(MAGNITUDES, np.int64)
        value = self._words.real(f"r.value_{column}")
        placed = self._cells.placed(value, magnitude(self._words, "r.v"))
        sql = f"SELECT place, COUNT(*) * {MASS} FROM {placed} AS r GROUP BY place"
        if self._rows.units:
            sql = self._cells.shared(placed, MAGNITUDES.bit_length(), MASS)
        for place, total in self._runner.fetch(sql):
            sums[int(place)] = int(total)
        return sums

    def totals(self, keys: Sequence[Key], measures: Sequence[Measure], bounding: Bounding) -> Integers:
        """See `Loaded`."""
        widths = [measure.width for measure in measures]
        ends = np.cumsum([0, *widths]).tolist()
        sums = np.zeros((len(keys), ends[-1]), object)
        asked = self._asked(keys)
        if not keys:
            return sums
        weighed = self._weighed(asked, bounding)
        plain = [place for place, measure in enumerate(measures) if measure.kind in _PLAIN]
        if plain:
            asks = [sum_of(self._words, measures[place], weighed.weight) for place in plain]
            sql = f"SELECT r.place, {', '.join(asks)} FROM {weighed.rows} GROUP BY r.place"
            for row, *found in self._runner.fetch(sql):
                sums[int(row), [ends[place] for place in plain]] = [int(one or 0) for one in found]
        for place, measure in enumerate(measures):
            if place not in plain:
                sums[:, ends[place] : ends[place + 1]] = self._other(asked, measure, bounding, weighed)
        return sums

    def _other(self, asked: Asked, measure: Measure, bounding: Bounding, weighed: _Weighed) -> Integers:
        words, count = self._words, len(asked.keys)
        if measure.kind == "tree":
            value, leaves = f"r.v{measure.column}", np.zeros((count, 1 << measure.levels), object)
            found = f"SELECT r.place, {leaf(words, measure)} AS leaf, {weighed.weight} AS weight "
            found += f"FROM {weighed.rows} WHERE {value} IS NOT NULL"
            sql = f"SELECT place, leaf, {words.total('weight')} FROM ({found}) AS l GROUP BY place, leaf"
            for row, place, total in self._runner.fetch(sql):
                leaves[int(row), int(place)] = int(total)
            levels = range(1, measure.levels + 1)
            return np.concatenate([leaves.reshape(count, 1 << n, -1).sum(axis=2) for n in levels], axis=1)
        if measure.kind == "units":
            sql = self._present(asked, bounding, weighed)
        else:
            rows = self._weighed(asked, bounding, salted=True).rows
            sql = self._cells.pairs(rows, measure.column or 0, bounding.pairs, bounding.salt)
        sums = np.zeros((count, 1), object)
        for row, total in self._runner.fetch(sql):
            sums[int(row), 0] = int(total)
        return sums

    def _present(self, asked: Asked, bounding: Bounding, weighed: _Weighed) -> str:
        """A query for the weighted number of units in each place."""
        if not self._rows.units:
            return (
                f"SELECT r.place, {self._words.total(weighed.presence)} FROM {weighed.rows} GROUP BY r.place"
            )
        cells = f"{self._cells.cells(self._cells.rows(asked), asked.bits)} AS r"
        joined = cells + self._joined(asked, bounding)
        return f"SELECT r.place, {self._words.total('w.presence')} FROM {joined} GROUP BY r.place"

    def _asked(self, keys: Sequence[Key]) -> Asked:
        return Asked(self._words, tuple(keys), self._keys)

    def _units(self, asked: Asked) -> str:
        """The shapes of units, stored at the first time."""
        if asked.keys not in self._stored:
            self._stored[asked.keys] = self._runner.store(self._cells.units(asked))
        return self._stored[asked.keys]

    def _weighed(self, asked: Asked, bounding: Bounding, *, salted: bool = False) -> _Weighed:
        rows = f"{self._cells.rows(asked, bounding.salt if salted else b'')} AS r"
        if not self._rows.units:
            return _Weighed(rows, _alone(bounding.limit), _alone(bounding.presence))
        if salted and bounding.groups is None:
            return _Weighed(rows, "", "")
        return _Weighed(rows + self._joined(asked, bounding), "w.weight", "w.presence")

    def _joined(self, asked: Asked, bounding: Bounding) -> str:
        """What joins rows, as `r`, with the weights of their unit, or of its groups if those are sampled."""
        words, names, norm = self._words, self._cells.names, bounding.norm
        if bounding.groups is None:
            shapes = f"{self._units(asked)} AS s"
        else:
            shapes = f"({self._cells.sampled(asked, bounding.groups, bounding.salt)}) AS s"
            names = [*names, "place"]
        shown = ", ".join([*names, "squares", "held", "groups"])
        guesses = [
            f"{guess(words, limit, norm, presence=presence)} AS {name}"
            for limit, presence, name in ((bounding.limit, False, "g"), (bounding.presence, True, "h"))
        ]
        guessed = f"SELECT {', '.join([shown, *guesses])} FROM {shapes}{words.barrier}"
        found = [
            *names,
            f"{weight(words, 'g', bounding.limit, norm, presence=False)} AS weight",
            f"{weight(words, 'h', bounding.presence, norm, presence=True)} AS presence",
        ]
        same = " AND ".join(f"r.{name} = w.{name}" for name in names)
        return f" JOIN (SELECT {', '.join(found)} FROM ({guessed}) AS g{words.barrier}) AS w ON {same}"


_PLAIN = ("rows", "present", "sum", "squares")


def _alone(limit: Fraction) -> str:
    """The weight of a row that is a unit of its own."""
    return f"CAST({min(WEIGHT, limit.numerator * WEIGHT // limit.denominator)} AS BIGINT)"
