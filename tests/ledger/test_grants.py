"""A role that may only read and execute one function charges as the owner does, by true entries only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import dalenius as dp
from dalenius.errors import (
    BudgetExceeded,
    InvalidArgument,
    LedgerCorrupt,
    LedgerError,
    LedgerReadOnly,
    LedgerTampered,
)
from dalenius.ledger.account import Account
from dalenius.ledger.entry import Entry
from dalenius.losses import Gaussian, Pure
from dalenius.mechanisms import Laplace

psycopg = pytest.importorskip("psycopg")
PERSON = dp.Unit("person")
COUNT = Laplace(scale=10, sensitivity=1)


@pytest.fixture
def owned(served: Any) -> Iterator[dp.Ledger]:
    """A ledger with allowances and cells, which two analysts may charge."""
    with psycopg.connect(served.where, autocommit=True) as server:
        for role in ("ana", "ben"):
            if not server.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchall():
                server.execute(f"CREATE ROLE {role} LOGIN")
    with dp.Ledger(served.where) as ledger:
        people = ledger.open("people", unit=PERSON, budget=dp.Budget(3, 1e-6))
        people.allow(dp.Budget(1), by="ana", window="week")
        people.allow(dp.Budget(2), purpose="wards", window="quarter")
        people.record(Pure(0.125), by="ana")
        for role in ("ana", "ben"):
            ledger.grant(role)
        yield ledger


@pytest.fixture
def where(served: Any) -> str:
    return str(served.where).replace("dalenius@", "ana@")


@pytest.fixture
def people(owned: dp.Ledger, where: str) -> Iterator[Account]:
    with dp.Ledger(where) as ledger:
        yield ledger.account("people")


def test_an_analyst_charges_as_the_owner_would(owned: dp.Ledger, people: Account) -> None:
    """Every root that the function computes is the one that this process did."""
    entry = people.record(Pure(0.125), by="ana", purpose="wards", note='Zoë "🦊" \\ \u2028\t')
    assert entry.fields["session_user"] == "ana"
    people.record(Gaussian(20), by="ben")
    for number in range(12):
        cell = people.cell("wards", f'ward {number} é🦊"\\\n\x7f')
        cell.record(Pure(0.03125 * (1 + number % 3)), by=f"analyst {number}", purpose="wards")
        cell.record(Pure(0.03125), by="ana")
    release = people.spend(COUNT, 5, by="ben")
    assert release.receipt.entry is not None
    people.reserve(Pure(0.125), by="ben").forfeit()
    assert owned.verify(costs=True) == owned.anchor().number
    owned.account("people").record(Pure(0.03125))
    people.record(Pure(0.03125), by="ben")
    with pytest.raises(BudgetExceeded):
        people.record(Pure(3), by="ben")
    with pytest.raises(BudgetExceeded):
        people.record(Pure(1), by="ana")
    assert owned.verify() == owned.anchor().number


def test_a_role_is_granted_from_the_shell(
    served: Any, owned: dp.Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dalenius.cli import main

    for words, said in (((), "entry 7: ben may read the ledger and charge it\n"), (("--json",), None)):
        monkeypatch.setattr(sys, "argv", ["dalenius", "ledger", "grant", served.where, "ben", *words])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr().out
        assert end.value.code in (0, None) and said in (None, printed)
    assert set(json.loads(printed)) == {"entry", "hash", "role"} and owned.verify() == 8


def test_the_role_has_no_other_right(owned: dp.Ledger, where: str) -> None:
    tables = {"entries": "number", "accounts": "text", "balances": "text", "reservations": "text"}
    for table, column in tables.items():
        for statement in (
            f"DELETE FROM {table}",
            f"UPDATE {table} SET {column} = {column}",
            f"INSERT INTO {table} SELECT * FROM {table}",
            f"TRUNCATE {table}",
            f"ALTER TABLE {table} DISABLE TRIGGER ALL",
        ):
            with psycopg.connect(where) as server, pytest.raises(psycopg.errors.InsufficientPrivilege):
                server.execute(statement)
    for call in ("ledger_put('a', 'b')", "ledger_set('people', 'x', '{}')", "ledger_node('', 'leaf', '{}')"):
        with psycopg.connect(where) as server, pytest.raises(psycopg.errors.InsufficientPrivilege):
            server.execute(f"SELECT {call}")


def test_what_is_the_owners_is_refused(owned: dp.Ledger, people: Account, where: str) -> None:
    before = owned.anchor()
    for use in (
        lambda: people.ledger.open("more", unit=PERSON, budget=dp.Budget(9)),
        lambda: people.allow(dp.Budget(9), by="ana"),
        lambda: people.ledger.grant("ben"),
    ):
        with pytest.raises(LedgerReadOnly):
            use()
    assert owned.anchor() == before and owned.verify() == 6


def test_an_analyst_ends_only_reservations_of_that_role(owned: dp.Ledger, people: Account) -> None:
    theirs = owned.account("people").reserve(COUNT.loss, by="ben")
    with pytest.raises(LedgerReadOnly):
        people.ledger.forfeit(theirs.number)
    theirs.commit(COUNT.release(5))
    owned.verify()


def forged(people: Account, event: str = "record", **changes: Any) -> Entry:
    """The entry that a charge of 1/8 would be, with fields changed; everything else fits."""

    class Made(Exception):
        pass

    from dalenius.ledger.charge import charge

    asked = people._asked(Pure(0.125), 1, "ana", "")
    try:
        with people.ledger.store.write(True) as transaction:
            owner = "x" if event == "reserve" else None
            made = charge(transaction, people.terms, asked, event, owner=owner)
            raise Made
    except Made:
        whole = {"number": made.number, "account": made.account, "at": made.at, "previous": made.previous}
        whole |= {name: changes.pop(name) for name in list(changes) if name in whole}
        return Entry(event=event, fields=dict(made.fields) | changes, **whole)


NOTHING = '{"pure":[0,0]}'
FORGERIES: dict[str, tuple[str, dict[str, Any]]] = {
    "an earlier number": ("does not follow", {"number": 6}),
    "another chain": ("does not follow", {"previous": "0" * 64}),
    "a time ahead": ("its time", {"at": "2036-01-01T00:00:00.000000Z"}),
    "a time before": ("its time", {"at": "2020-01-01T00:00:00.000000Z"}),
    "no time": ("its time", {"at": "9999-99-99T99:99:99.999999Z"}),
    "another account": ("was not opened", {"account": "nobody"}),
    "another user": ("user who connected", {"session_user": "ben"}),
    "a refund": ("below nothing", {"cost": '{"pure":[-5,0]}'}),
    "a cost that is lower than its total": ("total is not", {"cost": NOTHING}),
    "a lower total": ("total is not", {"total": NOTHING}),
    "a total of other gauges": ("total is not", {"total": "{}"}),
    "no allowance": ("a cost is not one", {"allowances": {}}),
    "a refund to an allowance": (
        "a cost is not one",
        {"allowances": {"allowance 2 WEEK": '{"pure":[-5,0]}'}},
    ),
    "an allowance of someone else": ("a cost is not one", {"allowances": {"allowance 3 2026-Q4": NOTHING}}),
    "another charge before": ("another charge", {"before": 2}),
    "another root": ("its root", {"state": "0" * 64}),
    "an owner of no reservation": ("has an owner", {"owner": "me"}),
    "a long note": ("too long", {"note": "x" * 2001}),
    "a cell": ("its root", {"cell": {"division": "wards", "name": "A"}}),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_an_entry_that_is_not_true_is_not_appended(
    owned: dp.Ledger, people: Account, where: str, forgery: str
) -> None:
    match, changes = FORGERIES[forgery]
    entry, before = forged(people, **changes), owned.anchor()
    with psycopg.connect(where) as server, pytest.raises(psycopg.Error, match=match):
        server.execute("SELECT append_entry(%s, %s)", (entry.body, entry.hash))
    assert owned.anchor() == before and owned.verify() == 6


def test_a_text_that_dalenius_would_not_write_is_not_appended(
    owned: dp.Ledger, people: Account, where: str
) -> None:
    from hashlib import sha256

    body = forged(people).body
    spaced = json.dumps(json.loads(body))
    for text in (
        spaced,
        body.replace('"by"', '"by":"x","by"'),
        body[:-1] + ',"more":1}',
        f"{body} ",
        "[]",
        "null",
    ):
        with psycopg.connect(where) as server, pytest.raises(psycopg.Error):
            server.execute("SELECT append_entry(%s, %s)", (text, sha256(text.encode()).hexdigest()))
    with psycopg.connect(where) as server, pytest.raises(psycopg.Error, match="hash"):
        server.execute("SELECT append_entry(%s, %s)", (body, "0" * 64))
    assert owned.verify() == 6


def test_a_charge_beyond_the_budget_or_an_allowance_is_not_appended(
    owned: dp.Ledger, people: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a process that does not ask whether it fits."""
    from dalenius.losses import Filter

    monkeypatch.setattr(Filter, "accepts", lambda *_: True)
    for epsilon, by, match in ((3.0, "ben", "above the budget"), (0.9, "ana", "above an allowance")):
        with pytest.raises(LedgerTampered, match=match):
            people.record(Pure(epsilon), by=by)
    people.record(Pure(2.875), by="ben")
    monkeypatch.undo()
    assert owned.verify() == 7


