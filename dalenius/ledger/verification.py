"""Checking a ledger: the chain, and everything that follows from it, in one pass that holds no history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from dalenius.errors import LedgerCorrupt
from dalenius.ledger import balances
from dalenius.ledger.balances import RULE, USE, Cell
from dalenius.ledger.entry import Entry, chained
from dalenius.ledger.rules import Allowance
from dalenius.ledger.store import Snapshot
from dalenius.ledger.terms import Terms
from dalenius.losses.cost import Cost
from dalenius.losses.loss import Loss


def verify(snapshot: Snapshot, *, costs: bool = False) -> int:
    """Check every entry and every balance; how many entries there are.

    With `costs` every loss is measured again: no charge may be below what this version measures.
    """
    replay = Replay(costs)
    count = 0
    for entry in chained(snapshot.entries()):
        try:
            replay.follow(entry)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise _wrong(f"Entry {entry.number} does not say what its event must.") from None
        count = entry.number
    replay.compare(snapshot)
    return count


class Replay:
    """What follows from the entries so far. It looks like a snapshot, so charges are replayed as made."""

    def __init__(self, costs: bool = False) -> None:
        self.costs = costs
        self.terms: dict[str, Terms] = {}
        self.opened: dict[str, str] = {}
        self.totals: dict[str, str] = {}
        self.kept: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self.open: dict[int, str] = {}

    def total(self, account: str) -> str | None:
        """The total of an account."""
        return self.totals.get(account)

    def balance(self, account: str, scope: str) -> str | None:
        """That of one scope."""
        return self.kept[account].get(scope)

    def balances(self, account: str, prefix: str = "") -> dict[str, str]:
        """Those of all scopes that begin with a prefix."""
        return {scope: text for scope, text in sorted(self.kept[account].items()) if scope.startswith(prefix)}

    def follow(self, entry: Entry) -> None:
        """Take one more entry into account."""
        match entry.event:
            case "open":
                _require(entry.account not in self.opened, entry, "opens an account again")
                terms = Terms.from_json(entry.account, entry.fields["terms"])
                taken = terms.source is not None and terms.source in {t.source for t in self.terms.values()}
                _require(not taken, entry, "opens a second account on one source")
                self.opened[entry.account] = entry.fields["terms"]
                self.terms[entry.account] = terms
            case "allow":
                text = entry.fields["allowance"]
                rule = Allowance.from_json(text)
                _require(rule.number == entry.number, entry, "changes an allowance")
                self.kept[entry.account][f"{RULE}allowance {rule.number}"] = text
            case "reserve" | "record":
                self._charged(entry)
            case "commit" | "forfeit":
                number = entry.fields["reservation"]
                _require(self.open.pop(number, None) == entry.account, entry, "ends what was not reserved")

    def _charged(self, entry: Entry) -> None:
        terms = self.terms.get(entry.account)
        _require(terms is not None, entry, "charges an account that was not opened")
        assert terms is not None
        fields, cost = entry.fields, _cost(entry, entry.fields["cost"])
        cell = None if fields["cell"] is None else Cell(**fields["cell"])
        if self.costs:
            _require(_covers(cost, _measured(terms, fields, cell)), entry, "charges less than its loss costs")
        whole, fresh = balances.raised(self, entry.account, cost, cell, terms.limit)
        _require(
            whole.to_json() == fields["total"], entry, "states a total that its charges do not add up to"
        )
        _require(terms.limit.accepts(whole), entry, "is above the budget")
        self.totals[entry.account] = fields["total"]
        self.kept[entry.account].update(fresh | self._allowed(entry))
        if entry.event == "reserve":
            self.open[entry.number] = entry.account

    def _allowed(self, entry: Entry) -> dict[str, str]:
        """The new totals of the allowances that cover a charge."""
        fresh, shares = {}, dict(entry.fields["allowances"])
        for rule in balances.allowances(self, entry.account):
            if rule.covers(entry.fields["by"], entry.fields["purpose"]):
                scope = rule.scope(entry.at)
                total = balances.part(self, entry.account, scope, rule.limit) + _cost(
                    entry, shares.pop(scope)
                )
                _require(rule.limit.accepts(total), entry, "is above an allowance")
                fresh[scope] = total.to_json()
        _require(not shares, entry, "counts against an allowance that does not cover it")
        return fresh

    def compare(self, snapshot: Snapshot) -> None:
        """Refuse where what the store derived is not what follows."""
        if snapshot.accounts() != self.opened:
            raise _wrong("The accounts are not those that were opened.")
        for name in self.terms:
            kept = {
                scope: text for scope, text in snapshot.balances(name).items() if not scope.startswith(USE)
            }
            if (snapshot.total(name), kept) != (self.total(name), self.balances(name)):
                raise _wrong(f"The balances of {name} are not those that its entries add up to.")
        if {one.number: one.account for one in snapshot.reservations()} != self.open:
            raise _wrong("The open reservations are not those that the entries leave open.")


def _measured(terms: Terms, fields: Mapping[str, Any], cell: Cell | None) -> Cost:
    loss = Loss.from_json(fields["loss"])
    return (terms.price(loss) if cell is None else terms.cell_price(loss)).cost


def _covers(stated: Cost, measured: Cost) -> bool:
    """Whether no gauge was charged less than is measured, and none that does not hold the loss."""
    return all(
        name in measured.amounts and all(a >= b for a, b in zip(amount, measured.amounts[name], strict=True))
        for name, amount in stated.amounts.items()
    )


def _cost(entry: Entry, text: str) -> Cost:
    cost = Cost.from_json(text)
    _require(all(min(amount) >= 0 for amount in cost.amounts.values()), entry, "charges less than nothing")
    return cost


def _require(right: bool, entry: Entry, what: str) -> None:
    if not right:
        raise _wrong(f"Entry {entry.number} {what}.")


def _wrong(problem: str) -> LedgerCorrupt:
    return LedgerCorrupt(problem, remedy="Restore the ledger from a backup and compare it with an anchor.")
