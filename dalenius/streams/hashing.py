"""Items as 64 bits that look random: the same item always the same bits, on any machine.

The bits of an item follow from it alone, whatever stands beside it: a whole number of any type counts modulo
2^64, True and False as 1 and 0, a text and bytes by their digests, of which 1, "1" and b"1" are three items.
Whatever else there may be in a list, such as a missing value, is one item, the same for all of it.

Privacy never rests on how random the bits look: the theorems that use them hold for any function of an item.
How good an estimate is does rest on it, for items that were not chosen with sight of the salt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.privacy.records import cells, integer

Words = NDArray[np.uint64]
KINDS = "biuUSTO"
"""Of numpy's types: whole numbers, texts, bytes, and anything."""


def hashed(items: Any, salt: int) -> Words:
    """One word for each item of a list, an array or a column; for one that stands alone, one."""
    given = cells(items, KINDS, "Items must be texts or whole numbers", "Convert them to text first.")
    return mixed(_words(given), salt)


def _words(given: list[Any] | NDArray[Any]) -> Words:
    """That of each cell, by the quickest way for their types: all ways give the same."""
    if not isinstance(given, list):
        if given.dtype.kind in "biu":
            return given.astype(np.uint64)
        given = given.tolist()
    types = set(map(type, given))
    if types == {str}:
        return np.array(_texts(given), np.uint64)
    if types == {int}:
        try:
            return np.array(given, np.int64).astype(np.uint64)
        except OverflowError:
            return np.array([number % 2**64 for number in given], np.uint64)
    return np.array([_word(cell) for cell in given], np.uint64)


def _word(cell: object) -> int:
    found = integer(cell)
    if found is not None:
        return found % 2**64
    if isinstance(cell, str):
        return _texts([cell])[0]
    return _digest(cell, b"bytes") if isinstance(cell, bytes) else OTHER


def _texts(items: Iterable[str]) -> list[int]:
    # Any text is an item, also one that is no Unicode.
    coded = (str.encode(item, "utf-8", "surrogatepass") for item in items)
    return [int.from_bytes(hashlib.blake2b(each, digest_size=8).digest(), "little") for each in coded]


def _digest(data: bytes, person: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, person=person).digest(), "little")


OTHER = _digest(b"", b"neither")
"""The word of all that is no item by its type."""


def mixed(words: Words, salt: int) -> Words:
    """Multiplications and shifts, so that every bit depends on all (after Steele, Lea and Flood 2014)."""
    with np.errstate(over="ignore"):
        state = words + np.uint64((salt * 0x9E3779B97F4A7C15) % 2**64)
        for _ in range(2):
            state = state + np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = state ^ (state >> np.uint64(31))
    return state
