"""Exact draws from a table, a vector at a time.

Most draws end with a sure slot: sixteen bits choose it, raw bits the integer within its bin. The others
are accepted or rejected (`acceptance`); a rejected draw starts anew with fresh bits.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.noise import source as sources
from dalenius.noise.acceptance import Acceptance
from dalenius.noise.bits import Bits
from dalenius.noise.law import Ints, Law
from dalenius.noise.pool import SERVED, Pool
from dalenius.noise.source import Source
from dalenius.noise.table import Table, lay_out
from dalenius.noise.tail import COINS, TailSampler

CHUNK = 1 << 15
"""Draws that are worked on at a time: their bits and values stay in the cache of a processor."""
GROUP = 1 << 19
"""Draws whose doubtful slots are settled together."""


class Sampler:
    """Draws from the law of a table; immutable, so that threads may share it."""

    def __init__(self, law: Law, table: Table | None = None, *, coins: int = COINS) -> None:
        self.law = law
        self.table = lay_out(law) if table is None else table
        self._tails = TailSampler(law, self.table, coins)
        self._acceptance = Acceptance(self._tails)
        self._mask = (1 << self.table.shift) - 1
        self._kind = _narrowest(self.table.shift)

    def draw(self, size: int) -> Ints:
        """A vector of independent draws; a short one comes out of a pool."""
        return sources.drawn(partial(self._draw, size))

    def _draw(self, size: int, source: Source) -> Ints:
        if size <= SERVED:
            pool = source.pools.get(self) or source.pools.setdefault(self, Pool())
            return pool.take(size, partial(self.fill, source=source))
        values = np.empty(size, np.int64)
        self.fill(values, source)
        return values

    def fill(self, values: Ints, source: Bits) -> None:
        """Overwrite `values` with independent draws."""
        for start in range(0, values.size, GROUP):
            self._fill(values[start : start + GROUP], source)

    def _fill(self, values: Ints, source: Bits) -> None:
        parts = [self._first(values, start, source) for start in range(0, values.size, CHUNK)]
        todo, slots = (np.concatenate(part) for part in zip(*parts, strict=True))
        while todo.size:
            proposed = values[todo]
            accepted = self._accept(slots, proposed, source)
            values[todo] = proposed
            todo = todo[~accepted]
            fresh = np.empty(todo.size, np.int64)
            slots = self._propose(fresh, source)
            values[todo] = fresh
            doubtful = slots >= self.table.sure
            todo, slots = todo[doubtful], slots[doubtful]
        if self.law.mode:
            values += self.law.mode

    def _first(self, values: Ints, start: int, source: Bits) -> tuple[Ints, NDArray[np.uint16]]:
        """Propose a chunk: where it is not sure, and the slots there."""
        slots = self._propose(values[start : start + CHUNK], source)
        todo = np.flatnonzero(slots >= self.table.sure)
        left = slots[todo]
        slots.fill(0)
        return todo + start, left

    def _propose(self, values: Ints, source: Bits) -> NDArray[np.uint16]:
        """Slots, and for each an integer of its bin; those of tails and void mean nothing yet."""
        table = self.table
        slots = source.words(values.size, np.uint16)
        if table.bits < 16:
            slots >>= np.uint16(16 - table.bits)
        values[:] = np.take(table.bins, slots, mode="clip")
        if table.shift:
            values <<= table.shift
            offsets = source.words(values.size, self._kind)
            offsets &= self._kind(self._mask)
            values |= offsets.astype(np.int64)
            offsets.fill(0)
        return slots

    def _accept(self, slots: NDArray[np.uint16], proposed: Ints, source: Bits) -> NDArray[np.bool_]:
        """Which proposals of slots that are not sure pass; those of tails are made here."""
        bits = source.words(slots.size, np.uint32)
        passed, far, found = self._acceptance.settle(slots, proposed & self._mask, bits, source)
        proposed[far] = found
        return passed


def _narrowest(bits: int) -> type[np.unsignedinteger[Any]]:
    return np.uint16 if bits <= 16 else np.uint32 if bits <= 32 else np.uint64
