"""AES-256 and ChaCha20 in numpy, for machines without `cryptography`: the same bytes, more slowly.

AES is that of FIPS 197, byte by byte over many blocks at once. Its substitution reads a table at places that
depend on the key, so how long it takes may tell something of the key to whoever shares a processor's cache.
Such a neighbour is on the machine that holds the data; guarantees here are about what is released, and say
nothing of what can be measured on that machine. For the same reason it is borne that copies which numpy makes
of a keystream are not overwritten.

ChaCha20 is that of RFC 8439, and reads no table.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Buffer = bytes | bytearray | memoryview
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]

CONSTANTS = struct.unpack("<4I", b"expand 32-byte k")
WORDS, SIZE, ROUNDS = 16, 16, 14
"""Words of a block of ChaCha20, bytes of one of AES, and rounds of AES-256."""
CHUNK = 1 << 12
"""Blocks that are worked on at a time: they stay in the processor's cache."""
AHEAD = 64
"""Blocks that a keystream makes at least."""


def _doubled(byte: int) -> int:
    """Times x, modulo x⁸ + x⁴ + x³ + x + 1."""
    return (byte << 1) ^ (0x11B if byte & 0x80 else 0)


def _substitution() -> bytes:
    """The inverse of a byte in that field, by powers of x + 1, through the affine map of FIPS 197."""
    powers = [1]
    while len(powers) < 255:
        powers.append(powers[-1] ^ _doubled(powers[-1]))
    places = {power: place for place, power in enumerate(powers)}
    inverses = [0] + [powers[-places[byte] % 255] for byte in range(1, 256)]
    return bytes(_turned(one) for one in inverses)


def _turned(byte: int) -> int:
    """A byte, itself turned left by one to four bits, and a constant, added up."""
    twice = byte * 0x101
    return (0x63 ^ byte ^ twice >> 4 ^ twice >> 5 ^ twice >> 6 ^ twice >> 7) & 0xFF


