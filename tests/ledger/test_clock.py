"""No clock loses a charged answer or locks a ledger for good, and correcting the time makes none cheaper."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import dalenius as dp
from dalenius.errors import BudgetExceeded, ClockWentBack, InvalidArgument, LedgerCorrupt
from dalenius.ledger import store
from dalenius.ledger.account import Account
from dalenius.ledger.rules import window_of
from dalenius.losses import Pure
from dalenius.mechanisms import Laplace

PERSON = dp.Unit("person")
COUNT = Laplace(scale=100, sensitivity=1)
SPENDER = """
import sys
from datetime import timedelta
import dalenius as dp
from dalenius.ledger import store
from dalenius.mechanisms import Laplace
where, ahead, times = sys.argv[1], timedelta(seconds=float(sys.argv[2])), int(sys.argv[3])
true = store.local_clock
store.local_clock = lambda: true() + ahead
people = dp.Ledger(where).account("people")
for _ in range(times):
    people.spend(Laplace(scale=100, sensitivity=1), 5, by=sys.argv[2])
"""


class Clock:
    """The clock of this machine, moved by the tests; it goes on by a second at each look."""

    def __init__(self, at: str = "2026-11-15T12:00:00+00:00") -> None:
        self.at = datetime.fromisoformat(at)
        self.ahead = timedelta(0)

    def __call__(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(store, "local_clock", moved)
    return moved


@pytest.fixture
def people(clock: Clock) -> Account:
    return dp.Ledger.memory().open("people", unit=PERSON, budget=dp.Budget(10**6))


def test_two_processes_with_clocks_an_hour_apart_lose_nothing(shared: Any) -> None:
    with dp.Ledger(shared.where) as ledger:
        ledger.open("people", unit=PERSON, budget=dp.Budget(1))
    both = [
        subprocess.Popen([sys.executable, "-c", SPENDER, shared.where, ahead, "20"], stderr=subprocess.PIPE)
        for ahead in ("0", "3600")
    ]
    for process in both:
        _, said = process.communicate()
        assert process.returncode == 0, said
    with dp.Ledger(shared.where) as ledger:
        events = [entry.event for entry in ledger.entries()]
        assert events.count("reserve") == events.count("commit") == 40 and "forfeit" not in events
        assert float(ledger.account("people").spent) == 0.4 and ledger.verify() == 81


@pytest.mark.parametrize("seconds", [8, 3600, 3_652 * 86_400])
def test_a_peer_ahead_does_not_lose_a_charged_answer(people: Account, clock: Clock, seconds: int) -> None:
    asked = people.reserve(COUNT.loss, by="ana")
    dropped = people.reserve(COUNT.loss, by="ana")
    clock.ahead = timedelta(seconds=seconds)
    newest = people.record(Pure(0.1), by="ben")
    clock.ahead = timedelta(0)
    release = asked.commit(COUNT.release(5))
    dropped.forfeit()
    *_, commit, forfeit = people.entries()
    assert release.receipt.entry is not None
    assert (commit.event, forfeit.event) == ("commit", "forfeit") and commit.at == forfeit.at == newest.at
    assert people.ledger.verify() == 6


def test_a_charge_ten_years_ahead_holds_others_up_until_the_owner_corrects_the_time(
    people: Account, clock: Clock
) -> None:
    clock.ahead = timedelta(days=3652)
    people.record(Pure(0.5), by="ana")
    clock.ahead = timedelta(0)
    with pytest.raises(ClockWentBack) as refused:
        people.record(Pure(0.5), by="ben")
    assert "correct-time" in refused.value.remedy
    entry = people.ledger.correct_time(why="the laptop of ana had a wrong clock")
    assert (entry.event, entry.account, entry.fields["was"][:4]) == ("clock", "*", "2036")
    assert people.record(Pure(0.5), by="ben").at.startswith("2026-11-15")
    assert float(people.spent) == 1 and people.ledger.verify() == 4


def test_there_is_nothing_to_correct_while_the_clock_is_not_behind(people: Account) -> None:
    people.record(Pure(0.5))
    with pytest.raises(InvalidArgument, match="nothing to correct"):
        people.ledger.correct_time(why="in case")
    assert people.ledger.verify() == 2


def test_a_corrected_time_counts_what_was_charged_ahead_in_the_present_window(
    people: Account, clock: Clock
) -> None:
    """Both charges were made in November 2026; one was stated in 2036."""
    people.allow(dp.Budget(1), by="ana", window="month")
    people.record(Pure(0.25), by="ana")
    clock.ahead = timedelta(days=3652)
    people.record(Pure(0.5), by="ana")
    clock.ahead = timedelta(0)
    people.ledger.correct_time(why="wrong clock")
    assert float(people.left_for(by="ana")) == 0.25
    with pytest.raises(BudgetExceeded):
        people.record(Pure(0.5), by="ana")
    people.record(Pure(0.25), by="ana")
    clock.at += timedelta(days=31)
    people.record(Pure(1), by="ana")
    clock.at = datetime(2036, 11, 14, tzinfo=UTC)
    assert float(people.left_for(by="ana")) == 0.5, "what was stated there stays there as well"
    assert people.ledger.verify() == 7


@pytest.mark.parametrize("window", ["hour", "day", "week", "month", "quarter", "year"])
@pytest.mark.parametrize("seed", range(3))
def test_after_a_correction_no_window_counts_less_than_was_truly_charged_in_it(
    people: Account, clock: Clock, window: Any, seed: int
) -> None:
    """Against a list of what was truly charged when, which is added up without the ledger."""
    chance = random.Random(seed)
    people.allow(dp.Budget(10**5), window=window)
    truly: list[str] = []
    kept: dict[str, int] = {}
    for _ in range(40):
        clock.at += timedelta(hours=chance.choice([0, 1, 20, 24 * 20, 24 * 80]))
        match chance.randrange(4):
            case 0:
                clock.ahead = timedelta(hours=chance.choice([2, 30, 24 * 40, 24 * 400]))
            case 1:
                clock.ahead = timedelta(0)
                try:
                    people.ledger.correct_time(why="wrong clock")
                except InvalidArgument:
                    continue
                now = window_of(clock.at.isoformat(), window)
                with people.ledger.store.read() as held:
                    counted = json.loads(held.balance("people", f"allowance 2 {now}") or '{"pure":[0]}')
                one = people.terms.price(Pure(1)).cost.amounts["pure"][0]
                assert counted["pure"][0] >= one * sum(window_of(at, window) == now for at in truly)
            case _:
                try:
                    people.record(Pure(1))
                    truly.append(clock.at.isoformat())
                except ClockWentBack:
                    pass
        with people.ledger.store.read() as held:
            fresh = held.balances("people", "allowance 2 ")
        sums = {scope: json.loads(text)["pure"][0] for scope, text in fresh.items()}
        assert all(sums[scope] >= amount for scope, amount in kept.items())
        kept = sums
    people.ledger.verify()


def test_a_correction_that_carries_too_little_is_found(people: Account, clock: Clock) -> None:
    from dalenius.ledger.chain_state import WritableState

    people.allow(dp.Budget(1), by="ana", window="month")
    clock.ahead = timedelta(days=3652)
    people.record(Pure(0.5), by="ana")
    with people.ledger.store.write(True) as transaction:
        fields = {"why": "", "was": "", "carried": {}}
        at = "2026-11-15T13:00:00.000000Z"
        WritableState(transaction).write(account="*", event="clock", at=at, fields=fields)
    with pytest.raises(LedgerCorrupt, match="Entry 4 carries other windows"):
        people.ledger.verify()


def test_only_a_correction_goes_back_in_time(people: Account, clock: Clock) -> None:
    from dalenius.ledger.entry import Entry

    head = people.record(Pure(0.5)).head
    for event, follows in (("record", False), ("commit", False), ("clock", True)):
        earlier = Entry.following(
            head, account="people", event=event, at="2020-01-01T00:00:00.000000Z", fields={}
        )
        assert earlier.follows(head) is follows


def test_on_a_server_the_clock_is_its_own(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "local_clock", lambda: datetime(2036, 1, 1, tzinfo=UTC))
    with dp.Ledger(served.where) as ledger:
        entry = ledger.open("people", unit=PERSON, budget=dp.Budget(1)).record(Pure(0.1))
        assert abs(datetime.fromisoformat(entry.at) - datetime.now(UTC)) < timedelta(hours=1)
        import psycopg

        with psycopg.connect(served.where) as server:
            assert server.execute("SELECT session_user").fetchone() == (entry.fields["session_user"],)
