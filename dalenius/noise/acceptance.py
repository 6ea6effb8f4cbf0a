"""Which proposals of doubtful slots pass: layer + V < C·W·f(k), decided as exact arithmetic would.

V is revealed as far as it takes. Its first 32 bits against lines around the law decide nearly all
proposals, against a double with a proven margin nearly all others, and balls the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dalenius.noise.bits import Bits
from dalenius.noise.law import Ints
from dalenius.noise.lazy import below
from dalenius.noise.tail import TailSampler

GRAIN = 2.0**-32
"""V is first known to so much."""

Flags = NDArray[np.bool_]
Slots = NDArray[np.unsignedinteger[Any]]
Places = NDArray[np.integer[Any]]


class Acceptance:
    """Settles the slots of a table that are not sure; immutable."""

    def __init__(self, tails: TailSampler) -> None:
        self.law = tails.law
        self.table = tails.table
        self._tails = tails

    def settle(self, slots: Slots, places: Places, source: Bits) -> tuple[Flags, Ints, Ints]:
        """Which proposals pass, by their slots and places in bins; which are not of bins; those, made here.

        What a void slot proposes is 0, and never passes.
        """
        row = slots.astype(np.int64) - self.table.sure
        far = (row >= self.table.doubtful).nonzero()[0]
        found = np.zeros(far.size, np.int64)
        if not far.size:
            return self._inner(row, places, source), far, found
        passed = np.empty(row.size, bool)
        passed[far] = self._tails.propose(row[far] - self.table.doubtful, found, source)
        inner = (row < self.table.doubtful).nonzero()[0]
        passed[inner] = self._inner(row.take(inner), places.take(inner), source)
        return passed, far, found

    def _inner(self, row: Ints, places: Places, source: Bits) -> Flags:
        bits = source.words(row.size, np.uint32)
        least = self.table.layers.take(row) + bits * GRAIN
        along = self.table.slope.take(row) * places
        yes = least + GRAIN <= self.table.low.take(row) + along
        left = (~yes & (least < self.table.high.take(row) + along)).nonzero()[0]
        if left.size:
            yes[left] = self._closer(row[left], places[left], bits[left], source)
        return yes

    def _closer(self, row: Ints, places: Places, bits: NDArray[np.uint32], source: Bits) -> Flags:
        """By doubles as near to C·W·f(k) as the law knows, and then by balls."""
        table = self.table
        k = (table.bins[table.sure + row].astype(np.int64) << table.shift) + places.astype(np.int64)
        layers = table.layers[row]
        least = layers + bits * GRAIN
        unit = table.scale * 2.0**table.shift
        with np.errstate(all="ignore"):
            value, off = self.law.estimate(k)
            low, high = (value - off) * unit, (value + off) * unit
        yes = least + GRAIN <= low
        for i in np.flatnonzero(~yes & ~(least >= high)).tolist():
            yes[i] = self._exactly(int(layers[i]), int(k[i]), int(bits[i]), source)
        return yes

    def _exactly(self, layer: int, k: int, bits: int, source: Bits) -> bool:
        def height() -> arb:
            unit = arb(self.table.scale) * 2**self.table.shift
            above: arb = self.law.weight(k) * unit - layer
            return above

        return below(height, source, bits, 32)
