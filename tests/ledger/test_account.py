"""An account charges before anything is released, refuses what does not fit, and says what would."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dalenius as dp
from dalenius import mechanisms
from dalenius.errors import (
    BudgetExceeded,
    InvalidArgument,
    NotSound,
    RelationMismatch,
    ReservationLost,
)
from dalenius.ledger.account import Account
from dalenius.losses import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GaussianDP,
    Laplace,
    Loss,
    Pure,
    RandomizedResponse,
    Renyi,
    ZeroConcentrated,
)

PERSON = dp.Unit("person", column="person_id")
COUNT = mechanisms.Laplace(scale=10, sensitivity=1)
GOLDEN = Path(__file__).parents[1] / "losses" / "golden"
SECRET = 48_151_623


def opened(
    epsilon: float = 1, delta: float = 0, relation: Any = "add_remove", ledger: dp.Ledger | None = None
) -> Account:
    unit = dp.Unit("person", column="person_id", relation=relation)
    return (ledger or dp.Ledger.memory()).open("people", unit=unit, budget=dp.Budget(epsilon, delta))


def state(account: Account) -> tuple[Any, ...]:
    with account.ledger.store.read() as held:
        return held.head(), held.total(account.name), held.balances(account.name), held.reservations()


# Opening.


def test_opening_is_idempotent_when_equal_and_refused_when_not(place: Any) -> None:
    ledger = dp.Ledger(place.open())
    for _ in range(2):
        people = ledger.open("people", unit=PERSON, budget=dp.Budget(1, 1e-6), source="register 2026")
    people.record(Pure(0.5))
    again = ledger.open(
        "people", unit=PERSON, budget=dp.Budget(1.0, Fraction(1, 10**6)), source="register 2026"
    )
    assert float(again.spent) == 0.5 and len(list(ledger.entries())) == 2
    others = (
        {"budget": dp.Budget(2, 1e-6)},
        {"budget": dp.Budget(1, 1e-7)},
        {"budget": dp.Budget(1, 1e-6, shares={"gaussian": (80, 20)})},
        {"unit": dp.Unit("person", column="id")},
        {"unit": dp.Unit("person", column="person_id", relation="replace")},
        {"source": None},
    )
    for other in others:
        chosen = {"unit": PERSON, "budget": dp.Budget(1, 1e-6), "source": "register 2026"} | other
        with pytest.raises(InvalidArgument, match="that is fixed"):
            ledger.open("people", **chosen)
    assert len(list(ledger.entries())) == 2 and ledger.verify() == 2


def test_a_source_has_one_account_whatever_it_is_called(tmp_path: Path) -> None:
    ledger, key = dp.Ledger.memory(), b"a secret of sixteen bytes or more"
    first, copy, other = (tmp_path / name for name in ("people.csv", "copy of people.csv", "other.csv"))
    first.write_text("person_id\n1\n")
    copy.write_text("person_id\n1\n")
    other.write_text("person_id\n2\n")
    source = ledger.fingerprint(first, key)
    ledger.open("people", unit=PERSON, budget=dp.Budget(1), source=source)
    with pytest.raises(InvalidArgument, match="account already") as refused:
        ledger.open("fresh", unit=PERSON, budget=dp.Budget(9), source=ledger.fingerprint(copy, key))
    assert refused.value.remedy == "Use ledger.account('people')."
    with copy.open("rb") as file:
        assert ledger.fingerprint(file, key) == source != ledger.fingerprint(first, key[::-1])
    ledger.open("others", unit=PERSON, budget=dp.Budget(9), source=ledger.fingerprint(other, key))
    ledger.open("unnamed", unit=PERSON, budget=dp.Budget(9))
    with pytest.raises(InvalidArgument, match="16 bytes"):
        ledger.fingerprint(first, b"short")


def test_an_account_is_found_by_its_name_and_a_missing_one_is_named() -> None:
    people = opened()
    assert people.ledger.account("people").unit == PERSON
    assert [one.name for one in people.ledger.accounts()] == ["people"]
    with pytest.raises(InvalidArgument, match=r"no account 'poeple'; there is: people"):
        people.ledger.account("poeple")


# Charging.


def test_spend_reserves_draws_and_commits(place: Any) -> None:
    people = opened(1, ledger=dp.Ledger(place.open()))
    release = people.spend(COUNT, 100, by="ana", purpose="wards")
    reserve, commit = people.entries()[1:]
    assert (reserve.event, commit.event) == ("reserve", "commit")
    assert commit.fields["reservation"] == 2 and commit.fields["state"] == reserve.fields["state"]
    assert Loss.from_json(reserve.fields["loss"]) == COUNT.loss == release.loss
    paid = release.receipt.entry
    assert paid is not None
    assert (paid.account, paid.number, paid.hash) == ("people", reserve.number, reserve.hash)
    assert release.receipt.unit == people.unit
    assert paid.left == "epsilon 0.9 of epsilon 1"
    assert float(people.spent) == 0.1 and people.ledger.reservations() == []
    assert people.ledger.verify() == 3


def test_a_reservation_is_charged_and_on_record_before_its_release_exists() -> None:
    people = opened(1)
    with people.reserve(COUNT.loss, by="ana") as reservation:
        assert float(people.spent) == 0.1 and people.ledger.reservations() == [reservation.number]
        release = reservation.commit(COUNT.release(100))
    assert release.receipt.entry is not None and people.ledger.reservations() == []


def test_leaving_the_block_any_other_way_forfeits() -> None:
    people = opened(1)
    with people.reserve(Pure(0.1), by="ana"):
        pass
    with pytest.raises(KeyboardInterrupt), people.reserve(Pure(0.1), by="ana"):
        raise KeyboardInterrupt
    with people.reserve(Pure(0.1), by="ana") as reservation:
        reservation.forfeit()
    events = [entry.event for entry in people.entries()]
    assert events == ["open", *["reserve", "forfeit"] * 3]
    assert float(people.spent) == 0.3 and people.ledger.reservations() == [] and people.ledger.verify() == 7


def test_what_ended_cannot_be_committed() -> None:
    people = opened(1)
    reservation = people.reserve(COUNT.loss, by="ana")
    reservation.commit(COUNT.release(100))
    with pytest.raises(ReservationLost):
        reservation.commit(COUNT.release(100))
    other = people.reserve(COUNT.loss, by="ana")
    people.ledger.forfeit(other.number)
    with pytest.raises(ReservationLost):
        other.commit(COUNT.release(100))
    with pytest.raises(InvalidArgument, match="not an open reservation"):
        people.ledger.forfeit(other.number)
    assert people.ledger.verify() == 5


def test_commit_is_refused_when_the_loss_or_the_unit_differs() -> None:
    people = opened(3)
    dearer = mechanisms.Laplace(scale=5, sensitivity=1)
    with pytest.raises(InvalidArgument, match="not the one that was reserved"):
        people.reserve(COUNT.loss, by="ana").commit(dearer.release(100))
    for unit in (dp.Unit("visit"), dp.Unit("person"), dp.Unit("person", column="person_id", window="day")):
        with pytest.raises(InvalidArgument, match="protects"), people.reserve(COUNT.loss, by="ana") as held:
            held.commit(COUNT.release(100, unit=unit))
    with people.reserve(COUNT.loss, by="ana") as held:
        charged = held.commit(COUNT.release(100, unit=PERSON))
    with (
        pytest.raises(InvalidArgument, match="charged to an account already"),
        people.reserve(COUNT.loss, by="ana") as held,
    ):
        held.commit(charged)
    events = [entry.event for entry in people.entries()]
    assert events.count("reserve") == 6 and events.count("commit") == 1 and events.count("forfeit") == 4
    assert people.ledger.verify() == len(events)


def test_a_plan_is_one_charge_composed_as_fixed_losses_are() -> None:
    people = opened(1, 1e-6)
    run = [Gaussian(4).poisson(0.01)] * 100
    with people.plan(run, by="ana", purpose="model") as reservation:
        assert reservation.loss == Gaussian(4).poisson(0.01) * 100
    alone = opened(1, 1e-6)
    for loss in run:
        alone.record(loss)
    assert len(people.entries()) == 3 and float(people.spent) < 0.6 * float(alone.spent)


def test_a_record_is_charged_at_once() -> None:
    people = opened(1)
    entry = people.record(Pure(0.25), note="published 2024 with another tool")
    assert (entry.event, entry.fields["note"]) == ("record", "published 2024 with another tool")
    assert float(people.spent) == 0.25 and people.ledger.reservations() == []


@pytest.mark.parametrize(("epsilon", "times"), [("0.1", 10), ("1/3", 3)])
def test_parts_of_a_whole_fit_and_nothing_more_does(place: Any, epsilon: str, times: int) -> None:
    people = opened(1, ledger=dp.Ledger(place.open()))
    loss = Pure(Fraction(epsilon))
    for _ in range(times):
        people.record(loss)
    for more in (loss, Pure(1e-9)):
        with pytest.raises(BudgetExceeded, match="needs epsilon") as refused:
            people.record(more)
        assert refused.value.largest is None and refused.value.left == 0
        assert "nothing is left" in refused.value.remedy
    assert float(people.spent) == 1 and people.left.loss is None and str(people.left) == "nothing"
    assert not people.accepts(Pure(1e-9)) and people.ledger.verify() == times + 1


# What is left, and refusals.


@pytest.mark.parametrize(
    ("delta", "spent"),
    [
        (0, [Pure(0.3)]),
        (1e-6, [Pure(0.3), Pure(0.2)]),
        (1e-6, [Gaussian(12)]),
        (1e-6, [Gaussian(12), Pure(0.2), ZeroConcentrated(0.001)]),
    ],
)
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_what_is_left_is_accepted_and_hardly_more_is(delta: float, spent: list[Loss], relation: Any) -> None:
    people = opened(2, delta, relation=relation)
    for loss in spent:
        people.record(loss)
    left = people.left
    assert left.loss is not None and people.accepts(left.loss)
    assert left.epsilon == left.loss.epsilon(people.terms.limit.delta).upper
    more = _larger(left.loss)
    assert not people.accepts(more)
    people.record(left.loss)
    after = people.left
    assert float(after) < float(left) and not people.accepts(left.loss)


def _larger(loss: Loss) -> Loss:
    """One thousandth more of what is left."""
    if isinstance(loss, Pure):
        return Pure(loss.limit * Fraction(1001, 1000), relation=loss.relation)
    if isinstance(loss, Renyi):
        return Renyi(loss.alpha, epsilon=loss.limit * Fraction(1001, 1000), relation=loss.relation)
    assert isinstance(loss, GaussianDP)
    return GaussianDP(loss.mu * Fraction(1001, 1000), relation=loss.relation)


REFUSED: tuple[Loss, ...] = (
    Pure(2),
    Laplace(0.5),
    Gaussian(1),
    DiscreteLaplace(2, sensitivity=3),
    RandomizedResponse(Fraction(1, 100)),
    ZeroConcentrated(1),
    GaussianDP(3),
    DiscreteGaussian(1),
    Approximate(3, delta=1e-7),
    Renyi(8, epsilon=2),
    Laplace(1) * 3 + Pure(1),
    Gaussian(1) + Pure(0.5),
    Gaussian(1).poisson(0.1) * 1000,
    Laplace(0.3).poisson(0.5),
)


def remedied(remedy: str, asked: Loss) -> Loss:
    """The loss that a remedy proposes, made from its text."""
    if found := re.fullmatch(r"Try (\w+)=([0-9./]+)\.", remedy):
        name, value = found[1], Fraction(found[2])
        made: Loss = Pure(value) if name == "epsilon" else type(asked)(**{name: value})  # type: ignore[call-arg]
        return made
    from dalenius.cli.expression import parse

    found = re.fullmatch(r"(?:Try|Choose a release that costs at most) (.*)\.", remedy)
    assert found, remedy
    return parse(found[1])


@pytest.mark.parametrize("asked", REFUSED, ids=lambda loss: loss.kind)
@pytest.mark.parametrize("before", [Pure(0.4), Gaussian(20)], ids=lambda loss: loss.kind)
def test_a_refusal_charges_nothing_and_its_remedy_applied_succeeds(asked: Loss, before: Loss) -> None:
    people = opened(1, 1e-6)
    people.record(before)
    held = state(people)
    with pytest.raises(
        BudgetExceeded, match=r"wards needs epsilon .* still fits on people, of epsilon 1"
    ) as found:
        people.reserve(asked, by="ana", purpose="wards")
    error = found.value
    assert state(people) == held
    assert error.needed is not None and error.left is not None and error.needed > error.left > 0.3
    assert isinstance(error.largest, Loss)
    proposed = remedied(error.remedy, asked)
    assert proposed == error.largest
    people.record(proposed)
    again = people.left
    assert float(again) < error.left


def test_the_remedy_of_a_refused_mechanism_applied_to_it_succeeds() -> None:
    people = opened(1, 1e-6)
    people.record(Pure(0.4))
    with pytest.raises(BudgetExceeded) as refused:
        people.spend(mechanisms.Laplace(scale=1, sensitivity=2), 10, by="ana")
    epsilon = refused.value.remedy.removeprefix("Try epsilon=").removesuffix(".")
    smaller = mechanisms.Laplace.calibrate(epsilon=Fraction(epsilon), sensitivity=2)
    assert people.spend(smaller, 10, by="ana").receipt.entry is not None
    people = opened(1, 1e-6)
    with pytest.raises(BudgetExceeded) as refused:
        people.spend(mechanisms.Gaussian(scale=1, sensitivity=2), 10, by="ana")
    multiplier = refused.value.remedy.removeprefix("Try noise_multiplier=").removesuffix(".")
    wider = mechanisms.Gaussian(scale=2 * Fraction(multiplier), sensitivity=2)
    assert people.spend(wider, 10, by="ana").receipt.entry is not None


# Relations and units.


def test_a_remove_and_an_add_pay_for_a_replacement() -> None:
    people = opened(1, relation="replace")
    release = people.spend(mechanisms.Laplace(scale=5, sensitivity=1), 100, by="ana")
    assert release.receipt.unit is not None and release.receipt.unit.relation == "add_remove"
    assert float(people.spent) == pytest.approx(0.4, rel=1e-12)
    people.record(Pure(0.1))
    with pytest.raises(BudgetExceeded) as refused:
        people.record(Pure(0.5))
    proposed = remedied(refused.value.remedy, Pure(0.5))
    assert proposed == refused.value.largest and refused.value.left == pytest.approx(0.2, rel=1e-6)
    people.record(proposed)
    assert float(people.spent) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize(("account", "loss"), [("add_remove", "replace"), ("add_remove", "zero_out")])
def test_a_loss_that_no_theorem_carries_over_is_refused(account: Any, loss: Any) -> None:
    people = opened(1, relation=account)
    held = state(people)
    with pytest.raises(RelationMismatch, match="does not carry over"):
        people.record(Pure(0.1, relation=loss))
    assert state(people) == held


def test_a_loss_for_smaller_units_is_charged_for_the_group() -> None:
    people = opened(1)
    visits = mechanisms.Laplace(scale=20, sensitivity=1)
    with people.reserve(visits.loss, by="ana", per_unit=4) as reservation:
        release = reservation.commit(visits.release(100, unit=dp.Unit("visit")))
    assert float(people.spent) == 0.2 and release.receipt.unit == dp.Unit("visit")
    with pytest.raises(BudgetExceeded) as refused:
        people.record(Pure(0.5), per_unit=4)
    assert refused.value.remedy == "Try epsilon=0.2."
    people.record(Pure(0.2), per_unit=4)
    assert float(people.spent) == 1
    with pytest.raises(InvalidArgument, match="per_unit"):
        people.record(Pure(0.1), per_unit=0)


# What entries hold.


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_every_kind_of_loss_is_charged_and_read_back_from_its_entry(file: Path) -> None:
    loss = Loss.from_json(file.read_text())
    unit = dp.Unit("person", relation=loss.relation)
    gauges: tuple[dict[str, tuple[int, int]], ...] = (
        {"pure": (0, 50)},
        {"zcdp": (5, 5)},
        {"renyi": (5, 5)},
        {"gaussian": (5, 5)},
    )
    accounts = (
        dp.Ledger.memory().open("people", unit=unit, budget=dp.Budget(1000, 0.9, shares=shares))
        for shares in gauges
    )
    people = next(account for account in accounts if account.accepts(loss))
    entry = people.record(loss)
    read = people.ledger.account("people").entries()[1]
    assert read == entry and Loss.from_json(read.fields["loss"]) == loss


def test_entries_and_messages_hold_no_data() -> None:
    people = opened(1)
    people.spend(COUNT, SECRET, by="ana", purpose="wards")
    with pytest.raises(BudgetExceeded) as refused:
        people.spend(mechanisms.Laplace(scale=1, sensitivity=1), SECRET, by="ana")
    with pytest.raises(InvalidArgument) as differs, people.reserve(Pure(0.1), by="ana") as reservation:
        reservation.commit(COUNT.release(SECRET))
    texts = [entry.body for entry in people.ledger.entries()]
    texts += [str(refused.value), repr(refused.value.__dict__), str(differs.value), repr(people)]
    with people.ledger.store.read() as held:
        texts += [*held.balances("people").values(), *held.accounts().values()]
    release = people.entries()[1]
    assert release.event == "reserve" and not any(str(SECRET)[:6] in text for text in texts)


@pytest.mark.parametrize("argument", ["by", "purpose", "note"])
def test_names_and_notes_are_texts(argument: str) -> None:
    said: dict[str, Any] = {"by": "ana"} | {argument: 5}
    with pytest.raises(InvalidArgument, match=f"{argument} must be a text"):
        opened().reserve(Pure(0.1), **said)


def test_only_losses_are_charged_and_a_cell_is_not_divided() -> None:
    people = opened()
    with pytest.raises(InvalidArgument, match="A charge is a loss"):
        people.record(0.1)  # type: ignore[arg-type]
    with pytest.raises(NotSound, match="not divided again"):
        people.cell("wards", "A").cell("streets", "B")
    assert len(people.entries()) == 1


def test_a_charge_is_on_the_disk_before_data_is_read(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every write that counts waits for the disk, and no block is open when the mechanism draws."""
    store = place.open()
    people, written = opened(1, ledger=dp.Ledger(store)), []
    write = store.write

    @contextmanager
    def watched(durable: bool) -> Iterator[Any]:
        with write(durable) as transaction:
            yield transaction
        written.append(durable)

    class Drawing(mechanisms.Laplace):
        def release(self, value: Any, *, unit: Any = None) -> dp.Release:
            assert written == [True] and people.ledger.reservations() == [2]
            return super().release(value, unit=unit)

    monkeypatch.setattr(store, "write", watched)
    people.spend(Drawing(scale=10, sensitivity=1), 100, by="ana")
    assert written == [True, False], "an end may be lost: it is then forfeited"
    written.clear()
    people.record(Pure(0.1))
    people.allow(dp.Budget(1), by="ana")
    people.ledger.open("more", unit=PERSON, budget=dp.Budget(1))
    assert written == [True] * 3


@pytest.mark.parametrize("relation", ["replace", "zero_out"])
def test_smaller_units_may_change_in_number_which_only_add_remove_covers(relation: Any) -> None:
    """Under replace the number of visits is free, and a person who is replaced may have another."""
    unit = dp.Unit("person", relation=relation)
    people = dp.Ledger.memory().open("people", unit=unit, budget=dp.Budget(epsilon=1))
    with pytest.raises(NotSound, match="how many smaller units"):
        people.record(Pure(0, relation=relation), per_unit=3)


def test_a_receipt_that_claims_another_relation_than_its_loss_is_not_committed() -> None:
    unit = dp.Unit("person", relation="replace")
    people = dp.Ledger.memory().open("people", unit=unit, budget=dp.Budget(epsilon=1))
    mechanism = mechanisms.Laplace(scale=10, sensitivity=1)
    with people.reserve(mechanism.loss, by="ana") as reservation:
        release = mechanism.release(3)
        forged = replace(release, receipt=replace(release.receipt, unit=unit))
        with pytest.raises(InvalidArgument, match="its loss is for add_remove"):
            reservation.commit(forged)
