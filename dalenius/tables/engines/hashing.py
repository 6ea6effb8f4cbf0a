"""The keyed hash by which a unit's groups are sampled, defined on text, so that all engines compute the same.

A value is spelled as a letter for its type, the length of its text in bytes, a colon and the text:

    n NULL, no text             b boolean, 0 or 1          i integer, in decimal        t text, and all else
    r real, the 64 binary digits of its IEEE form, with one NaN and no −0
    d date, days since 1970     m moment, microseconds since 1970

    digest(role, values) = the first 32 bits of SHA-256(salt in hexadecimal ‖ role ‖ spelled values)
    hash(unit, key)        = F(digest("u", unit) ⊕ digest("k", key))
    hash(unit, key, value) = F(hash(unit, key) ⊕ digest("v", value))

F is a fixed one-to-one mixing of 32 bits (Wellons' lowbias32, of exact bias 0.11) whose products stay below
2^63: PostgreSQL and Spark compute it in their own 64-bit integers. SHA-256 is taken once for each distinct
unit, key and value; only F is for each pair.

**What rests on it.** That a unit keeps at most k is by count, and holds for every hash. Among the groups of a
unit those are kept whose hash is *below* the (k+1)-th least, so where hashes tie there, fewer than k are
kept: a function of the unit's own groups, in whatever order they come. That the sample is uniform and nobody
can steer it rests on the salt: 32 random bytes, drawn afresh for each query and never shown. Of two keys that
share a digest (1 in 10^4 for a thousand keys) a unit never keeps just one by chance, which matters to nobody.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.rows import KeyPart

Role = Literal["u", "k", "v"]
Digests = NDArray[np.uint32]


def mix(x: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """F: one-to-one on 32 bits."""
    x = x ^ (x >> np.uint32(16))
    x *= np.uint32(0x21F0AAAD)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x735A2D97)
    x ^= x >> np.uint32(15)
    return x


def least(
    hashes: NDArray[np.uint32], first: NDArray[np.intp], sizes: NDArray[np.intp], most: int
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """For each run of hashes, starting at `first`, the bar below which at most `most` of them are, and
    which of the hashes are below it.
    """
    place = np.repeat(np.arange(len(first), dtype=np.uint64), sizes)
    ordered = np.sort((place << np.uint64(32)) | hashes)
    bars = np.full(len(first), 1 << 32, np.uint64)
    crowded = np.flatnonzero(sizes > most)
    bars[crowded] = ordered[first[crowded] + most] & np.uint64(0xFFFFFFFF)
    return bars, hashes < np.repeat(bars, sizes)


def spelled(expression: str, kind: str) -> str:
    """SQL for a value as the hash spells it; `kind` is one of `Engine.columns`."""
    letter, text = _texts(expression).get(kind, ("t", f"CAST({expression} AS VARCHAR)"))
    text = f"coalesce({text}, '')"
    return f"CASE WHEN {expression} IS NULL THEN 'n0:' ELSE '{letter}' || strlen({text}) || ':' || {text} END"


def digest(salt: bytes, role: Role, spellings: list[str]) -> str:
    """SQL for the digest of several values, each spelled."""
    said = " || ".join([f"'{salt.hex()}{role}'", *(f"({spelling})" for spelling in spellings)])
    return f"CAST('0x' || substr(sha256({said}), 1, 8) AS UINTEGER)"


def digest_of(salt: bytes, role: Role, parts: Sequence[KeyPart]) -> int:
    """The digest of values that are at hand; real numbers have no NaN and no −0."""
    said = salt.hex() + role + "".join(_said(part) for part in parts)
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[:4], "big")


def _said(part: KeyPart) -> str:
    letter, text = _spelling(part)
    return f"{letter}{len(text.encode())}:{text}"


def _spelling(part: KeyPart) -> tuple[str, str]:
    match part:
        case None:
            return "n", ""
        case bool():
            return "b", str(int(part))
        case int():
            return "i", str(part)
        case float():
            return "r", f"{int.from_bytes(struct.pack('>d', part), 'big'):064b}"
        case datetime():
            return "m", str((part - datetime(1970, 1, 1)) // timedelta(microseconds=1))
        case date():
            return "d", str((part - date(1970, 1, 1)).days)
    return "t", part


def _texts(x: str) -> dict[str, tuple[str, str]]:
    # Decimals are made real before anything is added: the largest have no room for that.
    wide = f"CAST({x} AS DOUBLE)"
    real = f"CASE WHEN isnan({wide}) THEN CAST('nan' AS DOUBLE) ELSE {wide} + 0.0 END"
    return {
        "boolean": ("b", f"CASE WHEN {x} THEN '1' ELSE '0' END"),
        "integer": ("i", f"CAST({x} AS VARCHAR)"),
        "real": ("r", f"CAST(CAST(({real}) AS DOUBLE) AS BIT)::VARCHAR"),
        "date": ("d", f"CAST(CAST(epoch({x}) AS BIGINT) // 86400 AS VARCHAR)"),
        # Seconds and milliseconds reach further than microseconds do: moments beyond are spelled as one.
        "moment": ("m", f"TRY(CAST(epoch_us({x}) AS VARCHAR))"),
    }
