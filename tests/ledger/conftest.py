"""Places to keep a ledger in: memory, a file, and a PostgreSQL server that the tests start themselves."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dalenius.errors import DaleniusError
from dalenius.ledger.entry import Entry
from dalenius.ledger.memory import MemoryStore
from dalenius.ledger.sqlite import SqliteStore
from dalenius.ledger.store import Snapshot, Store, Transaction

CHILD = Path(__file__).with_name("child.py")
NOON = "2026-01-31T12:00:00.000000Z"


@dataclass
class Place:
    """Where a test keeps its ledgers: `open` opens the same one again, but for memory, which has none."""

    kind: str
    where: str
    opened: list[Store] = field(default_factory=list)

    def open(self, **options: Any) -> Store:
        if self.kind == "memory":
            store: Store = MemoryStore(**options)
        elif self.kind == "sqlite":
            store = SqliteStore(self.where, **options)
        else:
            from dalenius.ledger.postgres import PostgresStore

            store = PostgresStore(self.where, **options)
        self.opened.append(store)
        return store

    def raw(self, *statements: str) -> None:
        """What someone does to the database without us, on a connection with their own settings."""
        if self.kind == "sqlite":
            with sqlite3.connect(self.where) as connection:
                for statement in statements:
                    connection.execute(statement)
            connection.close()
        else:
            import psycopg

            with psycopg.connect(self.where) as server:
                for statement in statements:
                    server.execute(statement)

    def child(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """The script beside this file in another process, on this place."""
        command = [sys.executable, str(CHILD), arguments[0], self.where, *arguments[1:]]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def _place(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    where = request.getfixturevalue("postgres").url() if kind == "postgres" else str(folder / "people.ledger")
    place = Place(kind, where)
    yield place
    for store in place.opened:
        store.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    yield from _place(request.param, request, tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A place that several processes can reach."""
    yield from _place(request.param, request, tmp_path)


@pytest.fixture
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    yield from _place("sqlite", request, tmp_path)


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    yield from _place("postgres", request, tmp_path)


@pytest.fixture
def store(place: Place) -> Store:
    return place.open()


@pytest.fixture
def append() -> Callable[..., Entry]:
    """Adds an entry that costs one, and one to the balance."""

    def add(transaction: Transaction, account: str = "people", event: str = "record", **fields: Any) -> Entry:
        head = transaction.head()
        entry = Entry.following(head, account=account, event=event, at=NOON, fields={"cost": 1, **fields})
        transaction.append(entry)
        spent = int(transaction.balance(account, "") or 0)
        transaction.set_balance(account, "", str(spent + 1))
        return entry

    return add


@pytest.fixture
def state() -> Callable[[Store], tuple[Any, ...]]:
    """Everything that a store holds."""

    def all_of(store: Store) -> tuple[Any, ...]:
        with store.read() as held:
            return tuple(held.entries()), held.accounts(), _balances(held), held.reservations()

    def _balances(held: Snapshot) -> dict[str, dict[str, str]]:
        return {name: held.balances(name) for name in ("people", "cities", *held.accounts())}

    return all_of


@pytest.fixture
def fill(append: Callable[..., Entry]) -> Callable[[Store, int], list[Entry]]:
    """Adds so many entries in one write."""

    def many(store: Store, count: int) -> list[Entry]:
        with store.write(False) as transaction:
            return [append(transaction, note="x" * 100) for _ in range(count)]

    return many


@pytest.fixture
def in_fork() -> Callable[[Callable[[], object]], str]:
    """What a forked child finds: the name of an error of ours, or what the work gave, as text."""

    def run(work: Callable[[], object]) -> str:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                found = f"{work()}"
            except DaleniusError as error:
                found = type(error).__name__
            except BaseException as error:
                found = f"{error!r}"
            os.write(writing, found.encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            found = pipe.read()
        os.waitpid(child, 0)
        return found

    return run
