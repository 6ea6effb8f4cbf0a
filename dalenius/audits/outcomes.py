"""Outputs of any kind as rows of numbers, so that what tells two inputs apart can be learned.

What an output is made of is laid flat: numbers, and numbers in arrays, lists, tuples and dicts. Beside each
number stand what is easily overlooked: how fine it is, which for floating-point noise depends on the value
that it was added to (Mironov 2012), and its difference from the one before, which is free of noise that was
used twice. The kind of an output, its length, its text, and whether it was an error at all is a column too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius.audits.families import Floats

WIDEST = 64
"""So many numbers of an output are looked at."""
LOW = 16
"""Of so many the low bits and the differences."""
WORDS = 256
"""So many different texts or kinds are told apart."""


@dataclass(frozen=True)
class Raised:
    """An output that is an error, by the name of its type."""

    name: str


@dataclass(frozen=True)
class Layout:
    """Which kinds and texts there are, and how many numbers an output has at the most."""

    words: Mapping[str, int]
    width: int

    @staticmethod
    def of(outputs: Sequence[Any]) -> Layout:
        """From outputs of both inputs."""
        flat = [_flat(output) for output in outputs]
        common = Counter(word for word, _ in flat).most_common(WORDS)
        width = min(WIDEST, max((len(found) for _, found in flat), default=0))
        return Layout({word: place for place, (word, _) in enumerate(common)}, width)

    def rows(self, outputs: Sequence[Any]) -> Floats:
        """One row each: the kind, the numbers, how fine they are, and their differences."""
        flat = [_flat(output) for output in outputs]
        kinds = np.array([[self.words.get(word, -1)] for word, _ in flat], dtype=np.float64)
        whole = np.zeros((len(flat), self.width))
        for row, (_, found) in zip(whole, flat, strict=True):
            row[: len(found)] = found[: self.width]
        low = whole[:, :LOW]
        return np.hstack([kinds, _calm(whole), _finest(low), _calm(np.diff(low, axis=1))])


def _flat(output: Any) -> tuple[str, list[float]]:
    """The kind of an output in words, and its numbers."""
    if isinstance(output, bool | int | float | np.generic) and not isinstance(output, np.str_ | np.bytes_):
        return "number", [_number(output)]
    if isinstance(output, np.ndarray) and output.dtype.kind in "biuf":
        return f"{output.shape}", [_number(each) for each in output.reshape(-1)[:WIDEST].tolist()]
    if isinstance(output, Mapping):
        return _together("map", [part for pair in sorted(output.items(), key=repr) for part in pair])
    if isinstance(output, list | tuple | np.ndarray):
        return _together(type(output).__name__, list(output))
    if isinstance(output, Raised):
        return f"raised {output.name}", []
    if isinstance(output, str | bytes | None | Decimal | Fraction | Enum | date | timedelta | complex):
        return repr(output), []
    inside = getattr(output, "__dict__", {})
    # Where an object lies in memory, which a plain repr shows, says nothing about the data.
    return _together(type(output).__qualname__, [part for pair in sorted(inside.items()) for part in pair])


def _together(name: str, parts: Sequence[Any]) -> tuple[str, list[float]]:
    found = [_flat(part) for part in parts[:WIDEST]]
    kinds = Counter(word for word, _ in found)
    said = ", ".join(f"{word} x{times}" for word, times in sorted(kinds.items()))
    return f"{name}({said}; {len(parts)})", [number for _, numbers in found for number in numbers]


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _calm(values: Floats) -> Floats:
    return np.nan_to_num(values, nan=0.0, posinf=1e300, neginf=-1e300)


def _finest(values: Floats) -> Floats:
    """The exponent of the lowest bit that is set; -2000 for zero, 2000 for what is not finite."""
    finite = np.isfinite(values) & (values != 0)
    mantissa, exponent = np.frexp(np.where(finite, values, 1.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    zeros = np.log2((whole & -whole).astype(np.float64))
    return np.where(finite, exponent - 53 + zeros, np.where(values == 0, -2000.0, 2000.0))
