"""A charge: checked against the account's filter and every allowance that covers it, then written.

The charge is on disk before data is read and noise is drawn (`reserve`); what happens later can only leave it
charged in full. Everything that decides, the losses and the filters, is public.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from dalenius.errors import BudgetExceeded, ClockWentBack
from dalenius.ledger import balances
from dalenius.ledger.balances import TOTAL, Cell
from dalenius.ledger.budget import stated
from dalenius.ledger.entry import Entry, Head
from dalenius.ledger.fitting import fitting
from dalenius.ledger.rules import Allowance
from dalenius.ledger.store import Snapshot, Transaction
from dalenius.ledger.terms import Terms
from dalenius.losses.loss import Loss

PATIENCE = timedelta(seconds=5)
"""How far back a clock may step, as clocks do when they are set right; entries keep the later time."""


@dataclass(frozen=True)
class Charge:
    """A loss to be charged, as the account's unit sees it, and for whom and what."""

    stated: Loss
    """As its mechanism states it, which may be for smaller units, or under another relation."""
    loss: Loss
    by: str
    purpose: str
    note: str
    cell: Cell | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """As an entry states it."""
        cell = None if self.cell is None else {"division": self.cell.division, "name": self.cell.name}
        said = {"by": self.by, "purpose": self.purpose, "note": self.note, "cell": cell}
        return {"loss": _plain(self.loss), **said}


@lru_cache(maxsize=1024)
def _plain(loss: Loss) -> Any:
    return json.loads(loss.to_json())


class TooMuch(Exception):
    """A charge that the account does not hold, or the allowance named. Never leaves the ledger."""

    def __init__(self, allowance: Allowance | None = None) -> None:
        super().__init__()
        self.allowance = allowance


def charge(transaction: Transaction, terms: Terms, asked: Charge, event: str) -> Entry:
    """Append the entry and change the balances, or raise `TooMuch`."""
    head = transaction.head()
    at = moment(head)
    fresh, costs = weighed(transaction, terms, asked, at)
    fields = asked.fields | {"total": fresh[TOTAL], **costs}
    entry = Entry.following(head, account=terms.name, event=event, at=at, fields=fields)
    transaction.append(entry)
    balances.write(transaction, terms.name, fresh)
    return entry


def weighed(
    snapshot: Snapshot, terms: Terms, asked: Charge, at: str
) -> tuple[dict[str, str], dict[str, Any]]:
    """The balances with a charge, and what it costs on the account and on each allowance; or `TooMuch`."""
    cost = terms.cost(asked.loss)
    whole, fresh = balances.raised(snapshot, terms.name, cost, asked.cell, terms.limit, terms.how_many)
    if not terms.limit.accepts(whole):
        raise TooMuch
    shares = {}
    for allowance in covering(snapshot, terms, asked):
        scope, share = allowance.scope(at), allowance.cost(asked.loss)
        total = balances.total(snapshot, terms.name, scope, allowance.limit) + share
        if not allowance.limit.accepts(total):
            raise TooMuch(allowance)
        fresh[scope], shares[scope] = total.to_json(), share.to_json()
    return fresh, {"cost": cost.to_json(), "allowances": shares}


def accepted(snapshot: Snapshot, terms: Terms, asked: Charge, at: str) -> bool:
    """Whether a charge would be accepted now."""
    try:
        weighed(snapshot, terms, asked, at)
    except TooMuch:
        return False
    return True


def covering(snapshot: Snapshot, terms: Terms, asked: Charge) -> list[Allowance]:
    """The allowances that a charge counts against."""
    return [one for one in balances.allowances(snapshot, terms.name) if one.covers(asked.by, asked.purpose)]


def room(snapshot: Snapshot, terms: Terms, asked: Charge, at: str) -> list[Loss]:
    """The largest single loss that the account would take next, and each allowance, each by itself."""
    relation = asked.stated.relation
    before = balances.before(snapshot, terms.name, asked.cell, terms.limit, terms.how_many)
    left = [terms.limit.left(before, relation)]
    for one in covering(snapshot, terms, asked):
        total = balances.total(snapshot, terms.name, one.scope(at), one.limit)
        left.append(one.limit.left(total, relation))
    return [loss for loss in left if loss is not None] if None not in left else []


def refusal(
    terms: Terms,
    asked: Charge,
    allowance: Allowance | None,
    rooms: list[Loss],
    fits: Callable[[Loss], bool],
) -> BudgetExceeded:
    """What was needed, what is left, and the largest cost that fits, all as the mechanism states it."""
    limit, where = terms.limit, terms.name
    if allowance is not None:
        limit, where = allowance.limit, f"the allowance {allowance} of {terms.name}"
    largest, remedy = fitting(asked.stated, rooms, limit.delta, fits)
    needed = asked.stated.epsilon(limit.delta).upper
    left = 0.0 if largest is None else largest.epsilon(limit.delta).upper
    problem = (
        f"{asked.purpose or 'This release'} needs epsilon {needed:.4g}; "
        f"{left:.4g} is left on {where}, of {stated(limit)}."
    )
    return BudgetExceeded(problem, remedy=remedy, needed=needed, left=left, largest=largest)


def moment(head: Head | None) -> str:
    """Now, and not before the newest entry; refused where the clock is far behind it."""
    now = datetime.now(UTC)
    if head is not None and (newest := datetime.fromisoformat(head.at)) > now:
        if newest - now > PATIENCE:
            raise ClockWentBack(
                f"The clock is {(newest - now).total_seconds():.0f} seconds behind the newest entry.",
                remedy="Set the clock right, then charge again.",
            )
        now = newest
    return f"{now.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
