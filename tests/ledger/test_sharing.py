"""Threads and processes take turns at a store, and a fork never shares a connection."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dalenius.errors import (
    LedgerError,
    LedgerLocked,
)
from dalenius.ledger.entry import Entry, chained
from dalenius.ledger.store import Store, open_store

Append = Callable[..., Entry]
Fill = Callable[[Store, int], list[Entry]]
InFork = Callable[[Callable[[], object]], str]
State = Callable[[Store], tuple[Any, ...]]


def test_threads_take_turns(store: Store, append: Append) -> None:
    def work(_: int) -> None:
        for _ in range(10):
            with store.write(False) as transaction:
                append(transaction)
            with store.read() as held:
                assert held.count() == int(held.balance("people", "") or 0)

    with ThreadPoolExecutor(5) as threads:
        list(threads.map(work, range(5)))
    with store.read() as held:
        assert len(list(chained(held.entries()))) == 50 and held.balance("people", "") == "50"


def test_a_reader_sees_one_moment(shared: Any, fill: Fill) -> None:
    store = shared.open()
    fill(store, 3)
    with store.read() as held:
        assert held.count() == 3
        with ThreadPoolExecutor(1) as other:
            other.submit(fill, store, 2).result()
        assert held.count() == len(list(held.entries())) == 3 and held.balance("people", "") == "3"
    with store.read() as held:
        assert held.count() == 5


def test_a_reader_does_not_see_what_is_not_committed(shared: Any, append: Append) -> None:
    store, other = shared.open(), shared.open()
    with store.write(True) as transaction:
        append(transaction)
        with other.read() as held:
            assert held.count() == 0


def test_what_is_written_is_there_when_opened_again(shared: Any, state: State, fill: Fill) -> None:
    store = shared.open()
    fill(store, 3)
    before = state(store)
    assert state(shared.open()) == before
    store.close()
    again = open_store(shared.where)
    shared.opened.append(again)
    assert state(again) == before


def test_another_process_that_holds_the_lock_is_not_waited_for_for_ever(
    shared: Any, append: Append, state: State, fill: Fill
) -> None:
    shared.open()
    holder = shared.child("hold", stdin=subprocess.PIPE)
    assert holder.stdout.readline() == "holding\n"
    store = shared.open(timeout=0.2)
    before = state(store)
    with pytest.raises(LedgerLocked, match=r"0\.2 seconds"), store.write(True) as transaction:
        append(transaction)
    assert state(store) == before
    holder.communicate("")
    fill(store, 1)


def test_another_thread_that_holds_the_lock_is_not_waited_for_for_ever(place: Any, fill: Fill) -> None:
    store = place.open(timeout=0.1)
    begun, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with store.write(True):
            begun.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    with pytest.raises(LedgerLocked), store.write(True):
        pass
    leave.set()
    thread.join()
    fill(store, 1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_opens_its_own_connection(
    shared: Any, state: State, fill: Fill, in_fork: InFork
) -> None:
    store = shared.open()
    fill(store, 1)
    assert in_fork(lambda: fill(store, 1)[0].number) == "2"
    assert fill(store, 1)[0].number == 3
    assert in_fork(lambda: len(state(store)[0])) == "3"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_forked_inside_a_block_cannot_touch_it(
    shared: Any, append: Append, state: State, fill: Fill, in_fork: InFork
) -> None:
    store = shared.open()
    fill(store, 1)

    def leave(block: Any) -> str:
        """The block is left in the child; its connection is the parent's to use."""
        try:
            block.__exit__(None, None, None)
        except LedgerError:
            return "refused"
        return "left"

    block = store.write(True)
    with block as transaction:
        append(transaction)
        assert in_fork(lambda: append(transaction)) == "LedgerError"
        assert in_fork(lambda: leave(block)) == "refused"
        append(transaction)
    assert len(state(store)[0]) == 3
    with store.read() as held:
        expected = {"sqlite": "LedgerError", "postgres": "3"}[shared.kind]
        assert in_fork(lambda: len(state(store)[0])) == expected
        assert in_fork(lambda: held.head()) == "LedgerError"
        assert held.count() == 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_ledger_in_memory_does_not_become_two(fill: Fill, in_fork: InFork) -> None:
    from dalenius.ledger.memory import MemoryStore

    store = MemoryStore()
    assert in_fork(lambda: fill(store, 1)) == "LedgerError"
    fill(store, 1)
    store.close()


def test_a_store_that_is_forgotten_closes_itself(shared: Any) -> None:
    """In a child that fills one and ends without a word, warnings being errors."""
    code = (
        "import gc, sys; from dalenius.ledger.store import open_store\n"
        "def use():\n"
        "    store = open_store(sys.argv[1])\n"
        "    with store.write(True) as transaction: transaction.set_balance('people', '', '1')\n"
        "    return store\n"
        "use(); gc.collect(); kept = use()"
    )
    command = [sys.executable, "-W", "error", "-c", code, shared.where]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert shared.kind == "postgres" or not Path(shared.where + "-wal").exists()
