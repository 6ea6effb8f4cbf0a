"""What the stores ask of their database, in SQL that SQLite and PostgreSQL both read.

A `Channel` is a connection inside a transaction; each store has its own. The primary key and a trigger of the
database hold the order of entries as well, so that no other program can put one in between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol

from dalenius.errors import InvalidArgument, LedgerError, LedgerTampered
from dalenius.ledger.entry import Entry, Head
from dalenius.ledger.store import OnStep, Reservation, Witness

Row = tuple[Any, ...]

STEPS = (
    "begin",
    "append",
    "add account",
    "set balance",
    "add reservation",
    "drop reservation",
    "before commit",
    "after commit",
)

_REMEMBERED = 4096
"""How many balances are remembered, at most, before they are looked up again."""
_LAST = "\U0010ffff"
_UNKEPT = re.compile("[\0\ud800-\udfff\U0010ffff]")

_HEAD = "SELECT number, hash, body FROM entries ORDER BY number DESC LIMIT 1"
_NEWEST = "SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1"
_ENTRY = "SELECT number, account, hash, body FROM entries WHERE number = ?"
_ENTRIES = "SELECT number, account, hash, body FROM entries WHERE number > ? AND number <= ?"
_STATING = (
    "SELECT number, account, hash, body FROM entries WHERE account = ? AND body LIKE ? ORDER BY number DESC"
)
_STATES_TOTAL = '%"total":%'
_APPEND = "INSERT INTO entries (number, account, hash, body) VALUES (?, ?, ?, ?)"
_RESERVATIONS = "SELECT number, account, owner, text FROM reservations"
_BALANCES = "SELECT scope, text FROM balances WHERE account = ? AND scope >= ? AND scope < ? ORDER BY scope"
_SET_BALANCE = (
    "INSERT INTO balances (account, scope, text) VALUES (?, ?, ?) "
    "ON CONFLICT (account, scope) DO UPDATE SET text = excluded.text"
)


class Channel(Protocol):
    """A connection inside a transaction. SQL has `?` for its values; errors are of our tree."""

    def check(self) -> None:
        """Refuse once the block is left, and in a child process."""

    def commit(self) -> None:
        """Make it so; nothing can be asked afterwards."""

    def rollback(self) -> None:
        """Undo everything, quietly; nothing can be asked afterwards."""

    def run(self, sql: str, *values: object) -> int:
        """Carry out a change; how many rows it touched."""

    def rows(self, sql: str, *values: object) -> list[Row]:
        """All rows of a short answer."""

    def stream(self, sql: str, *values: object) -> Iterator[Row]:
        """The rows of a long answer, few at a time."""

    def witness(self) -> Witness:
        """What time it is, and which user of the database asks."""


class Reading:
    """A snapshot, by SQL."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def head(self) -> Head | None:
        """The newest entry's number, hash and time."""
        for number, hash, body in self._channel.rows(_HEAD):
            return Head.read(body, hash, number=number)
        return None

    def witness(self) -> Witness:
        """Return the time by the store's clock, and the user whom the database knows this process by."""
        return self._channel.witness()

    def entry(self, number: int) -> Entry | None:
        """Return the entry of that number, checked against its hash; None where there is none."""
        for row in self._channel.rows(_ENTRY, number):
            return _entry(row)
        return None

    def recalled(self, account: str) -> str | None:
        """Return the total that this process wrote last to an account, while nobody wrote since."""
        return None

    def recall(self, account: str, total: str) -> None:
        """Remember a total that was checked."""

    def count(self, account: str | None = None, most: int | None = None) -> int:
        """Return how many entries there are, of one account or of all; counting stops at `most`."""
        sql, *named = _of("SELECT 1 FROM entries", "WHERE", account)
        limit = "" if most is None else f" LIMIT {int(most)}"
        ours = self._channel.rows(f"SELECT count(*) FROM ({sql}{limit}) AS counted", *named)
        return int(ours[0][0])

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
        head = self.head()
        last = 0 if head is None else head.number
        sql, *named = _of(_ENTRIES, "AND", account)
        values: list[object] = [after, last if before is None else min(last, before - 1), *named]
        if newest is None:
            sql += " ORDER BY number"
        else:
            sql = f"SELECT * FROM ({sql} ORDER BY number DESC LIMIT ?) AS newest ORDER BY number"
            values.append(newest)
        return map(_entry, self._channel.stream(sql, *values))

    def account(self, name: str) -> str | None:
        """What was noted of an account; None where there is none of that name."""
        return _only(self._channel.rows("SELECT text FROM accounts WHERE name = ?", _plain(name)))

    def accounts(self) -> dict[str, str]:
        """What was noted of every account, in the order of their names."""
        return dict(self._channel.rows("SELECT name, text FROM accounts ORDER BY name"))

    def total(self, account: str) -> str | None:
        """The `total` that the newest entry of an account states, of those that state one; None before."""
        stated = map(_entry, self._channel.stream(_STATING, _plain(account), _STATES_TOTAL))
        return next((entry.fields["total"] for entry in stated if "total" in entry.fields), None)

    def balance(self, account: str, scope: str) -> str | None:
        """The balance of one scope of an account; None where none was set."""
        sql = "SELECT text FROM balances WHERE account = ? AND scope = ?"
        return _only(self._channel.rows(sql, _plain(account), _plain(scope)))

    def balances(self, account: str, prefix: str = "") -> dict[str, str]:
        """The balances of all scopes that begin with `prefix`, in their order."""
        return dict(self._channel.rows(_BALANCES, _plain(account), _plain(prefix), prefix + _LAST))

    def use(self, account: str, scope: str) -> str | None:
        """Return the last note of a session's uses, as it is in the database; None where there is none."""
        # Not from what is remembered: other processes change notes without an entry.
        sql = "SELECT text FROM balances WHERE account = ? AND scope = ?"
        return _only(self._channel.rows(sql, _plain(account), _plain(scope)))

    def reservation(self, number: int) -> Reservation | None:
        """The open reservation made by that entry; None where it is not open."""
        for row in self._channel.rows(f"{_RESERVATIONS} WHERE number = ?", number):
            return Reservation(*row)
        return None

    def reservations(self, account: str | None = None) -> list[Reservation]:
        """The open reservations in order, of one account or of all."""
        sql, *named = _of(_RESERVATIONS, "WHERE", account)
        return [Reservation(*row) for row in self._channel.rows(f"{sql} ORDER BY number", *named)]


