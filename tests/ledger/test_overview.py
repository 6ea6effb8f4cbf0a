"""An account at a glance: shares add up, and what is spent alone is what an account of its own would say."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from rich.console import Console

import dalenius as dp
from dalenius.cli.expression import parse
from dalenius.ledger import Account
from dalenius.ledger.overview import overview
from dalenius.losses import Gaussian, Laplace, Pure


def fresh(**budget: float) -> Account:
    return dp.Ledger.memory().open("people", unit=dp.Unit("person"), budget=dp.Budget(**budget))


CHARGES = [
    (Pure(0.1), "ana", "wards"),
    (Gaussian(20), "bo", "model"),
    (Gaussian(8).poisson(0.01) * 100, "bo", "model"),
    (Laplace(10), "ana", "model"),
]


def test_shares_add_up_to_what_is_used() -> None:
    people = fresh(epsilon=3, delta=1e-6)
    for loss, by, purpose in CHARGES:
        people.record(loss, by=by, purpose=purpose)
    seen = overview(people, newest=10)
    assert seen.spending is not None
    assert seen.spending.charges == 4
    for rows in (seen.spending.analysts, seen.spending.purposes):
        assert sum(row.share for row in rows) == pytest.approx(1 - seen.left)
        assert [row.share for row in rows] == sorted((row.share for row in rows), reverse=True)
    assert sum(line.share or 0 for line in seen.newest) == pytest.approx(1 - seen.left)
    assert seen.spent == float(people.spent)


def test_alone_is_what_an_account_of_its_own_would_say() -> None:
    people = fresh(epsilon=3, delta=1e-6)
    own = {by: fresh(epsilon=3, delta=1e-6) for by in ("ana", "bo")}
    for index, (loss, by, purpose) in enumerate(CHARGES):
        for account in (people, own[by]):
            account.record(loss, by=by, purpose=purpose)
            account.cell("ward", f"{index % 2}").record(loss, by=by, purpose=purpose)
    spending = overview(people).spending
    assert spending is not None
    assert {row.name: row.alone for row in spending.analysts} == {
        name: float(account.spent) for name, account in own.items()
    }


def test_parallel_cells_of_one_analyst_count_once() -> None:
    people = fresh(epsilon=1)
    for ward in "abcd":
        people.cell("ward", ward).record(Pure(0.5), by="ana")
    seen = overview(people)
    assert seen.spending is not None
    assert [(row.alone, row.share, row.charges) for row in seen.spending.analysts] == [(0.5, 0.5, 4)]
    assert seen.newest[-1].cell == "ward=d"


def test_the_next_loss_is_accepted() -> None:
    for budget in ({"epsilon": 3, "delta": 1e-6}, {"epsilon": 1}):
        people = fresh(**budget)
        people.record(Pure(0.3))
        seen = overview(people)
        assert seen.next_loss is not None
        assert people.accepts(parse(seen.next_loss))


def test_nothing_left_is_said() -> None:
    people = fresh(epsilon=1)
    people.record(Pure(1))
    seen = overview(people)
    assert (seen.left, seen.next, seen.next_loss) == (0, 0, None)
    assert "nothing is left" in _printed(people)


def test_reservations_and_allowances_are_listed() -> None:
    people = fresh(epsilon=1)
    people.allow(dp.Budget(epsilon=0.5), by="ana", window="year")
    held = people.reserve(Pure(0.2), by="ana", purpose="model")
    people.reserve(Pure(0.1), by="bo").forfeit()
    seen = overview(people)
    assert [line.number for line in seen.reservations] == [held.number]
    (allowed,) = seen.allowances
    assert (allowed.by, allowed.purpose, allowed.budget, allowed.left) == ("ana", None, "epsilon 0.5", 0.6)
    assert allowed.window is not None and allowed.window.startswith("year 20")
    assert seen.spending is not None and seen.spending.forfeited == 1
    assert seen.newest[-1].reservation == 4


def test_it_is_plain_json() -> None:
    people = fresh(epsilon=1)
    people.record(Pure(0.3), by="ana", note="elsewhere")
    plain = overview(people).to_dict()
    assert json.loads(json.dumps(plain))["newest"][-1]["loss"] == "pure(0.3)"


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_no_word_is_lost_in_a_narrow_terminal(width: int) -> None:
    people = fresh(epsilon=1)
    people.record(Pure(0.3), by="ana", purpose="wards")
    assert "70.0 % left" in " ".join(_printed(people, width).split())


def test_many_analysts_are_counted() -> None:
    people = fresh(epsilon=1)
    for number in range(13):
        people.record(Pure(0.01), by=f"analyst {number}")
    assert "… 3 more" in _printed(people)


def _printed(people: Account, width: int = 120) -> str:
    written = StringIO()
    Console(file=written, width=width).print(overview(people))
    return written.getvalue()
