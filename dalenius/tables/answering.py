"""One question, answered: looked up, charged, read, bounded, added up, noised, committed.

    plan ─▶ released before? ─▶ reserve ─▶ read, bound, add up ─▶ noise ─▶ commit ─▶ keep

The charge is on disk before data are read. What goes wrong after that, an interrupt included, forfeits it: it
stays charged in full, nothing is released, and the message says so. What the engine or the system says of the
trouble may speak of the data, so none of it is passed on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

from dalenius import noise
from dalenius.errors import BudgetExceeded, LedgerError, QueryFailed
from dalenius.ledger import Account, Reservation
from dalenius.losses.filters import LEAST
from dalenius.losses.gauges import round_down
from dalenius.losses.loss import Loss
from dalenius.privacy.unit import Unit
from dalenius.release import EXACT, Receipt, Release
from dalenius.tables.answers import Answer
from dalenius.tables.answers_cache import Answers
from dalenius.tables.bounds import Bounds
from dalenius.tables.engines.engine import Engine
from dalenius.tables.plan import Plan
from dalenius.tables.progress import progress
from dalenius.tables.question import Question


@dataclass(frozen=True)
class Request:
    """A question at a price: everything public that decides an answer, and who asks."""

    question: Question
    asked: str
    """The question as people write it, for the ledger."""
    unit: Unit
    epsilon: Fraction
    delta: Fraction
    confidence: Fraction
    bounds: Bounds | None = None
    public_size: int | None = None
    by: str = ""
    purpose: str = ""

    def plan(self) -> Plan:
        """How it is answered, and what that costs."""
        return Plan.make(
            self.question,
            unit=self.unit,
            epsilon=self.epsilon,
            delta=self.delta,
            bounds=self.bounds,
            public_size=self.public_size,
            confidence=self.confidence,
        )

    def key(self, answers: Answers, engine: Engine) -> str:
        """What its answer is kept under."""
        facts = (self.unit, self.epsilon, self.delta, self.confidence, self.bounds, self.public_size)
        return answers.key(question=repr(self.question), facts=repr(facts), version=engine.version())


def answer(request: Request, account: Account, engine: Engine, answers: Answers) -> Release:
    """The answer that was released before, or a new one, charged."""
    plan, key = request.plan(), request.key(answers, engine)
    known = answers.find(key)
    if known is not None:
        return known
    with progress() as step, _charged(request, plan, account) as reservation:
        step("reading the rows")
        with engine.load(request.question.rows) as loaded:
            step("bounding what each unit adds, adding up, drawing noise")
            found = plan.run(loaded)
        release = reservation.commit(_release(request, plan, found))
    # Seeded noise is for tests: nobody else shall be given it.
    if not release.receipt.tainted:
        answers.keep(key, release)
    return release


@contextmanager
def _charged(request: Request, plan: Plan, account: Account) -> Iterator[Reservation]:
    """A reservation that is forfeited unless it is committed in the block."""
    reservation = _reserved(request, plan, account)
    charged = f"This had been charged as entry {reservation.number} of {account.name}: {_STAYS}"
    try:
        with reservation:
            yield reservation
    except (LedgerError, QueryFailed) as error:
        raise type(error)(f"{error.problem} {charged}", remedy=error.remedy) from None
    except Exception:
        raise QueryFailed(f"The query failed. {charged}", remedy=_REMEDY) from None
    except BaseException as stop:
        stop.add_note(f"The query was stopped. {charged}")
        raise


def _reserved(request: Request, plan: Plan, account: Account) -> Reservation:
    """A reservation; where there is too little left, the refusal names the epsilon that would fit."""
    try:
        return account.reserve(plan.loss, by=request.by, purpose=request.purpose, note=request.asked)
    except BudgetExceeded as refused:
        found = _fitting(request, account, refused.left or 0.0)
        if found is None:
            raise
        epsilon, largest = found
        raise BudgetExceeded(
            f"This question needs epsilon {float(request.epsilon):g}; at epsilon {float(epsilon):g} it would "
            f"still fit on {account.name}, of {account.budget}.",
            remedy=f"Try epsilon={float(epsilon):g}.",
            needed=refused.needed,
            left=float(epsilon),
            largest=largest,
        ) from None


def _fitting(request: Request, account: Account, left: float) -> tuple[Fraction, Loss] | None:
    """An epsilon, near the largest, at which the same question would be accepted now, and what it costs."""
    epsilon = Fraction(left)
    for _ in range(_TRIES):
        epsilon = round_down(epsilon, 3)
        if epsilon <= LEAST:
            return None
        loss = replace(request, epsilon=epsilon).plan().loss
        if account.accepts(loss, by=request.by, purpose=request.purpose):
            return epsilon, loss
        epsilon *= _LESS
    return None


_TRIES, _LESS = 16, Fraction(19, 20)
"""How many prices are tried, each so much lower than the one before."""
_STAYS = "it stays charged, and nothing was released."
_REMEDY = "See that the source is whole and that there is memory, then ask again; that is charged again."


def _release(request: Request, plan: Plan, found: Answer) -> Release:
    receipt = Receipt(
        loss=plan.loss,
        mechanism=found.mechanism,
        numerics=EXACT,
        unit=request.unit,
        bounds=found.bounds,
        postprocessing=found.notes,
        tainted=noise.tainted(),
        delta=request.delta,
        warnings=found.warnings,
    )
    return Release(found.columns, found.measures, receipt, request.confidence)
