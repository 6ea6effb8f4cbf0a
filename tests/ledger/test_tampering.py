"""Verify finds what someone with the file can do to it, and an anchor finds what verify cannot."""

from __future__ import annotations

import gc
import json
import shutil
import sqlite3
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dalenius as dp
from dalenius.errors import InvalidArgument, LedgerBehind, LedgerCorrupt, LedgerError
from dalenius.ledger import Anchor
from dalenius.ledger.account import Account
from dalenius.ledger.charge import Charge, charge
from dalenius.ledger.entry import Entry
from dalenius.losses import Filter, Pure

PERSON = dp.Unit("person")


def filled(ledger: dp.Ledger) -> Account:
    """An account with an entry of each event but accept, an allowance, cells and an open reservation."""
    people = ledger.open("people", unit=PERSON, budget=dp.Budget(10))
    people.allow(dp.Budget(3), by="ana", window="month")
    people.record(Pure(0.5), by="ana")
    people.cell("wards", "A").record(Pure(0.25))
    people.reserve(Pure(0.25), by="ana").forfeit()
    ledger.open("cities", unit=dp.Unit("city"), budget=dp.Budget(1)).record(Pure(0.125))
    people.reserve(Pure(0.5), by="ben")
    return people


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with dp.Ledger(tmp_path / "people.ledger") as ledger:
        filled(ledger)
        assert ledger.verify() == 9
    return tmp_path / "people.ledger"


def attack(path: Path, *statements: str | tuple[str, tuple[Any, ...]]) -> None:
    """What someone does who has the file: the guards are dropped first, and put back."""
    connection = sqlite3.connect(path)
    guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in guards:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        sql, values = (statement, ()) if isinstance(statement, str) else statement
        assert connection.execute(sql, values).rowcount != 0, "an attack that does nothing"
    for _, sql in guards:
        connection.execute(sql)
    connection.commit()
    connection.close()


def rows(path: Path) -> list[tuple[int, str, str, str]]:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT number, account, hash, body FROM entries ORDER BY number").fetchall()
    connection.close()
    return found


def found(path: Path, match: str | None = None) -> None:
    with dp.Ledger(path) as ledger, pytest.raises(LedgerError, match=match) as error:
        ledger.verify()
    assert isinstance(error.value, LedgerCorrupt), error.value
    assert error.value.remedy


@pytest.mark.parametrize("number", range(1, 10))
def test_a_changed_bit_of_an_entry_is_found_where_it_is(path: Path, number: int) -> None:
    _, account, hash, body = rows(path)[number - 1]
    copy = path.with_name("copy.ledger")
    for place in range(0, len(body), 41):
        changed = body[:place] + chr(ord(body[place]) ^ 1) + body[place + 1 :]
        shutil.copy(path, copy)
        attack(copy, ("UPDATE entries SET body = ? WHERE number = ?", (changed, number)))
        with pytest.raises(LedgerCorrupt, match=f"Entry {number} "):
            dp.Ledger(copy).verify()
    for column, value in (
        ("hash", hash[:-1] + ("0" if hash[-1] != "0" else "1")),
        ("account", f"{account}s"),
    ):
        shutil.copy(path, copy)
        attack(copy, (f"UPDATE entries SET {column} = ? WHERE number = ?", (value, number)))
        with pytest.raises(LedgerCorrupt, match=f"{number}"):
            dp.Ledger(copy).verify()


@pytest.mark.parametrize("number", range(1, 10))
def test_a_removed_entry_is_found(path: Path, number: int) -> None:
    attack(path, ("DELETE FROM entries WHERE number = ?", (number,)))
    found(path)


@pytest.mark.parametrize("number", range(1, 9))
def test_reordered_entries_are_found(path: Path, number: int) -> None:
    attack(
        path,
        ("UPDATE entries SET number = -1 WHERE number = ?", (number,)),
        ("UPDATE entries SET number = ? WHERE number = ?", (number, number + 1)),
        ("UPDATE entries SET number = ? WHERE number = -1", (number + 1,)),
    )
    found(path)


