"""Strings as words, and the hashes that sketches and Bloom filters share.

A string is read as 64 bits of its BLAKE2b digest, two words of 32 bits; a billion strings have two with the
same words with probability below 0.03. A hash onto 2^b places is (a₁x₁ + a₂x₂ + c mod 2^64) / 2^(64 − b),
rounded down.

Theorem (Dietzfelbinger 1996). For a₁, a₂ and c uniform below 2^64 and b ≤ 33, any two different pairs of
words fall on any two places with probability 4^{−b}: they collide with 2^{−b}. The constants of all hashes
are public, the same for everyone, and stretched from a fixed text by SHAKE-256, as if they were drawn.

What is no text counts as the empty one: no refusal depends on a value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.local.reading import column
from dalenius.privacy import numbers
from dalenius.privacy.records import integer

Words = NDArray[np.uint64]
MOST_BYTES = 1024
"""Of a string; the rest is cut off."""
MOST_BITS = 2048
"""Of a whole number; a longer one counts as no text. Python may refuse to write more than 640 digits."""
KINDS = "SUTOiu"
"""Of numpy's types: texts, bytes, whole numbers, and anything."""
LABEL = b"dalenius.local.strings 1"


def power_of_two(value: object, name: str, *, least: int = 2, most: int = 2**20) -> int:
    """A number of places that hashes can fall on."""
    found = numbers.count(value, name, least=least, most=most)
    if found & (found - 1):
        raise InvalidArgument(
            f"{name} must be a power of two.", remedy=f"Choose {name}={1 << found.bit_length()}."
        )
    return found


def as_bytes(value: object) -> bytes:
    """A text, its bytes, or a whole number as its digits; anything else is empty."""
    if isinstance(value, str):
        return str.encode(value, "utf-8", "replace")[:MOST_BYTES]
    if isinstance(value, bytes):
        return value[:MOST_BYTES]
    found = None if isinstance(value, bool | np.bool_) else integer(value)
    return str(found).encode() if found is not None and found.bit_length() <= MOST_BITS else b""


def read_strings(values: Any) -> list[bytes]:
    """Strings one by one, or one alone. An array's type is a fact of the schema; what is in it is private."""
    if isinstance(values, str | bytes):
        return [as_bytes(values)]
    given = column(values, KINDS, "Values must be strings", "Pass a list of strings.")
    return [as_bytes(value) for value in given]


def words_of(texts: Iterable[bytes]) -> Words:
    """A row of two words for each text."""
    known: dict[bytes, bytes] = {}
    joined = b"".join(
        known[text] if text in known else known.setdefault(text, _digest(text)) for text in texts
    )
    return np.frombuffer(joined, "<u4").astype(np.uint64).reshape(-1, 2)


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=8).digest()


@lru_cache(maxsize=16)
def constants(count: int) -> Words:
    """a₁, a₂ and c of the first so many hashes."""
    stream = hashlib.shake_256(LABEL).digest(24 * count)
    return np.frombuffer(stream, "<u8").astype(np.uint64).reshape(count, 3)


def places(words: Words, hashes: Words, below: int) -> NDArray[np.int64]:
    """Where words fall under hashes onto `below` places, a power of two; the two broadcast."""
    mixed = hashes[..., 0] * words[..., 0] + hashes[..., 1] * words[..., 1] + hashes[..., 2]
    return (mixed >> np.uint64(65 - below.bit_length())).astype(np.int64)
