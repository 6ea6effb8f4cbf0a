"""Rows out of DuckDB as words and values, in one part, or in several where memory would not hold them.

A unit's code modulo the number of parts says in which part it is, so that no unit is in two. All parts stay
in memory where there is room, and then rows are read once; there may be more than one, as words of 32 bits
are sorted faster than longer ones and take half the memory. Rows that are units of their own are cut wherever
a part is full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalenius.tables.engines.arrow import batches
from dalenius.tables.engines.coding import Code, Listed
from dalenius.tables.engines.kernel import Part
from dalenius.tables.engines.kernel_cells import lower, upper, word_type
from dalenius.tables.engines.kernel_rows import Block
from dalenius.tables.engines.kernel_singles import Singles

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SHORT, MOST_PARTS = 32, 64
"""Bits of a short word, and the most parts that are made for words to be short."""
Held = tuple[int, int, Part | Singles]
"""The number of a part, how many there are, and the part."""


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

    @property
    def split(self) -> int:
        """How many parts make words short, a power of two; 1 where they are, or that takes too many."""
        wide = (self.units(1) << self.bits) - 1
        parts = 1 << max(wide.bit_length() - SHORT, 0)
        return parts if parts <= MOST_PARTS and self.unit is not None else 1

    def row_bytes(self) -> int:
        """What one row takes in memory: its word twice, once among those that are sorted."""
        word = np.dtype(word_type(self.units(self.split) << self.bits)).itemsize
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

    def whole(self, cursor: DuckDBPyConnection, room: int) -> list[Held] | None:
        """All rows, read once; None where they take more than `room` bytes."""
        most, rows, parts = room // self.row_bytes(), 0, self.split
        found: list[list[Block]] = [[] for _ in range(parts)]
        for block in self.blocks(cursor):
            rows += len(block.words)
            if rows > most:
                return None
            for blocks, own in zip(found, _parted(block, self.bits, parts), strict=True):
                blocks.append(own)
        return [(index, parts, self.part(blocks, parts)) for index, blocks in enumerate(found)]

    def several(self, cursor: DuckDBPyConnection, room: int) -> Iterator[Held]:
        """Part by part, each read when it is asked for; a part takes about `room` bytes."""
        most = max(room // self.row_bytes(), 1)
        if self.unit is None:
            for blocks in _bunches(self.blocks(cursor), most):
                yield 0, 1, self.part(blocks)
            return
        ((rows,),) = cursor.execute(f"SELECT count(*) FROM {self.source}").fetchall()
        count = max(int(rows) // most + 1, self.split)
        for index in range(count):
            yield index, count, self.part(list(self.blocks(cursor, index, count)), count)


def _parted(block: Block, bits: int, parts: int) -> list[Block]:
    """The rows of each part; `parts` is a power of two."""
    if parts == 1:
        return [block]
    units = upper(block.words, bits)
    index = (units & np.uint64(parts - 1)).astype(np.uint8)
    short = (units >> np.uint64(parts.bit_length() - 1) << np.uint64(bits)) | lower(block.words, bits)
    # A stable sort of bytes counts them, and is quick.
    order = np.argsort(index, kind="stable")
    words = short.astype(np.uint32)[order]
    values, distincts = [one[order] for one in block.values], [one[order] for one in block.distincts]
    ends = np.cumsum(np.bincount(index, minlength=parts)).tolist()
    cuts = [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    return [
        Block(words[cut], tuple(one[cut] for one in values), tuple(one[cut] for one in distincts))
        for cut in cuts
    ]


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
