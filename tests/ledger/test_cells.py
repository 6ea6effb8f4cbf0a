"""Cells of a division are charged in parallel: the largest counts, for a move to another cell too."""

from __future__ import annotations

import random
from collections import defaultdict
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dalenius as dp
from dalenius.errors import BudgetExceeded, NotSound
from dalenius.ledger.account import Account
from dalenius.ledger.terms import cell_cost
from dalenius.losses import Approximate, Cost, Filter, Gaussian, Loss, Pure, Renyi, ZeroConcentrated
from dalenius.losses.cost import STEP

RELATIONS = ("add_remove", "zero_out", "replace")


def opened(relation: Any, epsilon: float = 1, delta: float = 0) -> Account:
    unit = dp.Unit("person", relation=relation)
    return dp.Ledger.memory().open("people", unit=unit, budget=dp.Budget(epsilon, delta))


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_largest_cell_is_charged(relation: Any) -> None:
    people = opened(relation, 3)
    for cell, tenths in (("A", 3), ("B", 5), ("C", 4), ("A", 1), ("B", 1)):
        people.cell("wards", cell).record(Pure(Fraction(tenths, 10)))
    # A 0.4, B 0.6, C 0.4; to replace a unit may be to remove it from one and to add it to another.
    times = 2 if relation == "replace" else 1
    assert float(people.spent) == 0.6 * times
    people.record(Pure(0.5, relation=relation))
    people.cell("age", "old").record(Pure(0.2))
    assert float(people.spent) == pytest.approx(0.6 * times + 0.5 + 0.2 * times)
    assert people.ledger.verify() == 8


@pytest.mark.parametrize("relation", RELATIONS)
def test_what_is_left_for_a_cell_is_accepted_and_hardly_more_is(relation: Any) -> None:
    people = opened(relation)
    people.record(Pure(0.1, relation=relation))
    people.cell("wards", "A").record(Pure(0.4))
    people.cell("wards", "B").record(Pure(0.2))
    expected = {"A": 0.05, "B": 0.25, "C": 0.45} if relation == "replace" else {"A": 0.5, "B": 0.7, "C": 0.9}
    for name, epsilon in expected.items():
        cell = people.cell("wards", name)
        assert float(cell.left) == pytest.approx(epsilon, rel=1e-5), name
        assert cell.left.loss is not None and cell.accepts(cell.left.loss)
        assert not cell.accepts(Pure(epsilon * 1.001))
        with pytest.raises(BudgetExceeded) as refused:
            cell.record(Pure(2))
        assert refused.value.left == pytest.approx(epsilon, rel=1e-5)
    cell.record(cell.left.loss)
    assert float(people.spent) == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("relation", RELATIONS[1:])
def test_a_loss_that_does_not_cover_leaving_a_cell_is_refused(relation: Any) -> None:
    """A mean with a public number of units gives away who left, at no cost under replace."""
    people = opened(relation)
    with pytest.raises(NotSound, match="leaves or enters"):
        people.cell("wards", "A").record(Pure(0.1, relation=relation))


def test_moving_and_changing_both_cost_no_more_than_is_charged() -> None:
    """Two Gaussian cells: μ² is 4 for a change in one and 2 for a move; the largest is charged 4."""
    people = opened("replace", 5, 1e-6)
    for cell in "AB":
        people.cell("wards", cell).record(Gaussian(4))
    with people.ledger.store.read() as held:
        total = Cost.from_json(held.total("people") or "")
    assert total.amounts["gaussian"][0] * STEP == Fraction(4, 16)


def test_a_cell_pays_for_its_own_releases_and_for_those_about_everyone() -> None:
    people = opened("add_remove")
    for _ in range(4):
        people.cell("wards", "A").record(Pure(0.1))
        people.cell("wards", "B").record(Pure(0.2))
    people.record(Pure(0.2))
    assert not people.accepts(Pure(0.1)) and people.cell("wards", "A").accepts(Pure(0.4))
    assert not people.cell("wards", "B").accepts(Pure(0.1))
    assert not people.cell("other", "A").accepts(Pure(0.1)), "another division is not disjoint from this one"


