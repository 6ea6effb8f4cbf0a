"""The one source of bits: AES-256 in counter mode, keyed by the operating system.

A block of `BLOCK` bytes is the keystream of one key. Its first 32 bytes never leave: mixed with 32 fresh
bytes of the operating system they are the next key, so that neither a seized memory reveals what was
drawn before (Bernstein 2017, fast key erasure) nor does one weak answer of the system weaken what follows.
Bytes that were handed out are overwritten with zeros. After a fork the child starts anew: key, block and
pools are its own.

For tests there is a twin whose stream follows from a seed. All that is drawn while it is in force is
tainted, and says so; it keeps its own pools, so that nothing of it is served afterwards.

    >>> from dalenius import noise
    >>> with noise.seeded(b"for a test"):
    ...     noise.tainted(), noise.discrete_laplace(10, 3).size
    (True, 3)
    >>> noise.tainted()
    False
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock, get_ident
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument, NotSound
from dalenius.noise import ciphers
from dalenius.noise.bits import Bits, Word
from dalenius.noise.pool import Pool

Bytes = NDArray[np.uint8]
Drawn = TypeVar("Drawn")

BLOCK = 1 << 18
"""Bytes of keystream under one key."""
KEY = 32
"""Bytes of a key."""
_ZEROS = bytes(BLOCK)


def keystream(key: bytes | bytearray, into: Bytes, start: bytes = bytes(16)) -> None:
    """Fill `into`, of at most `BLOCK` bytes, with the keystream of AES-256 counting from `start`."""
    ciphers.counter_mode(key, start).update_into(memoryview(_ZEROS)[: into.size], into.data)


class Alone:
    """A lock for one thread at a time; a signal handler that comes back to it is refused."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner: int | None = None

    def __enter__(self) -> None:
        if self._owner == get_ident():
            raise NotSound(
                "Noise was asked for in the midst of a draw of noise, by a signal handler.",
                remedy="Draw it outside of the handler.",
            )
        self._lock.acquire()
        self._owner = get_ident()

    def __exit__(self, *_: object) -> None:
        self._owner = None
        self._lock.release()


class Source(Bits):
    """A stream of independent uniform bits, each handed out once. Threads may share it."""

    def __init__(self, seed: bytes | None = None, *, secret: bool = False) -> None:
        self.tainted = seed is not None and not secret
        self._repeats = seed is not None
        self._key = bytearray(KEY) if seed is None else bytearray(hashlib.sha256(seed).digest())
        self._block: Bytes = np.zeros(BLOCK, np.uint8)
        self._start()
        _SOURCES.add(self)

    def _start(self) -> None:
        self.pools: WeakKeyDictionary[object, Pool] = WeakKeyDictionary()
        self._next = BLOCK
        self._lock = Alone()
        self.process = os.getpid()

    def fill(self, words: NDArray[Word]) -> None:
        """Overwrite a contiguous array with fresh bits."""
        process = self.process
        into = words.view(np.uint8)
        done = 0
        with self._lock:
            while done < into.size:
                if self._next >= BLOCK:
                    self._refill()
                # Bytes count as used before they are copied: an exception must not serve them twice.
                start = self._next
                step = min(into.size - done, BLOCK - start)
                self._next = start + step
                part = self._block[start : start + step]
                into[done : done + step] = part
                part.fill(0)
                done += step
        if process != os.getpid():
            # A signal handler forked while this ran: what was copied, and a new key, may be the parent's.
            self.renew()
            self.fill(words)

    def renew(self) -> None:
        """In a child process: forget what the parent may draw too. A seeded stream goes on as it was."""
        rest = self._next
        for pool in self.pools.values():
            pool.wipe()
        if not self._repeats:
            self._block.fill(0)
            self._key = bytearray(KEY)
        self._start()
        if self._repeats:
            self._next = rest

    def _refill(self) -> None:
        if not self._repeats:
            self._key[:] = bytes(a ^ b for a, b in zip(self._key, os.urandom(KEY), strict=True))
        keystream(self._key, self._block)
        self._key[:] = self._block[:KEY].tobytes()
        self._block[:KEY] = 0
        self._next = KEY


_SOURCES: WeakSet[Source] = WeakSet()
_SYSTEM = Source()
_RENEWING = Lock()
_CURRENT: ContextVar[Source] = ContextVar("source", default=_SYSTEM)


def active() -> Source:
    """The source to draw from here and now, belonging to this process."""
    source = _CURRENT.get()
    if source.process != os.getpid():
        # Forked by foreign code that calls no hook; threads of the child may meet here.
        with _RENEWING:
            if source.process != os.getpid():
                source.renew()
    return source


def drawn(draw: Callable[[Source], Drawn]) -> Drawn:
    """What `draw` makes of the source; made anew in the child if the process forked in the midst of it."""
    source = active()
    process = source.process
    found = draw(source)
    return found if process == os.getpid() else drawn(draw)


def drawn_from(bits: Bits | None, draw: Callable[[Bits], Drawn]) -> Drawn:
    """What `draw` makes of these bits, or of the source where none are given."""
    return drawn(draw) if bits is None else draw(bits)


def tainted() -> bool:
    """Whether what is drawn here and now follows from a seed, and so protects nobody."""
    return _CURRENT.get().tainted


@contextmanager
def seeded(seed: bytes) -> Iterator[None]:
    """For tests only: draw from the stream of `seed` within the block, in this thread or task."""
    if not isinstance(seed, bytes):
        raise InvalidArgument("seed must be bytes.", remedy='Pass seed as bytes, such as b"a test".')
    token = _CURRENT.set(Source(seed))
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def derived(secret: bytes) -> Iterator[None]:
    """Draw from the stream that a secret fixes within the block, in this thread or task.

    What is drawn protects as long as `secret` is known to nobody else, and is tainted only where a seed is in
    force around the block. The caller draws one thing from each secret: the stream repeats itself.
    """
    token = _CURRENT.set(Source(secret, secret=not tainted()))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def _forked() -> None:
    for source in list(_SOURCES):
        source.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
