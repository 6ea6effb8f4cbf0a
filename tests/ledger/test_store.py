"""One contract for every store: all or nothing, in order, append-only, few entries in memory at a time."""

from __future__ import annotations

import gc
import sqlite3
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from dalenius.errors import (
    InvalidArgument,
    LedgerCorrupt,
    LedgerError,
)
from dalenius.ledger.entry import Entry, chained
from dalenius.ledger.store import Reservation, Store

Append = Callable[..., Entry]
Fill = Callable[[Store, int], list[Entry]]
InFork = Callable[[Callable[[], object]], str]
State = Callable[[Store], tuple[Any, ...]]

NOON = "2026-01-31T12:00:00.000000Z"


def test_a_new_store_is_empty(store: Store, state: State) -> None:
    assert state(store) == ((), {}, {"people": {}, "cities": {}}, [])
    with store.read() as held:
        assert held.head() is None and held.count() == 0 and held.balance("people", "") is None
        assert held.account("people") is None and held.reservation(1) is None


@pytest.mark.parametrize("durable", [True, False])
def test_what_is_written_is_there(store: Store, append: Append, durable: bool) -> None:
    with store.write(durable) as transaction:
        first = append(transaction, note="Zoë 🦊 \0 \U0010ffff")
        transaction.add_account("people", '{"ε":3}')
        transaction.add_reservation(1, "people", "owner", "text")
        second = append(transaction)
        assert transaction.head() == second.head and list(transaction.entries()) == [first, second]
    with store.read() as held:
        assert held.head() == second.head and held.count() == 2
        assert list(held.entries()) == [first, second]
        assert held.accounts() == {"people": '{"ε":3}'} and held.account("people") == '{"ε":3}'
        assert held.reservations() == [Reservation(1, "people", "owner", "text")] == [held.reservation(1)]
    with store.write(durable) as transaction:
        assert transaction.drop_reservation(1) and not transaction.drop_reservation(1)
    with store.read() as held:
        assert held.reservations() == [] and held.count() == 2


def test_each_write_is_as_durable_as_asked(shared: Any) -> None:
    """By what the database says of itself inside the block; the connection is the same each time."""
    store = shared.open()
    ask = "PRAGMA synchronous" if shared.kind == "sqlite" else "SHOW synchronous_commit"
    full, less = {"sqlite": (2, 1), "postgres": ("on", "off")}[shared.kind]
    for durable in (True, False, False, True, True, False, True):
        with store.write(durable) as transaction:
            assert transaction._channel.rows(ask) == [(full if durable else less,)]
    log = "PRAGMA journal_mode" if shared.kind == "sqlite" else "SHOW fsync"
    with store.read() as held:
        assert held._channel.rows(log) == [("wal" if shared.kind == "sqlite" else "on",)]


def test_entries_are_found_by_place_account_and_age(store: Store, append: Append) -> None:
    with store.write(False) as transaction:
        written = [append(transaction, account=("people", "cities")[n % 3 == 0]) for n in range(700)]
        cities = [entry for entry in written if entry.account == "cities"]
        transaction.add_reservation(1, "cities", "", "")
        transaction.add_reservation(2, "people", "", "")
    with store.read() as held:
        assert list(held.entries()) == written and list(held.entries(after=650)) == written[650:]
        assert list(held.entries(account="cities")) == cities
        assert list(held.entries(account="cities", after=600)) == [e for e in cities if e.number > 600]
        assert list(held.entries(newest=3)) == written[-3:] and list(held.entries(newest=0)) == []
        assert list(held.entries(account="cities", newest=300)) == cities
        assert list(held.entries(after=699, newest=3)) == written[-1:]
        assert (held.count(), held.count("cities"), held.count("nobody")) == (700, len(cities), 0)
        assert [r.number for r in held.reservations("people")] == [2]
        assert list(chained(held.entries())) == written


def test_balances_are_found_by_prefix_in_the_order_of_code_points(store: Store) -> None:
    scopes = ["", "by:", "by:Zoë", "by:ana", "by:ana%", "by:ana_b", "by:é", "by:\U0010fffe", "bz", "BY:", "z"]
    with store.write(False) as transaction:
        for scope in scopes:
            transaction.set_balance("people", scope, "0")
            transaction.set_balance("people", scope, f"of {scope}")
        transaction.set_balance("cities", "by:ana", "another")
        ours = {scope: f"of {scope}" for scope in sorted(scopes)}
        for prefix in ("", "by:", "by:a", "by:ana%", "by:ana_", "nothing"):
            found = transaction.balances("people", prefix)
            assert list(found.items()) == [(s, t) for s, t in ours.items() if s.startswith(prefix)]
        assert transaction.balance("people", "by:ana") == "of by:ana"


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "\U0010ffff"])
def test_a_name_that_a_database_would_change_is_refused(store: Store, append: Append, text: str) -> None:
    for use in (
        lambda t: t.set_balance("people", text, ""),
        lambda t: t.set_balance(text, "", ""),
        lambda t: t.set_balance("people", "", text),
        lambda t: t.add_account(text, ""),
        lambda t: t.add_reservation(1, "people", text, ""),
        lambda t: t.account(text),
        lambda t: t.balances("people", text),
        lambda t: append(t, account=text),
    ):
        with pytest.raises(InvalidArgument), store.write(False) as transaction:
            use(transaction)


