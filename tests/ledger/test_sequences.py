"""Whatever is asked, in view of whatever was answered: what is accepted never costs more than the budget."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dalenius as dp
from dalenius.errors import BudgetExceeded
from dalenius.ledger.account import Account
from dalenius.ledger.entry import Entry
from dalenius.losses import (
    Approximate,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Loss,
    Pure,
    RandomizedResponse,
    ZeroConcentrated,
    compose,
)

EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)
ALLOWED = Fraction(1, 2)
"""The ε of ana's allowance, which is all for Gaussians, and of ben's, which has no δ."""
LOSSES: tuple[Loss, ...] = (
    Pure(0.1),
    Pure(0.02),
    Laplace(20),
    Gaussian(20),
    Gaussian(9),
    Gaussian(2).poisson(0.01),
    RandomizedResponse(Fraction(95, 100)),
    Approximate(0.05, delta=1e-9),
    ZeroConcentrated(0.002),
    DiscreteGaussian(12),
)
CELLS = (None, "A", "B", "C")
ANALYSTS = ("ana", "ben", "cy")


@dataclass
class Adversary:
    """Asks for one loss after the other, each chosen by what was accepted before it."""

    account: Account
    accepted: list[tuple[Loss, str | None, str]] = field(default_factory=list)
    refused: bool = False

    def ask(self, loss: Loss, cell: str | None, by: str) -> bool:
        target = self.account if cell is None else self.account.cell("wards", cell)
        fits = target.accepts(loss, by=by)
        if fits:
            target.record(loss, by=by)
            self.accepted.append((loss, cell, by))
        elif not self.refused:
            self.take_what_fits(target, loss, cell, by)
        return fits

    def take_what_fits(self, target: Account, loss: Loss, cell: str | None, by: str) -> None:
        """The first refusal says what is left, and then just that is taken."""
        self.refused = True
        with pytest.raises(BudgetExceeded) as refused:
            target.record(loss, by=by)
        if isinstance(left := refused.value.largest, Loss):
            target.record(left, by=by)
            self.accepted.append((left, cell, by))


def charged_to(accepted: list[tuple[Loss, str | None, str]], cells: set[str | None]) -> list[Loss]:
    return [loss for loss, cell, _ in accepted if cell is None or cell in cells]


def within(losses: list[Loss], epsilon: Fraction, delta: Fraction) -> bool:
    """By fixed-parameter composition, which no adaptive sequence undercuts: δ(ε) is certainly not above δ."""
    return not losses or compose(losses).delta(epsilon).lower <= delta


def opened(relation: Any = "add_remove") -> Account:
    unit = dp.Unit("person", relation=relation)
    people = dp.Ledger.memory().open("people", unit=unit, budget=dp.Budget(EPSILON, DELTA))
    people.allow(dp.Budget(ALLOWED, DELTA / 2, shares={"gaussian": (80, 20)}), by="ana")
    people.allow(dp.Budget(ALLOWED), by="ben")
    return people


ASKED = st.lists(
    st.tuples(st.integers(0, len(LOSSES) - 1), st.sampled_from(CELLS), st.sampled_from(ANALYSTS)),
    min_size=1,
    max_size=25,
)


@given(asked=ASKED)
@settings(max_examples=4)
def test_what_one_unit_loses_by_all_that_was_accepted_is_within_the_budget(asked: Any) -> None:
    """A unit is in one cell; each allowance holds over all cells together."""
    adversary = Adversary(opened())
    for index, cell, by in asked:
        # What was answered moves what is asked next.
        moved = (index + len(adversary.accepted)) % len(LOSSES)
        while adversary.ask(LOSSES[moved], cell, by) and len(adversary.accepted) % 4:
            pass
    accepted = adversary.accepted
    for cell in CELLS:
        assert within(charged_to(accepted, {cell}), EPSILON, DELTA)
    for by, delta in (("ana", DELTA / 2), ("ben", Fraction(0))):
        assert within([loss for loss, _, who in accepted if who == by], ALLOWED, delta)
    adversary.account.ledger.verify()


def _alike(loss: Loss) -> Loss:
    """A pair for replace neighbours as the same pair for others, so that both add up."""
    if loss.relation == "add_remove":
        return loss
    return Gaussian(loss.noise_multiplier / 2) if isinstance(loss, Gaussian) else Pure(loss.epsilon(0).upper)


@given(asked=ASKED)
@settings(max_examples=6)
def test_a_unit_that_moves_between_two_cells_is_within_the_budget_too(asked: Any) -> None:
    """Under replace: it may leave one cell and enter another, or change within one."""
    kinds = (Pure(0.3), Gaussian(20), Pure(0.1))
    adversary = Adversary(opened("replace"))
    for index, cell, by in asked:
        loss = kinds[index % 3]
        adversary.ask(loss if cell is not None else loss.under("replace"), cell, by)
    for one in "ABC":
        stays = [loss.under("replace") for loss in charged_to(adversary.accepted, {one})]
        assert within(stays, EPSILON, DELTA)
        for other in "ABC".replace(one, ""):
            moved = charged_to(adversary.accepted, {one, other})
            assert within([_alike(loss) for loss in moved], EPSILON, DELTA)


@given(asked=ASKED, order=st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_the_order_does_not_matter_where_all_is_accepted(asked: Any, order: Any) -> None:
    """The same charges in another order: the same balances, and the same verdict on all of them."""
    first = Adversary(opened(), refused=True)
    for index, cell, by in asked:
        first.ask(LOSSES[index], cell, by)
    shuffled = list(first.accepted)
    order.shuffle(shuffled)
    second = Adversary(opened(), refused=True)
    for loss, cell, by in shuffled:
        assert second.ask(loss, cell, by), "a part of what was accepted is accepted"
    assert _kept(first.account) == _kept(second.account)


def _kept(account: Account) -> Any:
    with account.ledger.store.read() as held:
        return held.total(account.name), held.balances(account.name)


@pytest.mark.parametrize("kind", ["pure", "gaussian"])
def test_a_sequence_of_equal_losses_is_accepted_as_often_as_the_theorem_allows(kind: str) -> None:
    """Within a third of what fixed parameters would allow, and never more."""
    loss = Pure(Fraction(1, 7)) if kind == "pure" else Gaussian(30)
    people = dp.Ledger.memory().open("people", unit=dp.Unit("person"), budget=dp.Budget(EPSILON, DELTA))
    count = 0
    while people.accepts(loss):
        people.record(loss)
        count += 1
    assert (loss * count).epsilon(DELTA).lower <= EPSILON
    assert (loss * (3 * count // 2 + 1)).epsilon(DELTA).upper > EPSILON


def test_every_entry_is_read_back_from_its_json() -> None:
    """One of every event, with every field, also such as no one would choose."""
    ledger = dp.Ledger.memory()
    people = ledger.open(
        "Menschen\u2028\n\"'\\", unit=dp.Unit("person"), budget=dp.Budget(3, 1e-6), source="é"
    )
    people.allow(dp.Budget(0.5), by="ana\t", purpose="𝒫", window="week")
    for loss in LOSSES:
        people.cell("wards 🏘", (loss.kind * 20)[:200]).record(loss, by="ana\t", purpose="p", note="\u200f")
    people.reserve(Pure(0.01), by="ben").forfeit()
    entries = list(ledger.entries())
    assert {"open", "allow", "record", "reserve", "forfeit"} == {entry.event for entry in entries}
    for entry in entries:
        read = Entry.read(entry.body, entry.hash)
        assert (read, read.fields, read.at, read.account) == (entry, entry.fields, entry.at, entry.account)
        assert json.loads(entry.body)["fields"] == entry.fields
    charges = [entry for entry in entries if entry.event == "record"]
    assert tuple(Loss.from_json(entry.fields["loss"]) for entry in charges) == LOSSES
    assert ledger.verify() == len(entries)
