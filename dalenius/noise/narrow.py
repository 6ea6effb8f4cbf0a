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

from dalenius.errors import InvalidArgument
from dalenius.noise import kernel
from dalenius.noise.acceptance import Acceptance
from dalenius.noise.bits import Bits
from dalenius.noise.exponential import Laplace
from dalenius.noise.gaussian import RoundedGaussian
from dalenius.noise.kernel import Bins, Narrow, Words
from dalenius.noise.law import Ints, Law
from dalenius.noise.reading import Number, hashable, positive
from dalenius.noise.table import Table, lay_out
from dalenius.noise.tail import TailSampler

Unsure = tuple[Ints, Words, Words]
"""Places in a vector, the slots drawn there, and the places in the bins of those."""

BITS = 17
"""A slot is chosen by so many bits: its table of 0.5 MB fits the second cache of a processor."""
REST = 32 - BITS
"""Bits of a word that are left for the integer within a bin."""
FINENESS = (64, 128, 256)
"""Bins of the first that leaves them narrow enough for one word a draw, or else of the first."""
REACH = 12
"""Bins go on until tails are as good as never drawn from."""
CHUNK = 1 << 17
"""Draws that are worked on at a time."""
GROUP = 1 << 20
"""Draws whose doubtful slots are settled together."""
MOST = 2**30 - 1
"""Where values saturate."""
MOST_GAUSSIAN = 2**26
MOST_LAPLACE = 2**23
KEPT = 16
"""Tables in memory, about 1 MB each."""


def fill_rounded_gaussian(values: Narrow, scale: Number, bits: Bits) -> None:
    """Overwrite with P(k) = Φ((k + ½)/scale) − Φ((k − ½)/scale), scale at most 2²⁶."""
    rounded_gaussian(scale).fill(_flat(values), bits)


def rounded_gaussian(scale: Number) -> NarrowSampler:
    """Of that law; made once for each scale."""
    return _made(RoundedGaussian, hashable(scale, "scale"), MOST_GAUSSIAN)


def fill_discrete_laplace(values: Narrow, scale: Number, bits: Bits) -> None:
    """Overwrite with P(k) ∝ e^{−|k|/scale}, scale at most 2²³."""
    _made(Laplace, hashable(scale, "scale"), MOST_LAPLACE).fill(_flat(values), bits)


class NarrowSampler:
    """Draws from a law with its mode at zero; immutable, so that threads may share it."""

    def __init__(self, law: Law, table: Table | None = None) -> None:
        self.table = laid_out(law) if table is None else table
        self.acceptance = Acceptance(TailSampler(law, self.table))
        rest = 32 - self.table.bits
        self._left = min(self.table.shift, rest)
        self.more = self.table.shift - self._left
        """Bits of places that are drawn by themselves, as words have no room for them."""
        self.bins = Bins(
            firsts=self.table.bins.astype(np.int32) << np.int32(self.table.shift),
            rest=rest,
            mask=0 if self.more else (1 << self._left) - 1,
            unsure=self.table.sure << rest,
        )

    def fill(self, values: Narrow, bits: Bits) -> None:
        """Overwrite a contiguous vector: the same values for the same bits and size."""
        words = np.empty(min(values.size, CHUNK), np.uint32)
        for start in range(0, values.size, GROUP):
            self._fill(values[start : start + GROUP], words, bits)
        words.fill(0)

    def _fill(self, values: Narrow, words: Words, bits: Bits) -> None:
        found = []
        for start in range(0, values.size, CHUNK):
            part = values[start : start + CHUNK]
            todo, slots, places = self.propose(part, words[: part.size], bits)
            found.append((todo + start, slots, places))
        todo, slots, places = (np.concatenate(part) for part in zip(*found, strict=True))
        left = values[todo]
        self.settle(left, slots, places, bits)
        values[todo] = left

    def propose(self, values: Narrow, words: Words, bits: Bits) -> Unsure:
        """An integer of the bin of each slot, by words that are drawn; where slots are not sure."""
        bits.fill(words)
        todo = kernel.loops.propose(words, values, self.bins)
        slots, places = self.read(words.take(todo))
        if self.more:
            further = bits.words(words.size, np.uint16) & np.uint16((1 << self.more) - 1)
            longer = self.longer(words, further.astype(np.uint32))
            values += longer.view(np.int32)
            places = longer.take(todo)
        return todo, slots, places

    def read(self, words: Words) -> tuple[Words, Words]:
        """Slots, and places in bins if those have no further bits."""
        return words >> np.uint32(self.bins.rest), words & np.uint32(self.bins.mask)

    def longer(self, words: Words, further: Words) -> Words:
        """Places in bins that have further bits."""
        return (words & np.uint32((1 << self._left) - 1)) << np.uint32(self.more) | further

    def settle(self, values: Narrow, slots: Words, places: Words, bits: Bits) -> None:
        """Draw again what does not pass, until all that was proposed by slots that are not sure is sure."""
        todo = np.arange(values.size)
        while todo.size:
            passed, far, found = self.acceptance.settle(
                slots, places, bits.words(slots.size, np.uint32), bits
            )
            values[todo[far]] = np.minimum(np.maximum(found, -MOST), MOST)
            todo = todo[~passed]
            fresh = np.empty(todo.size, np.int32)
            again, slots, places = self.propose(fresh, np.empty(todo.size, np.uint32), bits)
            values[todo] = fresh
            todo = todo[again]


def laid_out(law: Law, reach: int = REACH) -> Table:
    """The table for draws by words of 32 bits."""
    fineness = next((fine for fine in FINENESS if law.spread / fine < 2 << REST), FINENESS[0])
    return lay_out(law, bits=BITS, fineness=fineness, reach=reach)


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
