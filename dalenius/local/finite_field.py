"""Finite fields of a prime order, and the one of four elements: sums and products of whole arrays.

Elements are the numbers 0 to order − 1. In a field of prime order arithmetic is that of remainders; in the
one of four, 2 and 3 are the roots of x² + x + 1, so sums are taken bit by bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument

Elements = NDArray[np.int32]
MOST_ORDER = 2**15
"""So that products are within 31 bits."""
PRODUCTS_OF_FOUR = np.array([[0, 0, 0, 0], [0, 1, 2, 3], [0, 2, 3, 1], [0, 3, 1, 2]], np.int32).ravel()


def is_order(number: int) -> bool:
    """Whether there is a field of that order here."""
    prime = number > 1 and all(number % d for d in range(2, int(number**0.5) + 1))
    return number == 4 or (prime and number < MOST_ORDER)


@dataclass(frozen=True)
class Field:
    """A field. Arrays are of 32-bit integers."""

    order: int

    def __post_init__(self) -> None:
        if not is_order(self.order):
            raise InvalidArgument(
                "The order of a field must be 4 or a prime below 2^15.", remedy="Choose a prime near it."
            )

    def add(self, a: Elements, b: Elements) -> Elements:
        """Sums."""
        if self.order == 4:
            return np.bitwise_xor(a, b)
        total = a + b
        found: Elements = total - self.order * (total >= self.order)
        return found

    def multiply(self, a: Elements, b: Elements) -> Elements:
        """Products."""
        if self.order == 4:
            return PRODUCTS_OF_FOUR.take(a * 4 + b)
        product = a * b
        found: Elements = product - product // self.order * self.order
        return found

    @cached_property
    def opposites(self) -> Elements:
        """What to add to each element for 0."""
        elements = np.arange(self.order, dtype=np.int32)
        return elements if self.order == 4 else (-elements) % self.order

    @cached_property
    def inverses(self) -> Elements:
        """What to multiply each element by for 1; of 0, 0."""
        if self.order == 4:
            return np.array([0, 1, 3, 2], np.int32)
        return np.array([pow(a, self.order - 2, self.order) if a else 0 for a in range(self.order)], np.int32)


@lru_cache(64)
def field_of(order: int) -> Field:
    """The field of an order, with its tables kept."""
    return Field(order)


@lru_cache(1)
def orders() -> tuple[int, ...]:
    """All orders, in turn."""
    sieve = np.ones(MOST_ORDER, bool)
    sieve[:2] = False
    for d in range(2, int(MOST_ORDER**0.5) + 1):
        sieve[d * d :: d] = False
    sieve[4] = True
    return tuple(np.flatnonzero(sieve).tolist())


def digits(codes: NDArray[Any], order: int, count: int) -> list[Elements]:
    """The digits of whole numbers, the least first."""
    found = []
    for _ in range(count):
        rest = codes // order
        found.append((codes - rest * order).astype(np.int32, copy=False))
        codes = rest
    return found
