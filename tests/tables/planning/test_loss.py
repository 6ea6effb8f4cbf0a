"""A plan's loss keeps its promise, wastes next to nothing, and covers every part that it is made of."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from planning.asked import DELTA, EVERY, asked, between, patient
from reference import ReferenceLoaded

from dalenius.errors import InvalidArgument
from dalenius.losses import Approximate, Gaussian, Pure, compose
from dalenius.mechanisms.new_keys import chance
from dalenius.privacy.sensitivity import sqrt_up
from dalenius.tables.bounds import Bounds
from dalenius.tables.planning.plan import Plan
from dalenius.tables.planning.selecting import select

RELATIONS = ["add_remove", "replace", "zero_out"]


def plan(
    *kinds: str, epsilon: Any = 1, delta: Any = DELTA, relation: Any = "add_remove", **more: Any
) -> Plan:
    bounds = more.pop("bounds", None)
    return Plan.make(
        asked(*kinds, **more), unit=patient(relation), epsilon=epsilon, delta=delta, bounds=bounds
    )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("keys", [(("a",), ("b",)), None, ((),)])
@pytest.mark.parametrize("epsilon", [0.05, 1, 8])
def test_epsilon_is_kept_and_used_up(relation: Any, keys: Any, epsilon: float) -> None:
    made = plan("count", "avg", "quantile", "units", keys=keys, epsilon=epsilon, relation=relation)
    found = made.loss.epsilon(DELTA).upper
    assert 0.999 * epsilon <= found <= epsilon
    assert made.loss.relation == relation


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_parts_compose_to_no_more_than_the_loss(relation: Any) -> None:
    for kinds in (("count",), ("avg",), EVERY):
        made = plan(*kinds, keys=None, relation=relation)
        factor = 2 if relation == "replace" else 1
        parts = [Gaussian(factor * noise.multiplier, relation=relation) for noise in made.parts.noises]
        selection = made.parts.selection
        assert selection is not None
        # As many counts as a unit has keys, under replace twice as many, each moved by 1.
        parts.append(
            Gaussian(factor * selection.scale / sqrt_up(Fraction(factor * selection.keys)), relation=relation)
        )
        alone = chance(selection.scale, selection.threshold, "gaussian", selection.keys)
        whole = compose([*parts, Approximate(0, delta=alone, relation=relation)])
        for delta in (Fraction(1, 10**3), DELTA):
            assert whole.epsilon(delta).upper <= made.loss.epsilon(delta).upper * (1 + 1e-9)


def test_what_an_account_charges_covers_the_mechanisms_themselves() -> None:
    made = plan("count", "sum", within=between(0, 10), bounds=Bounds(rows=4), relation="replace")
    laws = [
        noise.on(Fraction(1000), nonnegative=signed)
        for noise, signed in zip(made.parts.noises, (True, False), strict=True)
    ]
    assert compose([law.loss for law in laws]).epsilon(DELTA).upper <= 1


@pytest.mark.parametrize("relation", RELATIONS)
def test_without_delta_the_loss_is_pure(relation: Any) -> None:
    made = plan("count", "avg", "max", delta=0, relation=relation)
    assert made.loss == Pure(1, relation=relation)
    assert sum(1 / noise.multiplier for noise in made.parts.noises) <= 1
    assert made.norm == "l1"


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1, 7), 0.3, 0.1, 1e-3, 12])
def test_what_is_read_of_a_loss_is_no_more_than_was_asked(epsilon: Any) -> None:
    """Its upper end is a float that is rounded up, and explain shows it."""
    for delta, keys in ((0, (("a",),)), (DELTA, (("a",),)), (DELTA, None)):
        found = plan("count", epsilon=epsilon, delta=delta, keys=keys).loss.epsilon(delta).upper
        assert (1 - 1e-6) * float(epsilon) <= found <= float(epsilon)


@pytest.mark.parametrize("epsilon", [250, 360, 1000])
def test_a_large_epsilon_is_planned_with_private_groups_too(epsilon: int) -> None:
    made = plan("count", keys=None, epsilon=epsilon)
    assert 0.999 * epsilon <= made.loss.epsilon(DELTA).upper <= epsilon


def test_a_delta_that_no_threshold_can_keep_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="too small for selecting") as caught:
        plan("count", keys=None, delta=Fraction(1, 10**60))
    assert "1e-40" in caught.value.remedy
    assert plan("count", keys=None, delta=Fraction(1, 10**40)).parts.selection is not None


def test_private_groups_need_a_delta() -> None:
    with pytest.raises(InvalidArgument, match="delta 0") as caught:
        plan("count", keys=None, delta=0)
    assert "keys=" in caught.value.remedy
    assert plan("count", keys=(("a",),), delta=0).loss


def test_average_and_count_of_one_column_are_paid_once() -> None:
    def measures(*kinds: str) -> list[str]:
        return [need.kind for need in plan(*kinds).needs]

    assert measures("count_of", "avg", "sum") == ["present", "sum"]
    assert sorted(measures("avg", "var_samp", "stddev_pop")) == ["present", "squares", "sum"]
    assert measures("quantile", "min", "max") == ["tree"]
    assert [need.kind for need in plan("count", "avg", never_null=(True,)).needs] == ["rows", "sum"]


def test_nothing_is_searched_for_that_is_known_or_given() -> None:
    assert not plan("count", "sum", "units", "distinct", rows_per_unit=1, within=between(0, 1)).searches
    assert not plan("count", "units", "distinct", units=0).searches
    given = Bounds(rows=3, groups=2, pairs=2, ranges={"value_0": (0, 5)})
    assert not plan("count", "sum", "units", "distinct", bounds=given).searches
    assert [search.kind for search in plan("count", "sum").searches] == ["rows", "values"]


def test_groups_alone_cost_what_selecting_them_costs() -> None:
    made = plan(keys=None)
    assert 0.99 <= made.loss.epsilon(DELTA).upper <= 1
    assert not made.parts.noises
    assert plan(keys=(("a",),)).loss.epsilon(0).upper == 0


def test_a_group_that_few_hold_is_never_or_seldom_shown_and_one_that_many_hold_always() -> None:
    selection = plan("count", keys=None).parts.selection
    assert selection is not None
    # One that a single unit holds is shown, and one that so many hold is hidden, with less than 1e-6.
    many = selection.threshold + selection.additive.reach(Fraction(1, 10**7))
    holders = {("few",): 1, ("many",): many, (None,): many, (3,): many}
    assert select(selection, holders) == ((None,), (3,), ("many",))


def test_the_order_and_the_writing_of_groups_tell_nothing_of_rows() -> None:
    selection = plan("count", keys=None).parts.selection
    assert selection is not None
    many = selection.threshold + selection.additive.reach(Fraction(1, 10**7))
    nan, infinity = float("nan"), float("inf")
    for order in ((nan, infinity, -0.0, -infinity), (infinity, -infinity, nan, 0.0)):
        shown = select(selection, {(part,): many for part in order})
        assert str(shown) == "((-inf,), (0.0,), (inf,), (nan,))"


@pytest.mark.parametrize(
    "wrong",
    [
        {"keys": (("a",), ("a",))},
        {"keys": ((float("nan"),), (float("nan"),))},
        {"bounds": Bounds(ranges={"height": (0, 1)})},
        {"bounds": Bounds(rows=10**9), "epsilon": 1e-6},
        {"epsilon": 1e-9, "delta": 0},
        {"bounds": Bounds(ranges={"value_0": (0, 1e-300)})},
    ],
)
def test_what_cannot_be_planned_is_refused_with_a_remedy(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        plan("count", "sum", **wrong)
    assert caught.value.remedy


def test_the_largest_epsilon_that_is_planned_can_be_run() -> None:
    rows = [{"unit_0": 0, "key_0": "a", "value_0": 1e6 * i, "distinct_0": i} for i in range(1000)]
    for delta in (0, DELTA):
        made = plan("count", "sum", "quantile", "units", "distinct", epsilon=10**6, delta=delta)
        assert len(made.run(ReferenceLoaded(rows, made.question.rows)).columns["sum"]) == 2


def test_the_smallest_epsilon_that_is_planned_can_be_run() -> None:
    rows = [{"unit_0": i, "key_0": "a", "value_0": 1e6 * i, "distinct_0": i} for i in range(50)]
    for delta, epsilon in ((0, 1e-3), (DELTA, 1e-6)):
        made = plan("count", "sum", "quantile", "units", "distinct", epsilon=epsilon, delta=delta)
        for _ in range(5):
            assert len(made.run(ReferenceLoaded(rows, made.question.rows)).columns["sum"]) == 2


def test_a_public_size_goes_with_relations_that_keep_it() -> None:
    with pytest.raises(InvalidArgument):
        Plan.make(asked("units"), unit=patient(), epsilon=1, delta=DELTA, public_size=9)
    assert Plan.make(asked("units"), unit=patient("replace"), epsilon=1, delta=DELTA, public_size=9)


@pytest.mark.parametrize(
    "wrong", [{"rows": 0}, {"rows": 1e12}, {"groups": 1.5}, {"ranges": {"x": (2, 1)}}, {"ranges": {"x": 3}}]
)
def test_bounds_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        Bounds(**wrong)
