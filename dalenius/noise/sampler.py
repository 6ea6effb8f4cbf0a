"""Exact draws from a table, a vector at a time.

Most draws end with a sure slot: sixteen bits choose it, raw bits the integer within its bin. The others
need a uniform V, revealed as far as it takes: 32 bits against a double with a proven margin decide nearly
all of them, balls the rest. A rejected draw starts anew with fresh bits.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dalenius.noise import source as sources
from dalenius.noise.law import Floats, Ints, Law
from dalenius.noise.lazy import below
from dalenius.noise.pool import SERVED, Pool
from dalenius.noise.source import Source
from dalenius.noise.table import Table, lay_out
from dalenius.noise.tail import COINS, TailSampler

CHUNK = 1 << 15
"""Draws that are worked on at a time: their bits and values stay in the cache of a processor."""
GROUP = 1 << 19
"""Draws whose doubtful slots are settled together."""
GRAIN = 2.0**-32
"""V is first known to so much."""

Flags = NDArray[np.bool_]


class Sampler:
    """Draws from the law of a table; immutable, so that threads may share it."""

    def __init__(self, law: Law, table: Table | None = None, *, coins: int = COINS) -> None:
        self.law = law
        self.table = lay_out(law) if table is None else table
        self._tails = TailSampler(law, self.table, coins)
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

    def fill(self, values: Ints, source: Source) -> None:
        """Overwrite `values` with independent draws."""
        for start in range(0, values.size, GROUP):
            self._fill(values[start : start + GROUP], source)

    def _fill(self, values: Ints, source: Source) -> None:
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

    def _first(self, values: Ints, start: int, source: Source) -> tuple[Ints, NDArray[np.uint16]]:
        """Propose a chunk: where it is not sure, and the slots there."""
        slots = self._propose(values[start : start + CHUNK], source)
        todo = np.flatnonzero(slots >= self.table.sure)
        left = slots[todo]
        slots.fill(0)
        return todo + start, left

    def _propose(self, values: Ints, source: Source) -> NDArray[np.uint16]:
        """Slots, and for each an integer of its bin; those of tails and void mean nothing yet."""
        table = self.table
        slots = source.words(values.size, np.uint16)
        if table.bits < 16:
            slots >>= np.uint16(16 - table.bits)
        values[:] = np.take(table.bins, slots, mode="clip")
        if table.shift:
            values <<= table.shift
            offsets = source.words(values.size, self._kind)
            offsets &= self._kind((1 << table.shift) - 1)
            values |= offsets.astype(np.int64)
            offsets.fill(0)
        return slots

    def _accept(self, slots: NDArray[np.uint16], proposed: Ints, source: Source) -> Flags:
        """Which proposals of slots that are not sure pass; those of tails are made here."""
        table = self.table
        row = slots.astype(np.int64) - table.sure
        accepted = self._tails.propose(row - table.doubtful, proposed, source)
        inner = np.flatnonzero(row < table.doubtful)
        row, k = row[inner], proposed[inner]
        bits = source.words(inner.size, np.uint32)
        least = table.layers[row] + bits * GRAIN
        low, high = self._heights(row, k)
        yes = least + GRAIN <= low
        for i in np.flatnonzero(~yes & ~(least >= high)).tolist():
            yes[i] = self._settle(int(table.layers[row[i]]), int(k[i]), int(bits[i]), source)
        accepted[inner] = yes
        return accepted

    def _heights(self, row: NDArray[np.int64], k: Ints) -> tuple[Floats, Floats]:
        """The ends of C·W·f(k): out of the table where a bin is one integer, estimated elsewhere."""
        if self.table.shift == 0:
            return self.table.low[row], self.table.high[row]
        with np.errstate(all="ignore"):
            value, off = self.law.estimate(k)
            unit = self.table.scale * 2.0**self.table.shift
            return (value - off) * unit, (value + off) * unit

    def _settle(self, layer: int, k: int, bits: int, source: Source) -> bool:
        """Whether layer + V < C·W·f(k), by balls."""

        def height() -> arb:
            unit = arb(self.table.scale) * 2**self.table.shift
            above: arb = self.law.weight(k) * unit - layer
            return above

        return below(height, source, bits, 32)


def _narrowest(bits: int) -> type[np.unsignedinteger[Any]]:
    return np.uint16 if bits <= 16 else np.uint32 if bits <= 32 else np.uint64
