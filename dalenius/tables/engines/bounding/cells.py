"""Rows by unit and group, in SQL. Units are columns u0…, and relations are what goes behind FROM.

rows        those with a key that is asked for: u0…, place, v0…, d0…; and digest, of the key
cells       how many a unit has in each place: u0…, place, n
units       the shapes of units: u0…, squares Σ n², held Σ n, groups
sampled     the same for each of the groups that a unit keeps: u0…, place, squares, held, groups
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dalenius.tables.engines.bounding.asked import Asked
from dalenius.tables.engines.bounding.weighing import ROWS, SQUARES
from dalenius.tables.engines.bounding.words import Words
from dalenius.tables.rows import Rows

_MOST = 1 << 40
"""Rows of a unit in one place, that are counted where shares are taken."""


@dataclass(frozen=True)
class Cells:
    """SQL over the rows of a question; `source` goes behind FROM, `kinds` are those of its columns."""

    words: Words
    source: str
    shape: Rows
    kinds: Mapping[str, str]

    @property
    def names(self) -> list[str]:
        """The columns that are the unit."""
        return [f"u{i}" for i in range(self.shape.units)]

    @property
    def _owner(self) -> str:
        return ", ".join(self.names)

    @property
    def _owned(self) -> str:
        """A condition: rows with a NULL in their unit are nobody's."""
        return " AND ".join([f"r.unit_{i} IS NOT NULL" for i in range(self.shape.units)]) or "TRUE"

    def _units(self) -> list[str]:
        return [f"r.unit_{i} AS u{i}" for i in range(self.shape.units)]

    def rows(self, asked: Asked, salt: bytes | None = None) -> str:
        """Rows with a key that is asked for."""
        columns = [*self._units(), "a.place AS place"]
        columns += [] if salt is None else ["a.digest AS digest"]
        columns += [f"{self.words.real(f'r.value_{i}')} AS v{i}" for i in range(self.shape.values)]
        columns += [f"r.distinct_{i} AS d{i}" for i in range(self.shape.distincts)]
        joined = f"{self.source} AS r{asked.join(salt or b'')}"
        return f"(SELECT{self.words.hint} {', '.join(columns)} FROM {joined} WHERE {self._owned})"

    def all_rows(self) -> str:
        """Rows whatever their key is, all in place 0."""
        values = [f"{self.words.real(f'r.value_{i}')} AS v{i}" for i in range(self.shape.values)]
        found = _select([*self._units(), "0 AS place", *values], f"{self.source} AS r WHERE {self._owned}")
        return f"({found})"

    def placed(self, value: str, place: str) -> str:
        """Rows by the place of a value of theirs, which `place` finds for r.v, if they have one."""
        inner = f"SELECT {', '.join([*self._units(), f'{value} AS v'])} FROM {self.source} AS r"
        inner += f" WHERE {self._owned}{self.words.barrier}"
        columns = ", ".join([*self.names, f"{place} AS place"])
        return f"(SELECT {columns} FROM ({inner}) AS r WHERE r.v IS NOT NULL)"

    def cells(self, placed: str) -> str:
        """Counts of placed rows."""
        return _counted(placed, f"{self._owner}, place")

    def units(self, asked: Asked) -> str:
        """A query for the shapes of units."""
        shape = ", ".join([*self.names, *self._shape("")])
        return f"SELECT {shape} FROM {self.cells(self.rows(asked))} AS c GROUP BY {self._owner}"

    def _shape(self, over: str) -> list[str]:
        squares = self.words.total(f"CASE WHEN n < {ROWS} THEN n * n ELSE {SQUARES + 1} END", over)
        return [
            f"CASE WHEN {squares} <= {SQUARES} THEN {self.words.whole(squares)} END AS squares",
            f"{self.words.short_total(f'LEAST(n, {ROWS})', over)} AS held",
            f"COUNT(*){over} AS groups",
        ]

    def sampled(self, asked: Asked, most: int, salt: bytes) -> str:
        """A query for the groups that units keep: at most so many, those of least hash."""
        counted = _counted(self.rows(asked, salt), f"{self._owner}, place, digest")
        columns = [*self.names, "place", "n"]
        found = _select([*columns, "digest", f"{self._digest(salt)} AS own"], f"{counted} AS c")
        shape = [*self.names, "place", *self._shape(f" OVER (PARTITION BY {self._owner})")]
        return _select(shape, f"({self._kept(found, columns, most)}) AS k")

    def holders(self, most: int, salt: bytes) -> str:
        """A query for how many units hold each key: the keys, and the number."""
        kinds = [self.kinds[f"key_{i}"] for i in range(self.shape.keys)]
        keys = [f"k{i}" for i in range(self.shape.keys)]
        held = [*self._units(), *(f"r.key_{i} AS k{i}" for i in range(self.shape.keys))]
        found = _select(held, f"{self.source} AS r WHERE {self._owned}")
        if self.shape.units:
            spelled = [self.words.spelled(key, kind) for key, kind in zip(keys, kinds, strict=True)]
            digests = [f"{self.words.digest(salt, 'k', spelled)} AS digest", f"{self._digest(salt)} AS own"]
            once = f"(SELECT DISTINCT * FROM ({found}) AS r) AS c"
            found = self._kept(_select([*self.names, *keys, *digests], once), keys, most)
        shown = [self.words.key(key, kind) for key, kind in zip(keys, kinds, strict=True)]
        grouped = f"GROUP BY {', '.join(keys)}" if keys else "HAVING COUNT(*) > 0"
        return _select([*shown, "COUNT(*)"], f"({found}) AS k {grouped}")

    def pairs(self, rows: str, column: int, most: int, salt: bytes) -> str:
        """A query for how many values each place has, of the pairs (place, value) that units keep."""
        value = f"r.d{column}"
        found = _select(["r.place", f"{value} AS d"], f"{rows} WHERE {value} IS NOT NULL")
        if self.shape.units:
            columns = [*(f"r.{name}" for name in self.names), "r.place", "r.digest", f"{value} AS d"]
            once = _select(columns, f"{rows} WHERE {value} IS NOT NULL", verb="SELECT DISTINCT")
            other = self.words.digest(salt, "v", [self.words.spelled("d", self.kinds[f"distinct_{column}"])])
            digests = ["digest", f"{self._digest(salt)} AS own", f"{other} AS other"]
            hashed = _select([*self.names, "place", "d", *digests], f"({once}) AS c")
            found = self._kept(hashed, ["place", "d"], most, other="other")
        united = f"(SELECT DISTINCT place, d FROM ({found}) AS k) AS v"
        return f"SELECT place, COUNT(*) FROM {united} GROUP BY place"

    def shared(self, placed: str, mass: int) -> str:
        """A query for what units add to each place: ⌊mass·n/Σ n⌋."""
        words = self.words
        held = words.whole(words.total("n", f" OVER (PARTITION BY {self._owner})"))
        cells = f"SELECT place, n, {held} AS held FROM {self.cells(placed)} AS c"
        share = words.total(words.quotient(f"(LEAST(n, {_MOST}) * {mass})", "held"))
        return f"SELECT place, {share} FROM ({cells}) AS h GROUP BY place"

    def _digest(self, salt: bytes) -> str:
        kinds = [self.kinds[f"unit_{i}"] for i in range(self.shape.units)]
        spelled = [self.words.spelled(name, kind) for name, kind in zip(self.names, kinds, strict=True)]
        return self.words.digest(salt, "u", spelled)

    def _kept(self, found: str, columns: Sequence[str], most: int, other: str | None = None) -> str:
        """Of what is found of each unit, with its digests `own`, `digest` and perhaps another, what it keeps.

        That is what no more than `most` have a hash as small as: `hashing` says it the other way round.
        """
        words = self.words

        def mixing(first: str, second: str, name: str, source: str) -> str:
            mixed = words.mixed(words.exclusive_or(first, second))
            return f"SELECT *, {mixed} AS {name} FROM ({source}{words.barrier}) AS {name}_of"

        hashed = mixing("own", "digest", "hash", found)
        if other is not None:
            hashed = mixing("hash_of_key", other, "hash", mixing("own", "digest", "hash_of_key", found))
        ahead = f"COUNT(*) OVER (PARTITION BY {self._owner} ORDER BY hash) AS ahead"
        ranked = f"SELECT *, {ahead} FROM ({hashed}{words.barrier}) AS h"
        return _select(columns, f"({ranked}) AS o WHERE ahead <= {most}")


def _select(columns: Sequence[str], source: str, *, verb: str = "SELECT") -> str:
    return f"{verb} {', '.join(columns) or '1 AS present'} FROM {source}"


def _counted(rows: str, columns: str) -> str:
    return f"(SELECT {columns}, COUNT(*) AS n FROM {rows} AS r GROUP BY {columns})"
