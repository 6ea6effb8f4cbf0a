"""`Continual`: what the mechanisms share that publish sums at every step.

At each step numbers come in, each clipped to ±`largest`; or, with `categories`, indices of categories, each
counted once, those outside left out. Everything is in whole numbers. The steps themselves are public. One
unit may take part at `most` steps, at least `separation` apart, which the counter enforces; without `most`
each event is protected by itself, and the receipt says so.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.losses.streams.participation import Participation, once
from dalenius.mechanisms.above_threshold import paid
from dalenius.mechanisms.mechanism import Floats, Mechanism, Payer, risk
from dalenius.noise.stream import StreamKey
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Unit
from dalenius.release import CONFIDENCE, Release
from dalenius.streams.counter import Counter
from dalenius.streams.participants import whom_of_events, whom_of_units
from dalenius.streams.tallies import Ints, Tally

MOST_LARGEST = 2**31
"""A batch of so many such numbers fits 62 bits."""
MOST_SCALE = 2**36
AUDITED = 64
"""Steps of the streams that are audited, at most."""
Kind = TypeVar("Kind", bound="Continual")


class Blocks(Protocol):
    """Noise of consecutive steps, a block at a time; always the same for one key."""

    steps: int

    def next(self) -> Ints:
        """The next block, one row a step."""
        ...


class Continual(Mechanism):
    """Sums of a stream, released at every step."""

    horizon: Any
    scale: Any
    largest: Any
    categories: int | None
    separation: Any
    most: int | None

    def _check(self) -> None:
        """What all of them read alike."""
        numbers.count(self.largest, "largest", most=MOST_LARGEST)
        if self.categories is not None:
            object.__setattr__(self, "categories", numbers.count(self.categories, "categories", most=10**6))
            if self.largest != 1:
                raise InvalidArgument(
                    "With categories each event counts once.", remedy="Leave largest out, or categories."
                )
        if self.most is not None:
            object.__setattr__(self, "most", numbers.count(self.most, "most"))
        elif self.separation != 1:
            raise InvalidArgument(
                "separation is between the steps of a unit.", remedy="Pass most too, and unit to add."
            )
        if self.scale > MOST_SCALE:
            raise InvalidArgument("scale must be at most 2^36.", remedy="Count in coarser units.")
        _ = self.loss

    @abstractmethod
    def blocks(self, key: StreamKey, width: int) -> Blocks:
        """The noise of so many independent streams, from the first step on."""

    @abstractmethod
    def tally(self, width: int) -> Tally:
        """What is kept of the data of so many streams."""

    @abstractmethod
    def reach(self, steps: Ints, alpha: Fraction) -> Floats:
        """How far off numbers released at steps (from 1) are, each with probability at most `alpha`."""

    @property
    def width(self) -> int:
        """Numbers released at a step."""
        return self.categories or 1

    @property
    def participation(self) -> Participation:
        """What one unit may do."""
        return once() if self.most is None else Participation(self.separation, self.most)

    @property
    def bounds(self) -> tuple[str, ...]:
        """What its receipts say was applied."""
        what = "each event counts once" if self.categories else f"numbers clipped to ±{self.largest}"
        ends = "any number of steps" if self.horizon is None else f"up to {self.horizon} steps"
        if self.most is None:
            whom = "event level: each event is protected by itself, not all events of a person"
        else:
            whom = (
                f"each unit at {self.most} steps at most, {self.separation} apart, once a step; more dropped"
            )
        return (f"one charge for all answers of {ends}", what, whom)

    def start(
        self, account: Payer | None = None, *, unit: Unit | None = None, by: str = "", purpose: str = ""
    ) -> Counter:
        """A counter, all of whose answers together cost `loss`: charged now, where there is an account."""
        whom = self._whom(account, unit)
        return Counter(self, whom, paid(self, account, whom, by, purpose), StreamKey.fresh(), account)

    def _whom(self, account: Payer | None, unit: Unit | None) -> Unit | None:
        """Whom a session protects: without `most`, nobody whose rows a column tells apart."""
        if self.most is not None:
            return whom_of_units(self.loss, account, unit)
        remedy = "Pass most= to the mechanism and unit= to add; or charge an account without a column."
        return whom_of_events(self.loss, account, unit, remedy)

    def release(self, value: Any, *, unit: Unit | None = None) -> Release:
        """All values of a whole stream of numbers, each a step of its own."""
        return self.start(unit=unit).series(value)

    def released(
        self, rows: Any, unit: Unit | None, *, first: int = 1, listed: bool = True, tainted: bool = False
    ) -> Release:
        """Values from the step `first` on as a release, one row for each step and category."""
        alpha = risk(1 - CONFIDENCE)
        table = np.asarray(rows).reshape(-1, self.width)
        reach = self.reach(np.arange(first, first + len(table)), alpha)[:, None]
        whole = table.dtype.kind != "f"
        low = table - (np.floor(reach).astype(np.int64) if whole else reach)
        high = table + (np.floor(reach).astype(np.int64) if whole else reach)
        columns: dict[str, Any] = {}
        if listed:
            columns["step"] = np.repeat(np.arange(first, first + len(table)), self.width).tolist()
        if self.categories:
            columns["category"] = np.tile(np.arange(self.width), len(table)).tolist()
        columns |= {"value": table.ravel().tolist()}
        columns |= {"value_low": low.ravel().tolist(), "value_high": high.ravel().tolist()}
        found = self._released(columns, ("value",), unit, tainted=tainted)
        return replace(found, receipt=replace(found.receipt, bounds=self.bounds))

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """Independent draws of all values of a public stream, one row each."""
        steps = np.clip(np.asarray(value, np.int64), -self.largest, self.largest)
        blocks, drawn = self.blocks(StreamKey.fresh(), size), list[Ints]()
        while len(drawn) * blocks.steps < len(steps):
            drawn.append(blocks.next())
        rows = np.concatenate(drawn)[: len(steps)]
        return self.tally(size).series(np.repeat(steps[:, None], size, axis=1), rows).T

    def worst_case(self) -> tuple[Any, Any]:
        """Nothing, and a unit that takes part as early and as often as it may."""
        length = min(self.horizon or AUDITED, AUDITED)
        steps = range(0, length, self.separation)[: self.most or 1]
        return [0] * length, [self.largest if step in steps else 0 for step in range(length)]

    def error(self, alpha: Number = 1 - CONFIDENCE) -> float | None:
        """At the last step; None where there is no last one."""
        return None if self.horizon is None else float(self.reach(np.array([self.horizon]), risk(alpha))[0])


def fitted(make: Callable[[Fraction], Kind], multiplier: Fraction, sensitivity: float, largest: int) -> Kind:
    """The mechanism whose whole stream costs no more than one Gaussian of that noise multiplier."""
    least = multiplier * Fraction(sensitivity) * largest * (1 + Fraction(1, 10**9))
    return make(Fraction(math.ceil(least * 10**9), 10**9))
