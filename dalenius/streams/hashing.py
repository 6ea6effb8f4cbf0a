"""Items as 64 bits that look random: the same item always the same bits, on any machine.

Privacy never rests on these bits: the theorems that use them hold for any function of an item. How good an
estimate is does rest on them, for items that were not chosen with sight of the salt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument

Words = NDArray[np.uint64]


def hashed(items: Any, salt: int) -> Words:
    """One word for each item of a list or array: texts, or whole numbers."""
    if isinstance(items, np.ndarray) and items.dtype == object:
        items = items.ravel().tolist()
    if isinstance(items, list | tuple) and all(isinstance(item, int) for item in items):
        # By its type and not by its size: whole numbers of any length are items.
        items = np.array([item % 2**64 for item in items], np.uint64)
    array = np.array([items]) if isinstance(items, str) else np.atleast_1d(np.asarray(items))
    if array.dtype.kind in "iu":
        return mixed(array.astype(np.uint64), salt)
    if array.dtype.kind == "U" or (array.dtype == object and all(isinstance(item, str) for item in array)):
        return mixed(np.array(_texts(array.tolist()), np.uint64), salt)
    if not array.size:
        return np.empty(0, np.uint64)
    raise InvalidArgument("Items must be texts or whole numbers.", remedy="Convert them to text first.")


def _texts(items: Iterable[str]) -> list[int]:
    # Any text is an item, also one that is no Unicode.
    coded = (item.encode("utf-8", "surrogatepass") for item in items)
    return [int.from_bytes(hashlib.blake2b(each, digest_size=8).digest(), "little") for each in coded]


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
