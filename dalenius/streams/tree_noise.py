"""Noise of a binary tree, a block of steps at a time, with a number for each level in memory.

Each block of 2^h steps, complete, has a whole number of noise of scale s_h, a function of the key, the level
and the place. A step's noise is that of the blocks of its binary digits. `plain` takes each block's own noise
ξ. `online` takes the best estimate from the block and those within it (Honaker 2015): with v_h the variance,

    η_h = a·ξ + (1 − a)·(η_left + η_right),   a = v_h/s_h²,   1/v_h = 1/s_h² + 1/(2v_{h−1}).

That is the noise of the same combination of noisy sums, since a block's sum is that of its halves: nothing
but released numbers is used. η are held in units of 2^−`bits`, rounded down after each combination, and a in
units of 2⁻¹⁶. True sums are whole, so rounding a noisy combination is rounding its noise: all of this is a
function of noisy sums, exactly. `full` adds the way down: η′ of a half is
η + ½(η′_parent − η_left − η_right), which is least squares on the whole tree (Hay et al. 2010), and looks
ahead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from dalenius.noise.buffered import block_steps
from dalenius.noise.exponential import Laplace
from dalenius.noise.gaussian import RoundedGaussian
from dalenius.noise.sampler import Sampler
from dalenius.noise.stream import StreamKey
from dalenius.streams.tallies import Ints

Estimator = Literal["plain", "online", "full"]
Law = Literal["gaussian", "laplace"]
NODES = 7
"""The first number of the paths of streams."""
WEIGHT = 16
"""Bits of the weights of a combination."""
LARGEST = 38
"""Bits of a scale with those of η: 2⁸ scales, a weight and a sum are within 63 bits."""
ENDLESS = 62
"""Levels that are counted where there is no horizon."""


@dataclass(frozen=True)
class Nodes:
    """The law of the noise of nodes, `scale` by level; levels go on for ever where `levels` is None."""

    law: Law
    scale: Callable[[int], Fraction]
    levels: int | None
    estimator: Estimator

    @property
    def bits(self) -> int:
        """Of η behind the point."""
        room = LARGEST - math.ceil(math.log2(self.top))
        return 0 if self.estimator == "plain" else max(0, min(16, room))

    @property
    def top(self) -> Fraction:
        """The largest scale."""
        return self.scale((self.levels or ENDLESS) - 1)

    def there(self, level: int) -> bool:
        """Whether the tree has such a level."""
        return self.levels is None or level < self.levels

    def variance(self, level: int) -> float:
        """Of one node's own noise, but for rounding."""
        scale = float(self.scale(level))
        return scale**2 if self.law == "gaussian" else 2 * scale**2

    def shares(self, levels: int) -> list[tuple[float, float]]:
        """For each level the variance v and the weight a, as it is used."""
        found = [(self.variance(0), 1.0)]
        for h in range(1, levels):
            own, below = self.variance(h), 2 * found[-1][0]
            a = 1.0 if self.estimator == "plain" else round(below / (own + below) * 2**WEIGHT) / 2**WEIGHT
            found.append((a**2 * own + (1 - a) ** 2 * below, a))
        return found

    def drawn(self, key: StreamKey, level: int, place: int, size: int) -> Ints:
        """Whole numbers of one stream."""
        values = np.empty(size, np.int64)
        _sampler(self.law, self.scale(level)).fill(values, key.stream(NODES, level, place))
        return values


class TreeBlocks:
    """The noise of `width` streams, released at every step."""

    def __init__(self, nodes: Nodes, key: StreamKey, width: int, steps: int | None = None) -> None:
        self.nodes, self.key, self.width = nodes, key, width
        self.steps = steps or block_steps(width)
        self.depth = self.steps.bit_length() - 1
        self.blocks, self._whole = 0, dict[int, Ints]()
        self._weights = [
            round(a * 2**WEIGHT) for _, a in nodes.shares(64 if nodes.levels is None else nodes.levels)
        ]

    @property
    def size(self) -> int:
        """Bytes of what is carried from block to block."""
        return sum(each.nbytes for each in self._whole.values())

    def next(self) -> Ints:
        """The noise of the next block's steps, rounded to whole numbers."""
        tables = self._tables()
        places = np.arange(1, self.steps)
        total = np.zeros((self.steps, self.width), np.int64)
        for h, table in enumerate(tables[: self.depth]):
            there = places[(places >> h & 1).astype(bool)]
            total[there - 1] += table[(there >> h) - 1]
        total[:-1] += self._upper()
        if len(tables) > self.depth:
            self._carry(tables[self.depth][0])
        self.blocks += 1
        total[-1] = self._upper()
        half = 1 << self.nodes.bits >> 1
        return (total + half) >> self.nodes.bits

    def _tables(self) -> list[Ints]:
        """η of all nodes within the next block, level by level."""
        found = list[Ints]()
        for h in range(self.depth + 1):
            if not self.nodes.there(h):
                break
            many = self.steps >> h
            own = self.nodes.drawn(self.key, h, self.blocks, many * self.width).reshape(many, self.width)
            halves = found[-1][0::2] + found[-1][1::2] if found else own
            found.append(self._joined(h, own, halves))
        return self._downward(found) if self.nodes.estimator == "full" else found

    def _joined(self, level: int, own: Ints, halves: Ints) -> Ints:
        fine = own << self.nodes.bits
        if level == 0 or self.nodes.estimator == "plain":
            return fine
        weight = self._weights[level]
        joined: Ints = (fine * weight + halves * ((1 << WEIGHT) - weight)) >> WEIGHT
        return joined

    def _downward(self, tables: list[Ints]) -> list[Ints]:
        found = [tables[-1]]
        for below in reversed(tables[:-1]):
            more = (found[-1] - below[0::2] - below[1::2]) >> 1
            found.append(below + np.repeat(more, 2, axis=0))
        return found[::-1]

    def _upper(self) -> Ints:
        """Of the whole blocks before the next one."""
        total = np.zeros(self.width, np.int64)
        for h, each in self._whole.items():
            if self.blocks >> (h - self.depth) & 1:
                total += each
        return total

    def _carry(self, node: Ints) -> None:
        """A whole block joins the one before it, and so on."""
        level, place = self.depth, self.blocks
        while place & 1 and self.nodes.there(level + 1):
            level, place = level + 1, place >> 1
            own = self.nodes.drawn(self.key, level, place, self.width)
            node = self._joined(level, own, self._whole[level - 1] + node)
        self._whole[level] = node


@lru_cache(64)
def _sampler(law: Law, scale: Fraction) -> Sampler:
    return Sampler(RoundedGaussian(scale) if law == "gaussian" else Laplace(scale))
