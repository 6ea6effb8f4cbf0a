"""Counts and histograms: neighbours mistaken, people counted more than once, and what is let out beside."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dalenius.audits.zoo.drawing import beside, laplace, next_to, noisy
from dalenius.audits.zoo.specimen import Specimen
from dalenius.losses.pure import Approximate, Pure

_whole, _double, _triple = laplace(1), laplace(2), laplace(3)
Counts = Mapping[str, int]


def _histogram(draw: Callable[[], int]) -> Callable[[Sequence[str]], list[int]]:
    return lambda records: noisy([records.count(letter) for letter in "ab"], draw)


def _above(threshold: int) -> Callable[[Counts], Counts]:
    """Of keys that occur, those whose noisy count is above the threshold."""

    def released(counts: Counts) -> Counts:
        found = {key: count + _whole() for key, count in counts.items()}
        return {key: count for key, count in found.items() if count > threshold}

    return released


def _hidden(value: int) -> Any:
    return None if value < 5 else value + _whole()


def _hidden_after(value: int) -> Any:
    found = value + _whole()
    return None if found < 5 else found


def _running(draw: Callable[[], int]) -> Callable[[Sequence[int]], list[int]]:
    """Counts of the first, the second, both, … of four: each item is in three."""

    def counted(items: Sequence[int]) -> list[int]:
        a, b, c, d = items
        return noisy([a, b, c, d, a + b, c + d, a + b + c + d], draw)

    return counted


SPECIMENS = (
    Specimen(
        name="histogram for add/remove under replace",
        wrong="a record that is replaced moves two counts, and the noise is for one",
        source="Dwork and Roth 2014",
        broken=_histogram(_whole),
        twin=_histogram(_double),
        claim=Pure(1, relation="replace"),
        inputs=[("a", "a", "b")],
        leaks=2.0,
    ),
    Specimen(
        name="rows of one person not bounded",
        wrong="all rows of a person are counted, and the noise is for one",
        source="Wilson et al. 2020",
        broken=lambda people: sum(people) + _whole(),
        twin=lambda people: sum(min(rows, 1) for rows in people) + _whole(),
        claim=Pure(1),
        inputs=[(1, 1, 3)],
        leaks=3.0,
    ),
    Specimen(
        name="histogram of the keys that occur",
        wrong="that a key is there tells that somebody has it",
        source="Korolova, Kenthapadi, Mishra and Ntoulas 2009",
        broken=_above(-(10**9)),
        twin=lambda counts: {key: counts.get(key, 0) + _whole() for key in "ab"},
        claim=Pure(1),
        inputs=[{"a": 3}],
        neighbors=next_to({"a": 2}, {"a": 3, "b": 1}),
        leaks=math.inf,
    ),
    Specimen(
        name="threshold on keys too small",
        wrong="a key of one person is let out with probability 0.27, and 0.01 is claimed",
        source="Korolova, Kenthapadi, Mishra and Ntoulas 2009",
        broken=_above(1),
        twin=_above(5),
        claim=Approximate(1, delta=0.01),
        inputs=[{"a": 3}],
        neighbors=next_to({"a": 3, "b": 1}),
        delta=0.01,
        leaks=math.inf,
    ),
    Specimen(
        name="small counts hidden before noise",
        wrong="that a count is hidden is decided by the true one",
        source="Dwork and Roth 2014",
        broken=_hidden,
        twin=_hidden_after,
        claim=Pure(1),
        inputs=[3, 5, 8],
        neighbors=beside,
        leaks=math.inf,
    ),
    Specimen(
        name="zero left without noise",
        wrong="a count of zero is released as it is",
        source="Dwork and Roth 2014",
        broken=lambda value: value and value + _whole(),
        twin=lambda value: value + _whole(),
        claim=Pure(1),
        inputs=[0, 3],
        neighbors=lambda value: [value + 1],
        leaks=math.inf,
    ),
    Specimen(
        name="running counts that forget the tree",
        wrong="an item is in three nodes of the tree, and the noise is for one",
        source="Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song 2011",
        broken=_running(_whole),
        twin=_running(_triple),
        claim=Pure(1),
        inputs=[(0, 0, 0, 0)],
        neighbors=next_to((1, 0, 0, 0), (0, 0, 0, 1)),
        leaks=3.0,
    ),
)
