"""A kill, a full disk, a lock or a wrong clock at any step: never charged too little, never corrupt."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import dalenius as dp
from dalenius import mechanisms
from dalenius.errors import ClockWentBack, LedgerFull, LedgerLocked, LedgerReadOnly
from dalenius.ledger.account import Account
from dalenius.ledger.entry import Entry
from dalenius.ledger.store import open_store
from dalenius.losses import Pure

CHILD = Path(__file__).with_name("account_child.py")
COUNT = mechanisms.Laplace(scale=10, sensitivity=1)


def outcomes(place: Any, folder: Path) -> list[dict[str, Any]]:
    command = [sys.executable, str(CHILD), "crash", f"{place.where}_PLACE", str(folder / "anchor_PLACE")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_kill_at_any_step_is_never_charged_too_little(shared: Any, tmp_path: Path) -> None:
    """At every step of open, allow, record, reserve, commit, forfeit and sweep, with an anchor kept."""
    *killed, ended = outcomes(shared, tmp_path)
    assert (ended["ended"], ended["acts"], ended["tenths"]) == (0, 6, 8)
    assert {outcome["ended"] for outcome in killed} == {-signal.SIGKILL}
    assert {outcome["step"] for outcome in killed} == set(shared.open().steps), "a step that no kill fell on"
    assert {outcome["acts"] for outcome in killed} == set(range(6))
    for outcome in [*killed, ended]:
        mended(outcome)


def mended(outcome: dict[str, Any]) -> None:
    """Opened again: what was said is charged, what was let out is on record, the rest is forfeited."""
    with dp.Ledger(open_store(outcome["where"]), anchor=outcome["anchor"]) as ledger:
        assert ledger.reservations() == []
        events = {entry.number: entry.event for entry in ledger.entries()}
        assert ledger.verify() == len(events)
        assert all(events[number] == "reserve" for number in outcome["released"])
        people = ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(10), source="register")
        charged = round(10 * float(people.spent))
        assert charged in (outcome["tenths"], outcome["tenths"] + _next(outcome["acts"]))
        ends = [entry.fields["reservation"] for entry in ledger.entries() if "reservation" in entry.fields]
        assert sorted(ends) == [number for number, event in events.items() if event == "reserve"]
        people.spend(COUNT, 100, by="ana")
        assert round(10 * float(people.spent)) == charged + 1
        ledger.verify()


def _next(acts: int) -> int:
    """The tenths that the act after so many charges."""
    return [1, 0, 2, 1, 4, 0, 0][acts]


# Trouble that is not a crash.


@dataclass(frozen=True)
class Watched(mechanisms.Laplace, kind="watched"):
    """A mechanism that notes whether it was asked to draw."""

    def release(self, value: Any, *, unit: Any = None) -> Any:
        drawn.append(value)
        return COUNT.release(value, unit=unit)


drawn: list[Any] = []
WATCHED = Watched(scale=10, sensitivity=1)


def nothing_is_released(people: Account, error: type[Exception], during: Callable[[], Any]) -> None:
    drawn.clear()
    before = [*people.ledger.entries()]
    with pytest.raises(error) as refused:
        during()
    assert drawn == [] and refused.value.remedy  # type: ignore[attr-defined]
    assert [*people.ledger.entries()] == before


def opened(where: Any) -> Account:
    return dp.Ledger(where).open("people", unit=dp.Unit("person"), budget=dp.Budget(1))


def test_a_full_disk_releases_nothing(file: Any) -> None:
    """By SQLite's own limit; the store's tests fill a real disk."""
    store = file.open()
    people = opened(store)
    connection, _ = store._pool.take()
    connection.execute("PRAGMA max_page_count = 1")
    store._pool.give(connection)
    note = "🦊" * 2000
    nothing_is_released(people, LedgerFull, lambda: people.spend(WATCHED, 1, by="ana", note=note))
    assert float(people.spent) == 0 and people.ledger.reservations() == [] and people.ledger.verify() == 1


def test_a_disk_that_is_full_at_the_commit_releases_nothing_and_stays_charged(file: Any) -> None:
    people = opened(file.open())

    def hook(step: str) -> None:
        if step == "drop reservation":
            raise LedgerFull("The disk is full.", remedy="Make room on it.")

    people.ledger.store.on_step = hook
    with pytest.raises(LedgerFull):
        people.spend(COUNT, 1, by="ana")
    people.ledger.store.on_step = None
    assert float(people.spent) == 0.1 and people.ledger.reservations() == [2] and people.ledger.verify() == 2


def test_a_ledger_that_another_holds_releases_nothing(shared: Any) -> None:
    people = opened(shared.open(timeout=0.2))
    holder = shared.child("hold", stdin=subprocess.PIPE)
    assert holder.stdout.readline() == "holding\n"
    nothing_is_released(people, LedgerLocked, lambda: people.spend(WATCHED, 1, by="ana"))
    holder.communicate("")
    people.spend(COUNT, 1, by="ana")
    assert people.ledger.verify() == 3


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_ledger_that_may_only_be_read_is_read_and_releases_nothing(in_fork: Any) -> None:
    """Also one with a reservation of a process that is gone, which a reader leaves alone."""
    folder = Path(tempfile.mkdtemp(prefix="dalenius-"))
    path = folder / "people.ledger"
    try:
        in_fork(lambda: opened(path).reserve(Pure(0.1), by="ben").account.ledger.close())
        folder.chmod(0o777)
        path.chmod(0o444)

        def as_nobody() -> str:
            os.setuid(65534)
            people = opened(path)
            seen = float(people.spent), people.ledger.reservations(), people.ledger.verify()
            nothing_is_released(people, LedgerReadOnly, lambda: people.spend(WATCHED, 1, by="ana"))
            return f"{seen}"

        assert in_fork(as_nobody) == "(0.1, [2], 2)"
        path.chmod(0o600)
        people = opened(path)
        assert people.ledger.reservations() == [] and people.entries()[-1].event == "forfeit"
    finally:
        shutil.rmtree(folder)


def test_a_clock_days_behind_the_ledger_releases_nothing(place: Any) -> None:
    """The newest entry is of a clock two days ahead."""
    people = opened(place.open())
    with people.ledger.store.write(True) as transaction:
        later = (datetime.now(UTC) + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        head = transaction.head()
        transaction.append(
            Entry.following(head, account="*", event="accept", at=later, fields={"anchor": "", "why": ""})
        )
    nothing_is_released(people, ClockWentBack, lambda: people.spend(WATCHED, 1, by="ana"))
    assert float(people.spent) == 0 and people.ledger.verify() == 2


def test_reservations_of_dead_processes_are_found_once_and_those_of_living_ones_are_left(
    shared: Any, in_fork: Any
) -> None:
    people = opened(shared.open())
    for _ in range(3):
        in_fork(lambda: opened(shared.where).reserve(Pure(0.1), by="ben"))
    alive = people.reserve(Pure(0.1), by="ana")
    with dp.Ledger(shared.open()) as other:
        assert other.reservations() == [alive.number]
        assert people.ledger.sweep() == []
        events = [entry.event for entry in other.entries()]
    assert events.count("forfeit") == 3 and float(people.spent) == 0.4
    alive.forfeit()
    assert people.ledger.verify() == 9


def test_a_sweep_that_comes_second_finds_nothing_to_do(
    shared: Any, in_fork: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process forfeits the same reservation between the look and the write."""
    people = opened(shared.open())
    in_fork(lambda: opened(shared.where).reserve(Pure(0.1), by="ben"))
    slow, account, quick = people.ledger, people.ledger.account, []

    def looked_up(name: str) -> Account:
        quick.append(in_fork(lambda: dp.Ledger(shared.where).reservations()))
        return account(name)

    monkeypatch.setattr(slow, "account", looked_up)
    assert slow.sweep() == [] and quick == ["[]"]
    assert slow.verify() == 3
