"""Local hashing (OLH): a hash of the person's own choice, and randomized response on its few values.

A device draws a hash h of a family onto g values and reports h with h(item), or in place of the latter
another value. Theorem (Wang, Blocki, Li and Jha 2017). For every h the report is randomized
response on g values, so it is ε-private whatever the family; the seed of h, drawn without sight of the item,
is part of the report. If any two items collide under 1/g of the hashes, the report supports another item
with q = 1/g exactly, the own one with p = e^ε/(e^ε + g − 1), and for a rare item n·variance is (e^ε − 1 +
g)²/((e^ε − 1)²(g − 1)): the limit 4e^ε/(e^ε − 1)² at g = e^ε + 1.

The family here: items are vectors x of t coordinates over the field of g elements, t the least with g^t ≥
domain, and h(x) = −Σ a_j·x_j for a seed a of as many. Two items collide where Σ a_j·(x_j − x'_j) = 0, which
is one seed in g. That is why g is a prime or 4, and why shares can be decoded by `radon` where this is
faster than trying each item on each report. A report has ⌈log₂ g^{t+1}⌉ bits: the seed, whose digits come
first, and the value.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.local import tallies
from dalenius.local.finite_field import Elements, digits, field_of, is_order, orders
from dalenius.local.frequency import SetResponse
from dalenius.local.radon import swept
from dalenius.local.randomizer import Ints, ratio_of
from dalenius.local.reports import Rows
from dalenius.losses.fields import Parameter
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

AT_ONCE = 1 << 22
"""Pairs of a report and an item that are tried at a time."""
MOST_TABLE = 1 << 25
"""Numbers in a table of all reports, up to which it is swept."""


@dataclass(frozen=True)
class LocalHashing(SetResponse, kind="local_hashing"):
    """Hashes onto `values` values, a prime number of them or 4."""

    _: KW_ONLY
    values: Parameter[int] = Parameter(lambda value, name: numbers.count(value, name, least=2))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_order(self.values):
            raise InvalidArgument("values must be 4 or a prime below 2^15.", remedy="Choose a prime near it.")
        if self.reports > 2**62:
            raise InvalidArgument("A report has over 62 bits.", remedy="Choose fewer values, or items.")

    @cached_property
    def coordinates(self) -> int:
        """Of an item, and of a seed."""
        found = 1
        while self.values**found < self.domain:
            found += 1
        return found

    @property
    def reports(self) -> int:
        """A seed and a value."""
        return int(self.values ** (self.coordinates + 1))

    @property
    def size(self) -> int:
        """A value for each seed."""
        return int(self.values**self.coordinates)

    @property
    def differing(self) -> int:
        """The seeds under which two items do not collide."""
        return self.size - self.size // self.values

    @property
    def cells(self) -> int:
        """One for each item."""
        return self.domain

    def randomize(self, values: Ints) -> Rows:
        """A seed, and the item's value under it or another."""
        seeds = np.asarray(noise.uniform(self.size, values.size), dtype=np.int64)
        others = np.asarray(noise.uniform(self.values - 1, values.size), dtype=np.int64)
        true = self._hash(seeds, values).astype(np.int64)
        shown = np.where(self.coins(values.size), true, others + (others >= true))
        return seeds * self.values + shown

    def _hash(self, seeds: Ints, items: Ints) -> Elements:
        """By all coordinates; the two broadcast."""
        field, total = field_of(self.values), np.zeros(1, np.int32)
        parts = (digits(codes, self.values, self.coordinates) for codes in (seeds, items))
        for a, x in zip(*parts, strict=True):
            total = field.add(total, field.multiply(a, x))
        return field.opposites.take(total)

    def within(self, reports: Rows, item: int) -> NDArray[np.bool_]:
        """Where the item has the value."""
        codes = np.asarray(reports[:, 0]).astype(np.int64)
        seeds = codes // self.values
        return np.asarray(self._hash(seeds, np.array([item])) == codes - seeds * self.values)

    def adds_up(self, tally: Ints, count: int) -> bool:
        """Each item at most once a report."""
        return tallies.between(tally, 0, count)

    def tally(self, rows: Rows) -> Ints:
        """How many reports each item has the value of: by a sweep of all reports, or one by one."""
        codes = rows[:, 0].astype(np.int64)
        swept_cost = self.values * self.reports * self.coordinates
        if self.reports <= MOST_TABLE and swept_cost < codes.size * self.domain * self.coordinates:
            return self._swept(codes)
        items, found = np.arange(self.domain), np.zeros(self.domain, np.int64)
        step = max(AT_ONCE // self.domain, 1)
        for start in range(0, codes.size, step):
            part = codes[start : start + step, None]
            seeds = part // self.values
            found += np.count_nonzero(self._hash(seeds, items[None]) == part - seeds * self.values, axis=0)
        return found

    def _swept(self, codes: Ints) -> Ints:
        """Items by the digits of their number, the least of which varies the slowest in a sweep."""
        table = np.bincount(codes, minlength=self.reports).reshape(self.size, self.values)
        sums = swept(table, field_of(self.values), self.coordinates, last=0)
        turned = sums.reshape((self.values,) * self.coordinates).transpose()
        return turned.ravel()[: self.domain]

    def supporters(self, tally: Ints) -> Ints:
        """Counted as reports came."""
        return tally

    @staticmethod
    def calibrate(*, domain: int, epsilon: Number) -> LocalHashing:
        """As many values as give the least variance."""
        ratio = ratio_of(epsilon)
        near = [g for g in orders() if (float(ratio) + 1) / 4 <= g <= 4 * (float(ratio) + 1)] or [
            orders()[-1]
        ]
        # By the formula above; the rest of a variance is the same for all.
        best = min(near, key=lambda g: (float(ratio) - 1 + g) ** 2 / (g - 1))
        return LocalHashing(domain=domain, ratio=ratio, values=best)
