"""AES-256 and ChaCha20: the ciphers of `cryptography` where it can be imported, else their `twins` in numpy.

Both give the same bytes. What is returned has `update` and, for keystreams, `update_into`.
"""

from __future__ import annotations

from typing import Protocol

from dalenius.noise.twins import Buffer, ChaCha, CounterMode, SingleBlocks

try:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
except ImportError:
    COMPILED = False
else:
    COMPILED = True


class Blocks(Protocol):
    """What turns bytes into as many others."""

    def update(self, data: Buffer, /) -> bytes:
        """The bytes, encrypted."""
        ...


class Keystream(Blocks, Protocol):
    """What does so with bytes of any number, from where it is."""

    def update_into(self, data: Buffer, buf: Buffer, /) -> int:
        """The same, to a place of that size."""
        ...


def counter_mode(key: bytes | bytearray, start: bytes) -> Keystream:
    """AES-256, counting from a block of 16 bytes on."""
    if COMPILED:
        return Cipher(algorithms.AES256(key), modes.CTR(start)).encryptor()
    return CounterMode(bytes(key), start)


def single_blocks(key: bytes) -> Blocks:
    """AES-256 of blocks of 16 bytes, each by itself."""
    if COMPILED:
        return Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
    return SingleBlocks(key)


def chacha(key: bytes, nonce: bytes) -> Keystream:
    """ChaCha20 from a counter and a nonce of 4 and 12 bytes."""
    if COMPILED:
        return Cipher(algorithms.ChaCha20(key, nonce), mode=None).encryptor()
    return ChaCha(key, nonce)
