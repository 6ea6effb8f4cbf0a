"""`RateAlarm`: tell me when a rate passes a limit, such as errors 1 % of all requests.

At each step come in the events, and how many of them were bad. Over the last `window` steps the query is
(d − n)·bad − n·good for the limit n/d and good = events − bad, a whole number, positive where the rate is
above the limit. bad and good of a step are clipped by themselves, to 2⁴⁰ each: one event is in one step and
one of the two, so it moves the query by at most max(n, d − n), its sensitivity, also at the clip. Whether it
reaches `slack` is asked of `mechanisms.SparseVector`, whose theorem is the one that holds here: the noes are
free, whatever their number, and all answers up to the last of `alarms` yeses cost ε together.

`slack` keeps quiet streams quiet: choose it as `mechanism.margin(steps, alpha)`, and of so many steps none
gives a false alarm but with probability alpha; a rate above the limit is noticed once it exceeds it by twice
that, in units of the query. After an alarm the window begins anew.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.losses.loss import Loss
from dalenius.mechanisms.above_threshold import AboveThreshold, Single
from dalenius.mechanisms.mechanism import Payer
from dalenius.mechanisms.sparse_vector import SparseVector
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.quantized import Grid
from dalenius.privacy.unit import Unit
from dalenius.release import Release
from dalenius.streams.participants import whom_of_events

MOST_EVENTS = 2**40
EVENTS = "Charge an account without a column, whose units are single events."


@dataclass(frozen=True)
class RateAlarm:
    """Alarms when more than `limit` of the events of the last `window` steps are bad."""

    mechanism: SparseVector
    limit: Fraction
    window: int

    @staticmethod
    def calibrate(
        *,
        limit: Number,
        window: int,
        epsilon: Number,
        alarms: int = 1,
        steps: int = 10_000,
        alpha: Number = 0.05,
    ) -> RateAlarm:
        """epsilon-private, and no false alarm in so many quiet steps but with probability alpha."""
        rate = numbers.probability(limit, "limit")
        most = max(rate.numerator, rate.denominator - rate.numerator)
        draft = SparseVector.calibrate(
            epsilon=epsilon, sensitivity=most, count=alarms, grid=Grid(0), exact=True
        )
        slack = draft.margin(steps, alpha)
        return RateAlarm(
            replace(draft, threshold=Fraction(slack)), rate, numbers.count(window, "window", most=10**6)
        )

    @property
    def loss(self) -> Loss:
        """Of a whole session."""
        return self.mechanism.loss

    def query(self, bad: int, events: int) -> int:
        """(d − n)·bad − n·good of one step, each of the two clipped by itself."""
        wrong, good = (max(0, min(MOST_EVENTS, number)) for number in (bad, events - bad))
        limit = self.limit
        return (limit.denominator - limit.numerator) * wrong - limit.numerator * good

    def start(
        self, account: Payer | None = None, *, unit: Unit | None = None, by: str = "", purpose: str = ""
    ) -> RateWatch:
        """A session, all of whose answers together cost `loss`: charged now, where there is an account."""
        whom_of_events(self.loss, account, unit, EVENTS)
        return RateWatch(self, self.mechanism.start(account, unit=unit, by=by, purpose=purpose))


class RateWatch(Single):
    """A session of `RateAlarm`. What it keeps of the window is as secret as the data."""

    def __init__(self, made_by: RateAlarm, session: AboveThreshold) -> None:
        super().__init__()
        self.made_by, self._session = made_by, session
        self._steps: deque[int] = deque(maxlen=made_by.window)

    @property
    def left(self) -> int:
        """Alarms that are still paid for."""
        return self._session.left

    def add(self, *, bad: int, events: int) -> Release:
        """One step: how many events there were, and how many of them were bad; whether that is an alarm."""
        query = self.made_by.query(_whole(bad), _whole(events))
        with self._lock:
            self._check(self.left)
            with self._change():
                self._steps.append(query)
                found = self._session.ask(sum(self._steps))
                if found.value:
                    self._steps.clear()
        return found


def _whole(number: object) -> int:
    """A whole number, by its type."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise InvalidArgument("bad and events must be whole numbers.", remedy="Pass them as int.")
    return int(number)
