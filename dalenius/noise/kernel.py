"""The inner loops of drawing: numpy's, in several passes, or those of `kernel.c`, in one.

Installing builds the latter where a C compiler is at hand. Both give the same values for the same bits; a
library that was built from another source than the one beside it is not used.
"""

from __future__ import annotations

import ctypes
import zlib
from ctypes import c_double, c_float, c_int64, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.noise.law import Floats, Ints

LIBRARY = Path(__file__).with_name("kernel.shared")
"""Not named as an extension of Python is, which it is not."""
SOURCE = Path(__file__).with_name("kernel.c")
GRAIN = 2.0**-32
"""V is first known to so much."""
_BYTES = ctypes.c_char * 0
"""Of any number: only where they begin is asked."""

Narrow = NDArray[np.int32]
Words = NDArray[np.uint32]
Flags = NDArray[np.bool_]
Slots = NDArray[np.unsignedinteger[Any]]
Places = NDArray[np.integer[Any]]
Reals = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True)
class Bins:
    """A word proposes firsts[word >> rest] + (word & mask), and is sure to be right below `unsure`."""

    firsts: Narrow
    rest: int
    mask: int
    unsure: int


@dataclass(frozen=True)
class Grid:
    """Noise is added to x/step within ±limit, cut to whole numbers; the sum is multiplied by a factor."""

    step: float
    limit: float
    factor: float


class Loops:
    """By numpy. All arrays are contiguous."""

    def propose(self, words: Words, values: Narrow, bins: Bins) -> Ints:
        """Overwrite `values`; where they are not sure."""
        bins.firsts.take(words >> np.uint32(bins.rest), out=values, mode="clip")
        values += (words & np.uint32(bins.mask)).view(np.int32)
        return (words >= np.uint32(bins.unsure)).nonzero()[0]

    def settle(
        self, slots: Slots, places: Places, bits: Words, sure: int, lines: Floats
    ) -> tuple[Flags, Ints]:
        """Which layers with V are below the lower of two lines, and which between them.

        A row of lines, the first that of slot `sure`: its layer, both lines at place 0, and their slope.
        """
        rows = slots.astype(np.int64) - sure
        layer, low, high, slope = (lines[:, column].take(rows) for column in range(4))
        least, along = layer + bits * GRAIN, slope * places
        passed = least + GRAIN <= low + along
        return passed, (~passed & (least < high + along)).nonzero()[0]

    def add(self, total: Reals, noise: Narrow, grid: Grid) -> None:
        """Noise onto a total of numbers, in place."""
        total *= total.dtype.type(1 / grid.step)
        np.clip(total, -grid.limit, grid.limit, out=total)
        np.add(total.astype(np.int32), noise, out=total, dtype=np.int32, casting="unsafe")
        total *= total.dtype.type(grid.factor)

    def onto(self, words: Words, total: Reals, bins: Bins, grid: Grid, scratch: Ints) -> Ints:
        """What words propose, onto a total; nothing where it is not sure, and where that is."""
        values = np.empty(words.size, np.int32)
        todo = self.propose(words, values, bins)
        before = total[todo]
        self.add(total, values, grid)
        total[todo] = before
        return todo


class Compiled(Loops):
    """By C."""

    def __init__(self, library: ctypes.CDLL) -> None:
        bins: list[Any] = [c_void_p, c_size_t, c_void_p, *[c_uint32] * 3, c_void_p]
        self._propose, self._settle = library.dalenius_propose, library.dalenius_settle
        self._propose.argtypes = [*bins, c_void_p]
        self._settle.argtypes = [c_size_t, c_int64, *[c_void_p] * 6]
        self._propose.restype = self._settle.restype = c_size_t
        self._add, self._onto = {}, {}
        for name, real in (("single", c_float), ("double", c_double)):
            add, onto = (getattr(library, f"dalenius_{what}_{name}") for what in ("add", "onto"))
            add.argtypes, add.restype = [c_void_p, c_void_p, c_size_t, *[real] * 3], None
            onto.argtypes, onto.restype = [*bins, c_void_p, *[real] * 3], c_size_t
            self._add[np.dtype(real)], self._onto[np.dtype(real)] = add, onto

    def propose(self, words: Words, values: Narrow, bins: Bins) -> Ints:
        """As numpy does it."""
        todo = np.empty(words.size, np.int64)
        return todo[: self._propose(*_given(words, bins, todo), _at(values))]

    def settle(
        self, slots: Slots, places: Places, bits: Words, sure: int, lines: Floats
    ) -> tuple[Flags, Ints]:
        """As numpy does it."""
        of_slots, of_places = (one.astype(np.int64, copy=False) for one in (slots, places))
        passed, between = np.empty(slots.size, np.bool_), np.empty(slots.size, np.int64)
        given: tuple[NDArray[Any], ...] = (of_slots, of_places, bits, lines, passed, between)
        found = self._settle(slots.size, sure, *map(_at, given))
        return passed, between[:found]

    def add(self, total: Reals, noise: Narrow, grid: Grid) -> None:
        """As numpy does it."""
        self._add[total.dtype](_at(total), _at(noise), total.size, 1 / grid.step, grid.limit, grid.factor)

    def onto(self, words: Words, total: Reals, bins: Bins, grid: Grid, scratch: Ints) -> Ints:
        """As numpy does it, with scratch for as many places as there are words."""
        given = _given(words, bins, scratch)
        found = self._onto[total.dtype](*given, _at(total), 1 / grid.step, grid.limit, grid.factor)
        return scratch[:found].copy()


def _given(words: Words, bins: Bins, todo: Ints) -> tuple[int, ...]:
    return _at(words), words.size, _at(bins.firsts), bins.rest, bins.mask, bins.unsure, _at(todo)


def _at(array: NDArray[Any]) -> int:
    return ctypes.addressof(_BYTES.from_buffer(array.data))


def load() -> Loops:
    """The compiled loops, if they were built, and from this source."""
    try:
        library = ctypes.CDLL(str(LIBRARY))
        library.dalenius_source.restype = c_uint32
        fits = library.dalenius_source() == zlib.crc32(SOURCE.read_bytes())
    except (OSError, AttributeError):
        return Loops()
    return Compiled(library) if fits else Loops()


loops = load()
"""Those that draw."""
