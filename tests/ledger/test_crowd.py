"""Many processes at one balance: not one charge too many, and none is lost."""

from __future__ import annotations

from typing import Any

import pytest

from dalenius.ledger.entry import chained

PROCESSES = 4


def spend(place: Any, limit: int) -> None:
    """Each process spends one at a time until the limit is reached; together they spend just that."""
    crowd = [place.child("crowd", f"{limit}") for _ in range(PROCESSES)]
    spent = [int(process.communicate()[0]) for process in crowd]
    assert [process.returncode for process in crowd] == [0] * PROCESSES and sum(spent) == limit
    with place.open().read() as held:
        assert sum(1 for _ in chained(held.entries())) == held.count() == limit
        assert held.balances("people") == {"": f"{limit}"}


def test_three_hundred_charges_of_several_processes_are_three_hundred(shared: Any) -> None:
    """No one has made the store before: they also make it together."""
    spend(shared, 300)


@pytest.mark.slow
def test_ten_thousand_charges_of_several_processes_are_ten_thousand(shared: Any) -> None:
    spend(shared, 10_000)
