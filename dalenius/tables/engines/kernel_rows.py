"""Rows as they came, in blocks, and one walk over them that adds up all measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.engines.kernel_cells import STRETCH, Hasher, Words, lower, upper
from dalenius.tables.engines.kernel_sums import Plain, Tree


@dataclass(frozen=True)
class Block:
    """Some rows: words, columns of values (NaN where there is none), codes of distinct columns."""

    words: Words
    values: tuple[NDArray[np.float64], ...] = ()
    distincts: tuple[NDArray[np.uint32], ...] = ()

    def pieces(self) -> Iterator[Block]:
        """As many rows at a time as stay in the cache."""
        for start in range(0, len(self.words), STRETCH):
            cut = slice(start, start + STRETCH)
            yield Block(
                self.words[cut],
                tuple(column[cut] for column in self.values),
                tuple(column[cut] for column in self.distincts),
            )


@dataclass(frozen=True)
class Asked:
    """The keys that are asked for, by their codes."""

    places: NDArray[np.intp]
    """Of each code; `count` where it is not asked for."""
    count: int

    @property
    def wanted(self) -> NDArray[np.bool_] | None:
        """Which codes are asked for; None where all are."""
        found = self.places < self.count
        return None if found.all() else found


def pieces(blocks: Sequence[Block]) -> Iterator[Block]:
    """All rows, a cacheful at a time."""
    for block in blocks:
        yield from block.pieces()


@dataclass(frozen=True)
class Weigher:
    """Where a row's group is among those asked for, and what it weighs."""

    bits: int | None
    """None where each row is a unit."""
    asked: Asked
    table: NDArray[np.uint16]
    hasher: Hasher | None = None
    bars: NDArray[np.uint64] | None = None

    def rows(self, words: Words) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Of each row: the place of its group, past the last where it is dropped, and its weight."""
        if self.bits is None:
            place = self.asked.places.take(words)
            return place, np.broadcast_to(self.table.astype(np.int64), place.shape)
        units, keys = upper(words, self.bits), lower(words, self.bits)
        place = self.asked.places.take(keys)
        if self.hasher is not None and self.bars is not None:
            kept = self.hasher.hashes(units, keys) < self.bars.take(units)
            place = np.where(kept, place, self.asked.count)
        return place, self.table.take(units).astype(np.int64)


def add_rows(blocks: Sequence[Block], weigher: Weigher, tallies: Sequence[Plain | Tree]) -> None:
    """Go once over the rows, for all measures."""
    for piece in pieces(blocks):
        place, weight = weigher.rows(piece.words)
        for tally in tallies:
            if tally.measure.column is None:
                tally.add(place, weight, None)
                continue
            there, values = present(piece.values[tally.measure.column])
            tally.add(place[there], weight[there], values)


def magnitude_bins(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """The bins of `Loaded.magnitudes` of values that are not NaN."""
    octave = np.frexp(values)[1].astype(np.intp) + 128
    octave = np.where(np.isinf(values), 256, np.clip(octave, 1, 256))
    return 256 + np.sign(values).astype(np.intp) * octave


def present(values: NDArray[np.float64]) -> tuple[NDArray[np.bool_] | slice, NDArray[np.float64]]:
    """Which rows have a value, and their values."""
    there = ~np.isnan(values)
    # Most columns have no gaps, and then nothing need be copied.
    return (slice(None), values) if there.all() else (there, values[there])
