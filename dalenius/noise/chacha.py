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

from dalenius.noise import ciphers
from dalenius.noise.law import Ints
from dalenius.noise.twins import WORDS, Words
from dalenius.noise.twins import chacha_blocks as blocks

ACROSS = 128
"""Blocks of a tile."""
TILE = ACROSS * WORDS
FEW, NONE = 16 if ciphers.COMPILED else 0, np.empty(0, np.uint32)
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
        made = ciphers.chacha(self.key, nonce).update(bytes(4 * TILE * (last - first)))
        tiles = np.frombuffer(made, "<u4").reshape(-1, ACROSS, WORDS).transpose(0, 2, 1).reshape(-1)
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
