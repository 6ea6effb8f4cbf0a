"""Noise drawn ahead of its use, so that a single draw costs no more than a copy.

What a pool serves was drawn long before it is asked for, together with thousands of others: how long a
single draw takes tells nothing about the value it returns. What was served is overwritten with zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

DEPTH = 4096
"""How many values are drawn at a time."""
SERVED = 64
"""The longest vector taken from a pool; a longer one is drawn when it is asked for."""


class Pool:
    """Values of one law from one source, each served once. Threads may share it."""

    def __init__(self) -> None:
        self._values = np.zeros(DEPTH, np.int64)
        self._next = DEPTH
        self._lock = Lock()

    def take(self, size: int, fill: Callable[[Ints], None]) -> Ints:
        """The next `size` values, at most `SERVED`; `fill` draws new ones into an array."""
        with self._lock:
            if self._next + size > DEPTH:
                # Nothing may be served of a filling that an exception cuts short.
                self._next = DEPTH
                fill(self._values)
                self._next = 0
            part = self._values[self._next : self._next + size]
            self._next += size
            served = part.copy()
            part.fill(0)
        return served

    def wipe(self) -> None:
        """Forget what was not served yet. Takes no lock: a forked child may have inherited it closed."""
        self._values.fill(0)
        self._next = DEPTH
