"""Exact noise one number at a time: drawn in blocks, as a specimen is called once for every draw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from numpy.typing import NDArray

from dalenius import noise
from dalenius.noise.reading import Number

BLOCK = 4096
"""So many are drawn at a time."""


def one_by_one(draw: Callable[[int], NDArray[Any]]) -> Callable[[], Any]:
    """Each call gives the next of endless draws."""

    def endless() -> Iterator[Any]:
        while True:
            yield from draw(BLOCK).tolist()

    return endless().__next__


def by_input(sample: Callable[[Any, int], NDArray[Any]], block: int = 1024) -> Callable[[Any], Any]:
    """A function of one value from one that samples many at a time on it."""
    waiting: dict[str, list[Any]] = {}

    def drawn(value: Any) -> Any:
        left = waiting.setdefault(repr(value), [])
        if not left:
            left.extend(sample(value, block).tolist())
        return left.pop()

    return drawn


def laplace(scale: Number) -> Callable[[], int]:
    """Two-sided geometric noise."""
    return one_by_one(lambda size: noise.discrete_laplace(scale, size))


def gaussian(scale: Number) -> Callable[[], int]:
    """Rounded Gaussian noise."""
    return one_by_one(lambda size: noise.rounded_gaussian(scale, size))


def coin(chance: Number) -> Callable[[], bool]:
    """True with this probability."""
    return one_by_one(lambda size: noise.bernoulli(chance, size))


def below(limit: int) -> Callable[[], int]:
    """A uniform whole number."""
    return one_by_one(lambda size: noise.uniform(limit, size))


def beside(value: int) -> list[int]:
    """The neighbours of a count."""
    return [value - 1, value + 1]


def next_to(*others: Any) -> Callable[[Any], Sequence[Any]]:
    """These, whatever the input."""
    return lambda _: others


def clamped(value: int, least: int, most: int) -> int:
    """The nearest number in a range."""
    return min(max(value, least), most)


def noisy(values: Iterable[int], draw: Callable[[], int]) -> list[int]:
    """Each with noise of its own."""
    return [value + draw() for value in values]
