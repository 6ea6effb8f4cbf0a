"""Disjoint shards of the rows, so that one unit has a say in one model only.

A unit's shard is a keyed hash of its name, and that of a row without a unit is a coin of its own. Either way
it follows from the unit alone: where a unit comes, goes or is blanked, the rows of all others stay where they
are, and one shard differs. Cutting a list into equal parts does not do: a row that leaves shifts all that
come after it. Where one unit replaces another of another name, two shards may differ.

    >>> parts = shards(6, 3, units=["ann", "bob", "ann", "eve", "bob", "ann"])
    >>> sorted(len(part) for part in parts if 0 in part)[0] >= 3        # all rows of ann are together
    True
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.learn.whose import NOBODY, check_units, owners
from dalenius.noise.stream import StreamKey
from dalenius.privacy import numbers

MOST = 10**6
"""Shards at most."""
COINS = 0
"""The path of the stream that rows without a unit have their coins from."""
Numbers = NDArray[np.int64]


def shards(rows: int, count: int, *, units: Any = None, key: bytes | None = None) -> list[Numbers]:
    """The row numbers of each of `count` shards; `units` says whose each row is.

    With the same key a unit has the same shard again, wherever it is listed.
    """
    many = numbers.count(count, "count", most=MOST)
    if key is not None and units is None:
        raise InvalidArgument(
            "Without units a row's shard follows from its place, which is another's once a row has left.",
            remedy="Pass units, the ids of the rows, or leave key out.",
        )
    places = shard_numbers(rows, many, units=units, key=key)
    order = np.argsort(places, kind="stable").astype(np.int64)
    return np.split(order, np.searchsorted(places[order], np.arange(many)))[1:]


def shard_numbers(rows: int, count: int, *, units: Any = None, key: bytes | None = None) -> Numbers:
    """The number of each row's shard, from 0 on; NOBODY for a row whose unit has no id."""
    secret = fresh_key() if key is None else key
    if units is None:
        words = StreamKey(secret, tainted=False).stream(COINS).words(rows, np.uint64)
        return (words % np.uint64(count)).astype(np.int64)
    check_units(units, rows)
    names, unit = owners(units)
    places = np.array([*(_shard(name, count, secret) for name in names), NOBODY], dtype=np.int64)
    return places[unit]


def fresh_key() -> bytes:
    """A key of 32 bytes."""
    return np.asarray(noise.uniform(256, 32), dtype=np.uint8).tobytes()


def _shard(name: str, count: int, key: bytes) -> int:
    """As good as uniform: 128 bits, or 64 for a row, are divided among a million at most."""
    digest = blake2b(name.encode("utf-8", "surrogatepass"), key=key, digest_size=16).digest()
    return int.from_bytes(digest, "little") % count
