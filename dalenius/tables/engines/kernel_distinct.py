"""Distinct values of groups: each unit keeps a few of its pairs (group, value), and what is kept is united.

A pair is one number: the key's code above, the value's in the lowest bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.engines import hashing
from dalenius.tables.engines.hashing import Digests
from dalenius.tables.engines.kernel_cells import Hasher, lengths, lower, starts, upper
from dalenius.tables.engines.kernel_rows import Asked, Block, Weigher, pieces

Pairs = NDArray[np.uint64]
_NOTHING: Pairs = np.empty(0, np.uint64)


@dataclass(frozen=True)
class Values:
    """A distinct column: its place among such columns, and how many values it has; one more code is NULL."""

    column: int
    size: int

    @property
    def bits(self) -> int:
        """Of a value's code."""
        return max(self.size - 1, 0).bit_length()

    def pairs(self, piece: Block, weigher: Weigher) -> tuple[Pairs, Pairs]:
        """The unit and the pair of each row that is taken and has a value."""
        place, _ = weigher.rows(piece.words)
        value = piece.distincts[self.column]
        there = (place < weigher.asked.count) & (value != self.size)
        words = piece.words[there].astype(np.uint64)
        key = words if weigher.bits is None else lower(words, weigher.bits)
        unit = words if weigher.bits is None else upper(words, weigher.bits)
        return unit, (key << np.uint64(self.bits)) | value[there]


def kept_pairs(
    blocks: Sequence[Block], values: Values, weigher: Weigher, hasher: Hasher, digests: Digests, most: int
) -> Pairs:
    """The pairs that units keep, at most `most` each, those of least hash; each pair once."""
    found = [(_NOTHING, _NOTHING), *(values.pairs(piece, weigher) for piece in pieces(blocks))]
    units, pairs = (np.concatenate(part) for part in zip(*found, strict=True))
    unit, pair = _each_once(units, pairs, len(weigher.table), (weigher.bits or 0) + values.bits)
    hashes = hashing.mix(hasher.hashes(unit, upper(pair, values.bits)) ^ digests[lower(pair, values.bits)])
    first = starts(unit)
    _, kept = hashing.least(hashes, first, lengths(first, len(unit)), most)
    return _unique(pair[kept])


def all_pairs(blocks: Sequence[Block], values: Values, weigher: Weigher) -> Pairs:
    """The pairs of rows that are units of their own."""
    found = [values.pairs(piece, weigher)[1] for piece in pieces(blocks)]
    return _unique(np.concatenate([_NOTHING, *found]))


def count_pairs(parts: Sequence[Pairs], values: Values, asked: Asked) -> NDArray[np.int64]:
    """How many values each group has, of the pairs of all parts."""
    united = _unique(np.concatenate([_NOTHING, *parts]))
    return np.bincount(asked.places[upper(united, values.bits)], minlength=asked.count + 1)


def _each_once(units: Pairs, pairs: Pairs, most: int, bits: int) -> tuple[Pairs, Pairs]:
    """Units with their pairs, each pair of a unit once, unit by unit. Pairs have so many bits."""
    if (most - 1).bit_length() + bits <= 64:
        words = _unique((units << np.uint64(bits)) | pairs)
        return upper(words, bits), lower(words, bits)
    known, which = np.unique(pairs, return_inverse=True)
    words = _unique((units << np.uint64(32)) | which.astype(np.uint64))
    return upper(words, 32), known[lower(words, 32)]


def _unique(numbers: Pairs) -> Pairs:
    ordered = np.sort(numbers)
    return ordered[starts(ordered)]
