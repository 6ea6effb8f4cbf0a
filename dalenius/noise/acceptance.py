"""Which proposals of doubtful slots pass: layer + V < C·W·f(k), decided as exact arithmetic would.

V is revealed as far as it takes. Its first 32 bits against lines around the law decide nearly all
proposals, against a double with a proven margin nearly all others, and balls the rest.
"""

from __future__ import annotations

import numpy as np

from dalenius.arithmetic import arb
from dalenius.noise import kernel
from dalenius.noise.bits import Bits
from dalenius.noise.kernel import GRAIN, Flags, Places, Slots, Words
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
        self.lines = _lines(tails.table)

    def settle(self, slots: Slots, places: Places, bits: Words, source: Bits) -> tuple[Flags, Ints, Ints]:
        """Which proposals pass, by slots, places in bins and the first bits of V, which go on in `source`.

        And which are of tails, and those, made here; of tails, as of void slots, what cannot pass is not.
        """
        passed, open_ = self.by_lines(slots, places, bits)
        row = slots[open_].astype(np.int64) - self.table.sure
        of_tails = row >= self.table.doubtful
        far, found = open_[of_tails], np.zeros(0, np.int64)
        if far.size:
            tails = row[of_tails] - self.table.doubtful
            found, passed[far] = self._tails.propose(tails, bits[far], source)
        near, row = open_[~of_tails], row[~of_tails]
        if near.size:
            passed[near], left = self.by_doubles(row, places[near], bits[near])
            for i in left.tolist():
                at = near[i]
                passed[at] = self._exactly(int(row[i]), int(places[at]), int(bits[at]), source)
        return passed, far, found

    def by_lines(self, slots: Slots, places: Places, bits: Words) -> tuple[Flags, Ints]:
        """What passes, and what is between the lines."""
        return kernel.loops.settle(slots, places, bits, self.table.sure, self.lines)

    def by_doubles(self, row: Ints, places: Places, bits: Words) -> tuple[Flags, Ints]:
        """What passes of bins, and what is left open, by doubles as near to C·W·f(k) as the law knows."""
        least = self.table.layers[row] + bits * GRAIN
        unit = self.table.scale * 2.0**self.table.shift
        with np.errstate(all="ignore"):
            value, off = self.law.estimate(self._integers(row, places))
            low, high = (value - off) * unit, (value + off) * unit
        yes = least + GRAIN <= low
        return yes, np.flatnonzero(~yes & ~(least >= high))

    def _integers(self, row: Ints, places: Places) -> Ints:
        bins = self.table.bins[self.table.sure + row].astype(np.int64)
        return (bins << self.table.shift) + places.astype(np.int64)

    def _exactly(self, row: int, place: int, bits: int, source: Bits) -> bool:
        (k,) = self._integers(np.array([row]), np.array([place])).tolist()
        layer = int(self.table.layers[row])

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
