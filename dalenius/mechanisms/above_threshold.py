"""Sessions: what answers more than once on one charge, and the one of the sparse vector technique."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.loss import Loss
from dalenius.mechanisms.mechanism import Payer, Stamp
from dalenius.privacy.unit import Unit
from dalenius.release import Cell, Release

if TYPE_CHECKING:
    from dalenius.mechanisms.sparse_vector import SparseVector

Answer = tuple[Cell, ...]
"""Yes or no, and, where they are paid for, the value of a yes with the ends of its error bar."""


class Single:
    """A session that cannot be copied: its copies would each spend the one charge.

    Nor does it go on once a change of it was stopped midway, by Ctrl-C or for want of memory: what was drawn
    before might be used for other data.
    """

    again: ClassVar[str] = "Start another session, which is charged by itself."

    def __init__(self) -> None:
        self._lock, self._process, self._broken = Lock(), os.getpid(), False

    @contextmanager
    def _change(self) -> Iterator[None]:
        """All of what is done within, or the session has ended; refusals come before."""
        self._broken = True
        try:
            yield
        except BaseException:
            self._ended()
            raise
        self._broken = False

    def _ended(self) -> None:
        """What is left to do for a session that was broken."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise NotSound(
            "A session cannot be copied, nor go on in a forked process: it was charged for once.",
            remedy="Start another session, which is charged by itself.",
        )

    def _check(self, left: int) -> None:
        """Refused by what was already answered, or after a fork: never by a value."""
        if self._process != os.getpid():
            self.__reduce_ex__(0)
        if self._broken:
            raise NotSound("This session was stopped in the middle of a change.", remedy=self.again)
        if not left:
            raise NotSound(
                "This session has given all the positive answers it was charged for.",
                remedy="Start another session, which is charged by itself.",
            )


def whom_for(loss: Loss, account: Payer | None, unit: Unit | None) -> Unit | None:
    """Whom a session protects: the account's unit, where there is one."""
    whom = unit if account is None else account.unit_for(loss)
    if unit is not None and unit != whom:
        raise InvalidArgument(
            f"This session is for {unit}; the account is for {whom}.",
            remedy="Leave unit out, or charge an account of that unit.",
        )
    return whom


def paid(mechanism: Any, account: Payer | None, unit: Unit | None, by: str, purpose: str) -> Stamp:
    """Charge a session to an account, if there is one; a unit that does not fit is refused first."""
    mechanism.released([], unit)
    return unpaid if account is None else account.pay(mechanism, by=by, purpose=purpose)


def unpaid(release: Release) -> Release:
    """The stamp of no account."""
    return release


class AboveThreshold(Single):
    """A session of `SparseVector`."""

    def __init__(self, mechanism: SparseVector, unit: Unit | None, stamp: Stamp = unpaid) -> None:
        super().__init__()
        self._stamp = stamp
        # A unit that does not fit is refused before anything is drawn.
        mechanism.released([], unit)
        self.mechanism, self.unit, self._left = mechanism, unit, mechanism.count
        # The threshold's noise is part of every answer, wherever that is asked for.
        self._bar, self._tainted = mechanism.bar + int(mechanism.shift.draw(1)[0]), noise.tainted()

    @property
    def left(self) -> int:
        """How many answers may still be yes."""
        return self._left

    def ask(self, value: Any) -> Release:
        """Whether one query reaches the threshold."""
        if np.ndim(value):
            raise InvalidArgument("value must be one number.", remedy="Ask about one query at a time.")
        steps = int(self.mechanism.query.steps(value)[0])
        return self._stamp(self.mechanism.released([self.answer(steps)], self.unit, tainted=self._tainted))

    def answer(self, steps: int) -> Answer:
        """The same about whole steps, without a receipt."""
        query, answers = self.mechanism.query, self.mechanism.answers
        with self._lock:
            self._check(self._left)
            with self._change():
                above = steps + int(query.draw(1)[0]) >= self._bar
                self._left -= above
        if answers is None or not above:
            return above, None, None, None
        found = answers.release(steps if query.exact else steps * query.step)
        return above, found.value, found.low, found.high
