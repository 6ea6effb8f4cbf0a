"""`Account`: everything released about the same units, on one budget.

    people = ledger.account("people")
    release = people.spend(mechanism, value, by="ana", purpose="wards")
    with people.reserve(loss, by="ana", purpose="model") as reservation:
        reservation.commit(release)

An account is a privacy filter (`losses.filters`): each charge may be chosen in view of all releases before
it, and together they keep the budget. It belongs to the units and their data, not to a process or a view.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from dalenius.errors import BudgetExceeded, InvalidArgument, NotSound
from dalenius.ledger import balances
from dalenius.ledger.balances import Cell, Noted
from dalenius.ledger.budget import Budget, stated
from dalenius.ledger.chain_state import RULES, ChainState, allowed, profiled
from dalenius.ledger.charge import Charge, TooMuch, accepted, charge, refusal, room, weighed
from dalenius.ledger.clock import moment, seen_at
from dalenius.ledger.closing import check_open
from dalenius.ledger.entry import Entry
from dalenius.ledger.fitting import largest
from dalenius.ledger.owner import Owner
from dalenius.ledger.reservation import Reservation
from dalenius.ledger.rules import Allowance
from dalenius.ledger.spelling import spelled
from dalenius.ledger.terms import Terms
from dalenius.ledger.texts import LONGEST_NAME, LONGEST_NOTE, LONGEST_PROFILE, check_text
from dalenius.losses.composition import compose
from dalenius.losses.cost import Cost
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.mechanisms.mechanism import Mechanism, Stamp
from dalenius.privacy import numbers
from dalenius.privacy.unit import Unit, Window
from dalenius.release import Release
from dalenius.release.digits import at_least, at_most, upward
from dalenius.release.receipt import Entry as Line

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger


@dataclass(frozen=True)
class Spent:
    """What the charges so far cost: `epsilon` at the account's δ, of its budget.

    It is a guarantee for charges that were all fixed in advance. Where charges, or the time to stop, were
    chosen in view of releases, the guarantee is that of the budget: see `Account.spent`.
    """

    epsilon: float
    budget: str
    entries: int

    def __float__(self) -> float:
        return self.epsilon

    def __str__(self) -> str:
        return f"epsilon {at_most(self.epsilon)} of {self.budget}"


@dataclass(frozen=True)
class Left:
    """The largest single next release that would be accepted: its ε at the account's δ, and as a loss."""

    epsilon: float
    loss: Loss | None

    def __float__(self) -> float:
        return self.epsilon

    def __str__(self) -> str:
        return "nothing" if self.loss is None else f"epsilon {at_least(self.epsilon)}, {spelled(self.loss)}"


