"""`Labelling`: a session of teachers, charged once, that labels public queries until they are used up.

Each query may be chosen in view of all labels before it. Refusals depend on what was already answered, never
on a vote. The session is charged before teachers are trained, where they were not trained before.

The figure that depends on the votes is a bound only for queries that were fixed beforehand, so `sanitized`
gives it for a session that was asked once, for all of its queries together. It is of that session alone.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.pate.teachers import Teachers
from dalenius.learn.whose import check_rows
from dalenius.ledger.account import Account
from dalenius.losses.fields import written
from dalenius.losses.pate.sanitizer import Sanitized, Sanitizer
from dalenius.losses.pate.votes import check_release
from dalenius.mechanisms.above_threshold import Single, paid, unpaid, whom_for
from dalenius.mechanisms.mechanism import Payer, Stamp
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Unit
from dalenius.release import EXACT, Receipt, Release

if TYPE_CHECKING:
    from dalenius.learn.pate.gnmax import Aggregator

Counts = NDArray[np.int64]


class Labelling(Single):
    """A session of `GNMax` or `ConfidentGNMax`."""

    def __init__(
        self, mechanism: Aggregator, teachers: Teachers, unit: Unit | None, stamp: Stamp = unpaid
    ) -> None:
        super().__init__()
        self.mechanism, self.unit, self.teachers = mechanism, unit, teachers
        self._stamp, self._asked, self._given, self._times = stamp, 0, 0, 0
        self.__counts: Counts | None = None

    @property
    def left(self) -> int:
        """How many queries may still be asked: none once all labels were given."""
        return self.mechanism.queries - self._asked if self._given < self.mechanism.most else 0

    @property
    def answered(self) -> int:
        """How many labels were given."""
        return self._given

    def ask(self, value: Any) -> Release:
        """The label of one query."""
        return self.label(value[None] if hasattr(value, "shape") else [value])

    def label(self, queries: Any) -> Release:
        """A label for each of these public rows, None where there is no answer."""
        count = self.teachers.check(queries)
        with self._lock:
            self._check(self.left)
            if count > self.left or not count:
                raise InvalidArgument(
                    f"These are {count} queries, and {self.left} are left of this session.",
                    remedy=f"Ask from 1 to {self.left} of them, and start another session for more.",
                )
            self._asked, self._times = self._asked + count, self._times + 1
            counts = self.teachers.counts(queries)
            labels = self.mechanism.labels(counts, self.mechanism.most - self._given)
            self._given += int((labels >= 0).sum())
            self.__counts = counts if self._times == 1 else None
        return self._stamp(self.mechanism.released(labels.tolist(), self.unit, tainted=self._tainted))

    @property
    def _tainted(self) -> bool:
        return noise.tainted() or self.teachers.tainted

    def sanitized(
        self,
        sanitizer: Sanitizer,
        *,
        delta: Number,
        account: Account | None = None,
        by: str = "",
        purpose: str = "figure of votes",
    ) -> Release:
        """The ε of these votes: an upper bound with the sanitizer's confidence, charged by itself."""
        failure = numbers.delta(delta)
        if self._times != 1 or self.__counts is None:
            raise NotSound(
                "The figure that depends on votes bounds queries that were fixed beforehand, all together.",
                remedy="Call label once, with all queries, and then sanitized.",
            )
        check_release(sanitizer, self.mechanism.relation, self._asked)
        self._check_figure(sanitizer, failure)
        if account is None:
            return self._figure(sanitizer, failure)
        whom = whom_for(sanitizer.loss, account, self.unit)
        check_rows(whom, by_unit=self.teachers.by_unit)
        if self.unit is not None and whom != self.unit:
            raise InvalidArgument(
                f"The labels protect {self.unit}, and this account {whom}.",
                remedy="Charge the figure to the account that paid for the labels.",
            )
        with account.reserve(sanitizer.loss, by=by, purpose=purpose) as reservation:
            return reservation.commit(self._figure(sanitizer, failure))

    def _check_figure(self, sanitizer: Sanitizer, delta: Fraction) -> None:
        """Refuse by public numbers, before anything is charged."""
        most, order = self.mechanism.most_teachers, sanitizer.order
        if self.teachers.count > most:
            raise InvalidArgument(
                f"The figure that depends on votes is for {most} teachers at most, and these are "
                f"{self.teachers.count}.",
                remedy=f"Train {most} teachers or fewer where it is wanted; labels are charged without it.",
            )
        try:
            worst = self.mechanism.most_figure(order, self._asked)
            Sanitized(worst, order=order, confidence=sanitizer.confidence, loss=sanitizer.loss).epsilon(delta)
        except InvalidArgument as found:
            raise InvalidArgument(
                "With so little noise the figure that depends on votes may be too large to be stated.",
                remedy="Choose a smaller order, or ask fewer queries, or with more noise.",
            ) from found

    def _figure(self, sanitizer: Sanitizer, delta: Any) -> Release:
        assert self.__counts is not None
        votes = self.mechanism.votes(self.__counts, self.teachers.count)
        # It bounds the queries so far; with further ones it would not be a bound.
        self._asked = self.mechanism.queries
        return figure(votes.sanitized(sanitizer), delta, self.unit, tainted=self._tainted)


def figure(found: Sanitized, delta: Any, unit: Unit | None, *, tainted: bool = False) -> Release:
    """A sanitized figure as a release."""
    sure = written(100 * found.confidence)
    receipt = Receipt(
        found.loss,
        f"a figure of votes at order {written(found.order)}, by smooth sensitivity",
        EXACT,
        unit=None if unit is None else replace(unit, relation=found.loss.relation),
        tainted=found.tainted or tainted,
        warnings=(
            f"epsilon holds for these data and their neighbours, with confidence {sure} %; "
            "it is not what the account was charged",
        ),
    )
    columns = {"epsilon": (found.epsilon(delta),), "divergence": (float(found.value),)}
    return Release(columns, ("epsilon",), receipt)


def begin(
    mechanism: Aggregator,
    account: Payer | None,
    *,
    teachers: Teachers,
    unit: Unit | None,
    by: str,
    purpose: str,
) -> Labelling:
    """Check whom teachers keep apart, charge, and start."""
    if not isinstance(teachers, Teachers):
        raise InvalidArgument("A session asks teachers.", remedy="Pass teachers=dp.learn.pate.Teachers(…).")
    if mechanism.relation == "replace" and teachers.by_unit:
        raise NotSound(
            "A unit that is replaced by another moves the votes of two teachers, its own and the other's.",
            remedy='Leave relation as "add_remove"; an account for "replace" then charges for both.',
        )
    whom = whom_for(mechanism.loss, account, unit)
    check_rows(whom, by_unit=teachers.by_unit)
    return Labelling(mechanism, teachers, whom, paid(mechanism, account, whom, by, purpose))
