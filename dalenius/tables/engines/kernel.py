"""The rows of some units in memory, and what `Loaded` asks about them; answers of several parts add up.

Rows are kept as they came, in blocks; beside that their words are sorted, which tells a unit's groups and so
its weight. As all rows of a unit have one weight, values need no sort: each row looks its weight up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import QueryFailed
from dalenius.tables.engines.engine import MAGNITUDES, MASS, Bounding
from dalenius.tables.engines.kernel_cells import (
    Cells,
    Hasher,
    Words,
    cells,
    lengths,
    starts,
    upper,
    word_type,
)
from dalenius.tables.engines.kernel_rows import Asked, Block, Weigher, magnitude_bins, pieces, present
from dalenius.tables.engines.kernel_sums import Sum
from dalenius.tables.engines.kernel_weights import Norm, Whole, shape_bins, weights

Digester = Callable[[NDArray[np.intp]], Hasher]
"""From the codes of the units that are there, the digests of all."""
MOST = 1 << 31
"""Rows in one part: the squares of their counts stay within 64 bits."""


@dataclass(frozen=True)
class Spread:
    """Of each unit that is there: its rows, Σ n(g)², groups; and the bar of its sample of groups."""

    units: Words
    rows: Whole
    squares: Whole
    groups: Whole
    bars: NDArray[np.uint64] | None = None

    def sizes(self, norm: Norm, presence: bool) -> Whole:
        """What weights are made of."""
        if presence:
            return self.groups
        return self.squares if norm == "l2" else self.rows


class Part:
    """Rows of units that no other part has rows of. `bits` are those of a key's code in a word."""

    def __init__(self, blocks: Sequence[Block], *, bits: int, units: int) -> None:
        self.bits, self.units = bits, units
        kind = word_type(units << bits)
        self._words: Words = np.concatenate([np.empty(0, kind), *(block.words for block in blocks)])
        if len(self._words) >= MOST:
            raise QueryFailed
        self._words.sort()
        rich = any(block.values or block.distincts for block in blocks)
        self.blocks = list(blocks) if rich else [Block(self._words)]
        self._spread: tuple[bytes, Spread] | None = None

    def holders(self, keys: int, most: int, digester: Digester) -> Whole:
        """How many units keep each key, by its code."""
        found, hasher = np.zeros(keys, np.int64), digester(self.present())
        for group in cells(self._words, self.bits):
            kept, _, _ = group.sampled(hasher, most)
            np.add.at(found, kept.keys.astype(np.intp), 1)
        return found

    def shapes(self, asked: Asked, norm: Norm, presence: bool) -> Whole:
        """The histogram of `Loaded.shapes`."""
        spread = self._spread_of(asked)
        if presence:
            return shape_bins(spread.groups, spread.groups, norm)
        return shape_bins(spread.rows, spread.squares, norm)

    def magnitudes(self, column: int) -> Whole:
        """The histogram of `Loaded.magnitudes`."""
        bits = MAGNITUDES.bit_length()
        kind = word_type(self.units << bits)
        words = [np.empty(0, kind)]
        for piece in pieces(self.blocks):
            there, values = present(piece.values[column])
            unit: Words = upper(piece.words, self.bits).astype(kind)[there]
            words.append((unit << kind(bits)) | magnitude_bins(values).astype(kind))
        ordered = np.concatenate(words)
        ordered.sort()
        found = np.zeros(MAGNITUDES, np.int64)
        for group in cells(ordered, bits):
            first = group.first()
            rows = np.repeat(np.add.reduceat(group.rows, first), lengths(first, len(group.rows)))
            np.add.at(found, group.keys.astype(np.intp), MASS * group.rows // rows)
        return found

    def weigh(self, asked: Asked, bounding: Bounding, digester: Digester) -> Weigher:
        """The weight of each row, once what each unit has in the groups asked for is known."""
        hasher = None if bounding.groups is None else digester(self.present())
        spread = self._spread_of(asked, hasher, bounding.groups)
        table = np.zeros(self.units, np.uint16)
        table[spread.units] = weights(spread.sizes(bounding.norm, False), bounding.limit, bounding.norm)
        bars = None if spread.bars is None else np.zeros(self.units, np.uint64)
        if bars is not None and spread.bars is not None:
            bars[spread.units] = spread.bars
        return Weigher(self.bits, asked, table, hasher, bars)

    def add_units(self, total: Sum, asked: Asked, bounding: Bounding, digester: Digester) -> None:
        """Add to the measure `units`."""
        hasher = None if bounding.groups is None else digester(self.present())
        for group in cells(self._words, self.bits, asked.wanted):
            kept = group if hasher is None else group.sampled(hasher, bounding.groups or 0)[0]
            first = kept.first()
            sizes = lengths(first, len(kept.words))
            each = weights(sizes, bounding.presence, bounding.norm).astype(np.int64)
            total.add(asked.places[kept.keys], np.repeat(each, sizes), None)

    def present(self) -> NDArray[np.intp]:
        """The codes of the units that are there."""
        units = upper(self._words, self.bits)
        present: NDArray[np.intp] = units[starts(units)].astype(np.intp)
        return present

    def _spread_of(self, asked: Asked, hasher: Hasher | None = None, most: int | None = None) -> Spread:
        if hasher is not None and most is not None:
            return self._spread_now(asked, hasher, most)
        # The search for bounds and the totals that follow ask about the same groups.
        name = b"" if asked.wanted is None else asked.wanted.tobytes()
        if self._spread is None or self._spread[0] != name:
            self._spread = name, self._spread_now(asked, None, 0)
        return self._spread[1]

    def _spread_now(self, asked: Asked, hasher: Hasher | None, most: int) -> Spread:
        kind = self._words.dtype.type
        found: list[tuple[NDArray[np.generic], ...]] = []
        for group in cells(self._words, self.bits, asked.wanted):
            if hasher is None:
                found.append(_summed(group))
                continue
            kept, units, bars = group.sampled(hasher, most)
            there = np.isin(units, kept.units)
            found.append((*_summed(kept), bars[there]))
        empty = (np.empty(0, kind), *[np.empty(0, np.int64)] * 3)
        bars_too = () if hasher is None else (np.empty(0, np.uint64),)
        joined = [np.concatenate(column) for column in zip((*empty, *bars_too), *found, strict=True)]
        return Spread(*joined)


def _summed(group: Cells) -> tuple[NDArray[np.generic], ...]:
    first = group.first()
    if not len(first):
        return group.words, group.rows, group.rows, group.rows
    units = upper(group.words[first], group.bits)
    rows, squares = np.add.reduceat(group.rows, first), np.add.reduceat(group.rows * group.rows, first)
    return units, rows, squares, lengths(first, len(group.words))
