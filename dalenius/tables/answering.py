"""One question, answered: looked up, charged, read, bounded, added up, noised, committed.

    plan ─▶ released before? ─▶ wait for memory ─▶ reserve ─▶ read, bound, add up ─▶ noise ─▶ commit ─▶ keep

The charge is on disk before data are read. What goes wrong after that, an interrupt included, forfeits it: it
stays charged in full, nothing is released, and the message says so. What the engine or the system says of the
trouble may speak of the data, so none of it is passed on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial

from dalenius import noise
from dalenius.errors import Argument, BudgetExceeded, DaleniusError, LedgerError, Message, QueryFailed
from dalenius.ledger import Account, Reservation
from dalenius.ledger.texts import LONGEST_NOTE, shortened
from dalenius.privacy.unit import Unit
from dalenius.release import EXACT, Receipt, Release
from dalenius.tables.answers_cache import Answers, seal
from dalenius.tables.bounds import Bounds
from dalenius.tables.engines.engine import Engine
from dalenius.tables.fitting import LIST, USED_UP, Fitting, fitting
from dalenius.tables.language.formulas import AggregateValue
from dalenius.tables.learned import Learned
from dalenius.tables.planning.answers import Answer
from dalenius.tables.planning.plan import Plan
from dalenius.tables.progress import progress
from dalenius.tables.question import Question
from dalenius.tables.unopened import Unopened
from dalenius.tables.window_column import settle_time

COUNTS = ("count", "count_of", "units", "distinct")
"""Aggregates that are never below 0."""


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
    learned: Learned | None = None
    """What a profile of the table has shown."""
    assumed: tuple[str, ...] = ()
    """What is taken to be public of how files are read, for the receipt."""
    time: str | None = None
    """The column of time by which windows of units are cut, where they have any."""

    def plan(self) -> Plan:
        """How it is answered, and what that costs; planned once."""
        return self._plan

    @cached_property
    def _plan(self) -> Plan:
        return Plan.make(
            self.question,
            unit=self.unit,
            epsilon=self.epsilon,
            delta=self.delta,
            bounds=self.bounds,
            public_size=self.public_size,
            confidence=self.confidence,
            learned=self.learned,
        )

    def key(self, answers: Answers, engine: Engine) -> str:
        """What its answer is kept under."""
        facts = (self.unit, self.epsilon, self.delta, self.confidence, self.bounds, self.public_size)
        more = {} if self.learned is None else {"learned": repr(self.learned)}
        return answers.key(question=repr(self.question), facts=repr(facts), version=engine.version(), **more)


def answer(request: Request, account: Account, engine: Engine, answers: Answers) -> Release:
    """The answer that was released before, or a new one, charged."""
    plan, key = request.plan(), request.key(answers, engine)
    known = answers.find(key)
    if known is not None:
        return known
    with engine.turn():
        # Another thread may have asked the same while this one waited.
        known = answers.find(key)
        if known is not None:
            return known
        release = _charged(request, plan, account, partial(_released, request, plan, engine, key))
        # Seeded noise is for tests, and nobody else shall be given it; of data that changed it is not known
        # which were read. What was paid for is handed over, whatever has become of the source meanwhile.
        with suppress(DaleniusError):
            if not release.receipt.tainted and request.key(answers, engine) == key:
                answers.keep(key, release)
        return release


def _released(request: Request, plan: Plan, engine: Engine, key: str, reservation: Reservation) -> Release:
    """The answer, read and committed, with a digest by which it is known again."""
    with progress() as step:
        step("reading the rows")
        with engine.load(request.question.rows) as loaded:
            step("bounding what each unit adds, adding up, drawing noise")
            found = plan.run(loaded)
        release = _release(request, plan, found)
        return reservation.commit(release, digest=seal(key, release))


def _charged(
    request: Request, plan: Plan, account: Account, work: Callable[[Reservation], Release]
) -> Release:
    """What is released under a reservation, which is forfeited where nothing is."""
    reservation = _reserved(request, plan, account)
    charged = f"This had been charged as entry {reservation.number} of {account.name}: {_STAYS}"
    failed: DaleniusError
    try:
        with reservation:
            return work(reservation)
    except (LedgerError, QueryFailed) as error:
        failed = type(error)(f"{error.problem} {charged}", remedy=error.remedy)
    except Exception:
        failed = QueryFailed(f"The query failed. {charged}", remedy=_REMEDY)
    except BaseException as stop:
        stop.add_note(f"The query was stopped. {charged}")
        stop.__context__ = None
        raise
    # Raised outside of any handler, so that nothing that speaks of data is attached to it.
    raise failed


def _reserved(request: Request, plan: Plan, account: Account) -> Reservation:
    """A reservation; where there is too little left, the refusal names what would fit."""
    note = shortened(request.asked, LONGEST_NOTE)
    try:
        if not (isinstance(account, Unopened) and account.waiting):
            # One that is opened by this charge has the column in its terms.
            settle_time(account, request.time)
        return account.reserve(plan.loss, by=request.by, purpose=request.purpose, note=note)
    except BudgetExceeded as refused:
        found = fitting(request, account)
        if found is None:
            raise
        raise _refusal(request, account, refused, found) from None


def _refusal(request: Request, account: Account, refused: BudgetExceeded, found: Fitting) -> BudgetExceeded:
    """What is missing: epsilon, or the delta that finding groups privately takes."""
    asked = Argument("epsilon", f"epsilon={found}", (f"{found}",))
    if found.listed:
        problem = f"This question does not fit on {account.name}: {USED_UP}."
        cheaper = () if found.epsilon >= request.epsilon else (", and ask at ", asked)
        remedy = Message(LIST, *cheaper, ".")
    else:
        problem = (
            f"This question needs epsilon {float(request.epsilon):g}; at epsilon {found} it would still fit "
            f"on {account.name}, of {account.budget}."
        )
        remedy = Message("Try ", asked, ".")
    left = 0.0 if found.listed else float(found.epsilon)
    largest = None if found.listed else found.loss
    return BudgetExceeded(problem, remedy=remedy, needed=refused.needed, left=left, largest=largest)


_STAYS = "it stays charged, and nothing was released."
_REMEDY = "See that the source is whole and that there is memory, then ask again; that is charged again."


def _release(request: Request, plan: Plan, found: Answer) -> Release:
    receipt = Receipt(
        loss=plan.loss,
        mechanism=found.mechanism,
        numerics=EXACT,
        unit=request.unit,
        bounds=(*found.bounds, *request.assumed),
        postprocessing=found.notes,
        tainted=noise.tainted(),
        delta=request.delta,
        warnings=found.warnings,
    )
    return Release(found.columns, found.measures, receipt, request.confidence, _counts(request.question))


def _counts(question: Question) -> tuple[str, ...]:
    """Return the columns of an answer that are counts as they were measured."""
    if question.after is not None:
        # Other columns may have their names.
        return ()
    return tuple(
        output.name
        for output in question.outputs
        if isinstance(output.formula, AggregateValue)
        and question.aggregates[output.formula.index].kind in COUNTS
    )
