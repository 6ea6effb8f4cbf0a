"""Many processes at one budget: not one reservation too many, none is lost, and the chain holds."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dalenius as dp
from dalenius.errors import BudgetExceeded
from dalenius.losses import Pure

CHILD = Path(__file__).with_name("account_child.py")
PROCESSES = 4


def crowd(place: Any, attempts: int) -> None:
    """Each asks for its part of all attempts; the budget holds four fifths of them."""
    fits = attempts * 4 // 5
    ledger = dp.Ledger(place.open())
    people = ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(Fraction(fits, 1000)))
    command = [sys.executable, str(CHILD), "crowd", place.where, f"{attempts // PROCESSES}", "0.001"]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    done = [int(child.communicate()[0]) for child in children]
    assert [child.returncode for child in children] == [0] * PROCESSES
    assert sum(done) == fits and max(done) < fits, "several of them were let"
    assert float(people.spent) == fits / 1000 and people.left.loss is None
    counted = Counter(entry.event for entry in ledger.entries())
    assert counted == {"open": 1, "reserve": fits, "forfeit": fits}
    assert ledger.reservations() == [] and ledger.verify() == 2 * fits + 1


def test_two_hundred_reservations_of_several_processes_never_overspend(shared: Any) -> None:
    crowd(shared, 200)


@pytest.mark.slow
def test_ten_thousand_reservations_of_several_processes_never_overspend(shared: Any) -> None:
    crowd(shared, 10_000)


def test_threads_of_one_process_never_overspend(place: Any) -> None:
    people = dp.Ledger(place.open()).open("people", unit=dp.Unit("person"), budget=dp.Budget(1))

    def attempt(n: int) -> bool:
        try:
            people.reserve(Pure(0.05), by=f"analyst {n}").forfeit()
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(attempt, range(40))) == 20
    assert float(people.spent) == 1 and people.ledger.verify() == 41
