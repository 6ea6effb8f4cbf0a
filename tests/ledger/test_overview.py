"""An account at a glance: shares add up, and what is spent alone is what an account of its own would say."""

from __future__ import annotations

import json
import math
from io import StringIO

import pytest
from rich.console import Console

import dalenius as dp
from dalenius.cli.expression import parse
from dalenius.errors import InvalidArgument
from dalenius.ledger import Account
from dalenius.ledger.overview import overview
from dalenius.ledger.picture import burn_down
from dalenius.losses import Approximate, Gaussian, Laplace, Pure
from dalenius.losses.cost import Cost
from dalenius.release.digits import at_least


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
    limit, total = people.terms.limit, Cost.from_json(people.entries()[-1].fields["total"])
    gauge = limit.emptiest(total)
    assert gauge is not None
    used = float(limit.share(gauge, total))
    for rows in (seen.spending.analysts, seen.spending.purposes):
        assert sum(row.share for row in rows) == pytest.approx(used)
        assert [row.share for row in rows] == sorted((row.share for row in rows), reverse=True)
    assert sum(line.share or 0 for line in seen.newest) == pytest.approx(used)
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
    assert (allowed.by, allowed.purpose, allowed.budget) == ("ana", None, "epsilon 0.5")
    assert allowed.left == pytest.approx(0.6)
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


SLACK = Approximate(0.74, delta=5e-8)
"""Uses up the slack of the pure gauge, and little of its measure."""


def test_slack_that_is_used_up_does_not_read_as_nothing_left() -> None:
    """Receipts, `left`, the bar and the picture state the same, and a question at epsilon 40 is answered."""
    people = fresh(epsilon=50, delta=1e-6)
    entry = people.record(SLACK)
    left = people.left
    assert left.epsilon > 48 and people.left_after(entry) == (
        f"epsilon {at_least(left.epsilon)} of epsilon 50 at delta 1e-06"
    )
    seen = overview(people)
    assert seen.left == pytest.approx(left.epsilon / 50) and seen.next == left.epsilon
    assert f"{math.floor(1000 * seen.left) / 10:.1f} % left" in _printed(people)
    burned = burn_down([people]).series[0]
    assert burned.y[-1] == pytest.approx(100 * seen.left)
    people.record(Pure(40))
    assert people.ledger.verify() == 3


def test_nothing_left_is_said_alike_on_a_receipt() -> None:
    people = fresh(epsilon=1)
    assert people.left_after(people.record(Pure(1))) == "nothing of epsilon 1"


def test_entries_are_listed_page_by_page() -> None:
    people = fresh(epsilon=1)
    other = people.ledger.open("cities", unit=dp.Unit("city"), budget=dp.Budget(1))
    for _ in range(7):
        people.record(Pure(0.01))
        other.record(Pure(0.01))
    before, pages = None, []
    while True:
        seen = overview(people, newest=3, before=before)
        pages.append([line.number for line in seen.newest])
        before = seen.older
        if before is None:
            break
    assert pages == [[11, 13, 15], [5, 7, 9], [1, 3]] and "--before" in _printed(people)


def test_who_spent_what_is_read_from_few_entries_or_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    people = fresh(epsilon=1)
    for _ in range(5):
        people.record(Pure(0.01), by="ana")
    monkeypatch.setattr("dalenius.ledger.overview.FEW", 6)
    assert overview(people).spending is not None and overview(people, brief=True).spending is None
    people.record(Pure(0.01), by="ana")
    assert overview(people).spending is None and "--spending" in _printed(people)
    spending = overview(people, brief=False).spending
    assert spending is not None and spending.charges == 6


def test_a_long_text_of_an_earlier_version_is_cut_where_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    people = fresh(epsilon=1)
    with monkeypatch.context() as patched:
        patched.setattr("dalenius.ledger.account.check_text", lambda *_: None)
        people.record(Pure(0.1), by="b" * 10**5, purpose="p" * 10**5, note="n" * 10**6)
    seen = overview(people)
    assert len(json.dumps(seen.to_dict()["newest"])) < 4000 and len(_printed(people)) < 5000
    assert people.ledger.verify() == 2


def test_open_reservations_beyond_a_page_are_counted() -> None:
    people = fresh(epsilon=1)
    for _ in range(25):
        people.reserve(Pure(0.01), by="ana")
    seen = overview(people)
    assert len(seen.reservations) == 20 and "the first of 25" in _printed(people)


@pytest.mark.parametrize(
    ("argument", "longest"), [("by", 255), ("purpose", 255), ("note", 2000), ("name", 255), ("source", 5000)]
)
def test_names_and_notes_have_a_longest(argument: str, longest: int) -> None:
    ledger = dp.Ledger.memory()
    people = ledger.open("people", unit=dp.Unit("person"), budget=dp.Budget(1))

    def use(text: str) -> object:
        match argument:
            case "name":
                return ledger.open(text, unit=dp.Unit("person"), budget=dp.Budget(1))
            case "source":
                return ledger.open("more", unit=dp.Unit("person"), budget=dp.Budget(1), source=text)
        return people.record(Pure(0.1), **{argument: text})

    with pytest.raises(InvalidArgument, match=f"at most {longest} are kept"):
        use("x" * (longest + 1))
    assert ledger.verify() == 1
    use("x" * longest)
    assert ledger.verify() == 2
