"""Subset selection: a set of items, more often than not with the person's own in it.

Theorem (Ye and Barg 2018; Wang, Huang, Wang and others 2016). Of all sets of d items one with the own is e^ε
times likelier than one without: ε-private. The own item is in with p = d·e^ε/(d·e^ε + k − d), any other one
with q = (p(d − 1) + (1 − p)d)/(k − 1). With d = k/(e^ε + 1), rounded up or down, no oracle has a smaller
variance for n large, to the constant; for rare items of a large domain n·variance is 4e^ε/(e^ε − 1)². For d
= 1 this is k-ary randomized response. A report has a bit for each item.

The set is drawn by Floyd's way: d times a uniform number below a limit that grows by one, and the limit
itself where the number is there already: every set of d is as likely.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.local import tallies
from dalenius.local.frequency import LISTED, SetResponse, read_domain
from dalenius.local.randomizer import Ints, ratio_of
from dalenius.local.reports import Rows
from dalenius.losses.fields import Parameter
from dalenius.mechanisms.mechanism import Law
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number


@dataclass(frozen=True)
class SubsetSelection(SetResponse, kind="subset_selection"):
    """Sets of `chosen` items."""

    _: KW_ONLY
    chosen: Parameter[int] = Parameter(lambda value, name: numbers.count(value, name))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.chosen >= self.domain:
            raise InvalidArgument("chosen must be below domain.", remedy="Choose fewer items.")

    @cached_property
    def reports(self) -> int:
        """All sets."""
        return math.comb(self.domain, self.chosen)

    @cached_property
    def size(self) -> int:
        """Those with the item."""
        return self.reports * self.chosen // self.domain

    @property
    def differing(self) -> int:
        """Those with one of two items."""
        return self.size * (self.domain - self.chosen) // (self.domain - 1)

    # The same without the number of sets, which has as many digits as there are items.

    @property
    def truth(self) -> Fraction:
        """By items instead of sets."""
        return self.chosen * self.ratio / (self.chosen * self.ratio + self.domain - self.chosen)

    @property
    def apart(self) -> tuple[Fraction, Fraction]:
        """Of the sets with one item, those without another."""
        inside = self.truth * (self.domain - self.chosen) / (self.domain - 1)
        return inside, inside / self.ratio

    @property
    def shape(self) -> tuple[int, int]:
        """A bit for each item."""
        return 2, self.domain

    @property
    def cells(self) -> int:
        """One for each item."""
        return self.domain

    def within(self, reports: Rows, item: int) -> NDArray[np.bool_]:
        """By the bit of the item."""
        return np.equal(reports[:, item], 1)

    def randomize(self, values: Ints) -> Rows:
        """As many of the other items as are left to choose."""
        inside = self.coins(values.size)
        rows = np.empty((values.size, self.domain), np.uint8)
        for group, many in ((inside, self.chosen - 1), (~inside, self.chosen)):
            places = np.flatnonzero(group)
            rows[places] = _with_own(
                _sets(self.domain - 1, many, places.size), values[places], inside=group is inside
            )
        return rows

    def possible(self, rows: Rows) -> NDArray[np.bool_]:
        """Sets of as many items as are chosen."""
        return np.asarray(rows.sum(axis=1, dtype=np.int64) == self.chosen)

    def adds_up(self, tally: Ints, count: int) -> bool:
        """As many items of each set."""
        return tallies.between(tally, 0, count) and tallies.total(tally) == self.chosen * count

    def tally(self, rows: Rows) -> Ints:
        """How often each item is in."""
        return np.asarray(rows.sum(axis=0, dtype=np.int64))

    def supporters(self, tally: Ints) -> Ints:
        """Those it is in."""
        return tally

    def probabilities(self, value: Any) -> Law | None:
        """Of all sets, where they can be listed."""
        if self.reports > LISTED:
            return None
        rows = np.zeros((self.reports, self.domain), np.int64)
        for row, chosen in zip(rows, combinations(range(self.domain), self.chosen), strict=True):
            row[list(chosen)] = 1
        inside, outside = self.truth / self.size, (1 - self.truth) / (self.reports - self.size)
        masses = np.where(self.within(rows, int(self.read([value])[0])), float(inside), float(outside))
        return Law(tuple(map(tuple, rows.tolist())), masses)

    @staticmethod
    def calibrate(*, domain: int, epsilon: Number) -> SubsetSelection:
        """Sets of the size of the least variance."""
        ratio, many = ratio_of(epsilon), read_domain(domain, "domain")
        middle = int(many / (ratio + 1))
        sizes = {min(max(middle + more, 1), many - 1) for more in (0, 1)}
        made = [SubsetSelection(domain=many, ratio=ratio, chosen=size) for size in sorted(sizes)]
        return min(made, key=lambda one: one.variance())


def _sets(items: int, chosen: int, size: int) -> Rows:
    """Rows of bits, so many of them 1, each such row as likely."""
    rows, each = np.zeros((size, items), np.uint8), np.arange(size)
    for limit in range(items - chosen, items):
        drawn = np.asarray(noise.uniform(limit + 1, size), dtype=np.int64)
        rows[each, np.where(rows[each, drawn], limit, drawn)] = 1
    return rows


def _with_own(others: Rows, values: Ints, *, inside: bool) -> Rows:
    """The bits of the other items with the own one among them: the last moves aside for it."""
    each = np.arange(values.size)
    rows = np.concatenate([others, np.zeros((values.size, 1), np.uint8)], axis=1)
    rows[:, -1] = rows[each, values]
    rows[each, values] = inside
    return rows
