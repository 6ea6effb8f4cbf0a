"""Whatever is done to stored rows is found at the next charge where it would matter, and by verify always.

Every column of every table is changed, rows are deleted, added, swapped, moved to another account, and put
back from every older copy. Then charges of several kinds are tried by a fresh process: each is refused as
tampered with, or comes out exactly as on the untouched ledger.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

import dalenius as dp
from dalenius.errors import BudgetExceeded, InvalidArgument, LedgerCorrupt, LedgerTampered
from dalenius.ledger.account import Account
from dalenius.ledger.balances import Cell
from dalenius.ledger.charge import TooMuch, charge
from dalenius.losses import Pure

Rows = dict[str, list[tuple[Any, ...]]]
Outcome = tuple[str, ...]

COLUMNS = {
    "entries": ("number", "account", "hash", "body"),
    "accounts": ("name", "text"),
    "balances": ("account", "scope", "text"),
    "reservations": ("number", "account", "owner", "text"),
}
KEYS = {"entries": 1, "accounts": 1, "balances": 2, "reservations": 1}


class Hacked:
    """A ledger whose rows anyone may rewrite, on SQLite or PostgreSQL, with every copy there ever was."""

    def __init__(self, place: Any) -> None:
        self.place = place
        self.copies: list[Rows] = []
        self._fill()
        self.rows = self.copies[-1]

    def _fill(self) -> None:
        with dp.Ledger(self.place.where) as ledger:
            people = ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(3))
            cities = ledger.open("cities", unit=dp.Unit("city"), budget=dp.Budget(1), source="towns")
            for account in (people, cities):
                account.allow(dp.Budget(0.9), by="ana", window="year")
                self.copies.append(self.read())
            people.allow(dp.Budget(2), purpose="wards")
            for number in range(3):
                people.record(Pure(0.125), by="ana", note="first")
                cities.record(Pure(0.0625), by="ana")
                self.copies.append(self.read())
                for cell in "AB":
                    people.cell("wards", cell).record(Pure(0.25), by="ben", purpose="wards")
                    people.cell("streets", f"{cell}{number}").record(Pure(0.125), by="cy")
                    self.copies.append(self.read())
            people.reserve(Pure(0.25), by="ana").forfeit()
            people.reserve(Pure(0.25), by="ben")
            cities.record(Pure(0.125), by="ben")
            self.copies.append(self.read())

    def read(self) -> Rows:
        return {table: sorted(self._query(table)) for table in COLUMNS}

    def write(self, rows: Rows) -> None:
        """Replace all rows, the guards taken off and put on again."""
        if self.place.kind == "sqlite":
            connection = sqlite3.connect(self.place.where)
            connection.execute("PRAGMA synchronous = OFF")
            guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            guards = guards.fetchall()
            for name, _ in guards:
                connection.execute(f"DROP TRIGGER {name}")
            for table, columns in COLUMNS.items():
                connection.execute(f"DELETE FROM {table}")
                marks = ", ".join("?" * len(columns))
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows[table])
            for _, sql in guards:
                connection.execute(sql)
            connection.commit()
            connection.close()
            return
        import psycopg

        with psycopg.connect(self.place.where) as server, server.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            for table, columns in COLUMNS.items():
                cursor.execute(f"DELETE FROM {table}")
                marks = ", ".join(["%s"] * len(columns))
                cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", rows[table])

    def _query(self, table: str) -> list[tuple[Any, ...]]:
        if self.place.kind == "sqlite":
            connection = sqlite3.connect(self.place.where)
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            connection.close()
            return rows
        import psycopg

        with psycopg.connect(self.place.where) as server:
            return server.execute(f"SELECT * FROM {table}").fetchall()

    def outcomes(self) -> tuple[Outcome, ...]:
        """What a fresh process finds when it tries one charge of each kind; none of them is kept."""
        try:
            with dp.Ledger(self.place.where) as ledger:
                return (*(_tried(ledger, *probe) for probe in PROBES), _reopened(ledger))
        except LedgerCorrupt:
            return (("tampered",),) * (len(PROBES) + 1)

    def is_found_by_verify(self) -> bool:
        try:
            with dp.Ledger(self.place.where) as ledger:
                ledger.verify()
        except LedgerCorrupt:
            return True
        return False


PROBES: list[tuple[str, Cell | None, str, str]] = [
    ("people", None, "ana", ""),
    ("people", None, "dee", "wards"),
    ("people", Cell("wards", "A"), "ben", "wards"),
    ("people", Cell("wards", "new"), "ben", ""),
    ("people", Cell("streets", "B1"), "ana", ""),
    ("cities", None, "ana", ""),
    ("cities", None, "ben", ""),
]


class Undone(Exception):
    """Leaves a block without keeping it."""


def _tried(ledger: dp.Ledger, name: str, cell: Cell | None, by: str, purpose: str) -> Outcome:
    outcome: Outcome = ()
    try:
        account = ledger.account(name)
        account = account if cell is None else account.cell(cell.division, cell.name)
        asked = account._asked(Pure(0.25), 1, by, purpose)
        with ledger.store.write(True) as transaction:
            entry = charge(transaction, account.terms, asked, "record", state=ledger.state(transaction))
            outcome = ("charged", entry.fields["total"], json.dumps(entry.fields["allowances"]))
            raise Undone
    except Undone:
        return outcome
    except TooMuch as refused:
        return ("refused", str(refused.allowance))
    except LedgerTampered as tampered:
        assert "dalenius ledger verify" in tampered.remedy and "backup" in tampered.remedy
        return ("tampered",)


def _reopened(ledger: dp.Ledger) -> Outcome:
    """A second account on one source, which must be refused."""
    try:
        ledger.open("towns", unit=dp.Unit("town"), budget=dp.Budget(1), source="towns")
    except LedgerTampered:
        return ("tampered",)
    except InvalidArgument:
        return ("refused",)
    return ("opened",)


def _replaced(rows: Rows, table: str, index: int, row: tuple[Any, ...] | None) -> Rows:
    changed = [*rows[table][:index], *([] if row is None else [row]), *rows[table][index + 1 :]]
    return rows | {table: changed}


def _variants(table: str, column: str, value: Any) -> Iterator[Any]:
    """Other values of a column: spoilt, and such as someone would choose who wants more budget."""
    if isinstance(value, int):
        yield value + 1000
        return
    yield f"{value} "
    yield ""
    if table in ("accounts", "balances", "entries") and column in ("text", "body"):
        yield re.sub(r"\[(\d+)", lambda found: f"[{int(found[1]) // 2}", value)
        yield value.replace('"epsilon\\":\\"3\\"', '"epsilon\\":\\"300\\"').replace(
            '"limit\\":\\"3', '"limit\\":\\"300'
        )
        yield value.replace('\\"limit\\":\\"', '\\"limit\\":\\"9')
        yield value.replace("first", "other")
    if column == "account":
        yield "cities" if value == "people" else "people"


def changes(hacked: Hacked, table: str) -> Iterator[tuple[str, Rows]]:
    """Every change of one table, with its name."""
    rows = hacked.rows
    for index, row in enumerate(rows[table]):
        yield f"{table} {row[:2]} deleted", _replaced(rows, table, index, None)
        for place, column in enumerate(COLUMNS[table]):
            for value in _variants(table, column, row[place]):
                other = (*row[:place], value, *row[place + 1 :])
                taken = other[: KEYS[table]] in {one[: KEYS[table]] for one in rows[table] if one != row}
                if value != row[place] and not taken:
                    yield f"{table} {row[:2]} {column} changed", _replaced(rows, table, index, other)
    for index in range(len(rows[table]) - 1):
        first, second = rows[table][index : index + 2]
        key = KEYS[table]
        if first[key:] != second[key:]:
            swapped = _replaced(rows, table, index, first[:key] + second[key:])
            swapped = _replaced(swapped, table, index + 1, second[:key] + first[key:])
            yield f"{table} {first[:2]} and {second[:2]} swapped", swapped


def older(hacked: Hacked) -> Iterator[tuple[str, Rows]]:
    """Every row put back as it was in every older copy; and every table."""
    seen = set()
    for copy in hacked.copies[:-1]:
        for table, key in KEYS.items():
            if copy[table] != hacked.rows[table]:
                yield f"{table} as it was", hacked.rows | {table: copy[table]}
            now = {row[:key]: (index, row) for index, row in enumerate(hacked.rows[table])}
            for row in copy[table]:
                index, newest = now.get(row[:key], (None, None))
                if newest != row and index is not None and (table, row) not in seen:
                    seen.add((table, row))
                    yield f"{table} {row[:key]} as it was", _replaced(hacked.rows, table, index, row)


def rehashed(hacked: Hacked) -> Iterator[tuple[str, Rows]]:
    """Entries other than the newest with a new text and the hash of that text."""
    for index, (number, account, _, body) in enumerate(hacked.rows["entries"][:-1]):
        for other in _variants("entries", "body", body):
            if other.startswith("{") and not other.endswith(" ") and other != body:
                row = (number, account, sha256(other.encode()).hexdigest(), other)
                yield f"entry {number} rehashed", _replaced(hacked.rows, "entries", index, row)


def moved(hacked: Hacked) -> Iterator[tuple[str, Rows]]:
    """Rows that lie beside the entries under both accounts, exchanged or copied."""
    rows = hacked.rows["balances"]
    other = {"people": "cities", "cities": "people"}
    flipped = [(other.get(account, account), scope, text) for account, scope, text in rows]
    yield "balances of two accounts exchanged", hacked.rows | {"balances": flipped}
    terms = dict(hacked.rows["accounts"])
    swapped = [("cities", terms["people"]), ("people", terms["cities"])]
    yield "terms of two accounts exchanged", hacked.rows | {"accounts": swapped}
    yield "an account more", hacked.rows | {"accounts": [*terms.items(), ("more", terms["people"])]}
    for scope in ("", "cell more", "rule allowance 99", "node ff"):
        for account in ("people", ""):
            more = [*rows, (account, scope, '{"pure":[0,0]}')]
            yield f"a balance {scope!r} more", hacked.rows | {"balances": more}
    yield (
        "a reservation more",
        hacked.rows | {"reservations": [*hacked.rows["reservations"], (6, "people", "", "")]},
    )
    cut = hacked.rows["entries"][:-1]
    yield "the newest entry cut off", hacked.rows | {"entries": cut}


KINDS = [*COLUMNS, "older", "rehashed", "moved"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_is_found_at_the_charge_where_it_matters_and_by_verify_always(
    shared: Any, kind: str
) -> None:
    tried(shared, kind, 40 if shared.kind == "sqlite" else 12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_change_is_found_at_the_charge_where_it_matters_and_by_verify_always(
    shared: Any, kind: str
) -> None:
    tried(shared, kind, None)


def tried(shared: Any, kind: str, about: int | None) -> None:
    """Make changes of one kind, each to the untouched ledger: all of them, or about so many."""
    hacked = Hacked(shared)
    honest = hacked.outcomes()
    assert {outcome[0] for outcome in honest} == {"charged", "refused"} and not hacked.is_found_by_verify()
    which = {"older": older, "rehashed": rehashed, "moved": moved}
    every = list(which[kind](hacked) if kind in which else changes(hacked, kind))
    if about is not None:
        every = every[:: max(1, len(every) // about)]
    assert every
    stopped = 0
    for name, rows in every:
        hacked.write(rows)
        for mine, its in zip(hacked.outcomes(), honest, strict=True):
            assert mine in (its, ("tampered",)), name
            stopped += mine == ("tampered",)
        assert hacked.is_found_by_verify(), name
    assert stopped or kind in ("accounts", "reservations")


def test_a_budget_raised_in_its_row_changes_no_charge(shared: Any) -> None:
    with dp.Ledger(shared.where) as ledger:
        ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(1))
    hacked = Hacked.__new__(Hacked)
    hacked.place = shared
    rows = hacked.read()
    ((name, text),) = rows["accounts"]
    raised = text.replace('\\"1\\"', '\\"100\\"')
    assert raised != text
    hacked.write(rows | {"accounts": [(name, raised)]})
    with dp.Ledger(shared.where) as ledger:
        people: Account = ledger.account("people")
        with pytest.raises(BudgetExceeded):
            people.record(Pure(50))
        people.record(Pure(0.5))
        with pytest.raises(LedgerCorrupt):
            ledger.verify()
