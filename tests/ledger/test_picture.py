"""The burn-down: what was left after every charge, as a figure."""

from __future__ import annotations

from pathlib import Path

import pytest

import dalenius as dp
from dalenius.errors import InvalidArgument
from dalenius.ledger import picture
from dalenius.ledger.picture import FINEST, burn_down
from dalenius.losses import Pure


def test_each_charge_is_a_step_down() -> None:
    people = dp.Ledger.memory().open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=1))
    for _ in range(3):
        people.record(Pure(0.25))
    people.reserve(Pure(0.25), by="ana").forfeit()
    left, nothing = burn_down([people], against="entries").series
    assert left.name == "people, 0 % left"
    assert left.x[:5] == (1, 2, 3, 4, 5)
    assert left.y[:5] == (100, 75, 50, 25, 0)
    assert (left.x[-1], left.y[-1]) == (6, 0)
    assert nothing.y == (0, 0)


def test_time_is_counted_from_the_first_entry_of_all() -> None:
    ledger = dp.Ledger.memory()
    unit, budget = dp.Unit("person"), dp.Budget(epsilon=1)
    accounts = [ledger.open(name, unit=unit, budget=budget) for name in ("people", "cities")]
    accounts[1].record(Pure(0.5))
    figure = burn_down(accounts)
    first, second, _ = figure.series
    assert figure.x_label == "seconds since the first entry"
    assert first.x[0] == 0 < second.x[0] < second.x[-1] == first.x[-1]
    assert (first.y[-1], second.y[-1]) == (100, 50)


def test_many_small_charges_make_a_small_picture() -> None:
    people = dp.Ledger.memory().open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=1))
    for _ in range(400):
        people.record(Pure(1e-4))
    left = burn_down([people], against="entries").series[0]
    assert len(left.x) <= 0.04 / FINEST + 3
    assert left.y[-1] == pytest.approx(96)


def test_it_is_drawn(tmp_path: Path) -> None:
    people = dp.Ledger.memory().open("$x^$ %", unit=dp.Unit("person"), budget=dp.Budget(epsilon=1))
    for ending in ("svg", "png"):
        assert burn_down([people]).save(tmp_path / f"burn.{ending}").stat().st_size > 1000


def test_no_account_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="no account"):
        burn_down([])


def test_a_long_account_is_drawn_from_few_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps lie on those of the whole picture, and the ends are the same."""
    people = dp.Ledger.memory().open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=1))
    for _ in range(60):
        people.reserve(Pure(0.01), by="ana").forfeit()
    whole = picture.burn_down([people], against="entries").series[0]
    monkeypatch.setattr(picture, "PLACES", 12)
    few = picture.burn_down([people], against="entries").series[0]
    assert len(few.x) <= 15 < len(whole.x)
    assert set(zip(few.x, few.y, strict=True)) <= set(zip(whole.x, whole.y, strict=True))
    assert (few.x[0], few.x[-1], few.y[-1]) == (whole.x[0], whole.x[-1], whole.y[-1])
