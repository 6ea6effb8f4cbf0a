"""The tag of AES-256 in Galois mode (NIST SP 800-38D), with a nonce of zeros, in numpy.

A block is a polynomial over two elements, its first bit that of x⁰, modulo x¹²⁸ + x⁷ + x² + x + 1. The hash
of blocks X₁ … Xₙ is Σ Xᵢ·H^(n+1−i), H the cipher's block of zeros. Blocks are taken in `LANES` lanes: each is
multiplied by H^LANES for every block that follows in it, and in the end lanes are folded in halves.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dalenius.noise.twins import SIZE, SingleBlocks

LANES = 1 << 12
"""A power of two."""
REDUCED = 0xE1 << 120
"""x¹²⁸, reduced."""
Blocks = NDArray[np.uint64]
"""Pairs of words, the 16 bytes of a block as they are in memory."""


class Galois:
    """Under one key."""

    def __init__(self, key: bytes) -> None:
        self._cipher = SingleBlocks(key)
        self._h = int.from_bytes(self._cipher.update(bytes(SIZE)), "big")

    def tag(self, parts: Iterable[bytes | memoryview]) -> bytes:
        """Of all parts, one after the other."""
        lanes, left, size = np.zeros((LANES, 2), np.uint64), b"", 0
        for part in parts:
            size += len(part)
            whole = (len(left) + len(part)) // (LANES * SIZE) * LANES * SIZE - len(left)
            if whole < 0:
                left += bytes(part)
                continue
            for group in _groups(left, memoryview(part)[:whole]):
                lanes = multiplied(self._tables[-1], lanes) ^ group
            left = bytes(memoryview(part)[whole:])
        left += bytes(-len(left) % SIZE)
        if len(left) == LANES * SIZE:
            lanes = multiplied(self._tables[-1], lanes) ^ next(iter(_groups(b"", memoryview(left))))
            left = b""
        last = left + (8 * size).to_bytes(8, "big") + bytes(8)
        rest = np.frombuffer(last.rjust(LANES * SIZE, b"\0"), np.uint64).reshape(LANES, 2).copy()
        # What came before is added to the first block that is left.
        rest[LANES - len(last) // SIZE] ^= self._folded(lanes)
        nonce = self._cipher.update(bytes(SIZE - 1) + b"\1")
        return (self._folded(rest) ^ np.frombuffer(nonce, np.uint64)).tobytes()

    def _folded(self, lanes: Blocks) -> Blocks:
        """Σ laneⱼ·H^(LANES−j)."""
        for table in reversed(self._tables[:-1]):
            half = len(lanes) // 2
            lanes = multiplied(table, lanes[:half]) ^ lanes[half:]
        found: Blocks = multiplied(self._tables[0], lanes)[0]
        return found

    @cached_property
    def _tables(self) -> list[Blocks]:
        """Those of H, H², H⁴, …, H^LANES."""
        found, power = [], self._h
        for _ in range(LANES.bit_length()):
            found.append(_table(power))
            power = product(power, power)
        return found


def _groups(left: bytes, part: memoryview) -> Iterable[Blocks]:
    """All lanes, again and again: first what was left with what makes it whole."""
    start = 0
    if left:
        start = min(LANES * SIZE - len(left), len(part))
        yield np.frombuffer(left + bytes(part[:start]), np.uint64).reshape(LANES, 2)
    for at in range(start, len(part), LANES * SIZE):
        yield np.frombuffer(part[at : at + LANES * SIZE], np.uint64).reshape(LANES, 2)


def product(one: int, two: int) -> int:
    """Of two polynomials, the bit of x⁰ being the highest."""
    found = 0
    for place in range(127, -1, -1):
        if one >> place & 1:
            found ^= two
        two = two >> 1 ^ (REDUCED if two & 1 else 0)
    return found


def _table(factor: int) -> Blocks:
    """At [i, b]: the factor times the byte b at place i."""
    table = np.zeros((SIZE, 256, 2), np.uint64)
    for place in range(SIZE):
        for bit in range(7, -1, -1):
            # One bit more: all bytes with higher bits only are known.
            row = np.frombuffer(factor.to_bytes(SIZE, "big"), np.uint64)
            table[place, 1 << bit :: 2 << bit] = table[place, :: 2 << bit] ^ row
            factor = factor >> 1 ^ (REDUCED if factor & 1 else 0)
    return table


def multiplied(table: Blocks, blocks: Blocks) -> Blocks:
    """Each block times the factor of the table."""
    places = np.ascontiguousarray(blocks).view(np.uint8).reshape(-1, SIZE)
    found = np.zeros((len(places), 2), np.uint64)
    for place in range(SIZE):
        found ^= table[place][places[:, place]]
    return found
