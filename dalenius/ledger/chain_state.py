"""What decides a charge, read only as far as the newest entry vouches for it.

Terms, totals, allowances and cells are found by rows that lie beside the chain of entries, and a row can be
changed, removed, or put back from an older copy. So every entry states the root of a tree (`proof_tree`)
over:

    "terms" of an account    the number of the entry that opened it, and the digest of what that entry fixed
    "total" of an account    the number of its newest charge, and the digest of the total stated there
    "rules" of an account    the digest of all its allowances
    "profile" of an account  the number of the newest entry that says what is kept about its data, its digest
    any other scope          the digest of that balance
    "accounts" of no account the digest of all accounts, so that none is opened twice

Each charge checks the newest entry's hash and the path of what it reads: a few rows, however long the chain.
What an earlier version wrote has no root. Then the whole ledger is verified once, before the next charge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalenius.errors import LedgerTampered
from dalenius.ledger import proof_tree
from dalenius.ledger.balances import RULE
from dalenius.ledger.entry import Entry
from dalenius.ledger.proof_tree import EMPTY, Mismatch, digest, key
from dalenius.ledger.store import Snapshot, Transaction
from dalenius.losses.cost import Cost

RULES = f"{RULE}allowance "
NODE = "node "
"""Where the nodes of the tree are kept: under no account, which none can be named."""


def opened(account: str, number: int, terms: str, accounts: Mapping[str, str]) -> dict[str, str]:
    """Return what the tree holds after an account is opened; `accounts` are all, with the new one."""
    every = "\n".join(f"{digest(name)} {digest(accounts[name])}" for name in sorted(accounts))
    return {key(account, "terms"): f"{number}.{digest(terms)}", key("", "accounts"): digest(every)}


def charged(account: str, number: int, total: str, balances: Mapping[str, str]) -> dict[str, str]:
    """Return what the tree holds after a charge: its number and total, and the balances it changed."""
    return {key(account, "total"): f"{number}.{digest(total)}"} | balanced(account, balances)


def allowed(account: str, rules: Mapping[str, str]) -> dict[str, str]:
    """Return what the tree holds of all the allowances of an account."""
    every = "\n".join(f"{digest(scope)} {digest(rules[scope])}" for scope in sorted(rules))
    return {key(account, "rules"): digest(every)}


def profiled(account: str, number: int, profile: str) -> dict[str, str]:
    """Return what the tree holds of what an account keeps about its data, since an entry of that number."""
    return {key(account, "profile"): f"{number}.{digest(profile)}"}


def balanced(account: str, balances: Mapping[str, str]) -> dict[str, str]:
    """Return what the tree holds of balances."""
    return {key(account, scope): digest(text) for scope, text in balances.items()}


class ChainState:
    """The balances and terms of a store, each checked against the newest entry.

    Where an earlier version wrote that entry, they are read as they are: good for looking, not for charging.
    """

    def __init__(self, kept: Snapshot) -> None:
        self._kept = kept
        self.head = kept.head()
        self.root = EMPTY if self.head is None else self.head.state

    def total(self, account: str) -> str | None:
        """Return the total of an account; None before any charge."""
        if self.root is None:
            return self._kept.total(account)
        number, fixed = self._numbered(account, "total")
        if number is None:
            return None
        total = self._kept.recalled(account)
        if total is None or digest(total) != fixed:
            total = self._stated(account, number, fixed)
            self._kept.recall(account, total)
        return total

    def newest(self, account: str) -> int | None:
        """Return the number of the newest charge of an account; None before any."""
        return self._numbered(account, "total")[0]

    def terms(self, account: str) -> str | None:
        """Return what the entry that opened an account fixed; None where there is no such account."""
        if self.root is None:
            entry = next(self._kept.entries(account=account), None)
            return None if entry is None or entry.event != "open" else str(entry.fields["terms"])
        number, fixed = self._numbered(account, "terms")
        if number is None:
            return None
        entry = self._kept.entry(number)
        terms = None if entry is None or entry.account != account else entry.fields.get("terms")
        if not isinstance(terms, str) or digest(terms) != fixed:
            raise LedgerTampered(f"Entry {number}, which opened {account}, is not as it was written.")
        return terms

    def profile(self, account: str) -> str | None:
        """Return what the newest entry that says so keeps about an account's data; None where none does."""
        if self.root is None:
            texts = [e.fields["profile"] for e in self._kept.entries(account=account) if e.event == "profile"]
            return str(texts[-1]) if texts else None
        number, fixed = self._numbered(account, "profile")
        if number is None:
            return None
        entry = self._kept.entry(number)
        text = None if entry is None or entry.account != account else entry.fields.get("profile")
        if not isinstance(text, str) or digest(text) != fixed:
            raise LedgerTampered(f"Entry {number}, the profile of {account}, is not as it was written.")
        return text

    def check_terms(self, account: str, terms: str) -> None:
        """Refuse terms that are not those the account was opened with."""
        number, fixed = self._numbered(account, "terms")
        if number is None or digest(terms) != fixed:
            raise LedgerTampered(f"The account {account} was not opened with these terms in this ledger.")

    def accounts(self) -> dict[str, str]:
        """Return all accounts as they were opened; refused where one is missing or changed."""
        accounts = self._kept.accounts()
        fixed = None if not accounts else opened("", 0, "", accounts)[key("", "accounts")]
        if self.root is not None and self._value("", "accounts") != fixed:
            raise LedgerTampered(f"The accounts are not those that {self._place} knows.")
        return accounts

    def balance(self, account: str, scope: str) -> str | None:
        """Return the balance of one scope; None where none was set."""
        text = self._kept.balance(account, scope)
        if self.root is not None and self._value(account, scope) != (None if text is None else digest(text)):
            raise LedgerTampered(
                f"A balance of {account} is not what {self._place} knows: it was changed, removed or "
                "restored from an older copy."
            )
        return text

    def balances(self, account: str, prefix: str = "") -> dict[str, str]:
        """Return the balances of all scopes that begin with `prefix`; allowances are checked to be all."""
        texts = self._kept.balances(account, prefix)
        if prefix != RULES or self.root is None:
            return texts
        fixed = allowed(account, texts)[key(account, "rules")] if texts else None
        if self._value(account, "rules") != fixed:
            raise LedgerTampered(f"The allowances of {account} are not those that {self._place} knows.")
        return texts

    @property
    def _place(self) -> str:
        return "an empty ledger" if self.head is None else f"entry {self.head.number}"

    def _value(self, account: str, scope: str) -> str | None:
        assert self.root is not None
        try:
            return proof_tree.value(self._node, self.root, key(account, scope))
        except Mismatch:
            raise self._mismatch() from None

    def _numbered(self, account: str, scope: str) -> tuple[int | None, str]:
        number, _, fixed = (self._value(account, scope) or "").partition(".")
        return (int(number) if number else None), fixed

    def _node(self, path: str) -> str | None:
        return self._kept.balance("", NODE + path)

    def _mismatch(self) -> LedgerTampered:
        return LedgerTampered(
            f"What is kept beside the entries is not what {self._place} states: a row was changed, removed "
            "or restored from an older copy, or newer entries were cut off."
        )

    def _stated(self, account: str, number: int, fixed: str) -> str:
        """Return the total that a charge states, checked against the charge before."""
        entry = self._kept.entry(number)
        total = None if entry is None or entry.account != account else entry.fields.get("total")
        if entry is None or not isinstance(total, str) or digest(total) != fixed:
            raise LedgerTampered(f"Entry {number}, the newest charge of {account}, is not as it was written.")
        number_before = entry.fields.get("before")
        before = None if number_before is None else self._kept.entry(number_before)
        if number_before is not None and (before is None or before.account != account):
            raise LedgerTampered(f"Entry {number_before} of {account} is not as it was written.")
        if "before" in entry.fields:
            _check_sum(entry, before)
        return total