def test_an_entry_that_does_not_follow_is_refused(
    store: Store, append: Append, state: State, fill: Fill
) -> None:
    fill(store, 2)
    before = state(store)
    head = before[0][-1].head
    for wrong in (
        None,
        before[0][0].head,
        head._replace(number=7),
        head._replace(hash="f" * 64),
    ):
        with pytest.raises(LedgerError, match="does not follow"), store.write(False) as transaction:
            transaction.append(Entry.following(wrong, account="a", event="open", at=NOON, fields={}))
    assert state(store) == before


def test_a_name_is_taken_once(store: Store) -> None:
    with store.write(False) as transaction:
        transaction.add_account("people", "first")
        with pytest.raises(LedgerError, match="already"):
            transaction.add_account("people", "second")
    with store.read() as held:
        assert held.accounts() == {"people": "first"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_undoes_the_block(
    store: Store, append: Append, state: State, error: type[BaseException], fill: Fill
) -> None:
    fill(store, 1)
    before = state(store)
    with pytest.raises(error), store.write(True) as transaction:
        append(transaction)
        transaction.add_account("people", "")
        transaction.add_reservation(2, "people", "", "")
        raise error
    assert state(store) == before
    assert fill(store, 1)[0].number == 2


def test_an_exception_at_any_step_undoes_the_block(
    place: Any, append: Append, state: State, fill: Fill
) -> None:
    store = place.open()
    fill(store, 1)
    before = state(store)
    for step in ("begin", "append", "set balance", "before commit"):

        def hook(name: str, wanted: str = step) -> None:
            if name == wanted:
                raise ValueError

        store.on_step = hook
        with pytest.raises(ValueError), store.write(True) as transaction:
            append(transaction)
        store.on_step = None
        assert state(store) == before


def test_a_block_with_a_part_that_failed_is_not_committed(
    store: Store, append: Append, state: State, fill: Fill
) -> None:
    """Even when the error of that part was caught."""
    before = state(store)
    with pytest.raises(LedgerError), store.write(True) as transaction:
        append(transaction)
        transaction.add_reservation(1, "people", "", "")
        with pytest.raises(LedgerError):
            transaction.add_reservation(1, "people", "", "")
    assert state(store) == before
    fill(store, 1)


def test_a_block_is_used_inside_itself_only(store: Store, append: Append, fill: Fill) -> None:
    fill(store, 600)
    with store.write(False) as transaction:
        pass
    with store.read() as held:
        started = held.entries()
        next(started)
    for use in (held.head, transaction.head, lambda: append(transaction), lambda: list(started)):
        with pytest.raises(LedgerError, match="inside that block"):
            use()


def test_a_thread_does_not_wait_for_itself(store: Store, append: Append) -> None:
    for inner in (store.read, lambda: store.write(True)):
        with store.write(True) as transaction:
            append(transaction)
            with pytest.raises(LedgerError, match="already"), inner():
                pass
    with store.read() as held:
        assert held.count() == 2


def test_entries_can_be_added_while_older_ones_are_read(store: Store, fill: Fill) -> None:
    fill(store, 600)
    with store.read() as held:
        for entry in held.entries():
            if entry.number % 200 == 0:
                fill(store, 1)
        assert entry.number == 600
    with store.read() as held, store.read() as again:
        assert held.count() == again.count() == 603


def test_a_closed_store_refuses(store: Store) -> None:
    store.close()
    store.close()
    for block in (store.read, lambda: store.write(True)):
        with pytest.raises(LedgerError, match="closed"), block():
            pass


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = 'x'",
        "UPDATE entries SET number = 9 WHERE number = 3",
        "DELETE FROM entries WHERE number = 3",
        "INSERT INTO entries (number, account, hash, body) VALUES (5, 'people', '', '')",
        "INSERT INTO entries (number, account, hash, body) VALUES (2, 'people', '', '')",
        "INSERT INTO entries (number, account, hash, body) VALUES (2, 'people', '', '')"
        " ON CONFLICT (number) DO UPDATE SET body = excluded.body",
    ],
)
def test_the_database_itself_refuses_to_change_entries(
    shared: Any, state: State, statement: str, fill: Fill
) -> None:
    store = shared.open()
    fill(store, 3)
    before = state(store)
    with pytest.raises(Exception, match="entries are"):
        shared.raw(statement)
    assert state(store) == before


