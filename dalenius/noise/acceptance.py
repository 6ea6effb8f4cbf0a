"""Which proposals of doubtful slots pass: layer + V < C·W·f(k), decided as exact arithmetic would.

V is revealed as far as it takes. Its first 32 bits against lines around the law decide nearly all
proposals, against a double with a proven margin nearly all others, and balls the rest.
"""

from __future__ import annotations

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dalenius.noise import kernel
from dalenius.noise.bits import Bits
from dalenius.noise.kernel import GRAIN, Flags, Places, Slots
from dalenius.noise.law import Floats, Ints
from dalenius.noise.lazy import below
from dalenius.noise.table import Table
from dalenius.noise.tail import TailSampler


class Acceptance:
    """Settles the slots of a table that are not sure; immutable."""

    def __init__(self, tails: TailSampler) -> None:
        self.law = tails.law
        self.table = tails.table
        self._tails = tails
        self._lines = _lines(tails.table)

    def settle(self, slots: Slots, places: Places, source: Bits) -> tuple[Flags, Ints, Ints]:
        """Which proposals pass, by their slots and places in bins; which are of tails; those, made here.

        Of those of tails, as of void slots, the ones that cannot pass are not made.
        """
        table = self.table
        bits = source.words(slots.size, np.uint32)
        passed, open_ = kernel.loops.settle(slots, places, bits, table.sure, self._lines)
        row = slots[open_].astype(np.int64) - table.sure
        of_tails = row >= table.doubtful
        far, found = open_[of_tails], np.zeros(0, np.int64)
        if far.size:
            found, passed[far] = self._tails.propose(row[of_tails] - table.doubtful, bits[far], source)
        near = open_[~of_tails]
        if near.size:
            passed[near] = self._closer(row[~of_tails], places[near], bits[near], source)
        return passed, far, found

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


def _lines(table: Table) -> Floats:
    """Of all slots that are not sure: layer, both lines, slope. Nothing of a tail is sure to pass."""
    lines = np.zeros((len(table.bins) - table.sure, 4))
    lines[: table.doubtful] = np.stack([table.layers, table.low, table.high, table.slope], 1)
    lines[table.doubtful :, 1] = -1
    start = table.doubtful
    for tail in table.tails:
        lines[start : start + tail.slots, 2] = tail.bound
        start += tail.slots
    return lines
