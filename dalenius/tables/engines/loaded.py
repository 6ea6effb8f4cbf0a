"""`DuckdbLoaded`: the methods of `Loaded`, each a sum over the parts that rows were cut into."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.engines.coding import Listed, exact, exact_key, unit_code
from dalenius.tables.engines.engine import MAGNITUDES, SIZES, SPREADS, Bounding, Integers, Measure
from dalenius.tables.engines.fetching import Coded, Held
from dalenius.tables.engines.kernel import Digester, Part
from dalenius.tables.engines.kernel_cells import Hasher
from dalenius.tables.engines.kernel_distinct import Pairs, Values, all_pairs, count_pairs, kept_pairs
from dalenius.tables.engines.kernel_rows import Asked, Weigher
from dalenius.tables.engines.kernel_singles import Singles
from dalenius.tables.engines.kernel_totals import Totals
from dalenius.tables.engines.kernel_weights import Norm
from dalenius.tables.engines.reading import read
from dalenius.tables.engines.types import kind_of, name, places
from dalenius.tables.rows import Key, Rows

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")


class DuckdbLoaded:
    """Rows that have been read. They stay in memory, or are read part by part when they are needed."""

    def __init__(self, cursor: DuckDBPyConnection, rows: Rows, source: str, *, room: int) -> None:
        self._cursor, self._room = cursor, room
        self._coded = code(cursor, rows, source)
        columns = "".join(f", c{i}" for i in range(rows.keys))
        listed = cursor.execute(f"SELECT code{columns} FROM {self._coded.keys.table}").fetchall()
        self._keys: dict[int, Key] = {row[0]: tuple(row[1:]) for row in listed}
        self._whole = self._coded.whole(cursor, room)
        self._hashers: dict[tuple[bytes, int], Hasher] = {}

    def holders(self, *, most: int, salt: bytes) -> Mapping[Key, int]:
        """See `Loaded`."""
        return self._read(partial(self._holders, most, salt))

    def shapes(self, keys: Sequence[Key], *, norm: Norm, presence: bool) -> NDArray[np.int64]:
        """See `Loaded`."""
        asked = self._asked(keys)
        return self._read(
            lambda: self._sum((SIZES, SPREADS), lambda part: part.shapes(asked, norm, presence))
        )

    def magnitudes(self, column: int) -> NDArray[np.int64]:
        """See `Loaded`."""
        return self._read(lambda: self._sum((MAGNITUDES,), lambda part: part.magnitudes(column)))

    def totals(self, keys: Sequence[Key], measures: Sequence[Measure], bounding: Bounding) -> Integers:
        """See `Loaded`."""
        asked = self._asked(keys)
        totals = Totals(measures, asked)
        return self._read(partial(self._totals, asked, measures, bounding, totals))

    def _read(self, work: Callable[[], T]) -> T:
        return read(self._cursor, work)

    def _parts(self) -> Iterator[Held]:
        if self._whole is not None:
            return iter(self._whole)
        return self._coded.several(self._cursor, self._room)

    def _sum(
        self, shape: tuple[int, ...], each: Callable[[Part | Singles], NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        total = np.zeros(shape, np.int64)
        for _, _, part in self._parts():
            total += each(part)
        return total

    def _asked(self, keys: Sequence[Key]) -> Asked:
        wanted = places(keys)
        found = np.full(max(self._coded.keys.size, 1), len(keys), np.intp)
        for number, key in self._keys.items():
            found[number] = wanted.get(name(key), len(keys))
        return Asked(found, len(keys))

    def _holders(self, most: int, salt: bytes) -> Mapping[Key, int]:
        counts = np.zeros(self._coded.keys.size, np.int64)
        for index, parts, part in self._parts():
            counts += part.holders(len(counts), most, self._digester(salt, index, parts))
        return {self._keys[place]: int(counts[place]) for place in np.flatnonzero(counts).tolist()}

    def _totals(
        self, asked: Asked, measures: Sequence[Measure], bounding: Bounding, totals: Totals
    ) -> Integers:
        pairs: dict[int, list[Pairs]] = {n: [] for n, one in enumerate(measures) if one.kind == "distinct"}
        for index, parts, part in self._parts():
            digester = self._digester(bounding.salt, index, parts)
            totals.add(part, bounding, digester)
            if pairs:
                weigher = part.weigh(asked, bounding, digester)
                for number, kept in pairs.items():
                    kept.append(self._pairs(part, measures[number], weigher, bounding, digester))
        return totals.columns(
            {
                number: count_pairs(kept, self._values(measures[number]), asked)
                for number, kept in pairs.items()
            }
        )

    def _pairs(
        self, part: Part | Singles, measure: Measure, weigher: Weigher, bounding: Bounding, digester: Digester
    ) -> Pairs:
        values, code = self._values(measure), self._coded.distincts[measure.column or 0]
        if isinstance(part, Singles):
            return all_pairs(part.blocks, values, weigher)
        digests = code.digests(self._cursor, bounding.salt, "v", np.arange(code.size))
        hasher = digester(part.present())
        return kept_pairs(part.blocks, values, weigher, hasher, digests, bounding.pairs)

    def _values(self, measure: Measure) -> Values:
        column = measure.column or 0
        return Values(column, self._coded.distincts[column].size)

    def _digester(self, salt: bytes, index: int, parts: int) -> Digester:
        def digest(present: NDArray[np.intp]) -> Hasher:
            if (salt, index) in self._hashers:
                return self._hashers[salt, index]
            unit, keys = self._coded.unit, self._coded.keys
            assert unit is not None
            table = np.zeros(self._coded.units(parts), np.uint32)
            table[present] = unit.digests(self._cursor, salt, "u", present * parts + index)
            hasher = Hasher(table, keys.digests(self._cursor, salt, "k", np.arange(keys.size)))
            if self._whole is not None:
                self._hashers[salt, index] = hasher
            return hasher

        return digest


def code(cursor: DuckDBPyConnection, rows: Rows, source: str) -> Coded:
    """Find codes for what the rows hold."""
    described = cursor.execute(f"DESCRIBE SELECT * FROM {source} AS r").fetchall()
    types = {str(column[0]): str(column[1]) for column in described}
    unit_types = [types[f"unit_{i}"] for i in range(rows.units)]
    names = [f"key_{i}" for i in range(rows.keys)]
    keys = Listed.make(
        cursor,
        "dalenius_keys",
        source,
        [exact_key(f"r.{column}", types[column]) for column in names],
        [_read_as(types[column]) for column in names],
    )
    return Coded(
        source,
        unit_code(cursor, source, unit_types) if rows.units else None,
        keys,
        tuple(_distinct(cursor, source, i, types[f"distinct_{i}"]) for i in range(rows.distincts)),
        rows.values,
    )


def _distinct(cursor: DuckDBPyConnection, source: str, number: int, type_name: str) -> Listed:
    column = f"r.distinct_{number}"
    if kind_of(type_name) == "other":
        plain = exact(f"CAST({column} AS VARCHAR)", "VARCHAR")
    else:
        plain = exact(column, type_name)
    return Listed.make(
        cursor,
        f"dalenius_distinct_{number}",
        source,
        [plain],
        [_read_as(type_name)],
        condition=f"{column} IS NOT NULL",
        outer=True,
    )


def _read_as(type_name: str) -> str:
    kind = kind_of(type_name)
    return "text" if kind == "other" else kind
