"""`BitRows`: reports that are a row's number and as many bits as the row has places.

RAPPOR and Apple's count-mean sketch have the same reports: each row (a cohort, a hash function) has its own
hashes of strings onto places; a report names its row and has a bit for each place. Rows are a power of two,
whose number is sent in binary before the bits. The server needs, for each row, how many reports name it and
how often each bit is 1.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.local import tallies
from dalenius.local.crowds import binomials, uniform_counts
from dalenius.local.frequency import LISTED
from dalenius.local.randomizer import Ints, Randomizer
from dalenius.local.reports import Rows
from dalenius.local.strings import Words, constants, places, read_strings, words_of
from dalenius.mechanisms.mechanism import Law

TRIED = 64
"""Strings among which a worst case is looked for."""


@dataclass(frozen=True)
class StringRandomizer(Randomizer):
    """Values are strings, which rows of hashes take to places. See the module."""

    @property
    @abstractmethod
    def layout(self) -> tuple[int, int, int]:
        """How many rows, places of each, and hashes of each."""

    def read(self, values: Any) -> Words:
        """Strings as words."""
        return words_of(read_strings(values))

    def spots(self, row: Ints, words: Words) -> Ints:
        """The places of strings in their rows: a column for each hash."""
        rows, width, hashes = self.layout
        family = constants(rows * hashes).reshape(rows, hashes, 3)
        return places(words[:, None], family[row], width)

    def worst_case(self) -> tuple[str, str]:
        """Two strings that share a place in the fewest rows."""
        return self._worst

    @cached_property
    def _worst(self) -> tuple[str, str]:
        rows, width, hashes = self.layout
        some = np.arange(min(rows, TRIED))
        words = words_of(str(number).encode() for number in range(TRIED))
        spots = places(words[:, None, None], constants(rows * hashes).reshape(rows, hashes, 3)[some], width)
        marks = np.zeros((TRIED, some.size, width), bool)
        np.put_along_axis(marks, spots, True, axis=2)
        flat = marks.reshape(TRIED, -1)
        first, second = max(
            combinations(range(TRIED), 2), key=lambda pair: int((flat[pair[0]] ^ flat[pair[1]]).sum())
        )
        return str(first), str(second)


@dataclass(frozen=True)
class BitRows(StringRandomizer):
    """A row's number in binary, then its bits."""

    @property
    @abstractmethod
    def support(self) -> tuple[Fraction, Fraction]:
        """With which probability a bit is 1 where a string's hash falls, and elsewhere."""

    @property
    def digits(self) -> int:
        """Of a row's number."""
        return (self.layout[0] - 1).bit_length()

    @property
    def shape(self) -> tuple[int, int]:
        """All of them bits."""
        return 2, self.digits + self.layout[1]

    def draw_rows(self, size: int) -> Ints:
        """Each as likely, whatever the values."""
        return np.asarray(noise.uniform(self.layout[0], size), dtype=np.int64)

    def filters(self, row: Ints, words: Words) -> Rows:
        """The bits before any noise: 1 where a hash falls."""
        bits = np.zeros((row.size, self.layout[1]), np.uint8)
        np.put_along_axis(bits, self.spots(row, words), 1, axis=1)
        return bits

    def joined(self, row: Ints, bits: NDArray[Any]) -> Rows:
        """Reports of rows and bits."""
        number = row[:, None] >> np.arange(self.digits)[::-1] & 1
        return np.concatenate([number.astype(np.uint8), bits.astype(np.uint8)], axis=1)

    def parted(self, rows: Rows) -> tuple[Ints, Rows]:
        """The rows and bits of reports."""
        number = rows[:, : self.digits].astype(np.int64)
        return number @ (1 << np.arange(self.digits)[::-1]), rows[:, self.digits :]

    @property
    def cells(self) -> int:
        """For each row its reports, and the ones of each bit."""
        rows, width, _ = self.layout
        return rows * (1 + width)

    def adds_up(self, tally: Ints, count: int) -> bool:
        """Each report has one row, and each bit of it at most once."""
        counts, ones = self.by_row(tally)
        return tallies.parts_of(counts, count) and bool(((ones >= 0) & (ones <= counts[:, None])).all())

    def tally(self, rows: Rows) -> Ints:
        """By rows in order."""
        row, bits = self.parted(rows)
        order = np.argsort(row, kind="stable")
        named, starts = np.unique(row[order], return_index=True)
        found = np.zeros((self.layout[0], 1 + self.layout[1]), np.int64)
        found[:, 0] = np.bincount(row, minlength=self.layout[0])
        if named.size:
            found[named, 1:] = np.add.reduceat(bits[order], starts, axis=0, dtype=np.int64)
        return found.ravel()

    def crowd(self, words: Words, people: Ints) -> Ints:
        """The tally of so many people with each string, drawn by its joint law: rows, then bits.

        With several rows of people, a tally of each.
        """
        (rows, width, _), (high, low), (*surveys, many) = self.layout, self.support, people.shape
        there = uniform_counts(people.ravel(), rows).reshape(*surveys, many, rows)
        found = np.empty((*surveys, rows, 1 + width), np.int64)
        for row in range(rows):
            bits = self.filters(np.full(many, row), words).astype(np.int64)
            hit = there[..., row] @ bits
            missed = there[..., row].sum(axis=-1, keepdims=True) - hit
            found[..., row, 1:] = binomials(hit, high) + binomials(missed, low)
        found[..., 0] = there.sum(axis=-2)
        return found.reshape(*surveys, self.cells)

    def by_row(self, tally: Ints) -> tuple[Ints, Ints]:
        """How many reports name each row, and the ones of its bits."""
        table = tally.reshape(self.layout[0], 1 + self.layout[1])
        return table[:, 0], table[:, 1:]

    def probabilities(self, value: Any) -> Law | None:
        """Of all reports, where they can be listed."""
        rows, width, _ = self.layout
        if rows << width > LISTED:
            return None
        high, low = map(float, self.support)
        bits = np.array(list(product((0, 1), repeat=width)))
        every = np.arange(rows)
        chances = np.where(self.filters(every, np.repeat(self.read([value]), rows, axis=0)), high, low)
        masses = np.where(bits[None], chances[:, None], 1 - chances[:, None]).prod(axis=2) / rows
        outcomes = self.joined(np.repeat(every, len(bits)), np.tile(bits, (rows, 1)))
        return Law(tuple(map(tuple, outcomes.tolist())), masses.ravel())