def test_cells_with_odd_names_are_kept_apart() -> None:
    people = opened("add_remove")
    names = [("a b", "c"), ("a", "b c"), ("a", '"b"'), ("a", "b"), ("a", "Ä\n")]
    for n, (division, name) in enumerate(names, 1):
        people.cell(division, name).record(Pure(Fraction(n, 100)))
    assert float(people.spent) == pytest.approx(0.01 + 0.05) and people.ledger.verify() == 6


def test_allowances_count_cells_in_full() -> None:
    """An allowance knows no cells, which is the safe side; the account still counts them in parallel."""
    people = opened("add_remove")
    people.allow(dp.Budget(0.3), by="ana")
    for cell in "ABC":
        people.cell("wards", cell).record(Pure(0.1), by="ana")
    assert float(people.spent) == pytest.approx(0.1)
    assert not people.cell("wards", "D").accepts(Pure(0.1), by="ana")


# Against all charges kept and added up anew each time.


LOSSES: list[Loss] = [
    Pure(0.03),
    Pure(0.11),
    Gaussian(40),
    ZeroConcentrated(0.0005),
    Approximate(0.05, delta=1e-8),
    Approximate(0.05, delta=3e-8),
]
"""On some of the gauges each."""


def recomputed(limit: Filter, charges: list[tuple[tuple[str, str] | None, Loss]], relation: Any) -> Cost:
    """Everyone's charges, and for each division the largest sums over its cells, gauge by gauge."""
    total = limit.nothing
    divisions: defaultdict[str, dict[str, Cost]] = defaultdict(dict)
    for cell, loss in charges:
        if cell is None:
            total = total + limit.cost(loss)
        else:
            division, name = cell
            cost = cell_cost(limit, loss, relation)
            divisions[division][name] = divisions[division].get(name, limit.nothing) + cost
    for cells in divisions.values():
        total = total + Cost.largest(cells.values())
    return total


def whole(loss: Loss, relation: Any) -> Loss:
    """The same about everyone, as the account's relation sees it."""
    return Pure(0.07, relation=relation) if relation == "zero_out" else loss.under(relation)


PLACES = st.sampled_from([None, *((d, c) for d in ("wards", "age") for c in "ABC")])


@pytest.mark.parametrize("relation", RELATIONS)
@given(charges=st.lists(st.tuples(PLACES, st.integers(0, 5)), max_size=30))
@settings(max_examples=12)
def test_totals_are_those_of_a_recomputation_from_all_charges(
    relation: Any, charges: list[tuple[tuple[str, str] | None, int]]
) -> None:
    people = opened(relation, 1, 1e-6)
    limit, kept = people.terms.limit, []
    for place, index in charges:
        loss = LOSSES[index] if place is not None else whole(LOSSES[index], relation)
        target = people if place is None else people.cell(*place)
        fits = limit.accepts(recomputed(limit, [*kept, (place, loss)], relation))
        try:
            target.record(loss)
            kept.append((place, loss))
            assert fits
        except BudgetExceeded:
            assert not fits
    with people.ledger.store.read() as held:
        total = held.total("people")
    expected = recomputed(limit, kept, relation)
    assert Cost.from_json(total or limit.nothing.to_json()) == expected
    people.ledger.verify()


def test_a_division_that_no_gauge_holds_takes_no_more() -> None:
    """One loss is held by Rényi gauges only, the other by the Gaussian one only: together by none."""
    people = opened("add_remove", 1, 1e-6)
    cell = people.cell("wards", "A")
    first, second = Renyi(40, epsilon=0.01), Approximate(0.01, delta=1e-9).group(3)
    assert cell.accepts(first) and cell.accepts(second)
    cell.record(first)
    for other in (cell, people.cell("wards", "B"), people):
        assert not other.accepts(second)
    limit = people.terms.limit
    both = limit.cost(first) + limit.cost(second)
    assert both.amounts == {}


def test_the_order_of_charges_does_not_matter() -> None:
    charges = [(cell, Pure(Fraction(n, 100))) for n in range(1, 6) for cell in "ABC"]
    totals = set()
    for seed in range(5):
        people = opened("replace", 5)
        for cell, loss in random.Random(seed).sample(charges, len(charges)):
            people.cell("wards", cell).record(loss)
        totals.add(float(people.spent))
    assert len(totals) == 1
