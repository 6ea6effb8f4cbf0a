"""`HeavyHitters`: the most frequent items of a stream, in k counters (Misra and Gries 1982).

The sketch holds k keys with counters, dummies with zero at first. An item that has a counter adds one to it;
otherwise, if all counters are above zero, all of them lose one; otherwise the item takes the place of the
least key whose counter is zero, with a counter of one. A counter is at most the item's frequency, and at
least that less (events)/(k + 1).

Lemma (Lebeda and Tětek 2023). If a stream has one event more, the two sketches share at least k − 2 keys,
and, a key without a counter having zero, either one counter differs, by one, or the counters of all keys of
the one sketch are one above those in the other. (The tests try all short streams.)

Theorem (the same; here with discrete noise). Add to every counter one common η, and to each its own η_x, all
discrete Laplace of scale 1/ε, and publish the keys that come to at least 1 + 2a, with a the least integer
such that 3·e^{−εa}/(1 + e^{−ε}) ≤ δ. This is (ε, δ)-private for one event. Proof. Keys that are not shared
have counters of at most one, so one of them is published only if η or its η_x is at least a; there are two of
them at most: with probability ≤ 3·P(η ≥ a) ≤ δ. Otherwise pair them off, and let a pair share its noise. In
the first case moving one η_x by one, in the second moving η by one, makes all noisy counters the same, pairs
included, at a cost of ε.

The noise does not grow with k, as it would if all counters were noised as a histogram. Counters are too small
by up to (events)/(k + 1), whatever the noise: error bars are None, `shortfall` says by how much at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.fields import Parameter, whole
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate
from dalenius.mechanisms.above_threshold import Single, paid
from dalenius.mechanisms.mechanism import Mechanism, Payer, Stamp
from dalenius.privacy import numbers
from dalenius.privacy.records import cells, integer
from dalenius.privacy.unit import Unit
from dalenius.release import Release
from dalenius.streams.participants import whom_of_events

EVENTS = "Count units by item in a table, with bounds for each; or charge an account without a column."
LEAST_DELTA, LEAST_EPSILON = Fraction(1, 10**200), Fraction(1, 10**9)
"""The threshold is computed in floats, in which these are far from zero."""
MOST_BITS = 2048
"""Of a whole number; a longer one counts as no text. Python may refuse to write more than 640 digits."""
Key = tuple[int, str]
"""Dummies (0, number) before items (1, text): keys are ordered."""


class MisraGries:
    """k counters, with the order among keys that the lemma needs."""

    def __init__(self, counters: int) -> None:
        self.counts: dict[Key, int] = {(0, f"{k:09d}"): 0 for k in range(counters)}
        # Keys whose counter was zero at some time, the least first; those that left are passed over.
        self._free = sorted(self.counts)

    def add(self, item: str) -> None:
        """One event."""
        key = (1, item)
        if key in self.counts:
            self.counts[key] += 1
            return
        while self._free and self.counts.get(self._free[0]) != 0:
            heappop(self._free)
        if self._free:
            del self.counts[heappop(self._free)]
            self.counts[key] = 1
            return
        self.counts = {each: count - 1 for each, count in self.counts.items()}
        for each, count in self.counts.items():
            if not count:
                heappush(self._free, each)


@dataclass(frozen=True)
class HeavyHitters(Mechanism, kind="heavy_hitters"):
    """The items that `counters` counters find frequent, (`epsilon`, `delta`)-private for one event."""

    _: KW_ONLY
    epsilon: Parameter[Fraction] = Parameter(numbers.epsilon)
    delta: Parameter[Fraction] = Parameter(numbers.delta)
    counters: Parameter[int] = Parameter(whole, 256)

    def __post_init__(self) -> None:
        numbers.count(self.counters, "counters", most=10**6)
        if not self.delta:
            raise InvalidArgument("Frequent items need delta above 0.", remedy="Pass delta such as 1e-6.")
        if self.delta < LEAST_DELTA or not LEAST_EPSILON <= self.epsilon <= 1 / LEAST_EPSILON:
            raise InvalidArgument(
                "Frequent items need delta of 1e-200 at least, and epsilon from 1e-9 to 1e9.",
                remedy="Pass such as epsilon=1 and delta=1e-6.",
            )

    @property
    def loss(self) -> Loss:
        """Of one release."""
        return Approximate(self.epsilon, delta=self.delta)

    @property
    def threshold(self) -> int:
        """1 + 2a."""
        rate = float(self.epsilon)
        least = math.log(3 / (float(self.delta) * (1 + math.exp(-rate)))) / rate
        return 1 + 2 * max(1, math.ceil(least * (1 + 1e-12)))

    def shortfall(self, events: int) -> float:
        """How much a counter may lack of the item's frequency, noise aside."""
        return events / (self.counters + 1)

    def start(
        self, account: Payer | None = None, *, unit: Unit | None = None, by: str = "", purpose: str = ""
    ) -> HeavySketch:
        """A sketch that can be released once: charged now, where there is an account."""
        whom = whom_of_events(self.loss, account, unit, EVENTS)
        return HeavySketch(self, whom, paid(self, account, whom, by, purpose))

    def release(self, value: Any, *, unit: Unit | None = None) -> Release:
        """The frequent items of a list of texts."""
        session = self.start(unit=unit)
        session.add(value)
        return session.value()

    def released(
        self, pairs: Iterable[tuple[str, int]], unit: Unit | None, *, tainted: bool = False
    ) -> Release:
        """Items with their noisy counters, the largest first; `tainted` where a seed drew the noise."""
        rows = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
        columns: dict[str, list[Any]] = {"item": [item for item, _ in rows], "count": [n for _, n in rows]}
        found = self._released(columns, ("count",), unit)
        note = f"one release of {self.counters} counters, from {self.threshold} on; event level"
        return replace(found, receipt=replace(found.receipt, bounds=(note,), tainted=tainted))

    def noisy(self, counts: dict[Key, int]) -> list[tuple[str, int]]:
        """The counters that reach the threshold, with their noise."""
        drawn = noise.discrete_laplace(1 / self.epsilon, len(counts) + 1).tolist()
        pairs = zip(counts.items(), drawn[1:], strict=True)
        found = [(key, count + drawn[0] + each) for (key, count), each in pairs]
        # A dummy is a key like any other, but what it comes to is not shown: that is post-processing.
        return [(text, count) for (kind, text), count in found if count >= self.threshold and kind]

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """The noisy counters of the items a, b, c in a public list, 0 where they are not shown."""
        sketch = MisraGries(self.counters)
        for item in value:
            sketch.add(item)
        rows = [dict(self.noisy(sketch.counts)) for _ in range(size)]
        return np.array([[row.get(item, 0) for item in "abc"] for row in rows])

    def worst_case(self) -> tuple[Any, Any]:
        """An item that is frequent, and once more."""
        many = 2 * self.threshold
        return ["a"] * many, ["a"] * (many + 1)