class Account:
    """An account of a ledger. Made by `ledger.open` and `ledger.account`."""

    def __init__(self, ledger: Ledger, terms: Terms, cell: Cell | None = None) -> None:
        self.ledger, self.terms, self._cell = ledger, terms, cell

    @property
    def name(self) -> str:
        """Its name."""
        return self.terms.name

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self.terms.unit

    @cached_property
    def budget(self) -> str:
        """Its budget in words."""
        return stated(self.terms.limit)

    # Charging.

    def spend(
        self, mechanism: Mechanism, value: Any, *, by: str, purpose: str = "", note: str = ""
    ) -> Release:
        """Reserve, draw and commit in one."""
        with self.reserve(mechanism.loss, by=by, purpose=purpose, note=note) as reservation:
            return reservation.commit(mechanism.release(value, unit=self.unit_for(mechanism.loss)))

    def reserve(
        self, loss: Loss, *, by: str, purpose: str = "", note: str = "", per_unit: int = 1
    ) -> Reservation:
        """Charge a loss before data is read: on disk when this returns.

        Where the loss is stated for smaller units of which one unit of this account has at most `per_unit`,
        the group is charged.
        """
        entry = self._charge(loss, per_unit, "reserve", by, purpose, note)
        return Reservation(self, loss, entry, same_unit=per_unit == 1)

    def record(
        self, loss: Loss, *, by: str = "", purpose: str = "", note: str = "", per_unit: int = 1
    ) -> Entry:
        """Charge something made elsewhere."""
        return self._charge(loss, per_unit, "record", by, purpose, note)

    def plan(self, losses: Iterable[Loss], *, by: str, purpose: str = "", note: str = "") -> Reservation:
        """Charge a batch whose losses are all fixed now as one, composed as tightly as fixed losses allow."""
        return self.reserve(compose(losses), by=by, purpose=purpose, note=note)

    def pay(self, mechanism: Mechanism, *, by: str, purpose: str) -> Stamp:
        """Charge a session whose answers come later, for `mechanism.start(account)`."""
        made_by = mechanism.to_json()
        with self.reserve(mechanism.loss, by=by, purpose=purpose) as reservation:
            line = reservation.line()
            reservation.end("commit")

        def stamped(release: Release) -> Release:
            reservation.check(release)
            if release.receipt.mechanism != made_by or not release.receipt.bounds:
                raise InvalidArgument(
                    "This release is not an answer of the session that was paid for.",
                    remedy="Spend it by itself.",
                )
            return self.signed(release.charged(line))

        return stamped

    def accepts(self, loss: Loss, *, by: str = "", purpose: str = "") -> bool:
        """Whether a charge would be accepted now. Nothing is charged."""
        _texts(by=by, purpose=purpose)
        asked = self._asked(loss, 1, by, purpose)
        with self.ledger.store.read() as snapshot:
            state = ChainState(snapshot)
            return accepted(state, self.terms, asked, seen_at(state.head, snapshot.witness().now))

    def check(self, loss: Loss, *, by: str = "", purpose: str = "", per_unit: int = 1) -> None:
        """Refuse as a charge would. Nothing is charged."""
        _texts(by=by, purpose=purpose)
        asked = self._asked(loss, per_unit, by, purpose)
        try:
            with self.ledger.store.read() as snapshot:
                state = ChainState(snapshot)
                weighed(state, self.terms, asked, seen_at(state.head, snapshot.witness().now))
        except TooMuch as found:
            raise self._refusal(asked, per_unit, found.allowance) from None

    def _charge(self, loss: Loss, per_unit: int, event: str, by: str, purpose: str, note: str) -> Entry:
        check_open()
        _texts(by=by, purpose=purpose, note=note)
        # Measured before the ledger is held; a refusal is explained after it.
        asked = self._asked(loss, per_unit, by, purpose, note)
        try:
            owner = _owner(os.getpid()) if event == "reserve" else None
            self.ledger.prepare()
            with self.ledger.store.write(durable=True) as transaction:
                state = self.ledger.state(transaction)
                entry = charge(transaction, self.terms, asked, event, state=state, owner=owner)
        except TooMuch as found:
            raise self._refusal(asked, per_unit, found.allowance) from None
        self.ledger.anchored(entry)
        return entry

    def _asked(self, loss: Loss, per_unit: int, by: str, purpose: str, note: str = "") -> Charge:
        """A charge of a loss, measured."""
        seen = self._seen(loss, per_unit)
        price = self.terms.price(seen) if self._cell is None else self.terms.cell_price(seen)
        return Charge(loss, seen, price, by, purpose, note, self._cell, per_unit)

    def _seen(self, loss: Loss, per_unit: int) -> Loss:
        """A loss as the account's unit sees it."""
        if not isinstance(loss, Loss):
            raise InvalidArgument("A charge is a loss.", remedy="Pass a loss, such as mechanism.loss.")
        if per_unit != 1:
            self._counted(loss)
            loss = loss.group(numbers.count(per_unit, "per_unit"))
        if self._cell is None:
            return loss if loss.relation == self.unit.relation else loss.under(self.unit.relation)
        if loss.relation != "add_remove":
            raise NotSound(
                f"A loss under {loss.relation} does not cover a unit that leaves or enters a cell.",
                remedy='State losses about cells for relation="add_remove".',
            )
        return loss

    @staticmethod
    def _counted(loss: Loss) -> None:
        """How many smaller units one has may change with it, which only add_remove covers."""
        if loss.relation != "add_remove":
            raise NotSound(
                f"A loss under {loss.relation} does not cover a change in how many smaller units one has.",
                remedy='State losses of smaller units for relation="add_remove".',
            )

    def _refusal(self, asked: Charge, per_unit: int, allowance: Allowance | None) -> BudgetExceeded:
        kept, at = self._noted()

        def fits(loss: Loss) -> bool:
            other = self._asked(loss, per_unit, asked.by, asked.purpose)
            return accepted(kept, self.terms, other, at)

        return refusal(self.terms, asked, allowance, room(kept, self.terms, asked, at), fits)

    def _noted(self) -> tuple[Noted, str]:
        """The balances as they are now, and when that is."""
        with self.ledger.store.read() as snapshot:
            state = ChainState(snapshot)
            at = seen_at(state.head, snapshot.witness().now)
            return Noted(state, self.name, self._cell, at), at

    def unit_for(self, loss: Loss) -> Unit:
        """Who is protected, under the relation of a loss."""
        return replace(self.unit, relation=loss.relation)

    # Allowances and divisions.

    def allow(
        self,
        budget: Budget,
        *,
        by: str | None = None,
        purpose: str | None = None,
        window: Window | None = None,
    ) -> Entry:
        """A budget within this one for an analyst, a purpose, each calendar window, or these together."""
        if by is None and purpose is None and window is None:
            raise InvalidArgument(
                "An allowance is for someone, for a purpose or for a window.",
                remedy='Pass by="ana", purpose="wards" or window="month".',
            )
        check_open()
        _texts(by=by or "", purpose=purpose or "")
        replace(self.unit, window=window)
        self.ledger.prepare()
        with self.ledger.store.write(durable=True) as transaction:
            state = self.ledger.state(transaction)
            state.check_terms(self.name, self.terms.to_json())
            head = state.head
            number = 1 if head is None else head.number + 1
            text = Allowance(number, budget.filter, by, purpose, window).to_json()
            rules = state.balances(self.name, RULES) | {f"{RULES}{number}": text}
            entry = state.write(
                account=self.name,
                event="allow",
                at=moment(head, state.witness.now),
                fields={"allowance": text},
                values=allowed(self.name, rules),
            )
            transaction.set_balance(self.name, f"{RULES}{number}", text)
        self.ledger.anchored(entry)
        return entry

    @property
    def profile(self) -> str | None:
        """What is kept about the account's data, as JSON of whoever reads it; None where nothing is.

        It is part of the chain: the newest profile counts, those before it stay, and one that was changed,
        removed or put back is refused as `LedgerTampered`.
        """
        with self.ledger.store.read() as snapshot:
            noted = ChainState(snapshot).profile(self.name)
        return self.terms.profile if noted is None else noted

    def note_profile(self, text: str, *, by: str = "") -> Entry:
        """Keep a new profile with the account, in place of the one before. For the owner; nothing is charged.

        Args:
            text: The profile, which must not depend on private data but by what was charged.
            by: Who notes it.
        """
        check_open()
        _texts(by=by)
        check_text("profile", text, LONGEST_PROFILE)
        self.ledger.prepare()
        with self.ledger.store.write(durable=True) as transaction:
            state = self.ledger.state(transaction)
            state.check_terms(self.name, self.terms.to_json())
            head = state.head
            number = 1 if head is None else head.number + 1
            entry = state.write(
                account=self.name,
                event="profile",
                at=moment(head, state.witness.now),
                fields={"profile": text, "by": by},
                values=profiled(self.name, number, text),
            )
        self.ledger.anchored(entry)
        return entry

    def cell(self, division: str, name: str) -> Account:
        """The part of the units in one cell of a division, charged in parallel with the other cells.

        Which cell a unit is in must be a function of its own records, and a release about one cell must look
        at the units of that cell only. Losses about cells are for a unit that leaves or enters: add_remove.
        """
        _texts(division=division, name=name)
        if self._cell is not None:
            raise NotSound(
                "A cell is not divided again.", remedy="Divide the account once, into the finer cells."
            )
        return Account(self.ledger, self.terms, Cell(division, name))

    # What it holds.

    @property
    def spent(self) -> Spent:
        """What the charges so far cost: the least ε at which an account of this shape would hold them all.

        It is not a guarantee for an analysis that stops in view of what was released. A privacy filter
        proves the ε of the budget, which was fixed beforehand, and no smaller one for runs that happen to
        spend less (Rogers, Roth, Ullman and Vadhan 2016). A reading that holds at any time is that of an
        odometer, at its own price: `losses.Odometer`, which follows the same losses from the start.
        """
        with self.ledger.store.read() as snapshot:
            total = self._total(ChainState(snapshot))
            return Spent(upward(self.terms.limit.spent(total)), self.budget, snapshot.count(self.name))

    @property
    def left(self) -> Left:
        """The largest single next release that would be accepted."""
        return self.left_for()

    def left_for(self, *, by: str = "", purpose: str = "") -> Left:
        """The same for one analyst and purpose, whose allowances count."""
        kept, at = self._noted()
        none = Pure(0, relation=self.unit.relation if self._cell is None else "add_remove")
        asked = self._asked(none, 1, by, purpose)

        def fits(loss: Loss) -> bool:
            return accepted(kept, self.terms, self._asked(loss, 1, by, purpose), at)

        delta = self.terms.limit.delta
        loss = largest(room(kept, self.terms, asked, at), delta, fits)
        return Left(0.0 if loss is None else loss.epsilon(delta).upper, loss)

    def entries(self, *, newest: int | None = None) -> list[Entry]:
        """Its entries in order, all or only the newest so many."""
        with self.ledger.store.read() as snapshot:
            return list(snapshot.entries(account=self.name, newest=newest))

    def stream(self) -> Iterator[Entry]:
        """Its entries one by one, without holding all of them."""
        with self.ledger.store.read() as snapshot:
            yield from snapshot.entries(account=self.name)

    def holds(self, line: Line) -> bool:
        """Return whether the line that a receipt names is one of this account, about the same cell."""
        with self.ledger.store.read() as snapshot:
            entry = next(iter(snapshot.entries(after=line.number - 1, account=self.name)), None)
        if entry is None or (self.name, entry.number, entry.hash) != (line.account, line.number, line.hash):
            return False
        cell = None if self._cell is None else {"division": self._cell.division, "name": self._cell.name}
        return bool(entry.fields.get("cell") == cell)

    def left_after(self, entry: Entry) -> str:
        """Return what the account had left after one of its charges, for a receipt.

        It is the ε of the largest single release that the account would have taken next: what `left` says
        where no allowance covers everyone.
        """
        epsilon = self.terms.limit.left_epsilon(Cost.from_json(entry.fields["total"]))
        return f"{f'epsilon {at_least(epsilon)}' if epsilon else 'nothing'} of {self.budget}"

    def signed(self, release: Release) -> Release:
        """The release with its receipt signed, where the ledger has a key."""
        return self.ledger.signed(release)

    def _total(self, state: ChainState) -> Cost:
        return balances.total(state, self.name, self.terms.limit)

    def __copy__(self) -> Account:
        return self

    def __deepcopy__(self, memo: object) -> Account:
        """Itself: whatever is copied around it goes on charging the same account."""
        return self

    def __reduce__(self) -> NoReturn:
        raise InvalidArgument(
            "An account is a line to its ledger, and is neither written nor sent to another process.",
            remedy=f"Open it where it is needed, by ledger.account({self.name!r}).",
        )

    def _repr_html_(self) -> str | None:
        from dalenius.ledger.pages import account_page

        return account_page(self)

    def __repr__(self) -> str:
        return f"Account({self.name!r}, {self.unit}, {self.budget})"


@lru_cache(maxsize=1)
def _owner(pid: int) -> str:
    """The process itself, looked up once; a child of it has another number."""
    return str(Owner.here())


def _texts(**named: object) -> None:
    for name, value in named.items():
        check_text(name, value, LONGEST_NOTE if name == "note" else LONGEST_NAME)
