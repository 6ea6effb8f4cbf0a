"""A law cut into equal slots: the envelope of exact rejection sampling.

The integers around the mode are cut into bins of W = 2^shift; C is a scale such that C·W·f is counted in
slots. Bin b has n_b slots, n_b ≥ C·W·f(k) for all its k, stacked as layers 0, 1, …, n_b − 1. What lies
beyond the bins on either side is cut into blocks of L integers, the J-th half as high as the one before:
log-concave weights that halve within the first block halve within each. The tail of a side has n slots,
n ≥ 2·L·C·f at its first integer. What is left of the 2^bits slots is void.

A draw takes a slot, an integer of its bin and a uniform V, and accepts if layer + V < C·W·f(k); in a tail
it takes J with probability 2^{−J−1}, an integer of that block, and accepts if V < C·f(k)·2^{J+1}·L/n.
Then each k comes out with probability C·f(k)/2^bits: the law of accepted draws is proportional to f.
A layer that ends below C·W·f(k) for all k of its bin is sure: most slots are, and need no V.

Every count follows from balls, rounded outward (docs/proofs/noise.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.arithmetic import arb, workprec
from dalenius.noise.ends import enclose
from dalenius.noise.law import Floats, Ints, Law
from dalenius.noise.squeeze import lines

BITS = 16
"""A slot is chosen by so many bits."""
FINENESS = 32
"""Bins are between 1/32 and 1/64 of the spread wide, or one integer."""
PRECISION = 128
"""Bits of the balls from which a table is made."""


@dataclass(frozen=True)
class Side:
    """The bins on one side of the mode, by enclosures of f at their ends nearest to it."""

    away: int
    """+1 for k = 0, 1, …; −1 for k = −1, −2, …"""
    low: Floats
    high: Floats
    """The last of each is that of the first integer of the tail."""
    block: int
    """L, or 0 where no tail is left."""

    @property
    def bins(self) -> int:
        """How many there are."""
        return self.high.size - 1


@dataclass(frozen=True)
class Tail:
    """The slots of one tail, and the integers they stand for: first, first ± 1, …"""

    first: int
    away: int
    block: int
    slots: int
    bound: float
    """No proposal passes whose V is as large: 2·L·C·f/n at its first integer, from above."""


@dataclass(frozen=True)
class Table:
    """What each of 2^bits slots stands for: sure layers, then doubtful ones, then tails, then void."""

    bits: int
    shift: int
    scale: float
    """C, a binary fraction."""
    bins: NDArray[np.int16]
    """By slot: its bin, of k from bin·W to bin·W + W − 1."""
    sure: int
    """Slots below this one are accepted as they are."""
    layers: Floats
    """By doubtful slot."""
    low: Floats
    high: Floats
    """By doubtful slot, lines below and above C·W·f at the least integer of its bin."""
    slope: Floats
    """By doubtful slot, that of both lines for each integer farther on."""
    tails: tuple[Tail, ...]

    @property
    def doubtful(self) -> int:
        """How many slots of bins are not sure."""
        return self.layers.size


def lay_out(law: Law, *, bits: int = BITS, fineness: int = FINENESS, reach: int = 0) -> Table:
    """The table of a law. Fewer bits and wider bins give the same law with more doubt.

    Bins go on until one would fill a share 2^−reach of a slot: then fewer draws are left to tails.
    """
    shift = max(0, int(law.spread / fineness).bit_length() - 1)
    with workprec(PRECISION):
        share, most = 2.0 ** -(bits + reach), 1 << (bits - 2)
        right = _side(law, 1, shift, share, most, 0.0)
        sides = [right]
        if not law.one_sided:
            sides.append(_side(law, -1, shift, share, most, float(right.high.sum())))
    scale = _largest_scale(sides, shift, bits)
    needed = [_needed(side, scale, shift) for side in sides]
    sure = np.concatenate([_sure(side, scale, shift) for side in sides])
    slots = np.concatenate([n[:-1] for n in needed])
    names = np.concatenate([_names(side) for side in sides])
    open_slots = slots - sure
    first = np.cumsum(open_slots) - open_slots
    layers = np.arange(open_slots.sum()) + np.repeat(sure - first, open_slots)
    bins = np.zeros(1 << bits, np.int16)
    bins[: slots.sum()] = np.concatenate([np.repeat(names, sure), np.repeat(names, open_slots)])
    low, high, slope = (np.repeat(line, open_slots) for line in _lines(sides, scale, shift))
    tails = tuple(
        Tail(_first(side, shift), side.away, side.block, int(n[-1]), _bound(side, scale, int(n[-1])))
        for side, n in zip(sides, needed, strict=True)
        if side.block
    )
    return Table(bits, shift, scale, bins, int(sure.sum()), layers.astype(float), low, high, slope, tails)


def _bound(side: Side, scale: float, slots: int) -> float:
    full = float(np.nextafter(scale * side.high[-1], np.inf)) * 2.0 * side.block
    return float(np.nextafter(full / slots, np.inf))


def _side(law: Law, away: int, shift: int, share: float, most: int, total: float) -> Side:
    """Bins as long as one has the share, at most so many; `total` is the weight of the other side."""
    ends: list[tuple[float, float]] = []
    while True:
        k = _nearest(away, len(ends), shift)
        ends.append(enclose(law.weight(k)))
        if ends[-1][1] <= total * share or len(ends) > most:
            break
        total += ends[-1][1]
    low, high = np.array(ends).T
    return Side(away, low, high, _halving(law, k, away) if high[-1] > 0 else 0)


def _nearest(away: int, b: int, shift: int) -> int:
    """The integer of the b-th bin of a side that is nearest to the mode."""
    return b << shift if away > 0 else -1 - (b << shift)


def _first(side: Side, shift: int) -> int:
    return _nearest(side.away, side.bins, shift)


def _names(side: Side) -> Ints:
    b = np.arange(side.bins)
    return b if side.away > 0 else -1 - b


def _halving(law: Law, k: int, away: int) -> int:
    """The least power of two L with f(k ± L) ≤ f(k)/2, as far as balls can tell."""
    step = 1
    while not law.drop(k, away * step) >= arb(2).log():
        step *= 2
    return step


def _needed(side: Side, scale: float, shift: int) -> Ints:
    """Slots of every bin and, at the end, of the tail."""
    widths = np.full(side.high.size, 2.0**shift)
    widths[-1] = 2.0 * side.block
    slots: Ints = np.ceil(np.nextafter(scale * side.high, np.inf) * widths).astype(np.int64)
    return np.where(side.high > 0, slots, 0)


def _sure(side: Side, scale: float, shift: int) -> Ints:
    """Layers below the least weight of their bin: that of the next bin's first integer is no greater."""
    least = side.low[:-1] if shift == 0 else side.low[1:]
    return np.floor(np.nextafter(scale * least, 0.0) * 2.0**shift).astype(np.int64)


def _lines(sides: list[Side], scale: float, shift: int) -> list[Floats]:
    found = [_bounds(side, scale, shift) for side in sides]
    return [np.concatenate(part) for part in zip(*found, strict=True)]


def _bounds(side: Side, scale: float, shift: int) -> tuple[Floats, Floats, Floats]:
    """The lower line, the upper one and their slope: where a bin is one integer, the ends of its weight."""
    if shift:
        return lines(scale * side.high * 2.0**shift, side.away, 1 << shift)
    low, high = np.nextafter(scale * side.low, 0.0), np.nextafter(scale * side.high, np.inf)
    return low[:-1], high[:-1], np.zeros(side.bins)


def _largest_scale(sides: list[Side], shift: int, bits: int) -> float:
    """The greatest C, nearly, with which all fits into the slots."""
    least, most = 0.0, 2.0 ** (bits - shift) / sum(float(side.high[:-1].sum()) for side in sides)
    for _ in range(40):
        middle = (least + most) / 2
        fits = sum(int(_needed(side, middle, shift).sum()) for side in sides) <= 1 << bits
        least, most = (middle, most) if fits else (least, middle)
    return least