def _text(cell: object) -> str:
    """By its type and its own value: no event is refused, and none changes what another counts as."""
    if isinstance(cell, str):
        return str.__str__(cell)
    found = None if isinstance(cell, bool | np.bool_) else integer(cell)
    return str(found) if found is not None and found.bit_length() <= MOST_BITS else ""


class HeavySketch(Single):
    """A session of `HeavyHitters`. Until it is released the sketch is as secret as the data."""

    def __init__(self, mechanism: HeavyHitters, unit: Unit | None, stamp: Stamp) -> None:
        super().__init__()
        self.mechanism, self.unit, self._stamp = mechanism, unit, stamp
        self._sketch, self._found, self._tainted = MisraGries(mechanism.counters), None, False

    _found: list[tuple[str, int]] | None

    def add(self, items: Any) -> None:
        """Events: one text or many, in their order; whole numbers as their digits, all else as no text."""
        given = cells(items, "iuUTO", "Items must be texts", "Convert them to text first.")
        listed = [_text(cell) for cell in (given if isinstance(given, list) else given.tolist())]
        with self._lock:
            self._check(1)
            if self._found is not None:
                raise NotSound(
                    "This sketch was charged for one release, which it has had.",
                    remedy="Start another sketch.",
                )
            with self._change():
                for item in listed:
                    self._sketch.add(item)

    def value(self) -> Release:
        """The frequent items; asked again, the same."""
        with self._lock:
            self._check(1)
            if self._found is None:
                with self._change():
                    self._found, self._tainted = self.mechanism.noisy(self._sketch.counts), noise.tainted()
            return self._stamp(self.mechanism.released(self._found, self.unit, tainted=self._tainted))
