"""Groups of units from sorted words, a stretch that fits the cache at a time, cut between units.

A word is a unit's code above, a key's code in its lowest `bits`. Sorted, a unit's rows in one group are a run
of equal words: a cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.engines import hashing
from dalenius.tables.engines.hashing import Digests

Words = NDArray[Any]
"""Unsigned, of 32 bits where they suffice."""
STRETCH = 1 << 16
"""Rows that are worked on at a time."""


def word_type(size: int) -> type[np.uint32] | type[np.uint64]:
    """The narrower the word, the quicker the sort."""
    return np.uint32 if size <= 1 << 32 else np.uint64


def upper(words: Words, bits: int) -> Words:
    """The units of words."""
    units: Words = words >> words.dtype.type(bits)
    return units


def lower(words: Words, bits: int) -> Words:
    """The keys of words."""
    keys: Words = words & words.dtype.type((1 << bits) - 1)
    return keys


@dataclass(frozen=True)
class Hasher:
    """The digests of one query, by code."""

    units: Digests
    keys: Digests

    def hashes(self, units: Words, keys: Words) -> NDArray[np.uint32]:
        """The keyed hash of pairs (unit, key)."""
        return hashing.mix(self.units[units] ^ self.keys[keys])


@dataclass(frozen=True)
class Cells:
    """The cells of some units, unit by unit."""

    words: Words
    rows: NDArray[np.int64]
    """In each cell."""
    bits: int

    @property
    def units(self) -> Words:
        """The unit of each cell."""
        return upper(self.words, self.bits)

    @property
    def keys(self) -> Words:
        """The key of each cell."""
        return lower(self.words, self.bits)

    def first(self) -> NDArray[np.intp]:
        """Where each unit begins."""
        return starts(self.units)

    def sampled(self, hasher: Hasher, most: int) -> tuple[Cells, Words, NDArray[np.uint64]]:
        """The at most `most` cells of least hash of each unit; all its units, and their bars."""
        first = self.first()
        hashes = hasher.hashes(self.units, self.keys)
        bars, kept = hashing.least(hashes, first, lengths(first, len(hashes)), most)
        return Cells(self.words[kept], self.rows[kept], self.bits), self.units[first], bars


def cells(words: Words, bits: int, wanted: NDArray[np.bool_] | None = None) -> Iterator[Cells]:
    """All cells, of the keys that are wanted; no unit is in two of what is yielded."""
    for stretch in _stretches(words, bits):
        kept = stretch if wanted is None else stretch[wanted[lower(stretch, bits)]]
        if len(kept):
            first = starts(kept)
            yield Cells(kept[first], lengths(first, len(kept)), bits)


def starts(ordered: NDArray[Any]) -> NDArray[np.intp]:
    """Where each run of equal entries begins."""
    found = np.flatnonzero(ordered[1:] != ordered[:-1])
    first = np.zeros(min(len(ordered), 1) + len(found), np.intp)
    np.add(found, 1, out=first[1:])
    return first


def lengths(first: NDArray[np.intp], size: int) -> NDArray[np.int64]:
    """How long each run is."""
    return np.diff(first, append=size)


def _stretches(words: Words, bits: int) -> Iterator[Words]:
    start, kind = 0, words.dtype.type
    while start < len(words):
        end = min(start + STRETCH, len(words))
        last = int(words[end - 1]) | ((1 << bits) - 1)
        end = int(np.searchsorted(words[end:], kind(last), side="right")) + end
        yield words[start:end]
        start = end