def test_a_removed_entry_whose_followers_are_renumbered_is_found(path: Path) -> None:
    attack(
        path,
        "DELETE FROM entries WHERE number = 3",
        "UPDATE entries SET number = -number WHERE number > 3",
        "UPDATE entries SET number = -number - 1 WHERE number < 0",
    )
    found(path, "not one that Dalenius writes there")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO balances VALUES ('people', '', '{\"pure\":[0,0]}')",
        "UPDATE balances SET text = 'nonsense' WHERE scope LIKE 'cell%'",
        "DELETE FROM balances WHERE scope LIKE 'allowance%'",
        "DELETE FROM balances WHERE scope LIKE 'rule%'",
        "UPDATE balances SET text = replace(text, '3', '9') WHERE scope LIKE 'rule%'",
        "DELETE FROM balances WHERE scope LIKE 'cell%'",
        "UPDATE balances SET text = '{}' WHERE scope LIKE 'top %'",
        "INSERT INTO balances VALUES ('people', 'cell more', '{\"pure\":[0,0]}')",
        "UPDATE accounts SET text = replace(text, 'person', 'visit') WHERE name = 'people'",
        "UPDATE accounts SET text = replace(text, '10', '99') WHERE name = 'people'",
        "UPDATE accounts SET text = 'nonsense' WHERE name = 'cities'",
        "UPDATE accounts SET name = 'towns' WHERE name = 'cities'",
        "DELETE FROM accounts WHERE name = 'cities'",
        "INSERT INTO accounts SELECT 'more', text FROM accounts WHERE name = 'people'",
        "DELETE FROM reservations",
        "UPDATE reservations SET number = 3",
        "UPDATE reservations SET account = 'cities'",
        "INSERT INTO reservations SELECT 3, account, owner, text FROM reservations",
    ],
)
def test_a_changed_balance_account_or_reservation_is_found(path: Path, statement: str) -> None:
    attack(path, statement)
    found(path)


# Entries forged so well that the chain holds.


def forge(path: Path, event: str, fields: dict[str, Any], *more: Any, account: str = "people") -> None:
    number, _, hash, body = rows(path)[-1]
    at = json.loads(body)["at"]
    entry = Entry(number=number + 1, account=account, event=event, fields=fields, at=at, previous=hash)
    row = (entry.number, account, entry.hash, entry.body)
    attack(path, ("INSERT INTO entries VALUES (?, ?, ?, ?)", row), *more)


def charged(path: Path, event: str = "record", **changes: Any) -> dict[str, Any]:
    body = next(body for *_, body in rows(path) if f'"event":"{event}"' in body)
    fields: dict[str, Any] = json.loads(body)["fields"] | changes
    return fields


def test_an_appended_charge_that_does_not_add_up_is_found(path: Path) -> None:
    forge(path, "record", charged(path))
    found(path, r"Entry 10 states a total")


def test_an_appended_refund_is_found(path: Path) -> None:
    with dp.Ledger(path) as ledger, ledger.store.read() as held:
        spent = json.loads(held.total("people") or "")["pure"][0]
    total = '{"pure":[0,0]}'
    fields = charged(path, by="", allowances={}, cost=f'{{"pure":[{-spent},0]}}', total=total)
    forge(path, "record", fields)
    found(path, "Entry 10 charges less than nothing")


@pytest.mark.parametrize(
    ("epsilon", "by", "match"), [(11, "ben", "is above the budget"), (4, "ana", "is above an allowance")]
)
def test_a_charge_that_should_have_been_refused_is_found(
    path: Path, monkeypatch: pytest.MonkeyPatch, epsilon: int, by: str, match: str
) -> None:
    with monkeypatch.context() as patched, dp.Ledger(path) as ledger:
        patched.setattr(Filter, "accepts", lambda *_: True)
        ledger.account("people").record(Pure(epsilon), by=by)
    found(path, f"Entry 10 {match}")


def test_a_charge_to_an_allowance_of_someone_else_is_found(path: Path) -> None:
    with dp.Ledger(path) as ledger, ledger.store.read() as held:
        total = held.total("people")
    none, newest = '{"pure":[0,0]}', json.loads(rows(path)[-1][3])
    fields = charged(
        path,
        before=newest["number"],
        by="ben",
        cost=none,
        total=total,
        allowances={"allowance 2 2026-11": none},
    )
    forge(path, "record", fields)
    found(path, "Entry 10 counts against an allowance that does not cover it")


def test_an_appended_charge_that_skips_its_allowance_is_found(path: Path) -> None:
    spent = charged(path)
    with dp.Ledger(path) as ledger:
        total = ledger.account("people").record(Pure(0.5)).fields["total"]
    forge(path, "record", spent | {"allowances": {}, "total": total, "cost": '{"pure":[0,0]}'})
    found(path, "Entry 11")


