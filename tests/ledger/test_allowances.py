"""Allowances for analysts, purposes and windows hold beside the account's own limit, which always holds."""

from __future__ import annotations

import datetime as clock
from fractions import Fraction
from typing import Any

import pytest

import dalenius as dp
from dalenius.errors import BudgetExceeded, ClockWentBack, InvalidArgument
from dalenius.ledger import store
from dalenius.ledger.account import Account
from dalenius.ledger.rules import window_of
from dalenius.losses import Gaussian, Pure


@pytest.fixture
def people(time: Clock) -> Account:
    return dp.Ledger.memory().open("people", unit=dp.Unit("person"), budget=dp.Budget(1))


class Clock:
    """The clock of this machine to the ledger, standing still until it is set."""

    def __init__(self) -> None:
        self.at = clock.datetime(2026, 11, 15, 12, tzinfo=clock.UTC)

    def __call__(self) -> clock.datetime:
        return self.at

    def set(self, text: str) -> None:
        self.at = clock.datetime.fromisoformat(text)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    frozen = Clock()
    monkeypatch.setattr(store, "local_clock", frozen)
    return frozen


def spent(account: Account, times: int, **who: str) -> int:
    """How many of so many charges of a tenth were accepted."""
    done = 0
    for _ in range(times):
        try:
            account.record(Pure(0.1), **who)
        except BudgetExceeded:
            continue
        done += 1
    return done


def test_an_allowance_covers_its_analyst_its_purpose_or_both(people: Account) -> None:
    people.allow(dp.Budget(0.3), by="ana")
    people.allow(dp.Budget(0.2), purpose="wards")
    people.allow(dp.Budget(0.1), by="ben", purpose="model")
    assert spent(people, 9, by="ana", purpose="model") == 3
    assert spent(people, 9, by="ben", purpose="model") == 1
    assert spent(people, 9, by="ben", purpose="wards") == 2
    assert spent(people, 9, by="ana", purpose="wards") == 0
    assert spent(people, 9, by="cy", purpose="wards") == 0
    assert spent(people, 9, by="cy", purpose="model") == 4
    assert float(people.spent) == 1 and people.ledger.verify() == 14


def test_a_refusal_names_the_allowance_and_its_remedy_succeeds(people: Account) -> None:
    people.allow(dp.Budget(0.3), by="ana")
    people.record(Pure(0.2), by="ana")
    with pytest.raises(
        BudgetExceeded,
        match=r"epsilon 0.1 still fits on the allowance \(by ana\) of people, of epsilon 0.3",
    ) as no:
        people.record(Pure(0.4), by="ana")
    assert no.value.remedy == "Try epsilon=0.1." and no.value.largest == Pure(Fraction(1, 10))
    assert people.left_for(by="ana").loss == Pure(Fraction(1, 10)) and float(people.left) == 0.8
    people.record(Pure(0.1), by="ana")
    assert people.left_for(by="ana").loss is None and float(people.left_for(by="ben")) == pytest.approx(0.7)


def test_an_allowance_of_another_shape_than_the_account(people: Account) -> None:
    """One without a delta takes no Gaussian, although the account does; what is left fits both."""
    wide = people.ledger.open("wide", unit=dp.Unit("person"), budget=dp.Budget(1, 1e-6))
    wide.allow(dp.Budget(0.4), by="ana")
    assert wide.accepts(Gaussian(20)) and not wide.accepts(Gaussian(20), by="ana")
    wide.record(Pure(0.1), by="ana")
    left = wide.left_for(by="ana")
    assert left.loss == Pure(Fraction(3, 10))
    with pytest.raises(BudgetExceeded, match="allowance") as refused:
        wide.record(Gaussian(20), by="ana")
    assert refused.value.largest == left.loss
    wide.record(left.loss, by="ana")


