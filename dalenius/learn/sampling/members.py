"""Who is sampled: every row by itself, or units of several rows each.

All of this is private: how many there are, and which rows belong to whom. A row without an id belongs to
nobody and takes part in no step (`mechanisms.contributions`).

A unit that takes part in a step brings all of its rows where they are K at most, and else K of them, every
choice equally likely and fresh each time. What a unit brings is a function of its own rows and of bits of
its own, so that one unit coming or going changes nothing that the others bring.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dalenius.errors import InvalidArgument
from dalenius.learn.sampling.choices import below
from dalenius.learn.sampling.coins import Ints
from dalenius.mechanisms import contributions
from dalenius.noise.bits import Bits
from dalenius.privacy import numbers

MOST_ROWS = 10**12
MOST_EACH = 10**6
"""Rows of a unit in a step: every unit of a batch has a line of so many."""


class Members(ABC):
    """Those who are sampled, numbered from 0."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many there are."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows they have in all."""

    @abstractmethod
    def rows_of(self, chosen: Ints, bits: Bits) -> Ints:
        """The rows that they bring."""


@dataclass(frozen=True, eq=False, repr=False)
class Rows(Members):
    """Every row by itself: a batch has one axis."""

    total: int

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.total

    @property
    def rows(self) -> int:
        """The same."""
        return self.total

    def rows_of(self, chosen: Ints, bits: Bits) -> Ints:
        """They are their rows."""
        return chosen


@dataclass(frozen=True, eq=False, repr=False)
class Units(Members):
    """Units of several rows, `most` of which take part: a batch has a line of row numbers for each unit."""

    order: Ints
    starts: Ints
    sizes: Ints
    most: int
    total: int

    @property
    def count(self) -> int:
        """How many units have a row."""
        return self.sizes.size

    @property
    def rows(self) -> int:
        """Those of all units, and those of nobody."""
        return self.total

    def rows_of(self, chosen: Ints, bits: Bits) -> Ints:
        """A line of `most` row numbers for each unit, −1 where it has fewer."""
        places, sizes = np.arange(self.most), self.sizes[chosen, None]
        offsets = np.where(places < sizes, places, -1)
        large = np.flatnonzero(sizes > self.most)
        offsets[large] = self._picked(self.sizes[chosen[large]], bits)
        rows = self.order[self.starts[chosen, None] + np.maximum(offsets, 0)]
        return np.where(offsets < 0, -1, rows)

    def _picked(self, sizes: Ints, bits: Bits) -> Ints:
        """`most` different numbers below each size: the first places of a random order (Fisher and Yates)."""
        ends = np.cumsum(sizes)
        first = ends - sizes
        cards = np.arange(int(sizes.sum())) - np.repeat(first, sizes)
        picked = np.empty((sizes.size, self.most), np.int64)
        for place in range(self.most):
            here, there = first + place, first + place + below(sizes - place, bits)
            picked[:, place] = cards[there]
            cards[there] = cards[here]
        return picked


def members(rows: object, units: ArrayLike | None, rows_per_unit: object) -> Members:
    """Rows by themselves, or the units they belong to where `units` says to which."""
    total = _rows(rows)
    if units is None and rows_per_unit is None:
        return Rows(total)
    if units is None or rows_per_unit is None:
        raise InvalidArgument(
            "units and rows_per_unit go together.",
            remedy="Pass both: to whom each row belongs, and how many rows of one take part at most.",
        )
    if contributions.size(units, "units") != total:
        raise InvalidArgument(
            "units must be whole numbers or texts, one for each row.",
            remedy="Pass units as a column with an entry for each row.",
        )
    most = numbers.count(rows_per_unit, "rows_per_unit", most=MOST_EACH)
    names, owners = contributions.units_of(units)
    owned = np.flatnonzero(owners != contributions.NOBODY)
    places = _ranks(names)[owners[owned]]
    order = owned[np.argsort(places, kind="stable")]
    _, starts, sizes = np.unique(np.sort(places), return_index=True, return_counts=True)
    return Units(order, starts, sizes, most, total)


def _ranks(names: list[str]) -> Ints:
    """The place of each unit: whole numbers by size, then all others by name, in whatever order they came."""
    keys = [(int(name[4:], 16), "") if name.startswith("int ") else (math.inf, name) for name in names]
    ranks = np.empty(len(names), np.int64)
    ranks[sorted(range(len(names)), key=keys.__getitem__)] = np.arange(len(names))
    return ranks


def _rows(rows: object) -> int:
    # The number is private, and so no part of the message.
    if not isinstance(rows, int | np.integer) or isinstance(rows, bool) or not 0 <= rows <= MOST_ROWS:
        raise InvalidArgument(
            "rows must be a whole number from 0 to 1e12.", remedy="Pass rows as the number of rows."
        )
    return int(rows)
