"""Checking a ledger: the chain, and everything that follows from it, in one pass that holds no history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from dalenius.errors import LedgerCorrupt
from dalenius.ledger import balances, proof_tree
from dalenius.ledger.balances import USE, Cell
from dalenius.ledger.chain_state import (
    NODE,
    RULES,
    WritableState,
    allowed,
    balanced,
    charged,
    opened,
    profiled,
)
from dalenius.ledger.entry import Entry, Head, chained
from dalenius.ledger.proof_tree import EMPTY, Mismatch
from dalenius.ledger.rules import Allowance
from dalenius.ledger.store import Snapshot, Transaction
from dalenius.ledger.terms import Terms
from dalenius.losses.cost import Cost
from dalenius.losses.loss import Loss


def verify(snapshot: Snapshot, *, costs: bool = False) -> int:
    """Check every entry and every balance; how many entries there are.

    With `costs` every loss is measured again: no charge may be below what this version measures.
    """
    return replayed(snapshot, costs=costs).number


def seal(state: WritableState, transaction: Transaction, before: Replay | None = None) -> None:
    """Verify a ledger whose newest entry states no root, and build the tree that the next one states.

    Args:
        state: The state to give its root to.
        transaction: The write block that it is in.
        before: What was verified before the block, so that the ledger is held for the newest entries only.
    """
    replay = replayed(transaction, before=before)
    state.root = replay.root
    state.keep(replay.nodes)


def replayed(snapshot: Snapshot, *, costs: bool = False, before: Replay | None = None) -> Replay:
    """Verify all entries, or those after the ones verified before, and return what follows from them."""
    replay = Replay(costs) if before is None else before
    for entry in chained(snapshot.entries(after=replay.number), replay.head):
        try:
            replay.follow(entry)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, Mismatch):
            raise _wrong(f"Entry {entry.number} does not say what its event must.") from None
    replay.compare(snapshot)
    return replay


class Replay:
    """What follows from the entries so far. It looks like a snapshot, so charges are replayed as made."""

    def __init__(self, costs: bool = False) -> None:
        self.costs = costs
        self.terms: dict[str, Terms] = {}
        self.opened: dict[str, str] = {}
        self.totals: dict[str, str] = {}
        self.kept: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self.open: dict[int, tuple[str, str | None]] = {}
        self.newest: dict[str, int] = {}
        self.head: Head | None = None
        self.root = EMPTY
        self.nodes: dict[str, str] = {}
        self.sealed = False

    @property
    def number(self) -> int:
        """How many entries were followed."""
        return 0 if self.head is None else self.head.number

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
        self.head = entry.head
        values = self._followed(entry)
        if values:
            self.root, fresh = proof_tree.changed(self.nodes.get, self.root, values)
            self.nodes.update(fresh)
        self.sealed = "state" in entry.fields
        _require(entry.fields.get("state", self.root) == self.root, entry, "states another root")

    def _followed(self, entry: Entry) -> dict[str, str]:
        """Take what an entry says into account; what changes in the tree."""
        match entry.event:
            case "open":
                _require(entry.account not in self.opened, entry, "opens an account again")
                terms = Terms.from_json(entry.account, entry.fields["terms"])
                taken = terms.source is not None and terms.source in {t.source for t in self.terms.values()}
                _require(not taken, entry, "opens a second account on one source")
                self.opened[entry.account] = entry.fields["terms"]
                self.terms[entry.account] = terms
                return opened(entry.account, entry.number, entry.fields["terms"], self.opened)
            case "allow":
                text = entry.fields["allowance"]
                rule = Allowance.from_json(text)
                _require(rule.number == entry.number, entry, "changes an allowance")
                self.kept[entry.account][f"{RULES}{rule.number}"] = text
                return allowed(entry.account, self.balances(entry.account, RULES))
            case "profile":
                _require(entry.account in self.opened, entry, "is about an account that was not opened")
                return profiled(entry.account, entry.number, entry.fields["profile"])
            case "reserve" | "record":
                return self._charged(entry)
            case "commit" | "forfeit":
                number = entry.fields["reservation"]
                reserved, _ = self.open.pop(number, (None, None))
                _require(reserved == entry.account, entry, "ends what was not reserved")
            case "clock":
                return self._corrected(entry)
        return {}

    def _corrected(self, entry: Entry) -> dict[str, str]:
        """Carry the windows that a corrected time counts again."""
        moved = {name: balances.carried(self, name, entry.at) for name in self.terms}
        moved = {name: fresh for name, fresh in moved.items() if fresh}
        _require(moved == entry.fields["carried"], entry, "carries other windows than those ahead of it")
        values: dict[str, str] = {}
        for name, fresh in moved.items():
            self.kept[name].update(fresh)
            values |= balanced(name, fresh)
        return values

    def _charged(self, entry: Entry) -> dict[str, str]:
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
        before = self.newest.get(entry.account)
        _require(fields.get("before", before) == before, entry, "names another charge before it")
        self.totals[entry.account], self.newest[entry.account] = fields["total"], entry.number
        fresh |= self._allowed(entry)
        self.kept[entry.account].update(fresh)
        if entry.event == "reserve":
            self.open[entry.number] = (entry.account, fields.get("owner"))
        return charged(entry.account, entry.number, fields["total"], fresh)

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
        nodes = {NODE + path: text for path, text in self.nodes.items()}
        if self.sealed and snapshot.balances("") != nodes:
            raise _wrong("The tree beside the entries is not the one that follows from them.")
        held = {one.number: (one.account, one.owner, one.text) for one in snapshot.reservations()}
        stated = {
            number: (name, held[number][1] if owner is None and number in held else owner, "")
            for number, (name, owner) in self.open.items()
        }
        if held != stated:
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
