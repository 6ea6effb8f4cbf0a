"""The session of `Thresholdout`: queries one by one, until its overfits are used up."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius import noise
from dalenius.mechanisms.above_threshold import Single, unpaid
from dalenius.mechanisms.mechanism import Stamp
from dalenius.privacy.unit import Unit
from dalenius.release import Cell, Release

if TYPE_CHECKING:
    from dalenius.mechanisms.thresholdout import Thresholdout

Answer = tuple[Cell, Cell, Cell, Cell]
"""The answer, the ends of its error bar, and whether it was an overfit."""


class ReusableHoldout(Single):
    """A session of `Thresholdout`."""

    def __init__(self, mechanism: Thresholdout, unit: Unit | None, stamp: Stamp = unpaid) -> None:
        super().__init__()
        self._stamp = stamp
        # A unit that does not fit is refused before anything is drawn.
        mechanism.released([], unit)
        self.mechanism, self.unit, self._left = mechanism, unit, mechanism.overfits
        self._round, self._tainted = mechanism.round.start(), noise.tainted()

    @property
    def left(self) -> int:
        """How many overfits it may still catch."""
        return self._left

    def ask(self, value: Any) -> Release:
        """One query, by its values on the training and on the holdout records."""
        answers = [self.answer(*self.mechanism.sums(value))]
        return self._stamp(self.mechanism.released(answers, self.unit, tainted=self._tainted))

    def answer(self, mean: Fraction, total: int) -> Answer:
        """The same by its mean over the one and its sum over the other."""
        gap = abs(total - self.mechanism.reference(mean))
        with self._lock:
            self._check(self._left)
            with self._change():
                above, *_ = self._round.answer(gap)
                if above:
                    self._left -= 1
                    self._round = self.mechanism.round.start()
                    self._tainted |= noise.tainted()
        if not above:
            return float(mean), None, None, False
        found = self.mechanism.answer.release(total)
        value, low, high = (end / self.mechanism.records for end in (found.value, found.low, found.high))
        return value, low, high, True
