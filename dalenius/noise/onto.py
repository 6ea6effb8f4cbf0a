"""Noise of 32 bits onto vectors of floats, in whole steps of a grid, where they lie.

No vector of noise is ever held: words for a chunk at a time stay in the cache of a processor, and what they
propose is added at once where it is sure, and elsewhere once it is settled, for a group of chunks together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.noise import kernel
from dalenius.noise.bits import Bits
from dalenius.noise.kernel import Grid, Reals, Words
from dalenius.noise.law import Ints
from dalenius.noise.narrow import NarrowSampler

CHUNK = 1 << 17
"""Draws that are worked on at a time."""
GROUP = 1 << 22
"""Draws after which doubtful slots are settled."""

Left = tuple[Reals, Ints, Words]
"""A vector, the places in it that are not sure, and the words drawn for them."""


def add(vectors: Sequence[Reals], sampler: NarrowSampler, bits: Bits, grid: Grid) -> None:
    """Onto contiguous vectors of numbers that share no memory, by a sampler that needs one word a draw.

    The noise is the same for the same bits and sizes.
    """
    if sampler.more or not all(one.flags.carray for one in vectors):
        raise InvalidArgument(
            "Noise is added to contiguous vectors, with one word a draw.",
            remedy="Fill a vector with noise, and add that.",
        )
    words, scratch = np.empty(CHUNK, np.uint32), np.empty(CHUNK, np.int64)
    left, drawn = list[Left](), 0
    for piece in _pieces(vectors):
        size = sum(one.size for one in piece)
        bits.fill(words[:size])
        start = 0
        for one in piece:
            own = words[start : start + one.size]
            todo = kernel.loops.onto(own, one, sampler.bins, grid, scratch)
            left.append((one, todo, own.take(todo)))
            start += one.size
        drawn += size
        if drawn >= GROUP:
            _settle(left, sampler, bits, grid)
            left, drawn = [], 0
    _settle(left, sampler, bits, grid)
    words.fill(0)


def _settle(left: Sequence[Left], sampler: NarrowSampler, bits: Bits, grid: Grid) -> None:
    """For good, where it was not sure."""
    if not left:
        return
    words = np.concatenate([words for *_, words in left])
    values = np.empty(words.size, np.int32)
    kernel.loops.propose(words, values, sampler.bins)
    sampler.settle(values, *sampler.read(words), bits)
    start = 0
    for one, todo, _ in left:
        unsure = one[todo]
        kernel.loops.add(unsure, values[start : start + todo.size], grid)
        one[todo] = unsure
        start += todo.size


def _pieces(vectors: Sequence[Reals]) -> Iterator[list[Reals]]:
    """Parts of vectors, or several short ones, of at most a chunk together."""
    piece, room = list[Reals](), CHUNK
    for vector in vectors:
        for start in range(0, vector.size, CHUNK):
            part = vector[start : start + CHUNK]
            if part.size > room:
                yield piece
                piece, room = [], CHUNK
            piece.append(part)
            room -= part.size
    if piece:
        yield piece
