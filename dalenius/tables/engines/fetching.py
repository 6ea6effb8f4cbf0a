"""Rows out of DuckDB as words and values, in one part, or in several where memory would not hold them.

A unit's code modulo the number of parts says in which part it is, so that no unit is in two. Rows that are
units of their own are cut wherever a part is full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalenius.tables.engines.arrow import batches
from dalenius.tables.engines.coding import Code, Listed
from dalenius.tables.engines.kernel import Part
from dalenius.tables.engines.kernel_cells import word_type
from dalenius.tables.engines.kernel_rows import Block
from dalenius.tables.engines.kernel_singles import Singles

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class Coded:
    """The rows of a query with codes in place of units, keys and distinct values."""

    source: str
    """SQL that goes behind FROM."""
    unit: Code | None
    """None where each row is a unit."""
    keys: Listed
    distincts: tuple[Listed, ...]
    values: int

    @property
    def bits(self) -> int:
        """Of a key's code."""
        return max(self.keys.size - 1, 0).bit_length()

    def units(self, parts: int) -> int:
        """The codes of units in one of so many parts are below this."""
        return 1 if self.unit is None else max(-(-self.unit.size // parts), 1)

    def row_bytes(self) -> int:
        """What one row takes in memory: its word twice, once among those that are sorted."""
        word = np.dtype(word_type(self.units(1) << self.bits)).itemsize
        return 2 * word + 8 * self.values + 4 * len(self.distincts)

    def sql(self, index: int = 0, parts: int = 1) -> str:
        """The rows of one of the parts."""
        codes = [*([] if self.unit is None else [self.unit]), self.keys, *self.distincts]
        columns = [
            self._word(index, parts),
            *(f"coalesce(r.value_{i}, CAST('nan' AS DOUBLE))" for i in range(self.values)),
            *(f"CAST({code.number} AS UINTEGER)" for code in self.distincts),
        ]
        conditions = [code.condition for code in codes if code.condition]
        if self.unit is not None and parts > 1:
            conditions.append(f"{self.unit.number} % {parts} = {index}")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        joins = "".join(code.join for code in codes)
        return f"SELECT {', '.join(columns)} FROM {self.source} AS r{joins}{where}"

    def _word(self, index: int, parts: int) -> str:
        kind = "UINTEGER" if word_type(self.units(parts) << self.bits) is np.uint32 else "UBIGINT"
        if self.unit is None:
            return f"CAST({self.keys.number} AS {kind})"
        unit = self.unit.number if parts == 1 else f"(({self.unit.number} - {index}) // {parts})"
        return f"CAST({unit} * {1 << self.bits} + {self.keys.number} AS {kind})"

    def blocks(self, cursor: DuckDBPyConnection, index: int = 0, parts: int = 1) -> Iterator[Block]:
        """The rows of one of the parts as they come."""
        kinds: list[type[np.generic]] = [word_type(self.units(parts) << self.bits)]
        kinds += [np.float64] * self.values + [np.uint32] * len(self.distincts)
        for columns in batches(cursor, self.sql(index, parts), kinds):
            word, *rest = (column.copy() for column in columns)
            yield Block(word, tuple(rest[: self.values]), tuple(rest[self.values :]))

    def part(self, blocks: Sequence[Block], parts: int = 1) -> Part | Singles:
        """Rows to be asked."""
        if self.unit is None:
            return Singles(blocks)
        return Part(blocks, bits=self.bits, units=self.units(parts))

    def whole(self, cursor: DuckDBPyConnection, room: int) -> Part | Singles | None:
        """All rows in one part; None where they take more than `room` bytes."""
        most, blocks, rows = room // self.row_bytes(), [], 0
        for block in self.blocks(cursor):
            blocks.append(block)
            rows += len(block.words)
            if rows > most:
                return None
        return self.part(blocks)

    def several(self, cursor: DuckDBPyConnection, room: int) -> Iterator[tuple[int, int, Part | Singles]]:
        """Each part with its number and how many there are; a part takes about `room` bytes."""
        most = max(room // self.row_bytes(), 1)
        if self.unit is None:
            for blocks in _bunches(self.blocks(cursor), most):
                yield 0, 1, self.part(blocks)
            return
        ((rows,),) = cursor.execute(f"SELECT count(*) FROM {self.source}").fetchall()
        count = int(rows) // most + 1
        for index in range(count):
            yield index, count, self.part(list(self.blocks(cursor, index, count)), count)


def _bunches(blocks: Iterator[Block], most: int) -> Iterator[list[Block]]:
    held: list[Block] = []
    size = 0
    for block in blocks:
        held.append(block)
        size += len(block.words)
        if size >= most:
            yield held
            held, size = [], 0
    yield held
