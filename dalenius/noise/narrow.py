"""Exact draws as 32-bit integers, for long vectors: one word of 32 bits a draw.

Its first 17 bits choose a slot, the last 15 the integer within its bin: a table of the bins' first
integers, one addition, and 98 draws in 100 are done; from a scale of 2²⁴ on, bins take further bits. A
vector is worked on in chunks that stay in the cache of a processor, and what is not sure is settled at the
end of each group. The law is that of `Sampler`, of which it shares table and acceptance. The same bits and
size give the same values; a vector that is filled in pieces has others.

A draw beyond ±(2³⁰ − 1) saturates there. Scales are limited so that this has a probability below 1e-55 a
draw: 2²⁶ for the Gaussian, 16 standard deviations, and 2²³ for the Laplace, e^−128.

    >>> import numpy as np
    >>> from dalenius.noise import narrow, stream
    >>> values = np.empty(1000, np.int32)
    >>> narrow.fill_rounded_gaussian(values, 2**20, stream.StreamKey.fresh().stream(1, 2))
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.noise.acceptance import Acceptance
from dalenius.noise.bits import Bits
from dalenius.noise.exponential import Laplace
from dalenius.noise.gaussian import RoundedGaussian
from dalenius.noise.law import Ints, Law
from dalenius.noise.reading import Number, hashable, positive
from dalenius.noise.table import Table, lay_out
from dalenius.noise.tail import TailSampler

Narrow = NDArray[np.int32]
Words = NDArray[np.uint32]
Unsure = tuple[Ints, Words, Words]
"""Places in a vector, the slots drawn there, and the places in the bins of those."""

BITS = 17
"""A slot is chosen by so many bits: its table of 0.5 MB fits the second cache of a processor."""
REST = 32 - BITS
"""Bits of a word that are left for the integer within a bin."""
FINENESS = (64, 128, 256)
"""Bins of the first that leaves them narrow enough for one word a draw, or else of the first."""
CHUNK = 1 << 16
"""Draws that are worked on at a time."""
GROUP = 1 << 22
"""Draws whose doubtful slots are settled together."""
MOST = 2**30 - 1
"""Where values saturate."""
MOST_GAUSSIAN = 2**26
MOST_LAPLACE = 2**23
KEPT = 16
"""Tables in memory, about 1 MB each."""


def fill_rounded_gaussian(values: Narrow, scale: Number, bits: Bits) -> None:
    """Overwrite with P(k) = Φ((k + ½)/scale) − Φ((k − ½)/scale), scale at most 2²⁶."""
    _made(RoundedGaussian, hashable(scale, "scale"), MOST_GAUSSIAN).fill(_flat(values), bits)


def fill_discrete_laplace(values: Narrow, scale: Number, bits: Bits) -> None:
    """Overwrite with P(k) ∝ e^{−|k|/scale}, scale at most 2²³."""
    _made(Laplace, hashable(scale, "scale"), MOST_LAPLACE).fill(_flat(values), bits)


class NarrowSampler:
    """Draws from a law with its mode at zero; immutable, so that threads may share it."""

    def __init__(self, law: Law, table: Table | None = None) -> None:
        self.table = lay_out(law, bits=BITS, fineness=_fineness(law)) if table is None else table
        self._acceptance = Acceptance(TailSampler(law, self.table))
        self._firsts = self.table.bins.astype(np.int32) << np.int32(self.table.shift)
        self._rest = np.uint32(32 - self.table.bits)
        left = min(self.table.shift, 32 - self.table.bits)
        self._mask = np.uint32((1 << left) - 1)
        self._more = self.table.shift - left
        self._unsure = np.uint32(self.table.sure << (32 - self.table.bits))

    def fill(self, values: Narrow, bits: Bits) -> None:
        """Overwrite a contiguous vector: the same values for the same bits and size."""
        scratch = _Scratch(min(values.size, CHUNK))
        for start in range(0, values.size, GROUP):
            self._fill(values[start : start + GROUP], bits, scratch)
        scratch.wipe()

    def _fill(self, values: Narrow, bits: Bits, scratch: _Scratch) -> None:
        parts = [
            self._propose(values[start : start + CHUNK], start, bits, scratch)
            for start in range(0, values.size, CHUNK)
        ]
        todo, slots, places = (np.concatenate(part) for part in zip(*parts, strict=True))
        while todo.size:
            passed, far, found = self._acceptance.settle(slots, places, bits)
            values[todo[far]] = np.minimum(np.maximum(found, -MOST), MOST)
            todo = todo.take((~passed).nonzero()[0])
            fresh = np.empty(todo.size, np.int32)
            again, slots, places = self._propose(fresh, 0, bits, _Scratch(todo.size))
            values[todo] = fresh
            todo = todo[again]

    def _propose(self, values: Narrow, start: int, bits: Bits, scratch: _Scratch) -> Unsure:
        """An integer of the bin of each slot; where, from `start` on, the slots are not sure."""
        words, index, flags = scratch.first(values.size)
        bits.fill(words)
        np.right_shift(words, self._rest, out=index, casting="unsafe")
        self._firsts.take(index, out=values, mode="clip")
        np.greater_equal(words, self._unsure, out=flags)
        todo = flags.nonzero()[0]
        words &= self._mask
        if self._more:
            self._lengthen(words, bits)
        values += words.view(np.int32)
        return todo + start, index.take(todo).astype(np.uint32), words.take(todo)

    def _lengthen(self, words: Words, bits: Bits) -> None:
        """Further bits of the place in a bin, where the slots left too few."""
        words <<= np.uint32(self._more)
        words |= bits.words(words.size, np.uint16) & np.uint16((1 << self._more) - 1)


class _Scratch:
    """Arrays that are used again for every chunk."""

    def __init__(self, size: int) -> None:
        self._words = np.empty(size, np.uint32)
        self._index = np.empty(size, np.intp)
        self._flags = np.empty(size, np.bool_)

    def first(self, size: int) -> tuple[Words, NDArray[np.intp], NDArray[np.bool_]]:
        return self._words[:size], self._index[:size], self._flags[:size]

    def wipe(self) -> None:
        for array in (self._words, self._index, self._flags):
            array.fill(0)


def _fineness(law: Law) -> int:
    return next((fine for fine in FINENESS if law.spread / fine < 2 << REST), FINENESS[0])


def _flat(values: Narrow) -> Narrow:
    if not (isinstance(values, np.ndarray) and values.dtype == np.int32 and values.flags.carray):
        raise InvalidArgument(
            "values must be a contiguous, writable array of int32.",
            remedy="Pass values as numpy.empty(size, numpy.int32).",
        )
    return values.reshape(-1)


@lru_cache(KEPT, typed=True)
def _made(law: Callable[[Fraction], Law], scale: Number, most: int) -> NarrowSampler:
    return NarrowSampler(law(positive(scale, "scale", most=most)))