SUBSTITUTION = _substitution()
MOVED = np.array([(place + 4 * (place % 4)) % 16 for place in range(16)])
"""ShiftRows: where the byte of each place comes from; a column is four neighbouring bytes."""
NEXT, THIRD = (np.array([place // 4 * 4 + (place + by) % 4 for place in range(16)]) for by in (1, 2))
"""Places that follow in a column."""


def round_keys(key: bytes) -> Bytes:
    """The fifteen round keys of AES-256, as columns of 16 bytes."""
    if len(key) != 32:
        raise ValueError("A key of AES-256 has 32 bytes.")
    table, words, constant = SUBSTITUTION, [list(key[i : i + 4]) for i in range(0, 32, 4)], 1
    for i in range(8, 4 * (ROUNDS + 1)):
        word = words[-1]
        if i % 8 == 0:
            word = [table[byte] for byte in (*word[1:], word[0])]
            word[0] ^= constant
            constant = _doubled(constant)
        elif i % 8 == 4:
            word = [table[byte] for byte in word]
        words.append([one ^ two for one, two in zip(words[-8], word, strict=True)])
    return np.array(words, np.uint8).reshape(ROUNDS + 1, SIZE, 1)


def encrypted(keys: Bytes, blocks: Bytes) -> Bytes:
    """AES of blocks that are columns of 16 bytes."""
    state: Bytes = blocks ^ keys[0]
    for number in range(1, ROUNDS + 1):
        moved = state.take(MOVED, 0).tobytes().translate(SUBSTITUTION)
        state = np.frombuffer(moved, np.uint8).reshape(blocks.shape)
        if number < ROUNDS:
            # Column by column 2a + 3b + c + d = a + (a + b + c + d) + 2(a + b).
            pairs = state ^ state.take(NEXT, 0)
            mixed = pairs.take(THIRD, 0)
            mixed ^= pairs
            mixed ^= state
            mixed ^= (pairs >> 7) * np.uint8(0x1B)
            pairs <<= 1
            state = mixed
            state ^= pairs
        state = state ^ keys[number]
    return state


class Keystream(ABC):
    """Bytes that follow from a key, from the first on: added to what is given, bit by bit."""

    size: ClassVar[int]
    """Bytes of a block."""

    def __init__(self) -> None:
        self._left = np.empty(0, np.uint8)

    @abstractmethod
    def _made(self, blocks: int) -> Bytes:
        """The bytes of at most so many blocks that follow."""

    def update(self, data: Buffer, /) -> bytes:
        """The data, encrypted."""
        into = bytearray(len(data))
        self.update_into(data, memoryview(into))
        return bytes(into)

    def update_into(self, data: Buffer, into: Buffer, /) -> int:
        """The same, to a place of that size."""
        given, place = np.frombuffer(data, np.uint8), np.frombuffer(into, np.uint8)
        done = 0
        while done < given.size:
            if not self._left.size:
                blocks = -(-(given.size - done) // self.size)
                self._left = self._made(min(max(blocks, AHEAD), CHUNK))
            part = self._left[: given.size - done]
            np.bitwise_xor(given[done : done + part.size], part, out=place[done : done + part.size])
            self._left = self._left[part.size :]
            done += part.size
        return done


class CounterMode(Keystream):
    """AES-256 of a counter of 16 bytes, the most significant first."""

    size = SIZE

    def __init__(self, key: bytes, start: bytes) -> None:
        super().__init__()
        if len(start) != SIZE:
            raise ValueError(f"A counter has {SIZE} bytes.")
        self._keys, self._counter = round_keys(key), int.from_bytes(start, "big")

    def _made(self, blocks: int) -> Bytes:
        high, low = divmod(self._counter, 1 << 64)
        first = min(blocks, (1 << 64) - low)
        self._counter = (self._counter + first) % (1 << 128)
        counters = np.empty((first, 2), ">u8")
        counters[:, 0] = high
        counters[:, 1] = np.uint64(low) + np.arange(first, dtype=np.uint64)
        columns = np.ascontiguousarray(counters.view(np.uint8).reshape(first, SIZE).T)
        return np.ascontiguousarray(encrypted(self._keys, columns).T).reshape(-1)


class SingleBlocks:
    """AES-256 of each block by itself."""

    def __init__(self, key: bytes) -> None:
        self._keys = round_keys(key)

    def update(self, data: Buffer, /) -> bytes:
        """The blocks, encrypted."""
        return encrypted(self._keys, np.frombuffer(data, np.uint8).reshape(-1, SIZE).T).T.tobytes()


class ChaCha(Keystream):
    """ChaCha20 from a counter of 32 bits on, which comes first among the words of the nonce."""

    size = 4 * WORDS

    def __init__(self, key: bytes, nonce: bytes) -> None:
        super().__init__()
        self._counter, *rest = struct.unpack("<4I", nonce)
        self._key, self._nonce = struct.unpack("<8I", key), (rest[0], rest[1], rest[2])

    def _made(self, blocks: int) -> Bytes:
        blocks = min(blocks, (1 << 32) - self._counter)
        if not blocks:
            raise ValueError("The counter of a stream has come to its end.")
        counters = (np.arange(blocks, dtype=np.uint64) + np.uint64(self._counter)).astype(np.uint32)
        self._counter += blocks
        made = chacha_blocks(self._key, counters, self._nonce)
        return np.ascontiguousarray(made.T).astype("<u4", copy=False).view(np.uint8).reshape(-1)


def chacha_blocks(key: tuple[int, ...], counter: Words, nonce: tuple[int, int, int]) -> Words:
    """Sixteen words for each counter, in as many rows."""
    if counter.size > CHUNK:
        found = np.empty((WORDS, counter.size), np.uint32)
        for at in range(0, counter.size, CHUNK):
            found[:, at : at + CHUNK] = chacha_blocks(key, counter[at : at + CHUNK], nonce)
        return found
    start = np.empty((WORDS, counter.size), np.uint32)
    start[:12], start[12] = np.array((*CONSTANTS, *key))[:, None], counter
    start[13:] = np.array(nonce)[:, None]
    words = start.copy()
    a, b, c, d = words.reshape(4, 4, -1)
    spare = np.empty_like(a)
    for _ in range(10):
        _quarters(a, b, c, d, spare)
        # Diagonals as columns, and back.
        b, c, d = b[[1, 2, 3, 0]], c[[2, 3, 0, 1]], d[[3, 0, 1, 2]]
        _quarters(a, b, c, d, spare)
        b, c, d = b[[3, 0, 1, 2]], c[[2, 3, 0, 1]], d[[1, 2, 3, 0]]
    start += np.concatenate([a, b, c, d])
    return start


def _quarters(a: Words, b: Words, c: Words, d: Words, spare: Words) -> None:
    """Four quarter rounds at once, in place."""
    for to, by, other, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        to += by
        other ^= to
        np.right_shift(other, np.uint32(32 - turn), out=spare)
        other <<= np.uint32(turn)
        other |= spare
