"""Ranges by a tree of intervals: on one level of it, which interval the person's item is in.

The items are cut into intervals of B^{h−1} items, these into B each, and so on down to single items: levels
1 to h, B the `branching`. The device draws a level uniformly and reports its interval there by the level's
own frequency oracle, whose report is one number. That is ε-private, as each oracle is.

Theorem (Cormode, Kulkarni and Srivastava 2019; Hay and others 2010 with a curator). A range is made of at
most 2(B − 1) intervals of each level, s_l of level l. If the oracle of a level supports the own interval
with p and another with q, a report x of the level stands for h·Σ (1[supported] − q)/(p − q) over the s_l:
unbiased, and a range of r items has a variance of about 2(B − 1)·h·log_B(r) times that of the oracle, at
most.

To each term a constant is added and taken away: h·c_l on the reports of level l and Σ c_l on all, where c_l
is the part of the domain that the level has of the range. So the mean stays, and if people are spread evenly
nothing is lost by drawing a level.

Two items of different intervals on every level tell a report apart the most: a and b are the means of the
oracles', and a/b = e^ε. Estimates are the shares of all intervals, by those who reported on the level, with
exact tails (theorem in `ranges`); `consistent` makes those of children add up to their parent's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.local import frequency, intervals
from dalenius.local.frequency import SetResponse
from dalenius.local.hadamard import HadamardResponse
from dalenius.local.kary import KaryResponse
from dalenius.local.projective import ProjectiveResponse
from dalenius.local.randomizer import Estimates, Floats, Ints
from dalenius.local.ranges import RangeRandomizer, read_ordered
from dalenius.local.reports import Rows
from dalenius.losses.fields import Parameter
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

BRANCHING = 4
NAMES = ("level", "first", "last", "share", "share_low", "share_high", "variance")


def read_branching(value: object, name: str) -> int:
    """Into how many parts an interval is cut."""
    return numbers.count(value, name, least=2, most=256)


@dataclass(frozen=True)
class TreeRanges(RangeRandomizer, kind="tree_ranges"):
    """An oracle for each level, from the largest intervals to single items."""

    _: KW_ONLY
    oracles: tuple[SetResponse, ...]
    branching: Parameter[int] = Parameter(read_branching)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "oracles", tuple(self.oracles))
        sizes = level_sizes(self.domain, self.branching)
        fitting = all(
            isinstance(one, KaryResponse | ProjectiveResponse) or _whole(one) for one in self.oracles
        )
        if not fitting or [one.domain for one in self.oracles] != sizes:
            raise InvalidArgument(
                f"oracles must be k-ary, projective or of one Hadamard block, of {sizes} items.",
                remedy="Use calibrate(domain=..., epsilon=...), which chooses them.",
            )
        if len({(one.ratio, one.relation) for one in self.oracles}) > 1:
            raise InvalidArgument("oracles must be as private as each other.", remedy="Use one epsilon.")

    @property
    def levels(self) -> int:
        """h."""
        return len(self.oracles)

    @cached_property
    def starts(self) -> Ints:
        """The first report of each level, and the end."""
        return np.cumsum([0, *(one.reports for one in self.oracles)])

    @property
    def cells(self) -> int:
        """The reports of all levels."""
        return int(self.starts[-1])

    @property
    def apart(self) -> tuple[Fraction, Fraction]:
        """The means of the oracles'."""
        a = sum((one.apart[0] for one in self.oracles), Fraction(0)) / self.levels
        return a, a / self.oracles[0].ratio

    def _long(self, level: int) -> int:
        """The items of an interval."""
        return int(self.branching ** (self.levels - 1 - level))

    def randomize(self, values: Ints) -> Rows:
        """A level, and its oracle's report."""
        drawn = np.asarray(noise.uniform(self.levels, values.size), dtype=np.int64)
        rows = np.empty(values.size, np.int64)
        for level, oracle in enumerate(self.oracles):
            here = np.flatnonzero(drawn == level)
            found = oracle.randomize(values[here] // self._long(level))
            rows[here] = self.starts[level] + found.ravel().astype(np.int64)
        return rows

    def masses(self, item: int) -> Floats:
        """Each level's with its chance."""
        found = self.least()
        for level, oracle, codes, part in self._parts():
            inside = oracle.within(codes, item // self._long(level))
            found[part] *= np.where(inside, float(oracle.ratio), 1.0)
        return found

    def least(self) -> Floats:
        """Outside of the set of an interval."""
        each = [float((1 - one.truth) / (one.reports - one.size)) / self.levels for one in self.oracles]
        return np.repeat(each, np.diff(self.starts))

    def terms(self, first: int, stop: int) -> Floats:
        """By the intervals that make the range."""
        parts = decomposed(first, stop, self.domain, self.branching, self.levels)
        if parts is None:
            return np.ones(self.cells)
        found, covered = np.zeros(self.cells), 0.0
        for level, oracle, codes, part in self._parts():
            p, q = map(float, oracle.support)
            nodes = parts[level]
            share = sum(min((v + 1) * self._long(level), self.domain) - v * self._long(level) for v in nodes)
            told = sum((oracle.within(codes, v).astype(np.float64) for v in nodes), np.zeros(len(codes)))
            found[part] = self.levels * ((told - len(nodes) * q) / (p - q) - share / self.domain)
            covered += share / self.domain
        return found + covered

    def _parts(self) -> Iterator[tuple[int, SetResponse, NDArray[np.int64], slice]]:
        """Each level with its oracle, the oracle's reports, and where they are."""
        for level, oracle in enumerate(self.oracles):
            part = slice(int(self.starts[level]), int(self.starts[level + 1]))
            yield level, oracle, np.arange(oracle.reports)[:, None], part

    def estimates(self, tally: Ints, count: int) -> Estimates:
        """The share of each interval."""
        columns: dict[str, list[float]] = {name: [] for name in NAMES}
        for level, oracle, _, part in self._parts():
            cells = self._level(level, oracle, tally[part])
            for name, column in zip(NAMES, cells, strict=True):
                columns[name].extend(column.tolist())
        return Estimates(columns, ("share",), ("a level of each",))

    def _level(self, level: int, oracle: SetResponse, tally: Ints) -> tuple[Floats | Ints, ...]:
        there, counts, nodes = int(tally.sum()), oracle.supporters(tally), np.arange(oracle.domain)
        first = nodes * self._long(level)
        last = np.minimum(first + self._long(level), self.domain) - 1
        if not there:
            # Where nobody reported, zero is off by at most one.
            none = np.zeros(nodes.size)
            return nodes * 0 + level + 1, first, last, none, none, none + 1, none + 1
        p, q = map(float, oracle.support)
        different, places = np.unique(counts, return_inverse=True)
        ends = intervals.mean_chance(different, there, frequency.ALPHA)
        low, high = ((end - q) / (p - q) for end in ends)
        low, high = (end[places] for end in intervals.held(low, high, 0.0, 1.0)[:2])
        share = (counts / there - q) / (p - q)
        chance = np.clip(share, 0, 1) * (p - q) + q
        variance = chance * (1 - chance) / (there * (p - q) ** 2)
        return nodes * 0 + level + 1, first, last, share, low, high, variance

    @staticmethod
    def calibrate(*, domain: int, epsilon: Number, branching: int = BRANCHING) -> TreeRanges:
        """On each level the oracle of one number of the least variance."""
        many, parts = read_ordered(domain, "domain"), read_branching(branching, "branching")
        oracles = tuple(_best(size, epsilon) for size in level_sizes(many, parts))
        return TreeRanges(domain=many, oracles=oracles, branching=parts)


def level_sizes(domain: int, branching: int) -> list[int]:
    """How many intervals each level has, from the largest ones."""
    found = [domain]
    while found[0] > branching:
        found.insert(0, -(-found[0] // branching))
    return found


def decomposed(first: int, stop: int, domain: int, branching: int, levels: int) -> list[list[int]] | None:
    """The intervals of each level that make a range, as large as can be; None where it is everything."""
    if first == 0 and stop == domain:
        return None
    found: list[list[int]] = [[] for _ in range(levels)]
    low, high, size = first, stop, domain
    for level in range(levels - 1, 0, -1):
        # A parent is whole from its first child on; the last one, up to the end of the domain.
        start = min(-(-low // branching) * branching, high)
        end = high if high == size else max(high // branching * branching, start)
        found[level].extend([*range(low, start), *range(end, high)])
        if start == end:
            return found
        low, high, size = start // branching, -(-end // branching), -(-size // branching)
    found[0].extend(range(low, high))
    return found


def _whole(oracle: object) -> bool:
    return isinstance(oracle, HadamardResponse) and oracle.blocks == 1


def _best(domain: int, epsilon: Number) -> SetResponse:
    """k-ary where it is no worse, as the others have no parameters for few items."""
    kary = KaryResponse.calibrate(domain=domain, epsilon=epsilon)
    try:
        other = ProjectiveResponse.calibrate(domain=domain, epsilon=epsilon)
    except InvalidArgument:
        return kary
    return kary if kary.variance() <= other.variance() else other
