"""`Estimator`: what runs on the server. It adds reports up and says what they tell, with error bars.

Its whole state is how many reports came and the sum of their tallies, a vector of whole numbers. So
estimators on many machines can be merged in any order, and kept: `to_bytes` is the wire format of `reports`
with another magic, DLNE, and the numbers of the tally as 64-bit integers.

One charge pays for one report of each person, before any is accepted. A second round of reports of the same
people is a second estimator. Parts of one round are collected without an account and merged into the one that
paid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument, NotSound
from dalenius.local.reports import HEAD, VERSION, Reports, check_format, read_head
from dalenius.mechanisms.above_threshold import unpaid, whom_for
from dalenius.mechanisms.mechanism import Payer, Stamp
from dalenius.privacy.unit import Unit
from dalenius.release import Release

if TYPE_CHECKING:
    from dalenius.local.randomizer import Randomizer

MAGIC = b"DLNE"
CHUNK = 1 << 22
"""Numbers of reports that are added up at a time."""


class Estimator:
    """The sum of reports of one randomizer. See the module."""

    def __init__(self, randomizer: Randomizer, unit: Unit | None = None, stamp: Stamp = unpaid) -> None:
        self.randomizer, self.unit, self._stamp = randomizer, unit, stamp
        self.count = 0
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
        return self._stamp is not unpaid

    def __repr__(self) -> str:
        return f"<Estimator of {self.count} reports, {type(self.randomizer).__name__}>"

    def add(self, reports: Reports | bytes) -> Estimator:
        """Count these reports too; all of them, or none where they are refused."""
        form = self.randomizer.format
        read = reports if isinstance(reports, Reports) else Reports.from_bytes(reports, form)
        check_format(read.format, form)
        step, found = max(CHUNK // form.fields, 1), np.zeros_like(self.tally)
        for start in range(0, len(read), step):
            found += self.randomizer.tally(read.rows[start : start + step])
        self.tally, self.count = self.tally + found, self.count + len(read)
        return self

    def merge(self, other: Estimator) -> Estimator:
        """Count what another estimator of the same randomizer has counted, too."""
        check_format(other.randomizer.format, self.randomizer.format)
        if self.paid and other.paid:
            raise NotSound(
                "Both were charged to an account by themselves: one receipt cannot tell of two charges.",
                remedy="Collect the parts without an account, and merge them into one that was paid for.",
            )
        if self.unit is not None and other.unit is not None and self.unit != other.unit:
            raise InvalidArgument("They are for different units.", remedy="Estimate each by itself.")
        self.tally, self.count = self.tally + other.tally, self.count + other.count
        self.unit = self.unit or other.unit
        self._stamp = self._stamp if self.paid else other._stamp
        return self

    def __add__(self, other: Estimator) -> Estimator:
        return Estimator(self.randomizer, self.unit, self._stamp).merge(_unpaid(self)).merge(other)

    def estimate(self) -> Release:
        """What the reports tell, with variances and error bars."""
        if not self.count:
            raise InvalidArgument("There are no reports.", remedy="Add at least one report.")
        found = self.randomizer.estimates(self.tally, self.count)
        released = self.randomizer.released(found, self.unit)
        return self._stamp(released.bounded(f"{self.count} reports"))

    def to_bytes(self) -> bytes:
        """The state, to be kept or merged elsewhere; it is no more secret than the reports."""
        head = HEAD.pack(MAGIC, VERSION, self.randomizer.format.fingerprint, self.count)
        return head + self.tally.astype("<i8").tobytes()

    @staticmethod
    def from_bytes(data: bytes, randomizer: Randomizer) -> Estimator:
        """Read a state back, as one that no account has paid for."""
        found, view = Estimator(randomizer), memoryview(data).cast("B")
        count = read_head(view, MAGIC, randomizer.format.fingerprint)
        if len(view) != HEAD.size + 8 * randomizer.cells:
            raise InvalidArgument("This state is cut short, or too long.", remedy="Save it again.")
        found.count, found.tally = count, np.frombuffer(view[HEAD.size :], "<i8").astype(np.int64)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        if self.paid:
            raise NotSound(
                "An estimator that was charged for cannot be copied.",
                remedy="Keep to_bytes(), and merge it into one that is paid for.",
            )
        return _restored, (self.to_bytes(), self.randomizer, self.unit)


def _restored(data: bytes, randomizer: Randomizer, unit: Unit | None) -> Estimator:
    found = Estimator.from_bytes(data, randomizer)
    found.unit = unit
    return found


def _unpaid(estimator: Estimator) -> Estimator:
    """The same counts, without the charge that its twin keeps."""
    return _restored(estimator.to_bytes(), estimator.randomizer, estimator.unit)