def test_allowances_may_sum_to_more_and_colluding_analysts_gain_nothing(people: Account) -> None:
    analysts = [f"analyst {n}" for n in range(5)]
    for name in analysts:
        people.allow(dp.Budget(0.5), by=name)
    people.allow(dp.Budget(5), purpose="anything")
    accepted = [spent(people, 1, by=name, purpose="anything") for _ in range(6) for name in analysts]
    assert sum(accepted) == 10 and float(people.spent) == 1
    assert not any(people.accepts(Pure(0.001), by=name) for name in [*analysts, "someone else"])
    assert people.ledger.verify() == 17


def test_windows_roll_over_and_the_account_does_not(people: Account, time: Clock) -> None:
    people.allow(dp.Budget(0.3), window="month")
    people.allow(dp.Budget(0.1), by="ana", window="day")
    assert spent(people, 5, by="ana") == 1
    time.set("2026-11-16T00:00:00.000000Z")
    assert spent(people, 5, by="ana") == 1
    assert spent(people, 5, by="ben") == 1, "the month is used up"
    time.set("2026-11-30T23:59:59.999999Z")
    assert spent(people, 5, by="ben") == 0
    time.set("2026-12-01T00:00:00.000000Z")
    assert float(people.left_for(by="ben")) == pytest.approx(0.3) and spent(people, 5, by="ben") == 3
    for month in range(1, 9):
        time.set(f"2027-0{month}-01T00:00:00.000000Z")
        spent(people, 5)
    assert float(people.spent) == 1 and people.left.loss is None
    assert people.ledger.verify() == 13


def test_an_allowance_counts_from_when_it_was_given(people: Account) -> None:
    people.record(Pure(0.5), by="ana")
    people.allow(dp.Budget(0.1), by="ana")
    people.record(Pure(0.1), by="ana")
    assert not people.accepts(Pure(0.1), by="ana") and people.accepts(Pure(0.4))
    assert people.ledger.verify() == 4


@pytest.mark.parametrize(
    ("window", "name"),
    [
        ("hour", "2027-01-03T23"),
        ("day", "2027-01-03"),
        ("week", "2026-W53"),
        ("month", "2027-01"),
        ("quarter", "2027-Q1"),
        ("year", "2027"),
    ],
)
def test_windows_are_those_of_the_calendar(window: Any, name: str) -> None:
    assert window_of("2027-01-03T23:59:59.999999Z", window) == name


@pytest.mark.parametrize("arguments", [{}, {"window": "fortnight"}, {"by": 3}])
def test_an_allowance_for_nothing_is_refused(people: Account, arguments: Any) -> None:
    with pytest.raises(InvalidArgument):
        people.allow(dp.Budget(1), **arguments)
    assert len(people.entries()) == 1


def test_a_clock_an_hour_behind_charges_at_the_newest_time_and_one_days_behind_is_refused(
    people: Account, time: Clock
) -> None:
    people.record(Pure(0.1))
    time.set("2026-11-14T12:00:00.000000Z")
    assert people.record(Pure(0.1)).at == "2026-11-15T12:00:00.000000Z"
    time.set("2026-11-14T11:59:59.000000Z")
    for charged in (
        lambda: people.record(Pure(0.1)),
        lambda: people.reserve(Pure(0.1), by="ana"),
        lambda: people.allow(dp.Budget(1), by="ana"),
        lambda: people.ledger.open("other", unit=dp.Unit("person"), budget=dp.Budget(1)),
    ):
        with pytest.raises(ClockWentBack, match="The newest entry, 3, states 2026-11-15") as refused:
            charged()
        assert "clock" in refused.value.remedy
    assert float(people.spent) == 0.2 and people.ledger.verify() == 3
    time.set("2026-11-15T12:00:01.000000Z")
    people.record(Pure(0.1))


def test_a_window_is_not_entered_again_by_setting_the_clock_back(people: Account, time: Clock) -> None:
    people.allow(dp.Budget(0.1), window="day")
    time.set("2026-11-16T00:00:01.000000Z")
    people.record(Pure(0.1))
    time.set("2026-11-15T00:59:58.000000Z")
    with pytest.raises(BudgetExceeded):
        people.record(Pure(0.1))
