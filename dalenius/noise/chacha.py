"""ChaCha20 by address: any word of a stream by itself, on any processor.

A stream of AES (`stream`) is read from its beginning on; here each word has an address, so that a part of a
vector can have its noise without the rest: on one of several machines, or by one of many threads of a GPU.
The cipher is that of RFC 8439: sixteen words a block, under a key of 32 bytes, a counter of 32 bits and a
nonce of 96, here (what for, which attempt, 0). A run of words is made by the cipher of a library, some words
here and there by the same rounds in numpy.

Words are laid out so that neighbouring threads work on neighbouring entries: 2,048 entries make a tile, of
128 blocks, and entry 128·j + b of tile t is word j of block 128·t + b.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

from dalenius.noise.law import Ints

Words = NDArray[np.uint32]
CONSTANTS = struct.unpack("<4I", b"expand 32-byte k")
ACROSS, WORDS = 128, 16
"""Blocks of a tile, and words of a block."""
TILE = ACROSS * WORDS
FEW, NONE = 16, np.empty(0, np.uint32)
"""Entries that a library's cipher makes one by one."""
MOST = (1 << 32) * WORDS
"""Entries that one stream has addresses for."""


@dataclass(frozen=True)
class Addressed:
    """The words of one path. Each address must be used for one purpose."""

    key: bytes = field(repr=False)
    tainted: bool

    def run(self, start: int, stop: int, purpose: int, attempt: int = 0) -> Words:
        """Those of the entries from `start` to `stop`."""
        first, last = start // TILE, -(-stop // TILE)
        nonce = struct.pack("<4I", first * ACROSS, purpose, attempt, 0)
        cipher = Cipher(algorithms.ChaCha20(self.key, nonce), mode=None).encryptor()
        blocks = np.frombuffer(cipher.update(bytes(4 * TILE * (last - first))), "<u4")
        tiles = blocks.reshape(-1, ACROSS, WORDS).transpose(0, 2, 1).reshape(-1)
        return tiles[start - first * TILE : stop - first * TILE].astype(np.uint32)

    def at(self, entries: Ints, purpose: int, attempt: int = 0) -> Words:
        """Those of some entries."""
        if entries.size <= FEW:
            return np.concatenate(
                [self.run(one, one + 1, purpose, attempt) for one in entries.tolist()] or [NONE]
            )
        tile, within = np.divmod(entries, TILE)
        word, block = np.divmod(within, ACROSS)
        counter = (tile * ACROSS + block).astype(np.uint32)
        words = blocks(struct.unpack("<8I", self.key), counter, (purpose, attempt, 0))
        found: Words = words[word, np.arange(word.size)]
        return found


def blocks(key: tuple[int, ...], counter: Words, nonce: tuple[int, int, int]) -> Words:
    """Sixteen words for each counter, in as many rows."""
    fixed = (*CONSTANTS, *key)
    start = np.empty((WORDS, counter.size), np.uint32)
    start[:12], start[12], start[13:] = np.array(fixed)[:, None], counter, np.array(nonce)[:, None]
    words = start.copy()
    for _ in range(10):
        for a, b, c, d in (
            (0, 4, 8, 12),
            (1, 5, 9, 13),
            (2, 6, 10, 14),
            (3, 7, 11, 15),
            (0, 5, 10, 15),
            (1, 6, 11, 12),
            (2, 7, 8, 13),
            (3, 4, 9, 14),
        ):
            for to, by, other, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                words[to] += words[by]
                words[other] ^= words[to]
                words[other] = words[other] << np.uint32(turn) | words[other] >> np.uint32(32 - turn)
    words += start
    return words