@pytest.mark.parametrize(
    ("event", "fields", "match"),
    [
        ("open", {"terms": "SAME"}, "opens an account again"),
        ("allow", {"allowance": "SAME"}, "changes an allowance"),
        ("commit", {"reservation": 3}, "ends what was not reserved"),
        ("forfeit", {"reservation": 6}, "ends what was not reserved"),
        ("commit", {}, "does not say"),
        ("record", {"loss": {}}, "does not say"),
        ("reserve", {"cost": "5"}, "does not say"),
        ("allow", {"allowance": "[]"}, "does not say"),
    ],
)
def test_an_appended_entry_that_no_ledger_writes_is_found(
    path: Path, event: str, fields: dict[str, Any], match: str
) -> None:
    if "SAME" in fields.values():
        fields = charged(path, event)
    forge(path, event, fields)
    found(path, f"Entry 10 {match}")


def test_a_charge_on_an_account_that_was_not_opened_is_found(path: Path) -> None:
    forge(path, "record", charged(path), account="nobody")
    found(path, "Entry 10 charges an account that was not opened")


# Anchors.


def test_a_ledger_cut_short_is_found_by_its_anchor_file_until_its_owner_accepts(tmp_path: Path) -> None:
    """Restored from a backup, all is well by itself."""
    path, anchor = tmp_path / "people.ledger", tmp_path / "elsewhere" / "anchor"
    anchor.parent.mkdir()
    with dp.Ledger(path, anchor=anchor) as ledger:
        people = ledger.open("people", unit=PERSON, budget=dp.Budget(1))
        people.record(Pure(0.2))
    shutil.copy(path, tmp_path / "backup")
    with dp.Ledger(path, anchor=anchor) as ledger:
        newest = ledger.account("people").record(Pure(0.5))
        assert ledger.verify() == 3
        assert Anchor.read(anchor.read_text()) == (3, newest.hash)
    path.unlink()
    shutil.copy(tmp_path / "backup", path)
    with dp.Ledger(path) as ledger:
        assert ledger.verify() == 2
    for _ in range(2):
        with pytest.raises(LedgerBehind, match="Entry 3 is not as the anchor knows it") as refused:
            dp.Ledger(path, anchor=anchor)
    assert 'accept="the reason"' in refused.value.remedy
    with dp.Ledger(path, anchor=anchor, accept="the disk failed") as ledger:
        *_, last = ledger.entries()
        assert (last.event, last.fields["why"]) == ("accept", "the disk failed")
        assert newest.hash in last.fields["anchor"] and ledger.verify() == 3
    with dp.Ledger(path, anchor=anchor) as ledger:
        ledger.account("people").record(Pure(0.1))
        assert ledger.verify() == 4 and Anchor.read(anchor.read_text()).number == 4


@pytest.mark.parametrize("event", ["open", "allow", "record", "reserve"])
def test_the_anchor_moves_with_all_that_counts(tmp_path: Path, event: str) -> None:
    ledger = dp.Ledger.memory()
    ledger = dp.Ledger(ledger.store, anchor=tmp_path / "anchor")
    people = ledger.open("people", unit=PERSON, budget=dp.Budget(1))
    {
        "open": lambda: ledger.open("more", unit=PERSON, budget=dp.Budget(1)),
        "allow": lambda: people.allow(dp.Budget(1), by="ana"),
        "record": lambda: people.record(Pure(0.1)),
        "reserve": lambda: people.reserve(Pure(0.1), by="ana"),
    }[event]()
    assert Anchor.read((tmp_path / "anchor").read_text()) == ledger.anchor() == (2, ledger.anchor().hash)


def test_a_rewritten_ledger_is_found_by_a_printed_line(tmp_path: Path) -> None:
    lines = []
    for epsilon in (0.2, 0.1):
        with dp.Ledger(tmp_path / f"{epsilon}.ledger") as ledger:
            ledger.open("people", unit=PERSON, budget=dp.Budget(1)).record(Pure(epsilon))
            lines.append(str(ledger.anchor()))
            ledger.account("people").record(Pure(0.3))
            ledger.check(lines[-1])
            assert ledger.verify() == 3
    with dp.Ledger(tmp_path / "0.1.ledger") as ledger:
        with pytest.raises(LedgerBehind, match="Entry 2"):
            ledger.check(lines[0])
        with pytest.raises(InvalidArgument, match="not an anchor"):
            ledger.check("dalenius-anchor two")
    assert dp.Ledger.memory().anchor() is None


def test_truncation_with_all_rows_put_back_is_found_by_the_anchor_alone(tmp_path: Path) -> None:
    path, anchor = tmp_path / "people.ledger", tmp_path / "anchor"
    with dp.Ledger(path, anchor=anchor) as ledger:
        people = ledger.open("people", unit=PERSON, budget=dp.Budget(1))
        people.record(Pure(0.2))
        with ledger.store.read() as held:
            (node,) = held.balances("").values()
        people.record(Pure(0.5))
    attack(path, "DELETE FROM entries WHERE number = 3")
    found(path, "The tree beside the entries")
    attack(path, ("UPDATE balances SET text = ? WHERE account = ''", (node,)))
    with dp.Ledger(path) as ledger:
        assert ledger.verify() == 2
    with pytest.raises(LedgerBehind):
        dp.Ledger(path, anchor=anchor)


