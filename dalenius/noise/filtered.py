"""Rounded sums of weighted Gaussians that are used again in other sums, exactly, and none of them kept.

Let N_0, N_1, … be vectors of independent real Gaussians, each a function of the bits of its own streams. A
draw is round(Σ w_j·N_j/2^shift), half up, for whole w_j, of the real numbers themselves: not of rounded ones.
So a vector is the same real vector in every sum it takes part in, whenever that is drawn.

How. A real number N has its cell n = round(N), a rounded Gaussian (`narrow`), and its place within: u, the
share of the cell's probability below N, is uniform on [0, 1) and independent of n. Sixteen bits of u are
drawn for every number. Over a cell the logarithm of the density has a slope of at most
L = (|n| + 1)/scale², so the density there is within e^{±L} of its mean and

    |N − (n − ½ + u)| ≤ (e^L − 1)/2.

With the bits of u that are not drawn, this bounds the sum from both sides. Where rounding both sides gives
one integer, this is it. Elsewhere, a few times in a hundred thousand, further bits of u are drawn and N is
enclosed by balls, Φ(N/scale) = (1 − u)·Φ((n − ½)/scale) + u·Φ((n + ½)/scale), until one integer is left.
A sum halfway between two integers has probability zero, and one beyond 32 bits less than 1e-55.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius.arithmetic import arb, workprec
from dalenius.errors import InvalidArgument
from dalenius.noise.bits import Bits
from dalenius.noise.kernel import Narrow
from dalenius.noise.lazy import GUARD, STEP, ball
from dalenius.noise.narrow import fill_rounded_gaussian

CHUNK = 1 << 18
"""Numbers that are worked on at a time."""
PLACE = 16
"""Bits of the place in a cell that are always drawn."""
STEEP = 40.0
"""A slope at which nothing is known of a place: every sum is left to balls."""
MOST_WEIGHT = 2**15
"""Of all weights together: a cell of 30 bits, its place of 17 and this are within 63 bits."""


@dataclass(frozen=True)
class Reals:
    """The bits of one vector of real Gaussians: of its cells, of its places, and of each place further on."""

    cells: Bits
    places: Bits
    further: Callable[[int], Bits]


@dataclass(frozen=True)
class Part:
    """A stretch of such a vector, from the number `start` on."""

    start: int
    cells: Narrow
    places: NDArray[np.uint16]
    further: Callable[[int], Bits]

    def at(self, index: int, more: int) -> tuple[int, arb]:
        """A cell and its place, of which so many further bits are known."""
        known = int(self.places[index])
        if more:
            # One after the other: what is known already stays in front.
            bits = self.further(self.start + index)
            for _ in range(more // STEP):
                known = known << STEP | bits.integer(STEP)
        return int(self.cells[index]), arb(2 * known + 1, 1) / arb(2) ** (PLACE + more + 1)


@dataclass(frozen=True)
class Filter:
    """round(Σ `weights`[j]·N_j/2^`shift`), the N_j of standard deviation `scale`."""

    weights: tuple[int, ...]
    scale: Fraction
    shift: int

    def __post_init__(self) -> None:
        total = sum(map(abs, self.weights))
        if not 0 < total <= MOST_WEIGHT or self.shift not in range(32):
            raise InvalidArgument(
                f"weights must add up to at most {MOST_WEIGHT}, signs aside, and shift be below 32.",
                remedy="Choose smaller weights.",
            )
        if 16 * self.scale * total > 2 ** (31 + self.shift):
            raise InvalidArgument(
                "Sums of 16 standard deviations must be within 32 bits.", remedy="Choose a larger shift."
            )

    def fill(self, values: Narrow, reals: Sequence[Reals]) -> None:
        """Overwrite a contiguous vector; weights past the last of `reals` count nothing."""
        for start in range(0, values.size, CHUNK):
            part = values[start : start + CHUNK]
            drawn = [self._part(one, start, part.size) for one in reals[: len(self.weights)]]
            self._settle(part, drawn)
            for one in drawn:
                one.cells.fill(0)
                one.places.fill(0)

    def _part(self, reals: Reals, start: int, size: int) -> Part:
        cells = np.empty(size, np.int32)
        fill_rounded_gaussian(cells, self.scale, reals.cells)
        return Part(start, cells, reals.places.words(size, np.uint16), reals.further)

    def _settle(self, values: Narrow, drawn: Sequence[Part]) -> None:
        """In integers, the units 2^−(PLACE + 1) of a cell; by balls where these leave a doubt."""
        width = PLACE + 1 + self.shift
        total, margin = np.full(values.size, 1 << (width - 1), np.int64), 0.0
        product = np.empty(values.size, np.int64)
        for weight, part in zip(self.weights, drawn, strict=False):
            # 2^17·(n − ½) + 2w + 1, times the weight.
            np.multiply(part.cells, weight << (PLACE + 1), out=product, dtype=np.int64)
            total += product
            np.multiply(part.places, 2 * weight, out=product, dtype=np.int64)
            total += product
            total += weight * (1 - (1 << PLACE))
            margin += abs(weight) * (1 + 2**PLACE * self._bent(part.cells))
        rest = total & ((1 << width) - 1)
        within = min(math.ceil(margin) + 1, 1 << width)
        unsure = np.flatnonzero((rest < within) | (rest >= (1 << width) - within))
        np.copyto(values, total >> width, casting="unsafe")
        for index in unsure:
            values[index] = self._exact(int(index), drawn)

    def _bent(self, cells: Narrow) -> float:
        """e^L − 1, from above."""
        most = max(int(cells.max()), -int(cells.min()))
        return math.expm1(min(float((most + 1) / self.scale**2), STEEP))

    def _exact(self, index: int, drawn: Sequence[Part]) -> int:
        more = 0
        while True:
            with workprec(PLACE + more + GUARD):
                total = arb(1) / 2
                for weight, part in zip(self.weights, drawn, strict=False):
                    total += weight * real(*part.at(index, more), self.scale) / arb(2) ** self.shift
                whole = total.floor().unique_fmpz()
            if whole is not None:
                return int(whole)
            more += STEP


def real(cell: int, place: arb, scale: Fraction) -> arb:
    """The number at a place of a cell: by the upper tail, and its mirror image below zero."""
    if cell < 0:
        return -real(-cell, 1 - place, scale)
    deviation = ball(scale) * arb(2).sqrt()
    below, above = (((cell + side * arb(0.5)) / deviation).erfc() for side in (-1, 1))
    return deviation * ((1 - place) * below + place * above).erfcinv()
