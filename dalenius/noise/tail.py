"""The far ends of a law: blocks of equal length, each half as likely to be proposed as the one before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.arithmetic import arb
from dalenius.noise.bits import Bits
from dalenius.noise.kernel import GRAIN, Words
from dalenius.noise.law import Ints, Law
from dalenius.noise.lazy import below
from dalenius.noise.table import Table, Tail

COINS = 63
"""Blocks that are drawn by arrays; what lies farther out, once in 2^63, is drawn by itself."""
MOST = 2**63 - 1
"""Where values saturate."""


class TailSampler:
    """Proposes and accepts integers beyond the bins of a table."""

    def __init__(self, law: Law, table: Table, coins: int = COINS) -> None:
        self.law = law
        self.table = table
        self._coins = coins

    def propose(self, row: Ints, bits: Words, source: Bits) -> tuple[Ints, NDArray[np.bool_]]:
        """An integer for each row among the slots of tails, and whether it passes; `bits` are V's first."""
        proposed, accepted = np.zeros(row.size, np.int64), np.zeros(row.size, bool)
        start = 0
        for tail in self.table.tails:
            chosen = np.flatnonzero((row >= start) & (row < start + tail.slots))
            if chosen.size:
                proposed[chosen], accepted[chosen] = self._draw(tail, bits[chosen], source)
            start += tail.slots
        return proposed, accepted

    def _draw(self, tail: Tail, bits: Words, source: Bits) -> tuple[Ints, NDArray[np.bool_]]:
        """J by trailing zeros of fair coins, the place in its block by raw bits."""
        size = bits.size
        coins = source.words(size, np.uint64) | np.uint64(1 << self._coins)
        blocks = np.bitwise_count(coins ^ (coins - np.uint64(1))).astype(np.int64) - 1
        places = (source.words(size, np.uint64) & np.uint64(tail.block - 1)).astype(np.int64)
        k = tail.first + tail.away * (blocks * tail.block + places)
        with np.errstate(all="ignore"):
            value, off = self.law.estimate(k)
            unit = np.ldexp(self.table.scale * tail.block / tail.slots, (blocks + 1).astype(np.int32))
            low, high = (value - off) * unit, (value + off) * unit
        least = bits * GRAIN
        yes = least + GRAIN <= low
        far = blocks >= self._coins
        for i in np.flatnonzero(far | (~yes & ~(least >= high))).tolist():
            block = self._farther(source) if far[i] else int(blocks[i])
            exact = tail.first + tail.away * (block * tail.block + int(places[i]))
            yes[i] = self._settle(tail, exact, block, int(bits[i]), source)
            k[i] = max(-MOST, min(MOST, exact))
        return k, yes

    def _farther(self, source: Bits) -> int:
        """J, given that it is `coins` or more."""
        block = self._coins
        while source.integer(1) == 0:
            block += 1
        return block

    def _settle(self, tail: Tail, k: int, block: int, bits: int, source: Bits) -> bool:
        """Whether V < C·f(k)·2^{J+1}·L/n, by balls."""

        def height() -> arb:
            share = arb(self.table.scale) * tail.block / tail.slots
            return self.law.weight(k) * share * arb(2) ** (block + 1)

        return below(height, source, bits, 32)
