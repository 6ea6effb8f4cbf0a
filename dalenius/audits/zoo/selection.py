"""Choosing: the exponential mechanism, noisy maxima, quantiles, and tests that come before an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dalenius import noise
from dalenius.audits.zoo.drawing import by_input, laplace, next_to
from dalenius.audits.zoo.specimen import Specimen
from dalenius.losses.pure import Approximate, Pure

Counts = Sequence[int]

_whole, _double = laplace(1), laplace(2)
ZEROS, ONES = (0,) * 8, (1,) * 8


def _exponential(rate: str) -> Callable[[Any], Any]:
    return by_input(lambda utilities, size: noise.exponential_mechanism(utilities, rate, size))


def _largest(counts: Counts) -> tuple[int, int]:
    """Where the largest noisy count is, and how large."""
    noisy = [count + _double() for count in counts]
    best = max(noisy)
    return noisy.index(best), best


def _shared(counts: Counts) -> int:
    shift = _double()
    noisy = [count + shift for count in counts]
    return noisy.index(max(noisy))


def _order_statistic(records: Counts) -> int:
    """The record whose rank is the middle one after noise."""
    ordered = sorted(records)
    rank = len(ordered) // 2 + _whole()
    return ordered[min(max(rank, 0), len(ordered) - 1)]


def _ranked(records: Counts, size: int) -> Any:
    """The exponential mechanism over the numbers from 0 to 10, by how far each is from the middle rank.

    Twice the distance |below − n/2| is whole; to replace a record moves it by two at the most.
    """
    low = np.array([2 * sum(record < value for record in records) for value in range(11)])
    return noise.exponential_mechanism(-np.abs(low - len(records)), "1/4", size)


def _tested(margin: int) -> Callable[[Counts], Any]:
    """A hundred times the majority of bits with little noise, if far enough from where it changes."""

    def released(bits: Counts) -> Any:
        ones, half = sum(bits), len(bits) // 2
        distance = min(abs(ones - half), abs(ones - half - 1))
        passed = distance + _double() > margin
        return 100 * int(ones > half) + _double() if passed else None

    return released


def _votes(blocks: Sequence[slice]) -> Callable[[Counts], int]:
    return lambda bits: sum(max(bits[block]) for block in blocks) + _whole()


SPECIMENS = (
    Specimen(
        name="exponential mechanism without the half",
        wrong="utilities that may rise and fall are weighed at epsilon, not at half of it",
        source="McSherry and Talwar 2007",
        broken=_exponential("1"),
        twin=_exponential("1/2"),
        claim=Pure(1),
        inputs=[(1, 0, 0, 0, 0, 0, 0, 0)],
        neighbors=next_to((0, 1, 1, 1, 1, 1, 1, 1)),
        trials=6_000,
        leaks=math.log(math.e * (1 + 7 * math.e) / (math.e + 7)),
    ),
    Specimen(
        name="noisy maximum that tells its value",
        wrong="the index alone is covered by the claim, not the noisy count",
        source="Ding, Wang, Wang, Zhang and Kifer 2018",
        broken=_largest,
        twin=lambda counts: _largest(counts)[0],
        claim=Pure(1),
        inputs=[ZEROS],
        neighbors=next_to(ONES),
        trials=24_000,
        leaks=4.0,
    ),
    Specimen(
        name="noisy maximum with one noise for all",
        wrong="noise that all counts share changes no comparison",
        source="Ding, Wang, Wang, Zhang and Kifer 2018",
        broken=_shared,
        twin=lambda counts: _largest(counts)[0],
        claim=Pure(1),
        inputs=[(2, 2, 1)],
        neighbors=next_to((1, 2, 1), (2, 2, 2)),
        leaks=math.inf,
    ),
    Specimen(
        name="quantile by a noisy rank",
        wrong="the rank has noise, and what is released is somebody's record",
        source="Smith 2011",
        broken=_order_statistic,
        twin=by_input(_ranked),
        claim=Pure(1, relation="replace"),
        inputs=[(1, 2, 5, 7, 9)],
        leaks=math.inf,
    ),
    Specimen(
        name="propose, test, release without a margin",
        wrong="the test passes next to where the answer jumps with probability 0.38, and 0.01 is claimed",
        source="Dwork and Lei 2009",
        broken=_tested(0),
        twin=_tested(8),
        claim=Approximate(1, delta=0.01, relation="replace"),
        inputs=[(1, 1, 1, 0, 0)],
        delta=0.01,
        leaks=math.inf,
    ),
    Specimen(
        name="blocks that overlap",
        wrong="a record is in three blocks, and the noise is as if it were in one",
        source="Nissim, Raskhodnikova and Smith 2007",
        broken=_votes([slice(k, k + 3) for k in range(4)]),
        twin=_votes([slice(0, 3), slice(3, 6)]),
        claim=Pure(1, relation="replace"),
        inputs=[(0, 0, 1, 0, 0, 0)],
        leaks=3.0,
    ),
)