def test_an_anchor_never_moves_back_and_a_spoilt_one_is_refused(tmp_path: Path) -> None:
    from dalenius.ledger.anchor import write_file

    path, anchor = tmp_path / "people.ledger", tmp_path / "anchor"
    with dp.Ledger(path, anchor=anchor) as ledger:
        people = ledger.open("people", unit=PERSON, budget=dp.Budget(1))
        first = people.record(Pure(0.1))
        people.record(Pure(0.1))
        write_file(anchor, Anchor(first.number, first.hash))
        assert Anchor.read(anchor.read_text()).number == 3
    anchor.write_text("dalenius-anchor 3 00")
    with pytest.raises(LedgerBehind, match="something else"):
        dp.Ledger(path, anchor=anchor)
    with dp.Ledger(path, anchor=anchor, accept="the file was edited") as ledger:
        assert ledger.verify() == 4
    with dp.Ledger(path, anchor=anchor) as ledger:
        assert Anchor.read(anchor.read_text()) == ledger.anchor()


def test_accepting_is_for_a_ledger_that_is_behind_not_for_one_that_is_changed(path: Path) -> None:
    anchor = path.with_name("anchor")
    with dp.Ledger(path, anchor=anchor) as ledger:
        ledger.account("people").record(Pure(0.1))
    number = len(rows(path))
    attack(path, ("UPDATE entries SET body = body || ' ' WHERE number = ?", (number,)))
    with pytest.raises(LedgerCorrupt):
        dp.Ledger(path, anchor=anchor, accept="I want to go on")
    assert len(rows(path)) == number


def test_an_anchor_that_cannot_be_written_stops_the_release(tmp_path: Path) -> None:
    ledger = dp.Ledger(dp.Ledger.memory().store, anchor=tmp_path / "no folder" / "anchor")
    with pytest.raises(LedgerError, match="anchor cannot be written"):
        ledger.open("people", unit=PERSON, budget=dp.Budget(1))


# Streaming.


def _peak(call: Callable[[], object]) -> int:
    gc.collect()
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_verify_holds_no_history(tmp_path: Path) -> None:
    """Five times the entries take no more memory than a few of them would."""
    peaks = []
    for count in (200, 1_000):
        with dp.Ledger(tmp_path / f"{count}.ledger") as ledger:
            people = ledger.open("people", unit=PERSON, budget=dp.Budget(10**6))
            with ledger.store.write(False) as transaction:
                for _ in range(count):
                    charge(
                        transaction,
                        people.terms,
                        Charge(Pure(1), Pure(1), people.terms.price(Pure(1)), "ana"),
                        "record",
                    )
            assert ledger.verify() == count + 1
            peaks.append(_peak(ledger.verify))
    assert peaks[1] < peaks[0] + 100_000


def test_a_ledger_that_fell_behind_its_anchor_while_open_takes_no_charge(tmp_path: Path) -> None:
    """An older state is restored in place, under a process that goes on charging."""
    where, anchor = tmp_path / "people.ledger", tmp_path / "anchor"
    people = dp.Ledger(where, anchor=anchor).open("people", unit=dp.Unit("p"), budget=dp.Budget(epsilon=1))
    people.record(Pure(0.1))
    with sqlite3.connect(tmp_path / "backup") as backup, sqlite3.connect(where) as now:
        now.backup(backup)
    people.record(Pure(0.5))
    with sqlite3.connect(tmp_path / "backup") as backup, sqlite3.connect(where) as now:
        backup.backup(now)
    with pytest.raises(LedgerBehind):
        people.record(Pure(0.1))
    with pytest.raises(LedgerBehind):
        people.allow(dp.Budget(epsilon=1), by="ana")


def test_measuring_again_finds_a_charge_below_its_loss() -> None:
    """A forged entry at the end of the chain, well formed, that charges nothing for much."""
    ledger = dp.Ledger.memory()
    people = ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=1))
    people.record(Pure(0.25), by="ana")
    with ledger.store.write(durable=True) as transaction:
        charge(
            transaction,
            people.terms,
            Charge(
                Pure(100), Pure(100), people.terms.price(Pure(0))._replace(loss=Pure(100).to_json()), "ana"
            ),
            "record",
        )
    assert ledger.verify() == 3
    with pytest.raises(LedgerCorrupt, match="charges less than its loss costs"):
        ledger.verify(costs=True)