def test_no_other_way_to_change_entries_either(file: Any, served: Any, fill: Fill) -> None:
    fill(file.open(), 2)
    with pytest.raises(sqlite3.DatabaseError, match="entries are"):
        file.raw(
            "PRAGMA recursive_triggers = OFF", "INSERT OR REPLACE INTO entries VALUES (1, 'a', 'b', 'c')"
        )
    fill(served.open(), 2)
    with pytest.raises(Exception, match="entries are"):
        served.raw("TRUNCATE entries")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("UPDATE entries SET body = replace(body, 'people', 'peopla') WHERE number = 2", "Entry 2"),
        ("UPDATE entries SET hash = replace(hash, 'a', 'b') WHERE number = 2", "Entry 2"),
        ("UPDATE entries SET account = 'cities' WHERE number = 2", "Entry 2"),
        ("DELETE FROM entries WHERE number = 2", "entry 2"),
        ("DELETE FROM entries WHERE number = 1", "entry 1"),
    ],
)
def test_what_is_changed_all_the_same_is_found(shared: Any, change: str, found: str, fill: Fill) -> None:
    store = shared.open()
    fill(store, 3)
    if shared.kind == "sqlite":
        shared.raw("DROP TRIGGER entries_never_change", "DROP TRIGGER entries_never_go", change)
    else:
        shared.raw("ALTER TABLE entries DISABLE TRIGGER ALL", change)
    with pytest.raises(LedgerCorrupt, match=found), store.read() as held:
        list(chained(held.entries()))


def test_many_entries_are_read_few_at_a_time(shared: Any, append: Append) -> None:
    store = shared.open()
    with store.write(False) as transaction:
        for _ in range(2000):
            append(transaction, note="x" * 1500)
    with store.read() as held:
        read = held.entries()
        next(read)
        gc.collect()
        tracemalloc.start()
        size = sum(len(entry.body) for entry in read)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert size > 3_000_000 and peak < size / 4


def test_what_was_undone_is_not_remembered(store: Store, append: Append) -> None:
    with store.write(True) as transaction:
        append(transaction)
        transaction.set_balance("people", "a", "1")
        assert transaction.balances("people", "a") == {"a": "1"}
    with pytest.raises(ZeroDivisionError), store.write(True) as transaction:
        append(transaction)
        transaction.set_balance("people", "a", "2")
        raise ZeroDivisionError
    with store.write(True) as transaction:
        assert transaction.head() is not None and transaction.head().number == 1
        assert transaction.balance("people", "a") == "1"
        assert transaction.balances("people", "a") == {"a": "1"}


def test_what_another_wrote_is_seen_by_who_remembers(shared: Any, append: Append) -> None:
    one, other = shared.open(), shared.open()
    for n, store in enumerate((one, other, one, one, other, other, one)):
        with store.write(True) as transaction:
            head = transaction.head()
            assert (0 if head is None else head.number) == n
            assert transaction.balance("people", "a") == (str(n) if n else None)
            assert transaction.balances("people", "a") == ({"a": str(n)} if n else {})
            append(transaction)
            transaction.set_balance("people", "a", str(n + 1))


def test_the_total_is_that_of_the_newest_entry_which_states_one(store: Store, append: Append) -> None:
    with store.write(True) as transaction:
        assert transaction.total("people") is None
        append(transaction, total="1")
        assert transaction.total("people") == "1" and transaction.total("cities") is None
        append(transaction, "cities", total="5")
        append(transaction, total="2", note='not a "total": 9')
        append(transaction, event="commit", note='nor is this "total":"9"', inside={"total": "7"})
        assert transaction.total("people") == "2"
    with pytest.raises(ZeroDivisionError), store.write(True) as transaction:
        append(transaction, total="3")
        assert transaction.total("people") == "3"
        raise ZeroDivisionError
    for block in (store.read, lambda: store.write(True)):
        with block() as held:
            assert (held.total("people"), held.total("cities"), held.total("")) == ("2", "5", None)


def test_a_total_that_another_stated_is_seen_by_who_remembers(shared: Any, append: Append) -> None:
    one, other = shared.open(), shared.open()
    for n, store in enumerate((one, other, one, one, other, other, one)):
        with store.write(True) as transaction:
            assert transaction.total("people") == (str(n) if n else None)
            append(transaction, total=str(n + 1))


def test_a_total_filed_under_another_account_is_not_taken(shared: Any, append: Append) -> None:
    store = shared.open()
    with store.write(True) as transaction:
        append(transaction, total="1")
    off = "DROP TRIGGER entries_never_change"
    if shared.kind != "sqlite":
        off = "ALTER TABLE entries DISABLE TRIGGER ALL"
    shared.raw(off, "UPDATE entries SET account = 'cities'")
    with pytest.raises(LedgerCorrupt, match="another account"), store.read() as held:
        held.total("cities")


def test_a_block_that_is_never_left_is_undone_and_lets_others_write(store: Store, append: Append) -> None:
    """As where an interrupt comes when the block is about to be left."""
    block = store.write(True)
    append(block.__enter__())
    del block
    gc.collect()
    with store.write(True) as transaction:
        assert transaction.head() is None
        append(transaction)


def test_what_an_entry_says_cannot_be_changed_before_it_is_written(store: Store) -> None:
    entry = Entry.following(None, account="people", event="record", at=NOON, fields={"total": "9"})
    with pytest.raises(TypeError):
        entry.fields["total"] = "0"  # type: ignore[index]
    with store.write(True) as transaction:
        transaction.append(entry)
    with store.write(True) as transaction:
        assert transaction.total("people") == "9"
