"""The exact joint law of what a device with a memo sends, written out, and not by the library."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from dalenius.local import BitFlips, KaryResponse, Rappor

Law = dict[Any, float]
Device = tuple[Callable[[Any], Hashable], Callable[[Any], Law], Callable[[Any], Law]]
"""Given what was drawn: the key of a value, the law of its response, and that of a report of a response."""


def bits(chances: Sequence[float]) -> Law:
    """Independent bits."""
    return {
        word: math.prod(p if bit else 1 - p for p, bit in zip(chances, word, strict=True))
        for word in product((0, 1), repeat=len(chances))
    }


def devices(randomizer: Any) -> Iterator[tuple[Any, Device]]:
    """All that a device may have drawn, each as likely."""
    if isinstance(randomizer, KaryResponse):
        lie = 1 / (float(randomizer.ratio) + randomizer.domain - 1)
        told = [dict.fromkeys(range(randomizer.domain), lie) for _ in range(randomizer.domain)]
        for v, masses in enumerate(told):
            masses[v] *= float(randomizer.ratio)
        yield None, (lambda v: v, told.__getitem__, lambda y: {y: 1.0})
    if isinstance(randomizer, BitFlips):
        p = float(randomizer.own)
        for drawn in combinations(range(randomizer.domain), randomizer.chosen):
            yield (
                drawn,
                (
                    lambda v, drawn=drawn: v if v in drawn else None,
                    lambda v, drawn=drawn: bits([p if b == v else 1 - p for b in drawn]),
                    lambda word: {word: 1.0},
                ),
            )
    if isinstance(randomizer, Rappor):
        kept, low, high = 1 - float(randomizer.replaced) / 2, float(randomizer.low), float(randomizer.high)
        for cohort in range(randomizer.cohorts):

            def key(v: str, cohort: int = cohort) -> tuple[int, ...]:
                return tuple(randomizer.filters(np.array([cohort]), randomizer.read([v]))[0].tolist())

            yield (
                cohort,
                (
                    key,
                    lambda v, key=key: bits([kept if bit else 1 - kept for bit in key(v)]),
                    lambda word: bits([high if bit else low for bit in word]),
                ),
            )


def pattern(device: Device, values: Sequence[Any]) -> tuple[int, ...]:
    """For each report the first one that shares its response."""
    keys = [device[0](v) for v in values]
    return tuple(map(keys.index, keys))


def law(device: Device, values: Sequence[Any]) -> Law:
    """Of all reports of these values, given what the device drew."""
    key, respond, report = device
    first = {key(v): v for v in reversed(values)}
    found: Counter[Any] = Counter()
    for chosen in product(*(respond(v).items() for v in first.values())):
        response = dict(zip(first, (word for word, _ in chosen), strict=True))
        mass = math.prod(chance for _, chance in chosen)
        for sent in product(*(report(response[key(v)]).items() for v in values)):
            found[tuple(one for one, _ in sent)] += mass * math.prod(chance for _, chance in sent)
    return found


def delta(p: Law, q: Law, epsilon: float) -> float:
    """The hockey-stick divergence."""
    return sum(max(p[y] - math.exp(epsilon) * q.get(y, 0.0), 0.0) for y in p)
