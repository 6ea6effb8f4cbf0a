"""`serve`: a private ensemble as a service, whose every answer has a price.

ensemble = dp.learn.Ensemble.train(fit, (x, y), models=100)
service = dp.learn.serve(ensemble, classes=10, epsilon=2, delta=1e-6, answers=500)
session = service.start(people, by="ana")
session.ask(x[0])                              # a Release, charged
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.models import Outputs, read_classes
from dalenius.learn.serving.aggregates import Aggregate, Mean, Plurality
from dalenius.learn.serving.ensemble import Ensemble
from dalenius.learn.serving.session import Session
from dalenius.learn.whose import check_rows
from dalenius.ledger.account import Account
from dalenius.losses.loss import Loss
from dalenius.mechanisms.above_threshold import whom_for
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation, Unit
from dalenius.release import Cell, Release

MOST = 10**9
"""Answers at most."""


@dataclass(frozen=True, repr=False)
class Service:
    """An ensemble, and how its models' answers become one."""

    ensemble: Ensemble
    aggregate: Aggregate
    outputs: Outputs | None = None
    delta: Fraction | None = None

    @property
    def loss(self) -> Loss:
        """Of one answer."""
        return self.aggregate.loss

    def affords(self, *, epsilon: Number, delta: Number = 0) -> int:
        """How many answers keep a promise together."""
        limit, failure = numbers.epsilon(epsilon), numbers.delta(delta)

        def keeps(answers: int) -> bool:
            return (self.loss * answers).epsilon(failure).upper <= limit

        low, high = 0, 1
        while high < MOST and keeps(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if keeps(middle) else (low, middle)
        return low

    def start(
        self,
        account: Account | None = None,
        *,
        answers: int | None = None,
        unit: Unit | None = None,
        by: str = "",
        purpose: str = "prediction",
        remember: bool = True,
    ) -> Session:
        """A session that charges each answer, or so many `answers` now and at once.

        With `remember` the same question has the same answer again, and is free.
        """
        prepaid = None if answers is None else numbers.count(answers, "answers", most=MOST)
        whom = whom_for(self.loss, account, unit)
        check_rows(whom, by_unit=self.ensemble.by_unit)
        return Session(self, account, whom, by=by, purpose=purpose, prepaid=prepaid, remember=remember)

    def released(self, questions: Any, size: int, unit: Unit | None, loss: Loss) -> Release:
        """Answers to so many questions, whose receipt states this loss. Charge it first."""
        said = self.ensemble.answers(questions, size, self.outputs, self.aggregate.classes)
        found = [self.aggregate.release(said, question, unit) for question in range(size)]
        columns = {
            name: tuple(cell for one in found for cell in one.columns[name]) for name in found[0].columns
        }
        receipt = replace(
            found[0].receipt,
            loss=loss,
            bounds=(self.ensemble.how, *self.aggregate.bounds),
            tainted=self.ensemble.tainted or any(one.receipt.tainted for one in found),
            delta=self.delta,
        )
        return replace(found[0], columns=columns, receipt=receipt)

    def __repr__(self) -> str:
        return f"<Service of {self.ensemble.how}>"


def serve(
    ensemble: Ensemble,
    *,
    epsilon: Number,
    delta: Number = 0,
    answers: int = 1,
    classes: Sequence[Cell] | int | None = None,
    lower: Number | None = None,
    upper: Number | None = None,
    outputs: Outputs | None = None,
    relation: Relation = "add_remove",
) -> Service:
    """Answers with the least noise so that this many of them keep epsilon and delta together.

    With `classes` models vote, with `lower` and `upper` their numbers are averaged. More answers cost more:
    what may be asked in all is decided by the account.
    """
    if not isinstance(ensemble, Ensemble):
        raise InvalidArgument(
            "Answers of one model tell of all its rows.",
            remedy="Pass dp.learn.Ensemble.train(fit, (x, y), …).",
        )
    if relation not in ("add_remove", "zero_out"):
        raise NotSound(
            "Where one unit replaces another, two models may differ.",
            remedy='State it for relation="add_remove"; an account for replace charges it as two.',
        )
    many = numbers.count(answers, "answers", most=MOST)
    labels = read_classes(classes)
    if bool(labels) == (lower is not None and upper is not None) or (lower is None) != (upper is None):
        raise InvalidArgument(
            "A service votes for classes, or averages numbers between bounds.",
            remedy="Pass classes, or lower and upper.",
        )
    promise: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "answers": many, "relation": relation}
    how: Aggregate
    if lower is not None and upper is not None:
        how = Mean.calibrate(lower, upper, **promise)
    else:
        how = Plurality.calibrate(labels, **promise)
    return Service(ensemble, how, outputs, numbers.delta(delta) or None)
