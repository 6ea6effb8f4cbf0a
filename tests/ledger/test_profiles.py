"""What an account keeps about its data: in the chain, the newest counts, and only its owner notes it."""

from __future__ import annotations

from typing import Any

import pytest

import dalenius as dp
from dalenius.errors import LedgerCorrupt, LedgerReadOnly, LedgerTampered
from dalenius.losses import Pure

PERSON = dp.Unit("person")


def test_the_newest_profile_counts_in_every_store(place: Any) -> None:
    with dp.Ledger(place.open()) as ledger:
        people = ledger.open("people", unit=PERSON, budget=dp.Budget(1), profile='{"first": 1}')
        other = ledger.open("other", unit=PERSON, budget=dp.Budget(1))
        assert (people.profile, other.profile) == ('{"first": 1}', None)
        people.note_profile('{"second": "ü"}', by="ana")
        people.record(Pure(0.1))
        other.note_profile("{}")
        people.note_profile('{"third": 3}')
        assert (people.profile, other.profile) == ('{"third": 3}', "{}")
        assert float(people.spent) == pytest.approx(0.1) and ledger.verify(costs=True) == 6
        ledger.open("people", unit=PERSON, budget=dp.Budget(1))
        noted = [entry.fields["profile"] for entry in people.entries() if entry.event == "profile"]
        assert noted == ['{"second": "ü"}', '{"third": 3}'], "those before it stay"


@pytest.mark.parametrize("where", ["tree", "entry"])
def test_a_profile_cannot_be_put_back(tmp_path: Any, where: str) -> None:
    import sqlite3

    path = tmp_path / "people.ledger"
    with dp.Ledger(path) as ledger:
        people = ledger.open("people", unit=PERSON, budget=dp.Budget(1))
        people.note_profile('{"old": 1}')
    with sqlite3.connect(path) as file:
        nodes = file.execute("SELECT scope, text FROM balances WHERE account = ''").fetchall()
    file.close()
    with dp.Ledger(path) as ledger:
        ledger.account("people").note_profile('{"new": 1}')
    with sqlite3.connect(path) as file:
        if where == "tree":
            file.execute("DELETE FROM balances WHERE account = ''")
            file.executemany("INSERT INTO balances VALUES ('', ?, ?)", nodes)
        else:
            file.execute("DROP TRIGGER entries_never_go")
            file.execute("DELETE FROM entries WHERE number = 3")
            file.execute("UPDATE balances SET text = replace(text, '2.', '3.') WHERE account = ''")
    file.close()
    with pytest.raises((LedgerTampered, LedgerCorrupt)), dp.Ledger(path) as ledger:
        assert ledger.account("people").profile is not None
        ledger.verify()


def test_a_role_that_may_only_charge_reads_profiles_and_notes_none(served: Any) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(served.where, autocommit=True) as server:
        if not server.execute("SELECT 1 FROM pg_roles WHERE rolname = 'ana'").fetchall():
            server.execute("CREATE ROLE ana LOGIN")
    with dp.Ledger(served.where) as ledger:
        people = ledger.open("people", unit=PERSON, budget=dp.Budget(1), profile='{"a": 1}')
        people.note_profile('{"b": 2}')
        ledger.grant("ana")
        with dp.Ledger(str(served.where).replace("dalenius@", "ana@")) as theirs:
            assert theirs.account("people").profile == '{"b": 2}'
            with pytest.raises(LedgerReadOnly, match="for its owner"):
                theirs.account("people").note_profile("{}")
            theirs.account("people").record(Pure(0.1))
        people.note_profile('{"c": 3}')
        assert ledger.verify() == 5
