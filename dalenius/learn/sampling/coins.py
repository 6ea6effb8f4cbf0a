"""Which of many units take part: independent coins of one rational probability, exactly.

A coin is [V < q] for a uniform V. Sixteen bits of V are held against the first sixteen of q, and settle it
unless they are equal; then the next sixteen are drawn. All is done in integers, so the same bits give the
same units on every machine.

For small q the gaps between heads are drawn instead. A gap G is geometric, P(G ≥ g) = r^g with r = 1 − q, and
its binary digits are independent: digit j is one with probability r^{2^j}/(1 + r^{2^j}), and
G ≥ 2^J with probability r^{2^J}, independently of the digits below J. So a gap takes J + 1 coins, whose
probabilities are known by balls as far as a comparison needs them. Heads among n units cost about
qn·log₂ n words in place of n.

    >>> from dalenius.noise.source import Source
    >>> heads(Fraction(1, 10**5), 10**8, Source(b"a test")).size
    1017
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from dalenius.arithmetic import arb, workprec
from dalenius.noise.bits import Bits
from dalenius.noise.lazy import ball

Ints = NDArray[np.int64]
Digits = Callable[[int], int]
"""The probability in base 2¹⁶: its digit at a level, counted from 0 behind the point."""

BITS = 16
CHUNK = 1 << 20
"""Units, or gaps, that are drawn at a time."""
MANY = 1 << 14
"""Fewer units than this are not worth gaps."""
GUARD = 64
"""Bits beyond those that a digit is read from, at first."""


def heads(rate: Fraction, count: int, bits: Bits) -> Ints:
    """The numbers, in order, of those of `count` units whose coins of probability `rate` say yes."""
    if rate == 1:
        return np.arange(count)
    if count >= MANY and 2 * rate * (count.bit_length() + 1) < 1:
        return _by_gaps(rate, count, bits)
    digits = partial(_rational_digit, rate)
    starts = range(0, count, CHUNK)
    parts = [np.flatnonzero(coins(digits, min(CHUNK, count - start), bits)) + start for start in starts]
    return np.concatenate([np.empty(0, np.int64), *parts])


def coins(digits: Digits, count: int, bits: Bits) -> NDArray[np.bool_]:
    """Independent coins whose probability, below 1, has these digits."""
    drawn = bits.words(count, np.uint16)
    yes, level = drawn < digits(0), 0
    still = np.flatnonzero(drawn == digits(0))
    while still.size:
        level += 1
        drawn = bits.words(still.size, np.uint16)
        yes[still[drawn < digits(level)]] = True
        still = still[drawn == digits(level)]
    return yes


def _by_gaps(rate: Fraction, count: int, bits: Bits) -> Ints:
    found, place = [np.empty(0, np.int64)], -1
    while place < count:
        # How many are drawn at a time is no part of the law: what is left over is not looked at.
        mean = float(rate) * (count - place)
        size = min(int(mean + 4 * math.sqrt(mean)) + 8, CHUNK)
        places = place + np.cumsum(_gaps(rate, count, size, bits) + 1)
        found.append(places[places < count])
        place = int(places[-1])
    return np.concatenate(found)


def _gaps(rate: Fraction, count: int, size: int, bits: Bits) -> Ints:
    """Geometric gaps; any that lead past `count` units may come out as `count`."""
    width = count.bit_length()
    gaps = np.zeros(size, np.int64)
    for place in range(width):
        gaps += coins(partial(_gap_digit, rate, place), size, bits).astype(np.int64) << place
    gaps[coins(partial(_past_digit, rate, width), size, bits)] = count
    return np.minimum(gaps, count)


def _rational_digit(chance: Fraction, level: int) -> int:
    return (chance.numerator << BITS * (level + 1)) // chance.denominator & 0xFFFF


@lru_cache(maxsize=4096)
def _gap_digit(rate: Fraction, place: int, level: int) -> int:
    """Of r^m/(1 + r^m), m = 2^place. For m > 1 it has no end in base 2: c^m + d^m is then no power of 2."""
    if place == 0:
        return _rational_digit((1 - rate) / (2 - rate), level)

    def chance() -> arb:
        power = _power(rate, place)
        return power / (1 + power)

    return _digit(chance, level)


@lru_cache(maxsize=4096)
def _past_digit(rate: Fraction, width: int, level: int) -> int:
    return _digit(lambda: _power(rate, width), level)


def _power(rate: Fraction, place: int) -> arb:
    power: arb = ball(1 - rate) ** (1 << place)
    return power


def _digit(chance: Callable[[], arb], level: int) -> int:
    """Read where a ball leaves no doubt."""
    shift = BITS * (level + 1)
    precision = shift + GUARD
    while True:
        with workprec(precision):
            whole = (chance() * arb(2) ** shift).floor().unique_fmpz()
        if whole is not None:
            return int(whole) & 0xFFFF
        precision *= 2
