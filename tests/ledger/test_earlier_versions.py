"""A ledger that the first version wrote opens, is verified once, and is charged on."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import dalenius as dp
from dalenius.errors import BudgetExceeded, LedgerCorrupt
from dalenius.losses import Pure

FIRST = json.loads(Path(__file__).with_name("golden").joinpath("first.json").read_text())
"""All rows of a ledger as the first version left them, with one entry of each event but accept."""


@pytest.fixture
def first(shared: Any) -> Any:
    shared.open().close()
    _insert(shared, FIRST)
    return shared


def _insert(place: Any, tables: dict[str, list[list[Any]]]) -> None:
    for table, rows in tables.items():
        for row in rows:
            if place.kind == "sqlite":
                with sqlite3.connect(place.where) as connection:
                    marks = ", ".join("?" * len(row))
                    connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)
                connection.close()
            else:
                import psycopg

                with psycopg.connect(place.where) as server:
                    marks = ", ".join(["%s"] * len(row))
                    server.execute(f"INSERT INTO {table} VALUES ({marks})", row)


def test_it_is_read_charged_and_verified(first: Any) -> None:
    with dp.Ledger(first.where) as ledger:
        people = ledger.account("people")
        assert ledger.verify() == 21 and float(people.spent) == 1.5
        assert ledger.reservations() == [21]
        people.record(Pure(0.25), by="ben")
        people.cell("wards", "A").record(Pure(0.25))
        ledger.forfeit(21)
        assert ledger.verify() == 24
    with dp.Ledger(first.where) as ledger:
        assert float(ledger.account("people").spent) == 2
        with pytest.raises(BudgetExceeded):
            ledger.account("people").record(Pure(8.01))
        (newest,) = ledger.account("people").entries(newest=1)
        assert newest.fields["state"]


def test_what_was_changed_before_the_first_charge_is_found_by_it(first: Any) -> None:
    first.raw("UPDATE balances SET text = '{\"pure\":[0,0]}' WHERE scope LIKE 'cell%'")
    with dp.Ledger(first.where) as ledger, pytest.raises(LedgerCorrupt, match="balances of people"):
        ledger.account("people").record(Pure(0.25))


def test_an_end_written_by_the_first_version_is_verified_before_the_next_charge(first: Any) -> None:
    """Both versions write in turn; a reservation ends without a walk of the chain."""
    with dp.Ledger(first.where) as ledger:
        ledger.forfeit(21)
        *_, last = ledger.entries()
        assert "state" not in last.fields
        ledger.account("people").record(Pure(0.25))
        assert ledger.verify() == 23
