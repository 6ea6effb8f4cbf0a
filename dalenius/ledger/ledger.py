"""`Ledger`: one durable account of everything released about the same people.

    >>> import dalenius as dp
    >>> from dalenius.losses import Pure
    >>> ledger = dp.Ledger.memory()
    >>> people = ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=1))
    >>> entry = people.record(Pure(0.4), note="published with another tool")
    >>> print(people.spent, "/", people.left)
    epsilon 0.4 of epsilon 1 / epsilon 0.6, pure(0.6)
    >>> ledger.verify()
    2

A query, a model, a synthetic table and a telemetry study about the same people draw on the same account, and
a crash can never make a release free: charges are on disk before data is read.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from dalenius.errors import (
    Argument,
    InvalidArgument,
    LedgerBehind,
    LedgerCorrupt,
    LedgerReadOnly,
    Message,
    NotSound,
    ReservationLost,
)
from dalenius.ledger import anchor as anchors
from dalenius.ledger import balances, signing
from dalenius.ledger.account import Account
from dalenius.ledger.anchor import Anchor
from dalenius.ledger.budget import Budget, stated
from dalenius.ledger.chain_state import ChainState, WritableState, balanced, opened
from dalenius.ledger.clock import moment, seen_at, stamp
from dalenius.ledger.closing import check_open, check_outside
from dalenius.ledger.entry import Entry
from dalenius.ledger.memory import MemoryStore
from dalenius.ledger.owner import Owner
from dalenius.ledger.reservation import end_reservation
from dalenius.ledger.store import TIMEOUT, Granting, Snapshot, Store, Transaction, open_store
from dalenius.ledger.terms import Terms
from dalenius.ledger.texts import LONGEST_NAME, LONGEST_NOTE, LONGEST_PROFILE, LONGEST_SOURCE, check_text
from dalenius.ledger.verification import Replay, replayed, seal, verify
from dalenius.privacy.unit import Unit
from dalenius.release import Release


class Ledger:
    """A ledger in a file, or on a PostgreSQL server ("postgresql://…").

    `anchor` is a file that keeps the head of the chain outside; a ledger behind it is refused unless `accept`
    says why. `key` is a private key file (`new_key`) that signs receipts.
    """

    def __init__(
        self,
        where: str | os.PathLike[str] | Store,
        *,
        anchor: str | os.PathLike[str] | None = None,
        accept: str | None = None,
        key: str | os.PathLike[str] | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self._key = None if key is None else signing.read_key(key)
        self._anchor = None if anchor is None else Path(anchor)
        self._prepared = False
        self._replay: Replay | None = None
        self.store = open_store(where, timeout=timeout) if isinstance(where, str | os.PathLike) else where
        try:
            self._check_anchor(accept)
            # Who may only read, or may not write now, leaves them to others.
            with suppress(LedgerReadOnly, NotSound):
                self.sweep()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def memory() -> Ledger:
        """A ledger that is gone with the process, for tests and teaching."""
        return Ledger(MemoryStore())

    def open(
        self, name: str, *, unit: Unit, budget: Budget, source: str | None = None, profile: str | None = None
    ) -> Account:
        """Return the account of that name; opened where there is none, refused where it was opened otherwise.

        Args:
            name: Its name.
            unit: Who is protected.
            budget: The most that may ever be spent.
            source: The name of the data, by an owner's label or by `fingerprint`: no second account is opened
                on it.
            profile: What a new account keeps about its data from the start (see `Account.profile`).
        """
        terms = Terms(name, unit, budget.filter, source, profile)
        with self.store.read() as snapshot:
            known = ChainState(snapshot).terms(name)
        if known is not None:
            return self._opened(terms, known)
        check_open()
        check_text("name", name, LONGEST_NAME)
        check_text("source", source or "", LONGEST_SOURCE)
        check_text("profile", profile or "", LONGEST_PROFILE)
        self.prepare()
        with self.store.write(durable=True) as transaction:
            state = self.state(transaction)
            known = state.terms(name)
            if known is not None:
                return self._opened(terms, known)
            accounts = state.accounts()
            _check_source(source, accounts)
            head, text = state.head, terms.to_json()
            number = 1 if head is None else head.number + 1
            entry = state.write(
                account=name,
                event="open",
                at=moment(head, state.witness.now),
                fields={"terms": text},
                values=opened(name, number, text, accounts | {name: text}),
            )
            transaction.add_account(name, text)
        self.anchored(entry)
        return Account(self, terms)

    def _opened(self, terms: Terms, text: str) -> Account:
        """The account as it was opened."""
        known = Terms.from_json(terms.name, text)
        if known.promises() != terms.promises():
            raise _opened_otherwise(known)
        return Account(self, known)

    def account(self, name: str) -> Account:
        """The account of that name."""
        with self.store.read() as snapshot:
            text = ChainState(snapshot).terms(name)
            if text is None:
                known = ", ".join(snapshot.accounts()) or "none yet"
                raise InvalidArgument(
                    f"There is no account {name!r}; there is: {known}.", remedy="Open it with ledger.open."
                )
        return Account(self, Terms.from_json(name, text))

    def accounts(self) -> list[Account]:
        """All accounts, by name."""
        with self.store.read() as snapshot:
            texts = ChainState(snapshot).accounts()
        return [Account(self, Terms.from_json(name, text)) for name, text in texts.items()]

    def entries(self) -> Iterator[Entry]:
        """All entries in order, one by one."""
        with self.store.read() as snapshot:
            yield from snapshot.entries()

    def verify(self, *, costs: bool = False) -> int:
        """Check every entry against the chain, and every balance against the entries; how many there are.

        With `costs` every loss is measured again, which takes longer.
        """
        with self.store.read() as snapshot:
            count = verify(snapshot, costs=costs)
            if self._anchor is not None and (known := anchors.read_file(self._anchor)) is not None:
                anchors.check(snapshot, known)
        return count

    def anchor(self) -> Anchor | None:
        """The head of the chain, to be kept elsewhere; None for an empty ledger."""
        with self.store.read() as snapshot:
            head = snapshot.head()
        return None if head is None else Anchor.of(head)

    def check(self, anchor: Anchor | str) -> None:
        """Refuse where the ledger is behind an anchor that was kept elsewhere."""
        with self.store.read() as snapshot:
            anchors.check(snapshot, Anchor.read(anchor) if isinstance(anchor, str) else anchor)

    def state(self, transaction: Transaction) -> WritableState:
        """Return what decides a charge, inside a write block; refused behind the anchor.

        Where an earlier version wrote the newest entry, the whole ledger is verified first.
        """
        self.guard(transaction)
        state = WritableState(transaction)
        if state.root is None:
            # Should this block be undone, the next one verifies again.
            seal(state, transaction, self._replay)
            self._prepared, self._replay = False, None
        return state

    def prepare(self) -> None:
        """Verify what an earlier version wrote while others go on, so that `state` holds them up briefly."""
        if self._prepared:
            return
        with self.store.read() as snapshot:
            head = snapshot.head()
            if head is not None and head.state is None:
                self._replay = replayed(snapshot)
        self._prepared = True

    def guard(self, snapshot: Snapshot) -> None:
        """Refuse to go on where the ledger fell behind its anchor while it was open."""
        if self._anchor is not None and (known := anchors.read_file(self._anchor)) is not None:
            anchors.check(snapshot, known)

    def anchored(self, entry: Entry) -> None:
        """Move the anchor file on to an entry."""
        if self._anchor is not None:
            anchors.write_file(self._anchor, Anchor(entry.number, entry.hash))

    def _check_anchor(self, accept: str | None) -> None:
        if self._anchor is None:
            return
        known = None
        try:
            known = anchors.read_file(self._anchor)
            if known is not None:
                self.check(known)
        except LedgerBehind:
            if accept is None:
                raise
            self._accept(self._anchor, "unreadable" if known is None else str(known), accept)

    def _accept(self, file: Path, anchor: str, why: str) -> None:
        check_open()
        check_text("accept", why, LONGEST_NOTE)
        with self.store.write(durable=True) as transaction:
            state = WritableState(transaction)
            at = seen_at(state.head, state.witness.now)
            fields = {"anchor": anchor, "why": why}
            entry = state.write(account="*", event="accept", at=at, fields=fields)
        anchors.write_file(file, Anchor(entry.number, entry.hash), back=True)

    def sweep(self) -> list[int]:
        """Forfeit the reservations of processes that have ended; their charges stay. The entries' numbers."""
        with self.store.read() as snapshot:
            found = [one for one in snapshot.reservations() if _ended(one.owner)]
        ended = []
        for one in found:
            # Another process may have found it first.
            with suppress(ReservationLost):
                self._end(one.number, one.account)
                ended.append(one.number)
        return ended

    def forfeit(self, number: int) -> None:
        """Forfeit a reservation whose process is on another machine and known to be gone."""
        with self.store.read() as snapshot:
            found = snapshot.reservation(number)
        if found is None:
            raise InvalidArgument(
                f"Entry {number} is not an open reservation.",
                remedy="Look for it with ledger.reservations().",
            )
        self._end(number, found.account)

    def reservations(self) -> list[int]:
        """The numbers of entries that are reserved and neither committed nor forfeited."""
        with self.store.read() as snapshot:
            return [one.number for one in snapshot.reservations()]

    def _end(self, number: int, account: str) -> None:
        check_outside()
        end_reservation(self.account(account), number, "forfeit")

    def correct_time(self, why: str) -> Entry:
        """Return to the time of the clock, by an entry, where the newest entry states a later one.

        For the owner of the ledger, after a process wrote with a clock far ahead. The whole ledger is
        verified first. Allowances with a window count what was charged in later windows in the present one
        as well, so that no charge becomes cheaper.
        """
        check_open()
        check_text("why", why, LONGEST_NOTE)
        self.prepare()
        with self.store.write(durable=True) as transaction:
            state = self.state(transaction)
            now, head = stamp(state.witness.now), state.head
            if head is None or head.at <= now:
                raise InvalidArgument(
                    "The newest entry is not ahead of the clock, so there is nothing to correct.",
                    remedy="Check the clock itself.",
                )
            verify(transaction)
            moved = {name: balances.carried(transaction, name, now) for name in state.accounts()}
            moved = {name: fresh for name, fresh in moved.items() if fresh}
            entry = state.write(
                account="*",
                event="clock",
                at=now,
                fields={"why": why, "was": head.at, "carried": moved},
                values={k: v for name, fresh in moved.items() for k, v in balanced(name, fresh).items()},
            )
            for name, fresh in moved.items():
                balances.write(transaction, name, fresh)
        self.anchored(entry)
        return entry

    def grant(self, role: str) -> Entry:
        """Let a role of a PostgreSQL server charge this ledger by a function that checks every entry.

        For the owner of the schema. The role may read the tables and execute that function, and nothing else;
        what the function proves and what it cannot is said in `postgres_functions`. The grant is an entry.
        """
        check_open()
        check_text("role", role, LONGEST_NAME)
        if not isinstance(self.store, Granting):
            raise InvalidArgument(
                "Only a ledger in PostgreSQL has roles.",
                remedy="Keep the ledger in PostgreSQL, or give others the file's rights by its mode.",
            )
        self.store.grant(role)
        self.prepare()
        with self.store.write(durable=True) as transaction:
            state = self.state(transaction)
            at = moment(state.head, state.witness.now)
            entry = state.write(account="*", event="grant", at=at, fields={"role": role})
        self.anchored(entry)
        return entry

    def fingerprint(self, source: str | os.PathLike[str] | IO[bytes], key: bytes) -> str:
        """A keyed digest (HMAC-SHA-256) of a file, to open its account under: the same for copies of it.

        `key` is the owner's secret, of 16 bytes or more: without one a digest would let others test what the
        data hold.
        """
        if len(key) < 16:
            raise InvalidArgument(
                "key must have 16 bytes or more.",
                remedy="Pass 32 bytes that nobody can guess, and keep them secret.",
            )
        digest = hmac.new(key, digestmod="sha256")
        if isinstance(source, str | os.PathLike):
            with Path(source).open("rb") as file:
                _feed(file, digest.update)
        else:
            _feed(source, digest.update)
        return f"hmac-sha256 {digest.hexdigest()}"

    def signed(self, release: Release) -> Release:
        """The release with its receipt signed, where there is a key."""
        if self._key is None:
            return release
        return replace(release, receipt=signing.sign(release.receipt, self._key))

    def close(self) -> None:
        """Let go of the database."""
        self.store.close()

    def __enter__(self) -> Ledger:
        return self

    def __repr__(self) -> str:
        path = getattr(self.store, "path", None)
        if isinstance(path, Path):
            return f"<Ledger {path.name}>"
        return f"<Ledger {'in memory' if isinstance(self.store, MemoryStore) else 'on PostgreSQL'}>"

    def _repr_html_(self) -> str | None:
        from dalenius.ledger.pages import ledger_page

        return ledger_page(self)

    def __exit__(self, *_: object) -> None:
        self.close()


def _ended(owner: str) -> bool:
    """Whether the process that reserved is known to be gone; what cannot be read is not."""
    try:
        return not Owner.read(owner).alive
    except LedgerCorrupt:
        return False


def _feed(file: IO[bytes], update: Callable[[bytes], None]) -> None:
    while block := file.read(1 << 20):
        update(block)


def _check_source(source: str | None, accounts: dict[str, str]) -> None:
    for other, text in accounts.items():
        if source is not None and Terms.from_json(other, text).source == source:
            raise InvalidArgument(
                f"This source has an account already: {other}.",
                remedy=Message("Use ", Argument("account", f"ledger.account({other!r})", (other,)), "."),
            )


def _opened_otherwise(terms: Terms) -> InvalidArgument:
    return InvalidArgument(
        f"The account {terms.name} was opened for {terms.unit} with {stated(terms.limit)}: that is fixed.",
        remedy=Message(
            Argument("budget.left_out", f"Use ledger.account({terms.name!r})"),
            ", or open one under another name for other data.",
        ),
    )
