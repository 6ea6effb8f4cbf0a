"""`BoundedRows`: the methods of `Loaded` as SQL that an engine runs; only sums by group come back.

A unit's rows are counted by group (cells), and its Σ n(g)², Σ n(g) and number of groups, its shape, say what
weight it has. Rows are then joined with the weight of their unit where that is not full, and summed up.
Shapes of units are asked for more than once, and stored by the engine where it can. All of it must see the
same rows: an engine has one snapshot for as long as they are loaded.

Whatever the data are, nothing here overflows. A unit with 2^30 rows or more in one group, or with Σ n(g)²
above 2^60, has weight 0, and counts as the largest there is: by its own rows, whatever those of others are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
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


class BoundedRows:
    """Rows that an engine holds.

    `source` is what goes behind FROM for them, `kinds` tells of each of their columns which of the kinds of
    `Engine.columns` it is.
    """

    def __init__(
        self,
        words: Words,
        runner: Runner,
        source: str,
        rows: Rows,
        kinds: Mapping[str, str],
    ) -> None:
        self._words, self._runner, self._rows = words, runner, rows
        self._cells = Cells(words, source, rows, kinds)
        self._keys = tuple(kinds[f"key_{i}"] for i in range(rows.keys))
        self._stored: dict[str, str] = {}
        if any(kinds[f"unit_{i}"] == "other" for i in range(rows.units)):
            # Of such values, = and GROUP BY may disagree, and a unit would not find its weight.
            raise InvalidArgument(
                "A unit cannot be told by a value of that type.",
                remedy="Name the unit by a column of numbers, texts or dates.",
            )

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
            sql = self._cells.shared(placed, MASS)
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
        plain = [place for place, measure in enumerate(measures) if measure.kind in _PLAIN]
        if plain:
            rows, weight = self._weighed(asked, bounding)
            asks = [sum_of(self._words, measures[place], weight) for place in plain]
            sql = f"SELECT r.place, {', '.join(asks)} FROM {rows} GROUP BY r.place"
            for row, *found in self._runner.fetch(sql):
                sums[int(row), [ends[place] for place in plain]] = [int(one or 0) for one in found]
        for place, measure in enumerate(measures):
            if place not in plain:
                sums[:, ends[place] : ends[place + 1]] = self._other(asked, measure, bounding)
        return sums

    def _other(self, asked: Asked, measure: Measure, bounding: Bounding) -> Integers:
        if measure.kind == "tree":
            return self._tree(asked, measure, bounding)
        if measure.kind == "units":
            rows, weight = self._weighed(asked, bounding, presence=True)
            sql = f"SELECT r.place, {self._words.total(weight)} FROM {rows} GROUP BY r.place"
        else:
            rows = self._salted(asked, bounding)
            sql = self._cells.pairs(rows, measure.column or 0, bounding.pairs, bounding.salt)
        sums = np.zeros((len(asked.keys), 1), object)
        for row, total in self._runner.fetch(sql):
            sums[int(row), 0] = int(total)
        return sums

    def _tree(self, asked: Asked, measure: Measure, bounding: Bounding) -> Integers:
        rows, weight = self._weighed(asked, bounding)
        found = f"SELECT r.place, {leaf(self._words, measure)} AS leaf, {weight} AS weight "
        found += f"FROM {rows} WHERE r.v{measure.column} IS NOT NULL"
        sql = f"SELECT place, leaf, {self._words.total('weight')} FROM ({found}) AS l GROUP BY place, leaf"
        leaves = np.zeros((len(asked.keys), 1 << measure.levels), object)
        for row, place, total in self._runner.fetch(sql):
            leaves[int(row), int(place)] = int(total)
        levels = range(1, measure.levels + 1)
        nodes = [leaves.reshape(len(asked.keys), 1 << level, -1).sum(axis=2) for level in levels]
        return np.concatenate(nodes, axis=1)

    def _asked(self, keys: Sequence[Key]) -> Asked:
        return Asked(self._words, tuple(keys), self._keys)

    def _units(self, asked: Asked) -> str:
        """The shapes of units, stored at the first time."""
        sql = self._cells.units(asked)
        if sql not in self._stored:
            self._stored[sql] = self._runner.store(sql)
        return self._stored[sql]

    def _salted(self, asked: Asked, bounding: Bounding) -> str:
        """Rows, as `r`, with the digests of their keys, in the groups that their unit keeps."""
        rows = f"{self._cells.rows(asked, bounding.salt)} AS r"
        if bounding.groups is None or not self._rows.units:
            return rows
        return rows + self._kept(asked, bounding)

    def _weighed(self, asked: Asked, bounding: Bounding, *, presence: bool = False) -> tuple[str, str]:
        """Rows as `r`, or cells with `presence`, in groups its unit keeps, and SQL for their weight."""
        limit = bounding.presence if presence else bounding.limit
        rows = self._cells.rows(asked)
        if not self._rows.units:
            return f"{rows} AS r", f"CAST({min(WEIGHT, math.floor(WEIGHT * limit))} AS BIGINT)"
        if presence:
            rows = self._cells.cells(rows)
        if bounding.groups is not None:
            return f"{rows} AS r{self._kept(asked, bounding)}", f"w.{'presence' if presence else 'weight'}"
        found = self._clipped(asked, limit, bounding.norm, presence=presence)
        same = " AND ".join(f"r.{name} = w.{name}" for name in self._cells.names)
        return f"{rows} AS r LEFT JOIN ({found}) AS w ON {same}", f"COALESCE(w.weight, {WEIGHT})"

    def _clipped(self, asked: Asked, limit: Fraction, norm: Norm, *, presence: bool) -> str:
        """A query for the units that have less than full weight: few, where limits are well chosen."""
        words, names = self._words, self._cells.names
        size = [*names, "squares", "held", "groups", f"{guess(words, limit, norm, presence=presence)} AS g"]
        guessed = f"SELECT {', '.join(size)} FROM {self._units(asked)} AS s{words.barrier}"
        found = f"{weight(words, 'g', limit, norm, presence=presence)} AS weight"
        weighed = f"SELECT {', '.join([*names, found])} FROM ({guessed}) AS g{words.barrier}"
        return f"SELECT{words.once(names)} * FROM ({weighed}) AS f WHERE weight < {WEIGHT}"

    def _kept(self, asked: Asked, bounding: Bounding) -> str:
        """What joins rows, as `r`, with the groups that their unit keeps and its weights, as `w`."""
        words, norm, names = self._words, bounding.norm, [*self._cells.names, "place"]
        sampled = self._cells.sampled(asked, bounding.groups or 0, bounding.salt)
        limits = (("weight", bounding.limit, False), ("presence", bounding.presence, True))
        guesses = [
            f"{guess(words, limit, norm, presence=each)} AS {name}_near" for name, limit, each in limits
        ]
        guessed = f"SELECT {', '.join([*names, 'squares', 'held', 'groups', *guesses])} FROM ({sampled}) AS s"
        found = [
            f"{weight(words, f'{name}_near', limit, norm, presence=each)} AS {name}"
            for name, limit, each in limits
        ]
        weighed = f"SELECT {', '.join([*names, *found])} FROM ({guessed}{words.barrier}) AS g{words.barrier}"
        return f" JOIN ({weighed}) AS w ON {' AND '.join(f'r.{name} = w.{name}' for name in names)}"


_PLAIN = ("rows", "present", "sum", "squares")