class WritableState(ChainState):
    """The state inside a write block; what is appended states the root of what follows."""

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(transaction)
        self._transaction = transaction
        self.witness = transaction.witness()
        if self.head is not None and not transaction.settled:
            self._check_link(self.head.number)

    def write(
        self,
        *,
        account: str,
        event: str,
        at: str,
        fields: Mapping[str, Any],
        values: Mapping[str, str] | None = None,
    ) -> Entry:
        """Append an entry and change the tree.

        Args:
            account: Whose entry it is; "*" for one of the whole ledger.
            event: What happened, one of `EVENTS`.
            at: When, not before the newest entry.
            fields: What the entry says.
            values: What changes in the tree, by key.

        Returns:
            The entry, which states the root after the change.
        """
        said = dict(fields)
        if self.witness.user is not None:
            said["session_user"] = self.witness.user
        if self.root is not None:
            said["state"] = self.change(values or {})
        entry = Entry.following(self.head, account=account, event=event, at=at, fields=said)
        self._transaction.append(entry)
        self.head = entry.head
        return entry

    def change(self, values: Mapping[str, str]) -> str:
        """Set values in the tree and return its root."""
        assert self.root is not None
        if values:
            try:
                self.root, nodes = proof_tree.changed(self._node, self.root, values)
            except Mismatch:
                raise self._mismatch() from None
            self.keep(nodes)
        return self.root

    def keep(self, nodes: Mapping[str, str]) -> None:
        """Store nodes by their paths."""
        for path, text in nodes.items():
            self._transaction.set_balance("", NODE + path, text)

    def _check_link(self, number: int) -> None:
        """Refuse a newest entry that does not follow the one before."""
        newest = self._kept.entry(number)
        before = self._kept.entry(number - 1) if number > 1 else None
        missing = number > 1 and before is None
        if newest is None or missing or not newest.follows(None if before is None else before.head):
            raise LedgerTampered(f"The chain breaks at entry {number}: it does not follow the one before.")


def _check_sum(entry: Entry, before: Entry | None) -> None:
    """Refuse a total that is not the one before plus the cost; about a cell, not between the two."""
    try:
        total, cost = Cost.from_json(entry.fields["total"]), Cost.from_json(entry.fields["cost"])
        earlier = None if before is None else Cost.from_json(before.fields["total"])
        right = all(min(amount) >= 0 for amount in cost.amounts.values()) and all(
            _grown(amount, (0, 0) if earlier is None else earlier.amounts[name], cost.amounts[name])
            if entry.fields["cell"] is None
            else _between(amount, (0, 0) if earlier is None else earlier.amounts[name], cost.amounts[name])
            for name, amount in total.amounts.items()
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        right = False
    if not right:
        raise LedgerTampered(
            f"Entry {entry.number} states a total that is not the one before it with its own cost."
        )


def _between(total: tuple[int, int], before: tuple[int, int], cost: tuple[int, int]) -> bool:
    return all(low <= new <= low + more for new, low, more in zip(total, before, cost, strict=True))


def _grown(total: tuple[int, int], before: tuple[int, int], cost: tuple[int, int]) -> bool:
    return total == (before[0] + cost[0], before[1] + cost[1])
