"""Mechanisms that answer more than once, on one charge of an account."""

from __future__ import annotations

import pytest

import dalenius as dp
from dalenius.errors import BudgetExceeded, InvalidArgument
from dalenius.mechanisms import Laplace, SparseVector


def test_a_session_is_charged_once_and_every_answer_names_the_entry() -> None:
    ledger = dp.Ledger.memory()
    people = ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=1))
    mechanism = SparseVector.calibrate(epsilon=0.6, sensitivity=1, threshold=100, count=2)
    session = mechanism.start(people, by="ana", purpose="alarms")
    answers = [session.ask(value) for value in (0, 1e6, 2)]
    assert {answer.receipt.charged for answer in answers} == {"people, entry 2"}
    assert answers[1].value is True
    assert float(people.spent) == 0.6
    assert [entry.event for entry in people.entries()] == ["open", "reserve", "commit"]
    assert ledger.reservations() == []
    with pytest.raises(BudgetExceeded):
        mechanism.start(people, by="ana", purpose="alarms")
    assert ledger.verify() == 3


def test_without_an_account_a_session_says_so() -> None:
    session = SparseVector.calibrate(epsilon=1, sensitivity=1, threshold=100).start(unit=dp.Unit("person"))
    assert session.ask(0).receipt.charged == "uncharged"


def test_a_session_for_others_than_the_account_protects_is_refused_before_it_is_charged() -> None:
    people = dp.Ledger.memory().open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=1))
    mechanism = SparseVector.calibrate(epsilon=0.6, sensitivity=1, threshold=100)
    with pytest.raises(InvalidArgument, match="the account is for person"):
        mechanism.start(people, unit=dp.Unit("visit"), by="ana")
    assert float(people.spent) == 0


def test_what_a_session_was_paid_for_pays_for_nothing_else() -> None:
    people = dp.Ledger.memory().open("people", unit=dp.Unit("person"), budget=dp.Budget(epsilon=1))
    stamp = people.pay(SparseVector.calibrate(epsilon=0.5, sensitivity=1, threshold=10), by="ana", purpose="")
    other = Laplace(scale=2, sensitivity=1).release(3, unit=people.unit)
    with pytest.raises(InvalidArgument):
        stamp(other)
