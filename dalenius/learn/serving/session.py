"""`Session`: questions to a private ensemble, each charged before it is answered.

The charge is on disk before a model is asked. A crash in between forfeits it; the question asked again is
charged again, with fresh noise. Where an account has too little left, it refuses, and nothing is computed.

The same question asked twice would have two answers, and noise that averages out: so it is charged twice, or
remembered, and then given again for nothing. What is remembered follows from the questions, which are public
to whoever asks. A batch is charged for each of its questions.

Whoever asks in several threads, in one session or in many, is answered in turn: a charge, what models say and
the answer are one step, which no other comes between.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.quiet import alone
from dalenius.ledger.account import Account
from dalenius.mechanisms.above_threshold import Single
from dalenius.privacy.unit import Unit
from dalenius.release import Receipt, Release
from dalenius.release.receipt import AGAIN, Entry

if TYPE_CHECKING:
    from dalenius.learn.serving.service import Service

MOST_AT_ONCE = 10**6
"""Questions of a batch at most."""


class Session(Single):
    """Answers of a service, for one who asks."""

    def __init__(
        self,
        service: Service,
        account: Account | None,
        unit: Unit | None,
        *,
        by: str,
        purpose: str,
        prepaid: int | None,
        remember: bool,
    ) -> None:
        super().__init__()
        self._service, self._account, self._unit = service, account, unit
        self._by, self._purpose, self._left, self._prepaid = by, purpose, prepaid, prepaid
        self._known: dict[bytes, Release] | None = {} if remember else None
        self._line: Entry | None = None
        if prepaid is not None and account is not None:
            with account.reserve(service.loss * prepaid, by=by, purpose=purpose) as reservation:
                self._line = reservation.line()
                reservation.end("commit")

    @property
    def left(self) -> int | None:
        """How many answers are left of those that were paid for at once; None where each is charged."""
        return self._left

    def ask(self, question: Any) -> Release:
        """One answer."""
        questions = _alone(question)
        self._service.ensemble.check(questions)
        key = _digest(questions)
        with alone(), self._lock:
            known = self._known or {}
            if key in known:
                return _again(known[key])
            found = self._answered(questions, 1)
            if self._known is not None:
                self._known[key] = found
            return found

    def ask_all(self, questions: Any) -> Release:
        """An answer to each row of questions, charged for each."""
        size = _size(questions)
        self._service.ensemble.check(questions)
        with alone(), self._lock:
            return self._answered(questions, size)

    def _answered(self, questions: Any, size: int) -> Release:
        if self._prepaid is not None:
            return self._from_paid(questions, size, self._prepaid)
        loss = self._service.loss * size if size > 1 else self._service.loss
        if self._account is None:
            return self._service.released(questions, size, self._unit, loss)
        with self._account.reserve(loss, by=self._by, purpose=self._purpose) as reservation:
            return reservation.commit(self._service.released(questions, size, self._unit, loss))

    def _from_paid(self, questions: Any, size: int, paid: int) -> Release:
        assert self._left is not None
        if self._process != os.getpid():
            self.__reduce_ex__(0)
        if size > self._left:
            raise NotSound(
                f"{self._left} answers are left of {paid} that were paid for, and {size} are asked for.",
                remedy="Ask fewer, or start another session, which is charged by itself.",
            )
        # Before any is drawn: an answer that is broken off counts.
        self._left -= size
        found = self._service.released(questions, size, self._unit, self._service.loss * paid)
        found = found.bounded(f"one charge for a session of up to {paid} answers")
        if self._line is None or self._account is None:
            return found
        return self._account.signed(found.charged(self._line))


def _again(known: Release) -> Release:
    """The same release, which says that it was free."""
    receipt: Receipt = known.receipt
    notes = (*receipt.postprocessing, f"{AGAIN}: the question was answered before")
    return replace(known, receipt=replace(receipt, postprocessing=notes))


def _alone(question: Any) -> Any:
    """A batch of one question; a frame is one already."""
    if isinstance(question, Mapping):
        return {name: _alone(one) for name, one in question.items()}
    if hasattr(question, "iloc"):
        if len(question) != 1 or not hasattr(question, "columns"):
            raise InvalidArgument(
                "A question is one row.", remedy="Ask with a frame of one row, or use ask_all."
            )
        return question
    if hasattr(question, "device") and hasattr(question, "unsqueeze"):
        return question.unsqueeze(0)
    return np.asarray(question)[np.newaxis]


def _size(questions: Any) -> int:
    """How many rows there are."""
    first = next(iter(questions.values()), ()) if isinstance(questions, Mapping) else questions
    size = len(first) if hasattr(first, "__len__") and np.ndim(first) else 0
    if not 1 <= size <= MOST_AT_ONCE:
        raise InvalidArgument(
            "questions must be rows, one or more.", remedy="Pass an array with one row for each question."
        )
    return size


def _digest(questions: Any) -> bytes:
    def plain(one: Any) -> Any:
        if isinstance(one, Mapping):
            return sorted((str(name), plain(each)) for name, each in one.items())
        found = one.detach().cpu().numpy() if hasattr(one, "detach") else np.asarray(one)
        return found.dtype.str, found.shape, found.tolist() if found.dtype == object else found.tobytes()

    return blake2b(pickle.dumps(plain(questions))).digest()
