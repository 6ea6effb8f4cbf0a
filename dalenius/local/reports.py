"""`Reports`: what clients send, as whole numbers and as bytes.

A report is a row of `fields` whole numbers below `below`, each in the least number of bits that hold it. The
bytes of many reports, all integers little-endian:

    bytes 0–3     DLNR
    byte  4       the version of this format, 1
    bytes 5–20    the fingerprint: of the SHA-256 of the randomizer's JSON, the first 16 bytes
    bytes 21–28   how many reports
    then          the numbers one after the other, most significant bit first, without gaps between reports,
                  and zeros up to a whole byte

Nothing else is in it: no time, no name, no order but that of the rows. That a seed drew them (`tainted`) is
known within a process only. Bytes are checked before they are
unpacked: what is too short, too long, of another randomizer or out of range is refused.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument

MAGIC, VERSION = b"DLNR", 1
HEAD = struct.Struct("<4sB16sQ")
CHUNK = 1 << 23
"""Bits that are packed or unpacked at a time."""

Rows = NDArray[Any]
"""Unsigned numbers: a row for each report, a column for each of its fields."""


@dataclass(frozen=True)
class Format:
    """What the reports of one randomizer look like; `fingerprint` says whose they are."""

    fingerprint: bytes
    below: int
    fields: int = 1

    @property
    def width(self) -> int:
        """Bits of one number."""
        return max((self.below - 1).bit_length(), 1)

    @property
    def bits(self) -> int:
        """Bits of one report."""
        return self.width * self.fields

    @property
    def kind(self) -> np.dtype[Any]:
        """The least type that holds a number."""
        return np.dtype(next(f"u{size}" for size in (1, 2, 4, 8) if self.width <= 8 * size))


@dataclass(frozen=True, eq=False, repr=False)
class Reports:
    """Reports of one randomizer; `tainted` where a seed drew some of them. See the module."""

    format: Format
    rows: Rows
    tainted: bool = False

    def __post_init__(self) -> None:
        # Of others, who may write to them later.
        self._hold(np.array(self.rows))

    @staticmethod
    def owned(form: Format, rows: Rows, tainted: bool = False) -> Reports:
        """The same of rows that nobody else has, which are not copied."""
        found = object.__new__(Reports)
        for name, value in (("format", form), ("tainted", tainted)):
            object.__setattr__(found, name, value)
        found._hold(rows)
        return found

    def _hold(self, given: Rows) -> None:
        """Check them, and keep them as what nobody writes to."""
        if given.dtype.kind not in "iu" or given.ndim not in (1, 2) or not self._fits(given):
            raise InvalidArgument(
                "These are not reports of this format.", remedy="Pass what randomizer.encode gave."
            )
        rows = np.ascontiguousarray(given.reshape(-1, self.format.fields), self.format.kind)
        rows.flags.writeable = given.flags.writeable = False
        object.__setattr__(self, "rows", rows.view())

    def __reduce__(self) -> tuple[Any, ...]:
        return Reports, (self.format, self.rows, self.tainted)

    def _fits(self, rows: Rows) -> bool:
        fields = 1 if rows.ndim == 1 else rows.shape[1]
        inside = not rows.size or bool(rows.min() >= 0 and rows.max() < self.format.below)
        return fields == self.format.fields and inside

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<{len(self)} reports of {self.format.bits} bits>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reports):
            return NotImplemented
        return self.format == other.format and np.array_equal(self.rows, other.rows)

    def __add__(self, other: Reports) -> Reports:
        check_format(other.format, self.format)
        rows = np.concatenate([self.rows, other.rows])
        return Reports.owned(self.format, rows, self.tainted or other.tainted)

    def take(self, order: NDArray[np.int64]) -> Reports:
        """Some of them, in this order."""
        return Reports(self.format, self.rows[order], self.tainted)

    def to_bytes(self) -> bytes:
        """The wire format."""
        head = HEAD.pack(MAGIC, VERSION, self.format.fingerprint, len(self))
        return head + _packed(self.rows, self.format)

    @staticmethod
    def from_bytes(data: bytes, form: Format) -> Reports:
        """Read them back; whatever these bytes are, they are reports of this format or refused."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise InvalidArgument("Reports come as bytes.", remedy="Pass what reports.to_bytes() gave.")
        view = memoryview(data).cast("B") if memoryview(data).contiguous else memoryview(bytes(data))
        count = read_head(view, MAGIC, form.fingerprint)
        if (count * form.bits + 7) // 8 != len(view) - HEAD.size:
            raise InvalidArgument(
                "These bytes do not hold as many reports as they say.", remedy="Send the reports again."
            )
        return Reports.owned(form, _unpacked(view[HEAD.size :], count, form))


def read_head(view: memoryview, magic: bytes, fingerprint: bytes) -> int:
    """How many reports the bytes say they are of, where they are of this kind and randomizer."""
    if len(view) < HEAD.size or bytes(view[:4]) != magic:
        raise InvalidArgument("These bytes are not what is read here.", remedy="Pass what to_bytes() gave.")
    _, version, whose, count = HEAD.unpack(view[: HEAD.size])
    if version != VERSION:
        raise InvalidArgument(
            f"These bytes are of version {version}; this library reads version {VERSION}.",
            remedy="Read them with a later version of Dalenius.",
        )
    if whose != fingerprint:
        raise _foreign()
    return int(count)


def check_format(form: Format, expected: Format) -> None:
    """Refuse reports of another randomizer."""
    if form != expected:
        raise _foreign()


def _foreign() -> InvalidArgument:
    return InvalidArgument(
        "These reports are of a randomizer with other parameters.",
        remedy="Estimate them with the randomizer that encoded them.",
    )


def _packed(rows: Rows, form: Format) -> bytes:
    """A whole number of bytes at a time: eight numbers always fill some."""
    numbers, step = rows.ravel(), _step(form)
    wide = 8 * form.kind.itemsize
    parts = []
    for start in range(0, numbers.size, step):
        part = numbers[start : start + step].astype(form.kind.newbyteorder(">"))
        bits = np.unpackbits(part.view(np.uint8)).reshape(-1, wide)[:, wide - form.width :]
        parts.append(np.packbits(bits).tobytes())
    return b"".join(parts)


def _unpacked(view: memoryview, count: int, form: Format) -> Rows:
    size, step = count * form.fields, _step(form)
    wide, rows = 8 * form.kind.itemsize, np.empty((count, form.fields), form.kind)
    numbers = rows.reshape(-1)
    data = np.frombuffer(view, np.uint8)
    for start in range(0, size, step):
        many = min(step, size - start)
        first = start * form.width // 8
        part = np.unpackbits(data[first : first + (many * form.width + 7) // 8])
        if part[many * form.width :].any():
            raise InvalidArgument(
                "There is something after the last report.", remedy="Send the reports again."
            )
        bits = np.zeros((many, wide), np.uint8)
        bits[:, wide - form.width :] = part[: many * form.width].reshape(many, form.width)
        numbers[start : start + many] = np.packbits(bits).view(form.kind.newbyteorder(">"))
    return rows


def _step(form: Format) -> int:
    """Numbers at a time, a multiple of eight."""
    return max(CHUNK // form.width // 8, 1) * 8