class Known:
    """What this process wrote last. While its head is the newest, nobody wrote since: all change appends."""

    def __init__(self) -> None:
        self.head: Head | None = None
        self.totals: dict[str, str | None] = {}
        self.balances: dict[tuple[str, str], str | None] = {}
        self.found: dict[tuple[str, str], dict[str, str]] = {}

    def forget(self) -> None:
        """Know nothing."""
        self.head = None
        self.totals.clear()
        self.balances.clear()
        self.found.clear()


class Writing(Reading):
    """A transaction, by SQL; what is known is not asked for again."""

    def __init__(self, channel: Channel, step: OnStep, known: Known) -> None:
        super().__init__(channel)
        self._step, self._known = step, known
        self._head: Head | None = None
        newest = channel.rows(_NEWEST) if known.head is not None else []
        if known.head is not None and newest == [known.head[:2]] and len(known.balances) < _REMEMBERED:
            self._head = known.head
        else:
            known.forget()

    @property
    def settled(self) -> bool:
        """Whether this process wrote the newest entry itself."""
        return self._head is not None

    def recalled(self, account: str) -> str | None:
        """Return the total that this process wrote last to an account, while nobody wrote since."""
        self._channel.check()
        return self._known.totals.get(account)

    def recall(self, account: str, total: str) -> None:
        """Remember a total that was checked."""
        self._known.totals[account] = total

    def head(self) -> Head | None:
        """The newest entry's number, hash and time."""
        self._channel.check()
        if self._head is None:
            self._head = self._known.head = super().head()
        return self._head

    def total(self, account: str) -> str | None:
        """The `total` that the newest entry of an account states, of those that state one; None before."""
        self._channel.check()
        kept = self._known.totals
        if account not in kept:
            kept[account] = super().total(account)
        return kept[account]

    def balance(self, account: str, scope: str) -> str | None:
        """The balance of one scope of an account; None where none was set."""
        self._channel.check()
        key, kept = (account, scope), self._known.balances
        if key not in kept:
            kept[key] = super().balance(account, scope)
        return kept[key]

    def balances(self, account: str, prefix: str = "") -> dict[str, str]:
        """The balances of all scopes that begin with `prefix`, in their order."""
        self._channel.check()
        key, found = (account, prefix), self._known.found
        if key not in found:
            found[key] = super().balances(account, prefix)
        return dict(found[key])

    def append(self, entry: Entry) -> None:
        """Add the entry after the head; any other is refused."""
        if not entry.follows(self.head()):
            raise LedgerError(
                f"Entry {entry.number} does not follow the newest one.",
                remedy="Make it with Entry.following from the head of this transaction.",
            )
        self._channel.run(_APPEND, entry.number, _name(entry.account), entry.hash, entry.body)
        self.appended(entry)

    def appended(self, entry: Entry) -> None:
        """Remember that an entry was added."""
        self._head = self._known.head = entry.head
        if "total" in entry.fields:
            self._known.totals[entry.account] = entry.fields["total"]
        self._step("append")

    def add_account(self, name: str, text: str) -> None:
        """Note an account; refused where the name is taken."""
        sql = "INSERT INTO accounts (name, text) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
        if not self._channel.run(sql, _plain(name), _plain(text)):
            raise LedgerError(
                "There is an account of that name already.", remedy="Use it, or choose another name."
            )
        self._step("add account")

    def set_balance(self, account: str, scope: str, text: str) -> None:
        """Set the balance of one scope of an account."""
        self._channel.run(_SET_BALANCE, _plain(account), _plain(scope), _plain(text))
        self.remember_balance(account, scope, text)

    def remember_balance(self, account: str, scope: str, text: str) -> None:
        """Remember a balance that was set."""
        self._known.balances[account, scope] = text
        for key in [key for key in self._known.found if key[0] == account and scope.startswith(key[1])]:
            del self._known.found[key]
        self._step("set balance")

    def set_use(self, account: str, scope: str, text: str) -> None:
        """Replace the last note of a session's uses."""
        self._channel.run(_SET_BALANCE, _plain(account), _plain(scope), _plain(text))
        self._step("set balance")

    def add_reservation(self, number: int, account: str, owner: str, text: str) -> None:
        """Note that the entry of that number holds a reservation."""
        sql = "INSERT INTO reservations (number, account, owner, text) VALUES (?, ?, ?, ?)"
        self._channel.run(sql, number, _plain(account), _plain(owner), _plain(text))
        self._step("add reservation")

    def drop_reservation(self, number: int) -> bool:
        """End a reservation; False where it was not open."""
        dropped = self._channel.run("DELETE FROM reservations WHERE number = ?", number) > 0
        self._step("drop reservation")
        return dropped


def _of(sql: str, word: str, account: str | None) -> list[Any]:
    return [sql] if account is None else [f"{sql} {word} account = ?", _plain(account)]


def _only(rows: list[Row]) -> str | None:
    return rows[0][0] if rows else None


def _entry(row: Row) -> Entry:
    number, account, hash, body = row
    entry = Entry.read(body, hash, number=number)
    if entry.account != account:
        raise LedgerTampered(f"Entry {number} is filed under another account than its own.")
    return entry


@lru_cache(maxsize=1024)
def _name(text: str) -> str:
    """A plain text that comes often."""
    return _plain(text)


def _plain(text: str) -> str:
    """A text that both databases keep as it is, and that prefixes find."""
    if _UNKEPT.search(text):
        raise InvalidArgument(
            "A ledger keeps no text with a null character, U+10FFFF or a lone surrogate.",
            remedy="Remove it from the name.",
        )
    return text
