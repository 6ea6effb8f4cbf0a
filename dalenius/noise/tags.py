"""Keyed tags of long messages, a key for each message: of two kinds, which their lengths tell apart.

16 bytes: AES-256 in Galois mode (GMAC), with a nonce of zeros; two messages of at most n blocks have one tag
with probability (n + 1)/2^128 at most. It is quick where `cryptography` is. 32 bytes: keyed BLAKE2b
(RFC 7693), quick in every Python; to find a message of the same tag is to break it. Either kind can be made
anywhere, so that a tag of one machine can be held against a message on another.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from dalenius.noise import ciphers

GALOIS, BLAKE = 16, 32
"""The kinds, by their length in bytes."""


def quick() -> int:
    """The kind that is quick here."""
    return GALOIS if ciphers.COMPILED else BLAKE


def tag(key: bytes, parts: Iterable[bytes | memoryview], kind: int) -> bytes:
    """Of all parts, one after the other."""
    if kind == GALOIS:
        return _galois(key, parts)
    mac = blake2b(key=key, digest_size=BLAKE, person=b"dalenius seal")
    for part in parts:
        mac.update(part)
    return mac.digest()


def _galois(key: bytes, parts: Iterable[bytes | memoryview]) -> bytes:
    if not ciphers.COMPILED:
        from dalenius.noise.galois import Galois

        return Galois(key).tag(parts)
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    mac = Cipher(algorithms.AES256(key), modes.GCM(bytes(12))).encryptor()
    for part in parts:
        mac.authenticate_additional_data(part)
    mac.finalize()
    return mac.tag
