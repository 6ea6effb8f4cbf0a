"""Keyed streams of bits that can be made again: how training resumes with the noise it had drawn.

A run holds one secret key of 32 bytes. A path of whole numbers (what for, which step, which tensor) names
one stream: AES-256 in counter mode from counter 0, under the path's own key

    AES(path ‖ 0) ‖ AES(path ‖ 1), by AES-256 under the key of the run.

No two paths can share a block of the cipher's output. A path is written into 15 bytes and the high bits of
the 16th so that different paths are written differently (7 bits of a number a byte, the last of a number
marked, and the count of numbers at the end). AES under one key is a permutation of blocks, so different
paths have different first halves of keys: different keys, with certainty. The key of the run encrypts
nothing else, and the counter of a stream would come around after 2^128 blocks. Under the usual assumption
on AES the streams of all paths are indistinguishable from independent uniform bits.

A stream is no source: it repeats itself by design, in any process and after a fork. Each path must be used
for one purpose, or noise is used twice. Whoever knows the key knows all noise of the run: keep it as secret
as the data.

    >>> from dalenius.noise.stream import StreamKey
    >>> key = StreamKey.fresh()
    >>> key.stream(1, 7).integer(64) == key.stream(1, 7).integer(64)
    True
"""

from __future__ import annotations

from dataclasses import dataclass, field

from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.noise import ciphers
from dalenius.noise.bits import Bits, Word
from dalenius.noise.chacha import Addressed
from dalenius.noise.source import BLOCK, KEY, Source, drawn

ROOM = 15
"""Bytes that a path is written into: 105 bits in all."""
_ZEROS = memoryview(bytes(BLOCK))


class Stream(Bits):
    """The bits of one path, from the first on. For one thread at a time; never renewed by a fork."""

    def __init__(self, key: bytes, *, tainted: bool) -> None:
        self.tainted = tainted
        self._cipher = ciphers.counter_mode(key, bytes(16))

    def fill(self, words: NDArray[Word]) -> None:
        """Overwrite a contiguous array with the bits that follow."""
        into = words.data.cast("B") if words.size else memoryview(b"")
        for start in range(0, len(into), BLOCK):
            part = into[start : start + BLOCK]
            self._cipher.update_into(_ZEROS[: len(part)], part)


@dataclass(frozen=True, slots=True)
class StreamKey:
    """The secret of a run, from which all its streams follow."""

    secret: bytes = field(repr=False)
    """To be kept where only the run can read it, together with `tainted`."""
    tainted: bool

    def __post_init__(self) -> None:
        if not isinstance(self.secret, bytes) or len(self.secret) != KEY:
            raise InvalidArgument(
                f"secret must be {KEY} bytes.",
                remedy="Pass the secret of a key that was kept, or call StreamKey.fresh().",
            )

    @classmethod
    def fresh(cls) -> StreamKey:
        """A new key from the operating system, or a tainted one where a seed is in force."""
        return drawn(_drawn)

    def stream(self, *path: int) -> Stream:
        """The stream of a path, from its beginning."""
        return Stream(self._of(path), tainted=self.tainted)

    def addressed(self, *path: int) -> Addressed:
        """The words of a path by address, of a path that has no stream."""
        return Addressed(self._of(path), tainted=self.tainted)

    def _of(self, path: tuple[int, ...]) -> bytes:
        """The key of a path."""
        name = written(path)
        return ciphers.single_blocks(self.secret).update(name + name[:-1] + bytes([name[-1] | 1]))


def written(path: tuple[int, ...]) -> bytes:
    """A path as a block of 16 bytes, whose last bit is 0; different paths give different blocks."""
    if not all(type(number) is int and number >= 0 for number in path):
        raise InvalidArgument(
            "A path is made of whole numbers.", remedy="Pass each as an int from 0 on, such as stream(1, 7)."
        )
    digits = b"".join(_digits(number) for number in path)
    if len(digits) > ROOM:
        raise InvalidArgument(
            f"A path fills at most {ROOM} bytes, at 7 bits of a number a byte.",
            remedy="Pass fewer or smaller numbers: five below 2^21 always fit.",
        )
    return digits.ljust(ROOM, b"\0") + bytes([len(path) << 1])


def _digits(number: int) -> bytes:
    """Base 128, the least digit first, the last one without the mark."""
    low = number & 127
    return bytes([low]) if number < 128 else bytes([low | 128]) + _digits(number >> 7)


def _drawn(source: Source) -> StreamKey:
    return StreamKey(source.integer(8 * KEY).to_bytes(KEY, "little"), tainted=source.tainted)
