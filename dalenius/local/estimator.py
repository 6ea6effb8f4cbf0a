"""`Estimator`: what runs on the server. It adds reports up and says what they tell, with error bars.

Its whole state is how many reports came and the sum of their tallies, a vector of whole numbers. So
estimators on many machines can be merged in any order, and kept: `to_bytes` is the wire format of `reports`
with another magic, DLNE, and the numbers of the tally as 64-bit integers.

One charge pays for one report of each person, before any is accepted. A second round of reports of the same
people is a second estimator. Parts of one round are collected without an account and merged into the one that
paid. A charge is of one estimator at a time, and of one process: it cannot be copied, and merging moves it.
What was merged into another has nothing left, so that no report is counted twice.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument, NotSound
from dalenius.local.reports import HEAD, VERSION, Reports, check_format, read_head
from dalenius.mechanisms.above_threshold import unpaid, whom_for
from dalenius.mechanisms.mechanism import Payer, Stamp
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Unit
from dalenius.release import Release

if TYPE_CHECKING:
    from dalenius.local.randomizer import Randomizer

MAGIC = b"DLNE"
CHUNK = 1 << 22
"""Numbers of reports that are added up at a time."""
MOST_REPORTS = 10**12
"""Of one estimator: no sum of so many overflows."""


class Estimator:
    """The sum of reports of one randomizer, for one thread at a time. See the module."""

    def __init__(self, randomizer: Randomizer, unit: Unit | None = None, stamp: Stamp = unpaid) -> None:
        self.randomizer, self.unit = randomizer, unit
        self._charge, self._process = stamp, os.getpid()
        self.count, self.tainted, self._merged = 0, False, False
        self._only: ref[Reports] | None = None
        self.tally: NDArray[np.int64] = np.zeros(randomizer.cells, np.int64)

    @classmethod
    def start(
        cls, randomizer: Randomizer, account: Payer | None, *, unit: Unit | None, by: str, purpose: str
    ) -> Estimator:
        """Empty, and paid for where there is an account."""
        whom = whom_for(randomizer.loss, account, unit)
        # A unit that does not fit is refused before anything is charged.
        randomizer.release([], unit=whom)
        stamp = unpaid if account is None else account.pay(randomizer, by=by, purpose=purpose)
        return cls(randomizer, whom, stamp)

    @property
    def paid(self) -> bool:
        """Whether an account was charged."""
        return self._charge is not unpaid

    def __repr__(self) -> str:
        return f"<Estimator of {self.count} reports, {type(self.randomizer).__name__}>"

    def add(self, reports: Reports | bytes) -> Estimator:
        """Count these reports too; all of them, or none where they are refused."""
        self.check()
        read = self.randomizer.accepted(reports)
        step, found = max(CHUNK // read.format.fields, 1), np.zeros_like(self.tally)
        for start in range(0, len(read), step):
            found += self.randomizer.tally(read.rows[start : start + step])
        return self._plus(found, len(read), read.tainted)

    def fill(self, reports: Reports) -> Estimator:
        """Count these, and remember which they were."""
        alone = not self.count
        self.add(reports)
        return self.counted(reports) if alone else self

    def counted(self, reports: Reports) -> Estimator:
        """Remember that it has these, and no others."""
        self._only = ref(reports)
        return self

    def counts_only(self, reports: Reports) -> bool:
        """Whether it was filled with these very reports, and has no others."""
        return self._only is not None and self._only() is reports

    def merge(self, other: Estimator) -> Estimator:
        """Count what another estimator of the same randomizer has counted, in its place.

        Its charge comes along, and it has nothing left.
        """
        check_format(other.randomizer.format, self.randomizer.format)
        if other is self:
            raise _twice()
        self.check()
        other.check()
        if self.paid and other.paid:
            raise NotSound(
                "Both were charged to an account by themselves: one receipt cannot tell of two charges.",
                remedy="Collect the parts without an account, and merge them into one that was paid for.",
            )
        if self.unit is not None and other.unit is not None and self.unit != other.unit:
            raise InvalidArgument("They are for different units.", remedy="Estimate each by itself.")
        self._room(other.count)
        tally, count, charge = other.tally, other.count, other._charge
        other._empty()
        if charge is not unpaid:
            self._charge, self._process = charge, os.getpid()
        self.unit = self.unit or other.unit
        return self._plus(tally, count, other.tainted)

    def _empty(self) -> None:
        """What is left of one that was merged."""
        self._charge, self._merged, self._only = unpaid, True, None
        self.tally, self.count = np.zeros_like(self.tally), 0

    def __add__(self, other: Estimator) -> Estimator:
        if other is self:
            raise _twice()
        if self.paid or other.paid:
            raise NotSound(
                "One charge cannot be of two estimators, a part and the sum.",
                remedy="Use paid.merge(part), which makes the one that was paid for the sum.",
            )
        return self._copied().merge(other._copied())

    def _copied(self) -> Estimator:
        return _restored(self.to_bytes(), self.randomizer, self.unit, self.tainted)

    def _plus(self, tally: NDArray[np.int64], count: int, tainted: bool) -> Estimator:
        self._room(count)
        self.tally, self.count = self.tally + tally, self.count + count
        self.tainted |= tainted
        self._only = None if count else self._only
        return self

    def _room(self, count: int) -> None:
        if self.count + count > MOST_REPORTS:
            raise _too_many()

    def estimate(self, *, forged: Number = 0) -> Release:
        """Return what the reports tell, with variances and confidence intervals.

        With `forged`, a public upper bound on the fraction of reports that are forged, intervals are for what
        honest people have: they hold it whatever the forged reports are, as long as devices can make them
        (`intervals`). Estimates and variances stay as they are.

        Raises:
            NotSound: The randomizer has no bound on what forged reports can do.
        """
        self.check()
        part = numbers.probability(forged, "forged")
        if not self.count:
            raise InvalidArgument("There are no reports.", remedy="Add at least one report.")
        found = self.randomizer.estimates_despite(self.tally, self.count, int(part * self.count))
        released = self.randomizer.released(found, self.unit, tainted=self.tainted)
        said = f", of which at most a fraction of {float(part):g} is forged" if part else ""
        return self._stamp(released.bounded(f"{self.count} reports{said}"))

    def _stamp(self, release: Release) -> Release:
        """With the charge on its receipt, where there is one."""
        self.check()
        return self._charge(release)

    def check(self) -> None:
        """Refused is what another estimator counts, or pays for, by now."""
        self._unmerged()
        if self.paid and self._process != os.getpid():
            raise NotSound(
                "An estimator that was charged for does not go on in a forked process: one would be two.",
                remedy="Send to_bytes() of parts to the process that paid, and merge them there.",
            )

    def _unmerged(self) -> None:
        if self._merged:
            raise InvalidArgument(
                "The reports of this estimator were merged into another, which has them alone.",
                remedy="Go on with that one, or begin another with randomizer.estimator().",
            )

    def to_bytes(self) -> bytes:
        """The state, to be kept or merged elsewhere; it is no more secret than the reports."""
        self._unmerged()
        head = HEAD.pack(MAGIC, VERSION, self.randomizer.format.fingerprint, self.count)
        return head + self.tally.astype("<i8").tobytes()

    @staticmethod
    def from_bytes(data: bytes, randomizer: Randomizer) -> Estimator:
        """Read a state back, as one that no account has paid for, where reports can add up to it."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise InvalidArgument("States come as bytes.", remedy="Pass what estimator.to_bytes() gave.")
        found, view = Estimator(randomizer), memoryview(data).cast("B")
        count = read_head(view, MAGIC, randomizer.format.fingerprint)
        if len(view) != HEAD.size + 8 * randomizer.cells:
            raise InvalidArgument("This state is cut short, or too long.", remedy="Save it again.")
        if count > MOST_REPORTS:
            raise _too_many()
        tally = np.frombuffer(view[HEAD.size :], "<i8").astype(np.int64)
        if not randomizer.adds_up(tally, count):
            raise InvalidArgument(
                "No reports add up to this state.", remedy="Save it again, or collect the reports anew."
            )
        return found._plus(tally, count, tainted=False)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.paid:
            raise NotSound(
                "An estimator that was charged for cannot be copied.",
                remedy="Keep to_bytes(), and merge it into one that is paid for.",
            )
        return _restored, (self.to_bytes(), self.randomizer, self.unit, self.tainted)


def _restored(data: bytes, randomizer: Randomizer, unit: Unit | None, tainted: bool) -> Estimator:
    found = Estimator.from_bytes(data, randomizer)
    found.unit, found.tainted = unit, tainted
    return found


def _twice() -> InvalidArgument:
    return InvalidArgument(
        "An estimator cannot be merged with itself: its reports would count twice.",
        remedy="Merge one of other reports.",
    )


def _too_many() -> InvalidArgument:
    return InvalidArgument("These are over 1e12 reports.", remedy="Estimate parts of them by themselves.")
