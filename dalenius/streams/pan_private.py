"""`PanPrivateCount`: running sums whose memory may be seized.

The state is itself differentially private between calls (Dwork, Naor, Pitassi, Rothblum and Yekhanin 2010):
no key, no pool, no sum without noise is in it then. Within a call the numbers that are being added are in
memory, as they are in the caller's. Of the binary tree over `horizon` steps the state holds,
for each level, the block that is open, begun with noise ξ of `state_scale` and counted up in place, and the
noisy sums of the last complete blocks. A block that is complete gets noise η of `output_scale` on top, and is
released; a prefix is a sum of such blocks. An intrusion that is announced (`intruded`) renews the noise: each
open block gets another ξ on top.

Theorem. Let an adversary see all outputs, and the whole state any number of times, between calls, all but the
last of which are announced before the next. Then all it sees together is ε-private for an event,
    ε = L·Δ·max(1/state_scale, 1/output_scale),   L = ⌊log₂n⌋ + 1, Δ = `largest`.
Proof. An event lies in one block of each level, whose state and output depend on it and no other number does.
Let i be the last look at the block before the event, if any. If there is none, all that is ever seen of the
block after the event holds the first ξ, and nothing before it does. If i is announced before the block ends,
nothing of the block is seen between i and the announcement, all that is seen later holds the ξ that was drawn
then, and nothing up to i does. In both cases moving that ξ by −Δ undoes the event, at a cost of
Δ/state_scale. Otherwise the block closes before the announcement, or there is none: the next look, if any,
comes after that, so nothing but the block's output is seen after the event. It holds η, which nothing up to i
does: moving that costs Δ/output_scale. All noises are independent, so an event costs one such move for each
level.

Looking twice without a word breaks it: the difference of two states is the number of events between them. So
does a restart from a saved state: there is no `save`. Error: twice the variance of a tree at the same ε, and
one more ξ for each announced intrusion of a block; error bars know how many there were.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.fields import Parameter, whole
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.mechanisms.above_threshold import Single, paid
from dalenius.mechanisms.mechanism import Mechanism, Payer, Stamp, risk
from dalenius.noise import fresh
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.records import whole_steps
from dalenius.privacy.unit import Unit
from dalenius.release import CONFIDENCE, Release
from dalenius.streams.participants import whom_of_events
from dalenius.streams.tallies import Ints
from dalenius.streams.trees import wide

EVENTS = "Use ContinualSum with most, whose memory is not private; or charge an account without a column."
MOST_LARGEST, MOST_SCALE = 2**31, 2**48
"""2⁸ scales of the noise of state and output, on each of 40 levels, fit 63 bits."""
BOUND = "the state is private too: any announced intrusions, and one that is not"


@dataclass(frozen=True)
class PanPrivateCount(Mechanism, kind="pan_private_count"):
    """Running sums for `horizon` steps, of numbers clipped to ±`largest`, in a state that may be seized."""

    _: KW_ONLY
    horizon: Parameter[int] = Parameter(whole)
    state_scale: Parameter[Fraction] = Parameter(numbers.positive)
    output_scale: Parameter[Fraction] = Parameter(numbers.positive)
    largest: Parameter[int] = Parameter(whole, 1)

    def __post_init__(self) -> None:
        numbers.count(self.largest, "largest", most=MOST_LARGEST)
        if max(self.state_scale, self.output_scale) > MOST_SCALE:
            raise InvalidArgument(
                "state_scale and output_scale must be at most 2^48.", remedy="Count in coarser units."
            )

    @property
    def levels(self) -> int:
        """⌊log₂n⌋ + 1."""
        return self.horizon.bit_length()

    @property
    def loss(self) -> Loss:
        """Of all outputs and all states that are seen."""
        return Pure(self.levels * self.largest / min(self.state_scale, self.output_scale))

    def start(
        self, account: Payer | None = None, *, unit: Unit | None = None, by: str = "", purpose: str = ""
    ) -> PanPrivateCounter:
        """A counter, all of whose answers and states together cost `loss`: charged now."""
        whom = whom_of_events(self.loss, account, unit, EVENTS)
        return PanPrivateCounter(self, whom, paid(self, account, whom, by, purpose))

    def release(self, value: Any, *, unit: Unit | None = None) -> Release:
        """The last value of a whole stream of numbers, each a step of its own."""
        session = self.start(unit=unit)
        for each in whole_steps(value).tolist():
            session.add(each)
        return session.value()

    def released(self, values: Any, unit: Unit | None, *, reach: float = 0.0) -> Release:
        """Values with their error bars."""
        far, listed = int(reach), [int(value) for value in values]
        columns = {
            "value": listed,
            "value_low": [value - far for value in listed],
            "value_high": [value + far for value in listed],
        }
        found = self._released(columns, ("value",), unit)
        notes = (f"one charge for all answers of up to {self.horizon} steps", BOUND, "event level")
        # Its noise is of the operating system's, also within a seed.
        return replace(found, receipt=replace(found.receipt, bounds=notes, tainted=False))

    def reach(self, noises: int, outputs: int, alpha: Fraction) -> float:
        """How far off a sum of so many ξ and η is with probability at most `alpha`."""
        variance = 2 * (noises * float(self.state_scale) ** 2 + outputs * float(self.output_scale) ** 2)
        return wide(alpha, "laplace") * math.sqrt(variance) + 1

    def error(self, alpha: Number = 1 - CONFIDENCE) -> float | None:
        """Where all levels are part of a value, and no intrusion was announced."""
        return self.reach(self.levels, self.levels, risk(alpha))

    def sample(self, value: Any, size: int) -> NDArray[Any]:
        """The values at all steps of a public stream, one row a draw."""
        session, found = PanPrivateCounter(self, None, lambda release: release, width=size), []
        for each in whole_steps(value).tolist():
            session.add(each)
            found.append(session.closed_sum())
        return np.column_stack(found)

    def worst_case(self) -> tuple[Any, Any]:
        """Nothing, and one event at the first step."""
        length = min(self.horizon, 16)
        return [0] * length, [self.largest, *([0] * (length - 1))]

    @staticmethod
    def calibrate(*, horizon: int, epsilon: Number, largest: int = 1) -> PanPrivateCount:
        """The least noise, alike for state and outputs, that is epsilon-private in all."""
        steps, limit = numbers.count(horizon, "horizon"), numbers.epsilon(epsilon)
        scale = steps.bit_length() * numbers.count(largest, "largest") / limit
        return PanPrivateCount(horizon=steps, state_scale=scale, output_scale=scale, largest=largest)


class PanPrivateCounter(Single):
    """A session of `PanPrivateCount`: all it holds of the data are `open` and `closed`, with their noise."""

    def __init__(self, mechanism: PanPrivateCount, unit: Unit | None, stamp: Stamp, width: int = 1) -> None:
        super().__init__()
        self.mechanism, self.unit, self._stamp = mechanism, unit, stamp
        self.steps, levels = 0, mechanism.levels
        self.open = np.array([self._noise(width) for _ in range(levels)])
        self.closed: Ints = np.zeros((levels, width), np.int64)
        self._noises, self._closed_noises = np.ones(levels, np.int64), np.zeros(levels, np.int64)

    def _noise(self, width: int) -> Ints:
        return fresh.discrete_laplace(self.mechanism.state_scale, width)

    def add(self, value: Any) -> None:
        """One step: a whole number, or all numbers of a batch together."""
        mechanism, events = self.mechanism, whole_steps(value)
        with self._lock:
            self._check(1)
            if self.steps == mechanism.horizon:
                raise NotSound(
                    f"This stream was charged for {mechanism.horizon} steps.",
                    remedy="Start another with a longer horizon.",
                )
            with self._change():
                self.open += int(np.clip(events, -mechanism.largest, mechanism.largest).sum())
                self.steps += 1
                self._close()

    def _close(self) -> None:
        """Blocks that end with this step: the longest one is kept, and all of them begin anew."""
        ended = (self.steps & -self.steps).bit_length() - 1
        for level in range(min(ended + 1, self.mechanism.levels)):
            width = self.open.shape[1]
            self.closed[level] = self.open[level] + fresh.discrete_laplace(self.mechanism.output_scale, width)
            self._closed_noises[level] = self._noises[level]
            self.open[level], self._noises[level] = self._noise(width), 1

    def intruded(self) -> None:
        """Say that somebody saw the memory: its noise is renewed."""
        with self._lock:
            self._check(1)
            with self._change():
                for level in range(self.mechanism.levels):
                    self.open[level] += self._noise(self.open.shape[1])
                self._noises += 1

    def closed_sum(self) -> Ints:
        """Of the blocks of the step's binary digits, with their noise."""
        self._check(1)
        total: Ints = self.closed[self._digits()].sum(axis=0)
        return total

    def _digits(self) -> list[int]:
        return [level for level in range(self.mechanism.levels) if self.steps >> level & 1]

    def value(self) -> Release:
        """The value at the last step; asked again, the same one."""
        with self._lock:
            self._check(1)
            if not self.steps:
                raise InvalidArgument("There was no step yet.", remedy="Add something first.")
            digits = self._digits()
            many = int(self._closed_noises[digits].sum())
            reach = self.mechanism.reach(many, len(digits), risk(1 - CONFIDENCE))
            return self._stamp(self.mechanism.released(self.closed_sum(), self.unit, reach=reach))

    def state(self) -> tuple[list[int], list[int]]:
        """What an intruder finds of the data: open and closed blocks."""
        return self.open[:, 0].tolist(), self.closed[:, 0].tolist()
