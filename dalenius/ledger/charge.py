"""A charge: checked against the account's filter and every allowance that covers it, then written.

The charge is on disk before data is read and noise is drawn (`reserve`); what happens later can only leave it
charged in full. Everything that decides, the losses and the filters, is public.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from dalenius.errors import BudgetExceeded
from dalenius.ledger import balances
from dalenius.ledger.balances import Balances, Cell
from dalenius.ledger.budget import stated
from dalenius.ledger.chain_state import WritableState, charged
from dalenius.ledger.clock import moment
from dalenius.ledger.entry import Entry
from dalenius.ledger.fitting import fitting
from dalenius.ledger.rules import Allowance
from dalenius.ledger.store import Transaction
from dalenius.ledger.terms import Price, Terms, cell_cost
from dalenius.losses.cost import Cost
from dalenius.losses.gauges import largest_loss
from dalenius.losses.loss import Loss
from dalenius.release.digits import at_least, at_most, upward


class Charge(NamedTuple):
    """A loss to be charged, as the account's unit sees it, and for whom and what."""

    stated: Loss
    """As its mechanism states it, which may be for smaller units, or under another relation."""
    loss: Loss
    price: Price
    """On the gauges of the account."""
    by: str = ""
    purpose: str = ""
    note: str = ""
    cell: Cell | None = None
    per_unit: int = 1

    @property
    def fields(self) -> dict[str, Any]:
        """As an entry states it."""
        cell = None if self.cell is None else {"division": self.cell.division, "name": self.cell.name}
        said = {"by": self.by, "purpose": self.purpose, "note": self.note, "cell": cell}
        return {"loss": self.price.loss, "per_unit": self.per_unit, **said}


class TooMuch(Exception):
    """A charge that the account does not hold, or the allowance named. Never leaves the ledger."""

    def __init__(self, allowance: Allowance | None = None) -> None:
        super().__init__()
        self.allowance = allowance


def charge(
    transaction: Transaction,
    terms: Terms,
    asked: Charge,
    event: str,
    *,
    state: WritableState | None = None,
    owner: str | None = None,
) -> Entry:
    """Append the entry of a charge and change the balances, or raise `TooMuch`.

    Args:
        transaction: The write block to use.
        terms: What the account was opened with; refused where the chain says otherwise.
        asked: The loss, its cost, and what to say of it.
        event: "reserve" or "record".
        state: The state of that block, where it was read before.
        owner: The process that holds a reservation; None for a record.

    Returns:
        The entry.
    """
    state = WritableState(transaction) if state is None else state
    state.check_terms(terms.name, terms.to_json())
    at = moment(state.head, state.witness.now)
    fresh, costs = weighed(state, terms, asked, at)
    number = 1 if state.head is None else state.head.number + 1
    more = {"before": state.newest(terms.name)} | ({} if owner is None else {"owner": owner})
    entry = state.write(
        account=terms.name,
        event=event,
        at=at,
        fields=asked.fields | costs | more,
        values=charged(terms.name, number, costs["total"], fresh),
    )
    balances.write(transaction, terms.name, fresh)
    if owner is not None:
        transaction.add_reservation(number, terms.name, owner, "")
    return entry


def weighed(kept: Balances, terms: Terms, asked: Charge, at: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The balances after a charge, and as an entry states it: total, cost and shares; or `TooMuch`."""
    whole, fresh = balances.raised(kept, terms.name, asked.price.cost, asked.cell, terms.limit)
    shares = {}
    # An allowance is asked first: where both refuse, it is the nearer limit.
    for allowance in covering(kept, terms, asked):
        scope, share = allowance.scope(at), _share(terms, allowance, asked)
        total = balances.part(kept, terms.name, scope, allowance.limit) + share
        if not allowance.limit.accepts(total):
            raise TooMuch(allowance)
        fresh[scope], shares[scope] = total.to_json(), share.to_json()
    if not terms.limit.accepts(whole):
        raise TooMuch
    return fresh, {"total": whole.to_json(), "cost": asked.price.cost.to_json(), "allowances": shares}


def _share(terms: Terms, allowance: Allowance, asked: Charge) -> Cost:
    """What a charge costs an allowance, which knows no cells and adds them up."""
    if asked.cell is None:
        return allowance.cost(asked.loss)
    return cell_cost(allowance.limit, asked.loss, terms.unit.relation)


def accepted(kept: Balances, terms: Terms, asked: Charge, at: str) -> bool:
    """Whether a charge would be accepted now."""
    try:
        weighed(kept, terms, asked, at)
    except TooMuch:
        return False
    return True


def covering(kept: Balances, terms: Terms, asked: Charge) -> list[Allowance]:
    """The allowances that a charge counts against."""
    return [one for one in balances.allowances(kept, terms.name) if one.covers(asked.by, asked.purpose)]


def room(kept: Balances, terms: Terms, asked: Charge, at: str) -> list[Loss]:
    """The largest single loss that the account would take next, and each allowance, each by itself."""
    relation = asked.stated.relation
    before = balances.before(kept, terms.name, asked.cell, terms.limit)
    left = [terms.limit.left(before, relation)]
    for one in covering(kept, terms, asked):
        total = balances.part(kept, terms.name, one.scope(at), one.limit)
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
        limit, where = allowance.limit, f"the allowance ({allowance}) of {terms.name}"
    largest, remedy = fitting(asked.stated, rooms, limit.delta, fits)
    needed = _epsilon(asked.stated, limit.delta)
    left = 0.0 if largest is None else _epsilon(largest, limit.delta)
    needs = f"needs epsilon {at_most(needed)}" if math.isfinite(needed) else "has no finite epsilon"
    problem = (
        f"{asked.purpose or 'This release'} {needs}; at most epsilon {at_least(left)} still fits "
        f"on {where}, of {stated(limit)}."
    )
    return BudgetExceeded(problem, remedy=remedy, needed=needed, left=left, largest=largest)


def _epsilon(loss: Loss, delta: Fraction) -> float:
    """The ε that one knows a loss by: its own where it is bounded, else that at the account's δ."""
    bounded = largest_loss(loss)
    if bounded is not None and not bounded[1]:
        return upward(bounded[0])
    return loss.epsilon(delta).upper
