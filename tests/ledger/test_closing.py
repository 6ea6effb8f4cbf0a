"""A closed ledger has no new entries, whatever thread asks; what was reserved before is ended elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import dalenius as dp
from dalenius.errors import NotSound
from dalenius.ledger.closing import closed
from dalenius.losses import Pure

UNIT, BUDGET = dp.Unit("person"), dp.Budget(epsilon=9)


def in_thread(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def written(ledger: Any) -> int:
    return sum(1 for _ in ledger.entries())


@pytest.mark.parametrize("ask", [lambda work: work(), in_thread])
def test_nothing_is_written_while_it_is_closed(ask: Callable[..., Any], tmp_path: Path) -> None:
    ledger = dp.Ledger(tmp_path / "a.ledger")
    people = ledger.open("people", unit=UNIT, budget=BUDGET)
    asks: list[Callable[[], Any]] = [
        lambda: people.reserve(Pure(1), by="ana"),
        lambda: people.record(Pure(1)),
        lambda: people.allow(dp.Budget(epsilon=1), by="ana"),
        lambda: ledger.open("others", unit=UNIT, budget=BUDGET),
        lambda: dp.Ledger(tmp_path / "a.ledger").open("others", unit=UNIT, budget=BUDGET),
        lambda: people.cell("ward", "north").record(Pure(1)),
    ]
    for work in asks:
        with closed(), pytest.raises(NotSound, match="how many"):
            ask(work)
        assert written(ledger) == 1
    with closed(), closed():
        assert ask(lambda: ledger.open("people", unit=UNIT, budget=BUDGET)).name == "people"
    people.record(Pure(1))


def test_a_pool_that_was_there_before_is_refused_too(tmp_path: Path) -> None:
    people = dp.Ledger(tmp_path / "a.ledger").open("people", unit=UNIT, budget=BUDGET)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(threading.get_ident).result()
        with closed(), pytest.raises(NotSound):
            pool.submit(people.record, Pure(1)).result()
        pool.submit(people.record, Pure(1)).result()


def test_reservations_are_ended_by_others_only(tmp_path: Path) -> None:
    ledger = dp.Ledger(tmp_path / "a.ledger")
    people = ledger.open("people", unit=UNIT, budget=BUDGET)
    one, other = people.reserve(Pure(1), by="ana"), people.reserve(Pure(1), by="bob")
    with closed():
        for end in (one.forfeit, lambda: one.end("commit"), lambda: ledger.forfeit(one.number)):
            with pytest.raises(NotSound):
                end()
        in_thread(lambda: other.end("commit"))
    one.end("commit")
    assert [entry.event for entry in people.entries()][-2:] == ["commit", "commit"]


def test_runs_of_a_selection_charge_nothing_by_threads(tmp_path: Path) -> None:
    people = dp.Ledger(tmp_path / "a.ledger").open("people", unit=UNIT, budget=BUDGET)

    def train(candidate: float) -> tuple[float, None]:
        try:
            in_thread(lambda: people.record(Pure(candidate)))
        except NotSound:
            return 1.0, None
        return 0.0, None

    found = dp.learn.tune(train, [0.01], loss=Pure(0.1), account=people, by="ana")
    assert found.score == 1.0
    assert [entry.event for entry in people.entries()] == ["open", "reserve", "commit"]
