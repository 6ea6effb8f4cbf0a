"""Projective geometry response: a point, more often than not one on the hyperplane of the item.

Reports and items are points of the projective space of dimension t − 1 over the field of q elements, of
which there are K = (q^t − 1)/(q − 1). The set of an item x is the hyperplane {y : Σ x_j·y_j = 0} of (q^{t−1}
− 1)/(q − 1) points, of which any two share (q^{t−2} − 1)/(q − 1).

Theorem (Feldman, Nelson, Nguyen and Talwar 2022). A report is e^ε times likelier on the
hyperplane than off it, so ε-private. With r = 1/q nearly, for a rare item n·variance is (r(e^ε − 1) +
1)²/(r(1 − r)(e^ε − 1)²), which is 4e^ε/(e^ε − 1)², the limit, at q = e^ε + 1: 1.0025 times it at ε = 1 with
q = 4, 1.0001 at ε = 4 with q = 53 or 59. A report has ⌈log₂ K⌉ bits, little more than the name of an item,
and all shares are decoded with K·q·t additions (`radon`). The hybrid of the same paper trades variance for
time where q is large; here the choice of `order` does.

How a report is drawn. Let i be the first coordinate of x that is not 0; it is 1. All other coordinates of y
are uniform, and y_i makes the sum 0 on the hyperplane (again, if all are 0) and 1 off it: every point off it
has one multiple of sum 1. Last, y is scaled so that its last coordinate but zeros is 1: its number is the
sum of y_j·q^j below that one, after all points that end earlier.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.local.finite_field import Elements, digits, field_of, is_order, orders
from dalenius.local.frequency import SetResponse, read_domain
from dalenius.local.radon import swept
from dalenius.local.randomizer import Ints, ratio_of
from dalenius.local.reports import Rows
from dalenius.losses.fields import Parameter
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

MOST_POINTS = 2**27
ALIKE = 1.002
"""Variances within this ratio are taken as equal, and the shorter report is better."""


def points(order: int, dimension: int) -> int:
    """Of a projective space of so many coordinates."""
    return int((order**dimension - 1) // (order - 1))


def coordinates(order: int, domain: int) -> int:
    """The least number of coordinates for so many items, 2 or more."""
    found = 2
    while points(order, found) < domain:
        found += 1
    return found


@dataclass(frozen=True)
class ProjectiveResponse(SetResponse, kind="projective_response"):
    """Points over the field of `order` elements; the space is the least that has a point for each item."""

    _: KW_ONLY
    order: Parameter[int] = Parameter(lambda value, name: numbers.count(value, name, least=2))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_order(self.order):
            raise InvalidArgument("order must be 4 or a prime below 2^15.", remedy="Choose a prime near it.")
        if self.reports > MOST_POINTS:
            raise InvalidArgument("There are over 2^27 points.", remedy="Choose a smaller order or domain.")

    @property
    def dimension(self) -> int:
        """Coordinates of a point."""
        return coordinates(self.order, self.domain)

    @cached_property
    def reports(self) -> int:
        """All points."""
        return points(self.order, self.dimension)

    @cached_property
    def size(self) -> int:
        """Of a hyperplane."""
        return points(self.order, self.dimension - 1)

    @property
    def differing(self) -> int:
        """Off the intersection of two hyperplanes."""
        return int(self.order ** (self.dimension - 2))

    # The device.

    def randomize(self, values: Ints) -> Rows:
        """See the module."""
        outside = ~self.coins(values.size)
        items, codes = self._items(values), np.zeros(values.size, np.int64)
        todo = np.arange(values.size)
        while todo.size:
            drawn = self._point([x[todo] for x in items], outside[todo])
            codes[todo] = drawn
            todo = todo[drawn < 0]
        return codes

    def _point(self, items: list[Elements], outside: NDArray[np.bool_]) -> Ints:
        """The number of a point on each hyperplane or off it; −1 where it is to be drawn again."""
        q, field = self.order, field_of(self.order)
        most = q**self.dimension
        drawn = np.asarray(noise.uniform(most, outside.size))
        y = digits(drawn.astype(np.uint32) if most < 2**32 else drawn, q, self.dimension)
        total, pivot = np.zeros(outside.size, np.int32), np.zeros(outside.size, bool)
        places = []
        for j, x in enumerate(items):
            first = ~pivot & (x == 1)
            places.append(first)
            pivot |= first
            y[j] = np.where(first, 0, y[j]).astype(np.int32, copy=False)
            total = field.add(total, field.multiply(x, y[j]))
        own = field.add(outside.astype(np.int32), field.opposites.take(total))
        return self._number([np.where(here, own, v) for here, v in zip(places, y, strict=True)])

    def _number(self, y: list[Elements]) -> Ints:
        q, field = self.order, field_of(self.order)
        scale = np.zeros(y[0].size, np.int32)
        code, before = np.zeros(y[0].size, np.int64), np.zeros(y[0].size, np.int64)
        for j in range(self.dimension - 1, -1, -1):
            code *= q
            code += field.multiply(y[j], scale)
            # The last 1 is not written; its place says how many points end earlier.
            last = (scale == 0) & (y[j] != 0)
            before += last * points(q, j)
            scale += last * field.inverses.take(y[j])
        return np.where(scale == 0, -1, code + before)

    def _items(self, values: Ints) -> list[Elements]:
        """The coordinates of items: the first but zeros is 1; items with fewer zeros before it are first."""
        q, t = self.order, self.dimension
        found = [np.zeros(values.size, np.int32) for _ in range(t)]
        start = 0
        for i in range(t):
            many = q ** (t - 1 - i)
            here = (values >= start) & (values < start + many)
            if here.any():
                rest = digits(np.where(here, values - start, 0), q, t - 1 - i)
                found[i] += here
                for j, digit in enumerate(reversed(rest)):
                    found[i + 1 + j] += here * digit
            start += many
        return found

    # The server.

    def supporters(self, tally: Ints) -> Ints:
        """Sums over hyperplanes, of all items whose first coordinates are alike at a time."""
        found, start, earlier = [], 0, 0
        for i in range(self.dimension):
            if start < self.domain:
                found.append(self._of_first(tally, i, earlier))
            start += self.order ** (self.dimension - 1 - i)
            earlier += int(self._ending(tally, i).sum())
        return np.concatenate(found)[: self.domain]

    def _ending(self, tally: Ints, place: int) -> Ints:
        """The points whose last coordinate but zeros is at a place."""
        before = points(self.order, place)
        return tally[before : before + self.order**place]

    def _of_first(self, tally: Ints, i: int, earlier: int) -> Ints:
        """Of items whose first coordinate is the i-th; points that end before it are on their hyperplanes."""
        q, field = self.order, field_of(self.order)
        found = np.array([earlier], np.int64)
        for end in range(i + 1, self.dimension):
            table = self._ending(tally, end).reshape(-1, q, q**i).sum(axis=2)
            # Of y_i + Σ x_j·y_j = s, where s is to be the opposite of the last x.
            sums = swept(table, field, end - i - 1)
            found = np.repeat(found, q) + sums[:, field.opposites].ravel()
        return found

    def within(self, reports: Rows, item: int) -> NDArray[np.bool_]:
        """By the sum itself."""
        q, t, field = self.order, self.dimension, field_of(self.order)
        codes = np.asarray(reports[:, 0]).astype(np.int64)
        starts = np.array([points(q, j) for j in range(t)])
        ends = np.searchsorted(starts, codes, side="right") - 1
        low = digits(codes - starts[ends], q, t)
        total = np.zeros(codes.size, np.int32)
        for j, x in enumerate(self._items(np.array([item]))):
            y = low[j] + (ends == j).astype(np.int32)
            total = field.add(total, field.multiply(np.broadcast_to(x, y.shape), y))
        return np.equal(total, 0)

    @staticmethod
    def calibrate(
        *, domain: int, epsilon: Number, bits: int | None = None, order: int | None = None
    ) -> ProjectiveResponse:
        """The order of the least variance, of nearly equal ones that of the shortest report."""
        ratio, many = ratio_of(epsilon), read_domain(domain, "domain")
        if order is not None:
            return ProjectiveResponse(domain=many, ratio=ratio, order=order)
        near = {q: coordinates(q, many) for q in orders() if ratio + 1 <= 4 * q <= 16 * (ratio + 1)}
        sizes = {q: (points(q, t) - 1).bit_length() for q, t in near.items() if points(q, t) <= MOST_POINTS}
        fits = {q: _variance(q, near[q], float(ratio)) for q, size in sizes.items() if size <= (bits or size)}
        if not fits:
            raise InvalidArgument(
                "No order near e^epsilon gives so short a report.",
                remedy="Allow more bits, or use KaryResponse for so large an epsilon.",
            )
        alike = [q for q, variance in fits.items() if variance <= ALIKE * min(fits.values())]
        best = min(alike, key=lambda q: (sizes[q], fits[q]))
        return ProjectiveResponse(domain=many, ratio=ratio, order=best)


def _variance(order: int, dimension: int, ratio: float) -> float:
    """Of a rare item, as a float, to compare orders."""
    size, others = points(order, dimension - 1), order ** (dimension - 1)
    p = size * ratio / (size * ratio + others)
    gap = p * order ** (dimension - 2) / size * (1 - 1 / ratio)
    return float((p - gap) * (1 - p + gap) / gap**2)
