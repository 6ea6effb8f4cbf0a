"""Exact draws by address: each entry of a vector has its own words, and so its own draw, whoever makes it.

Entry e is drawn in attempts a = 0, 1, …, each with a word W(e, a) that proposes an integer as in `narrow`,
and with a word V(e, a) of first bits where that is not sure; further bits come from a stream of the entry and
the attempt. So a part of a vector has the same noise on any machine and in any order: `learn.gpu.noise`
draws it on a GPU, and this module anywhere.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dalenius.noise import ciphers, kernel
from dalenius.noise.bits import Bits, Word
from dalenius.noise.chacha import Addressed
from dalenius.noise.gaussian import RoundedGaussian
from dalenius.noise.kernel import Narrow, Words
from dalenius.noise.law import Ints
from dalenius.noise.narrow import MOST, MOST_GAUSSIAN, NarrowSampler, laid_out
from dalenius.noise.reading import Number, hashable, positive

WORD, FIRST, PLACE, FURTHER = range(4)
"""What words are for: a proposal, the first bits of V, further bits of a place, and bits past those."""
REACH = 20
"""Bins go on until hardly one in 10¹³ draws is left to tails, which a GPU leaves to the processor."""


@dataclass(frozen=True)
class AddressedSampler:
    """Draws of a law by address."""

    narrow: NarrowSampler

    def draw(self, stream: Addressed, start: int, stop: int) -> Narrow:
        """The draws of the entries from `start` to `stop`."""
        words = stream.run(start, stop, WORD)
        further = stream.run(start, stop, PLACE) if self.narrow.more else None
        values, slots, _ = self._proposed(words, further)
        todo = np.flatnonzero(slots >= self.narrow.table.sure)
        values[todo] = self.settled(stream, todo + start)
        return values

    def settled(self, stream: Addressed, entries: Ints, attempt: int = 0) -> Narrow:
        """The draws of some entries, of which all attempts before this one failed."""
        found, todo = np.empty(entries.size, np.int32), np.arange(entries.size)
        while todo.size:
            left = entries[todo]
            further = stream.at(left, PLACE, attempt) if self.narrow.more else None
            values, slots, places = self._proposed(stream.at(left, WORD, attempt), further)
            passed = slots < self.narrow.table.sure
            unsure = np.flatnonzero(~passed)
            passed[unsure] = self._settle(
                stream, left[unsure], attempt, values, unsure, slots[unsure], places[unsure]
            )
            found[todo] = values
            todo, attempt = todo[~passed], attempt + 1
        return found

    def _proposed(self, words: Words, further: Words | None) -> tuple[Narrow, Words, Words]:
        """Integers, slots, and places in bins."""
        bins, more = self.narrow.bins, self.narrow.more
        values = np.empty(words.size, np.int32)
        kernel.loops.propose(words, values, bins)
        slots, places = self.narrow.read(words)
        if further is not None:
            places = self.narrow.longer(words, further & np.uint32((1 << more) - 1))
            values += places.view(np.int32)
        return values, slots, places

    def _settle(
        self,
        stream: Addressed,
        entries: Ints,
        attempt: int,
        values: Narrow,
        at: Ints,
        slots: Words,
        places: Words,
    ) -> NDArray[np.bool_]:
        """Which proposals pass; those of tails are put among the values at their places."""
        acceptance, table = self.narrow.acceptance, self.narrow.table
        bits = stream.at(entries, FIRST, attempt)
        passed, open_ = acceptance.by_lines(slots, places, bits)
        row = slots[open_].astype(np.int64) - table.sure
        near = np.flatnonzero(row < table.doubtful)
        passed[open_[near]], left = acceptance.by_doubles(row[near], places[open_[near]], bits[open_[near]])
        for i in (*open_[near][left], *open_[row >= table.doubtful]):
            one = slice(i, i + 1)
            source = Further(stream, int(entries[i]), attempt)
            passed[one], far, found = acceptance.settle(slots[one], places[one], bits[one], source)
            values[at[i + far]] = np.clip(found, -MOST, MOST)
        return passed


class Further(Bits):
    """Bits of an entry and an attempt, past the first of V."""

    def __init__(self, stream: Addressed, entry: int, attempt: int) -> None:
        self.tainted = stream.tainted
        high, low = divmod(entry, 1 << 32)
        nonce = struct.pack("<4I", 0, FURTHER + (high << 8), attempt, low)
        self._cipher = ciphers.chacha(stream.key, nonce)

    def fill(self, words: NDArray[Word]) -> None:
        """Overwrite a contiguous array with the bits that follow."""
        drawn = self._cipher.update(bytes(words.nbytes))
        words.reshape(-1)[:] = np.frombuffer(drawn, words.dtype)


def rounded_gaussian(scale: Number) -> AddressedSampler:
    """Of that law, scale at most 2²⁶; made once for each scale."""
    return _made(hashable(scale, "scale"))


@lru_cache(16, typed=True)
def _made(scale: Number) -> AddressedSampler:
    law = RoundedGaussian(Fraction(positive(scale, "scale", most=MOST_GAUSSIAN)))
    return AddressedSampler(NarrowSampler(law, laid_out(law, REACH)))
