"""`Store`: where a ledger is kept, and all that it asks of a database. Nothing of privacy is in it.

A store holds a chain of entries, which only grows, and what follows from it: accounts, balances, and the
reservations that are open. Their texts mean nothing to the store. All change happens in `write` blocks:

    with store.write(durable=True) as transaction:
        entry = Entry.following(transaction.head(), ...)
        transaction.append(entry)
        transaction.set_balance("people", "", text)

Such a block is exclusive, one writer in the world, and all or nothing: an exception inside it, a full disk
or a crash leaves the store as it was. With `durable=True` the disk has it when the block is left; otherwise
a power cut may lose it, whole, but nothing that a later durable block did not bring to the disk with it.

`steps` names the places inside a write where a crash could fall; `on_step` is called with each name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import NamedTuple, Protocol, runtime_checkable

from dalenius.errors import InvalidArgument
from dalenius.ledger.entry import Entry, Head

TIMEOUT = 30.0
"""Seconds that a writer waits for another before it gives up."""

OnStep = Callable[[str], None]


class Reservation(NamedTuple):
    """An open reservation: the number of its entry, its account, who holds it, and what the ledger noted."""

    number: int
    account: str
    owner: str
    text: str


class Witness(NamedTuple):
    """What a store says of the moment: the time in UTC, and the user that a database server knows."""

    now: datetime
    user: str | None


class Snapshot(Protocol):
    """What a store holds at one moment; it does not change while its block lasts."""

    def head(self) -> Head | None:
        """The newest entry's number, hash and time."""

    def witness(self) -> Witness:
        """Return the time by the store's clock, and the user whom the database knows this process by."""

    def entry(self, number: int) -> Entry | None:
        """Return the entry of that number, checked against its hash; None where there is none."""

    def recalled(self, account: str) -> str | None:
        """Return the total that this process wrote last to an account, while nobody wrote since."""

    def recall(self, account: str, total: str) -> None:
        """Remember a total that was checked."""

    def count(self, account: str | None = None, most: int | None = None) -> int:
        """Return how many entries there are, of one account or of all; counting stops at `most`."""

    def entries(
        self,
        after: int = 0,
        account: str | None = None,
        newest: int | None = None,
        before: int | None = None,
    ) -> Iterator[Entry]:
        """Return the entries in order, one by one, each checked against its hash.

        Args:
            after: Only entries with a larger number.
            account: Only entries of this account.
            newest: Only so many, the newest of them.
            before: Only entries with a smaller number.
        """

    def account(self, name: str) -> str | None:
        """What was noted of an account; None where there is none of that name."""

    def accounts(self) -> dict[str, str]:
        """What was noted of every account, in the order of their names."""

    def total(self, account: str) -> str | None:
        """The `total` that the newest entry of an account states, of those that state one; None before."""

    def balance(self, account: str, scope: str) -> str | None:
        """The balance of one scope of an account; None where none was set."""

    def balances(self, account: str, prefix: str = "") -> dict[str, str]:
        """The balances of all scopes that begin with `prefix`, in their order."""

    def use(self, account: str, scope: str) -> str | None:
        """The last note of a session's uses (`uses`); None where there is none."""

    def reservation(self, number: int) -> Reservation | None:
        """The open reservation made by that entry; None where it is not open."""

    def reservations(self, account: str | None = None) -> list[Reservation]:
        """The open reservations in order, of one account or of all."""


class Transaction(Snapshot, Protocol):
    """A snapshot that may be changed, and sees its own changes."""

    @property
    def settled(self) -> bool:
        """Whether this process wrote the newest entry itself."""

    def append(self, entry: Entry) -> None:
        """Add the entry after the head; any other is refused."""

    def add_account(self, name: str, text: str) -> None:
        """Note an account; refused where the name is taken."""

    def set_balance(self, account: str, scope: str, text: str) -> None:
        """Set the balance of one scope of an account."""

    def set_use(self, account: str, scope: str, text: str) -> None:
        """Replace the last note of a session's uses (`uses`)."""

    def add_reservation(self, number: int, account: str, owner: str, text: str) -> None:
        """Note that the entry of that number holds a reservation."""

    def drop_reservation(self, number: int) -> bool:
        """End a reservation; False where it was not open."""


class Store(Protocol):
    """Where a ledger is kept."""

    on_step: OnStep | None

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the places inside a write where a crash could fall."""

    def write(self, durable: bool) -> AbstractContextManager[Transaction]:
        """A block that may change the store: exclusive, all or nothing."""

    def read(self) -> AbstractContextManager[Snapshot]:
        """A block that sees the store as it is now."""

    def close(self) -> None:
        """Let go of the database; what was written stays."""


@runtime_checkable
class Granting(Protocol):
    """A store on a server that has roles."""

    def grant(self, role: str) -> None:
        """Let a role read the ledger and charge it by a function that checks each entry, and nothing else."""


def local_clock() -> datetime:
    """Return the time of this machine, in UTC."""
    return datetime.now(UTC)


def open_store(
    where: str | os.PathLike[str], *, timeout: float = TIMEOUT, on_step: OnStep | None = None
) -> Store:
    """The store at a path or at a `postgresql://` address, made where there is none yet."""
    if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")):
        from dalenius.ledger.postgres import PostgresStore

        return PostgresStore(where, timeout=timeout, on_step=on_step)
    if where == ":memory:":
        raise InvalidArgument("A ledger in memory has no path.", remedy="Use Ledger.memory().")
    from dalenius.ledger.sqlite import SqliteStore

    return SqliteStore(where, timeout=timeout, on_step=on_step)