def test_a_cost_below_its_loss_is_beyond_sql_and_found_by_measuring_again(
    owned: dp.Ledger, people: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function cannot evaluate losses: the limit of what it proves."""
    free = people.terms.price(Pure(0))._replace(loss=Pure(100).to_json())
    asked = people._asked(Pure(0), 1, "ben", "")._replace(price=free)
    monkeypatch.setattr(Account, "_asked", lambda *_: asked)
    entry = people.record(Pure(100), by="ben")
    assert entry.fields["session_user"] == "ana" and owned.verify() == 7
    with pytest.raises(LedgerCorrupt, match="Entry 7 charges less than its loss costs"):
        owned.verify(costs=True)


def test_the_true_entry_is_appended_by_hand_too(owned: dp.Ledger, people: Account, where: str) -> None:
    entry = forged(people)
    with psycopg.connect(where) as server:
        server.execute("SELECT append_entry(%s, %s)", (entry.body, entry.hash))
    assert owned.verify() == 7


def test_a_role_that_is_not_there_or_a_ledger_without_roles_is_refused(owned: dp.Ledger) -> None:
    with pytest.raises(InvalidArgument, match="no role"):
        owned.grant("nobody")
    with pytest.raises(InvalidArgument, match="Only a ledger in PostgreSQL"):
        dp.Ledger.memory().grant("ana")


def test_a_role_without_the_grant_reads_nothing(served: Any, owned: dp.Ledger) -> None:
    with psycopg.connect(served.where, autocommit=True) as server:
        if not server.execute("SELECT 1 FROM pg_roles WHERE rolname = 'cy'").fetchall():
            server.execute("CREATE ROLE cy LOGIN")
    with pytest.raises(LedgerError):
        dp.Ledger(str(served.where).replace("dalenius@", "cy@"))
