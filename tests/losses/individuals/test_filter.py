"""No adversary, however adaptive, learns more of a person than the person's budget; and nothing leaks."""

from __future__ import annotations

import copy
import math
import os
import pickle
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.losses import Approximate, Gaussian, GaussianDP, Laplace, Pure, Renyi, ZeroConcentrated
from dalenius.losses.individuals import IndividualFilter
from dalenius.losses.individuals.people import MOST_SIZE, PARTS

DEPTH = 6


def leaves(choices, budget, *, filtered=True):
    """Exact laws of all outcomes of an adversary who sees one bit a step and chooses the next in view of it.

    At each node it picks a contribution, a noise and a threshold; the bit says whether contribution plus
    noise is above. The person is in one data set and not in the other.
    """
    found = []

    def walk(node, with_person, without, past):
        if len(past) == DEPTH:
            found.append((with_person, without))
            return
        size, scale, threshold = choices[node]
        limit = IndividualFilter(budget, people=1)
        for old_size, old_scale in past:
            limit.active([old_size], Gaussian(old_scale))
        takes_part = bool(limit.active([size], Gaussian(scale))[0]) or not filtered
        high = norm.sf(threshold - takes_part * size / scale)
        base = norm.sf(threshold)
        for bit, (p, q) in enumerate(((1 - high, 1 - base), (high, base))):
            walk(2 * node + 1 + bit, with_person * p, without * q, [*past, (size, scale)])

    walk(0, 1.0, 1.0, [])
    return np.array(found).T


adversaries = st.lists(
    st.tuples(
        st.sampled_from([0.1, 0.5, 0.9, 1.0]),
        st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(3)]),
        st.floats(-1.5, 3),
    ),
    min_size=2**DEPTH - 1,
    max_size=2**DEPTH - 1,
)


@given(adversaries, st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(3, 2)]))
@settings(max_examples=12)
def test_no_adaptive_adversary_exceeds_the_gaussian_budget(choices, mu):
    p, q = leaves(choices, GaussianDP(mu))
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        limit = GaussianDP(mu).delta(epsilon).upper
        for one, other in ((p, q), (q, p)):
            assert np.maximum(one - math.exp(epsilon) * other, 0).sum() <= limit + 1e-12


@given(adversaries)
@settings(max_examples=6)
def test_no_adaptive_adversary_exceeds_the_renyi_or_concentrated_budget(choices):
    for budget, orders in ((Renyi(4, epsilon=1), [4]), (ZeroConcentrated(0.3), [1.5, 4, 20])):
        p, q = leaves(choices, budget)
        for order in orders:
            for one, other in ((p, q), (q, p)):
                found = math.log((one**order * other ** (1 - order)).sum()) / (order - 1)
                assert found <= budget.renyi(order).upper + 1e-12


def test_without_the_filter_the_budget_is_exceeded():
    choices = [(1.0, Fraction(1), 0.5)] * (2**DEPTH - 1)
    p, q = leaves(choices, GaussianDP(1), filtered=False)
    assert np.maximum(p - q, 0).sum() > GaussianDP(1).delta(0).upper + 0.1


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=40),
    st.fractions("1/3", 5, max_denominator=50),
    st.fractions("1/3", 30, max_denominator=50),
)
@settings(max_examples=60)
def test_what_was_let_through_never_adds_up_to_more_than_the_budget(sizes, mu, scale):
    limit, exact = IndividualFilter(GaussianDP(mu), people=1), Fraction(0)
    for size in sizes:
        charge = max(Fraction(size), Fraction(str(size))) ** 2 / scale**2
        if limit.active([size], Gaussian(scale))[0]:
            exact += charge
        else:
            assert exact + charge > mu**2 * (1 - Fraction(1000, PARTS))
    assert exact <= mu**2


def test_a_budget_for_so_many_full_contributions_lasts_just_so_long():
    for mu, scale, steps in ((1, 10, 100), (0.3, 10, 9), (0.5, 4, 4), (2, 3, 36)):
        limit = IndividualFilter(GaussianDP(mu), people=1)
        assert sum(limit.active([1.0], Gaussian(scale)).item() for _ in range(150)) == steps
    # Where so many do not divide the units in a budget, the last one does not fit.
    for steps, missing in ((40, 0), (48, 0), (41, 1), (49, 1), (64, 1), (128, 1), (1000, 1), (1024, 1)):
        limit = IndividualFilter(ZeroConcentrated(Fraction(steps, 2)), people=1)
        assert sum(limit.active([1.0], Gaussian(1)).item() for _ in range(steps + 2)) == steps - missing


def test_charges_are_never_below_the_exact_ones():
    rng = np.random.default_rng(0)
    edges = [5e-324, 1e-300, 1 - 2**-53, 1.0, 1 + 2**-52, 1 + 2**-30, MOST_SIZE]
    for _ in range(40):
        mu = Fraction(int(rng.integers(1, 99)), int(rng.integers(1, 99)))
        scale = Fraction(int(rng.integers(1, 999)), int(rng.integers(1, 99)))
        sizes = np.concatenate([rng.random(30), 10 ** rng.uniform(-12, 0, 30), edges])
        charges = IndividualFilter(GaussianDP(mu), people=len(sizes))._charges(sizes, Gaussian(scale))
        for size, charge in zip(sizes.tolist(), charges.tolist(), strict=True):
            exact = (max(Fraction(size), Fraction(repr(size))) / scale / mu) ** 2 * PARTS
            assert charge >= min(exact, 2**53)
            assert charge <= exact * (1 + Fraction(1, 2**48)) + 1


def test_budgets_are_rounded_down():
    # A 49th of the largest budget is no whole number of units, and this step costs a little more than it.
    limit = IndividualFilter([GaussianDP(1), GaussianDP(7)], tiers=[0, 1])
    assert limit.active([1.0, 1.0], Gaussian(1 - Fraction(1, 10**18))).tolist() == [False, True]


def test_who_was_clipped_takes_part_and_is_charged_for_what_rounding_adds():
    # Norms of clipped vectors are off 1 by a few roundings: nobody is left out for that.
    values = np.random.default_rng(0).normal(size=(2000, 20))
    clipped = values * np.minimum(1, 1.5 / np.linalg.norm(values, axis=1))[:, None]
    norms = np.linalg.norm(clipped, axis=1) / 1.5
    assert (norms > 1).any()
    sampled = Gaussian(2).poisson(0.1)
    for budget, step in (
        (GaussianDP(1), Gaussian(2)),
        (Renyi(4, epsilon=1), sampled),
        (Renyi(8, epsilon=1), lambda size: Gaussian(1 / size).poisson(0.05)),
        (Pure(1), Laplace(2)),
    ):
        assert IndividualFilter(budget, people=2000).active(norms, step).all()
    # A step that takes all of a budget leaves no room for more than 1, and what does not scale has no charge.
    for budget, step in ((GaussianDP(1), Gaussian(1)), (Pure(1), Laplace(1)), (Pure(1), Pure(0.5))):
        limit = IndividualFilter(budget, people=3)
        assert limit.active([1.0, 1 + 2**-52, MOST_SIZE], step).tolist() == [True, False, False]
    over = IndividualFilter(Renyi(4, epsilon=1), people=2)._charges(
        np.array([1 + 2**-52, MOST_SIZE]), sampled
    )
    least = Gaussian(2 / Fraction(MOST_SIZE)).poisson(0.1).renyi(4).upper
    assert (over >= math.floor(Fraction(least) * PARTS)).all()


def test_everyone_has_their_own_account_and_who_sits_out_pays_nothing():
    limit = IndividualFilter(ZeroConcentrated(1), people=4)
    first = limit.active([1.0, 0.5, 0.0, 1.0], Gaussian(1))
    second = limit.active([1.0, 0.5, 0.0, 0.9], Gaussian(1))
    third = limit.active([0.1, 1.0, 1.0, 1.0], Gaussian(1))
    fourth = limit.active([0.0, 1.0, 1.0, 0.2], Gaussian(1))
    assert first.all() and second.all()
    assert third.tolist() == [False, True, True, False]
    assert fourth.tolist() == [True, False, True, True]


def test_tiers_have_their_own_caps_and_the_ledger_is_charged_the_greatest():
    limit = IndividualFilter([GaussianDP(1), GaussianDP(2)], tiers=[0, 1, 0])
    masks = [limit.active([1.0, 1.0, 0.6], Gaussian(1)).tolist() for _ in range(5)]
    assert np.sum(masks, axis=0).tolist() == [1, 4, 2]
    assert limit.loss == GaussianDP(2) and limit.personal(0) == GaussianDP(1)


def test_contributions_that_are_no_norms_sit_out_without_an_error():
    limit = IndividualFilter(GaussianDP(1), people=6)
    mask = limit.active([math.nan, -0.1, math.inf, 1.5, 1e-300, 0.5], Gaussian(2))
    assert mask.tolist() == [False, False, False, False, True, True]


class Mute:
    def __float__(self):
        raise RuntimeError("731")


def test_no_contribution_makes_an_error():
    # Whatever one person's is, an error or a warning would tell of it.
    odd = (
        *(10**400, Fraction(10**400), "731", b"731", "0.1", None, 1j, [0.1, 0.2], Mute()),
        *(Decimal("sNaN"), Decimal("1e999999"), np.datetime64("2020-01-01"), np.longdouble("1e4000")),
    )
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in odd:
            mask = IndividualFilter(GaussianDP(1), people=2).active([value, 0.5], Gaussian(2))
            assert mask.tolist() == [False, True]
        for array in (
            np.array([math.nan, 0.5]),
            np.array([math.inf, 0.5], np.longdouble),
            np.array(["1e4000", "0.5"], np.longdouble),
            np.array([None, Decimal("0.5")], object),
        ):
            assert IndividualFilter(GaussianDP(1), people=2).active(array, Gaussian(2)).tolist() == [
                False,
                True,
            ]
        assert IndividualFilter(GaussianDP(1), people=2).active([1e-200, 5e-324], Gaussian(2)).all()
    for array in (np.array([1j, 0.5]), np.array(["731", "0.5"])):
        with pytest.raises(InvalidArgument, match="real numbers") as refused:
            IndividualFilter(GaussianDP(1), people=2).active(array, Gaussian(2))
        assert refused.value.__cause__ is None and "731" not in str(refused.value)


def test_what_missing_values_of_a_data_frame_are_sits_out():
    pandas = pytest.importorskip("pandas")
    for column in (pandas.array([None, 0.5], dtype="Float64"), pandas.Series([pandas.NA, 0.5])):
        assert IndividualFilter(GaussianDP(1), people=2).active(column, Gaussian(2)).tolist() == [False, True]


def test_contributions_are_rounded_up_to_floats():
    for value in (1 + Fraction(1, 2**60), Decimal("1.00000000000000000001")):
        limit = IndividualFilter(GaussianDP(1), people=1)
        assert not limit.active([value], Gaussian(1)).any() and limit.active([1], Gaussian(1)).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_a_forked_process_does_not_spend_the_budgets_again():
    limit = IndividualFilter(GaussianDP(1), people=1)
    child = os.fork()
    if not child:
        code = 1
        try:
            limit.active([1.0], Gaussian(2))
        except NotSound:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert limit.active([1.0], Gaussian(2)).all()


def test_other_steps_are_charged_by_what_bounds_every_contribution_of_a_size():
    sampled = IndividualFilter(Renyi(8, epsilon=1), people=3)
    one = Gaussian(1).poisson(0.05).renyi(8).upper
    steps = sum(
        np.array(sampled.active([1.0, 0.25, 0.0], lambda size: Gaussian(1 / size).poisson(0.05)), int)
        for _ in range(40)
    )
    assert steps.tolist() == [math.floor(1 / one), 40, 40]
    pure = IndividualFilter(Pure(1), people=2)
    assert sum(pure.active([1.0, 0.3], Laplace(4)).astype(int) for _ in range(9)).tolist() == [4, 4]
    with pytest.raises(NotSound, match="no measure"):
        pure.active([1.0, 0.3], Gaussian(4))


def test_sizes_between_levels_are_charged_as_the_level_above():
    limit, step = IndividualFilter(Renyi(8, epsilon=1), people=4), lambda size: Gaussian(1 / size)
    charges = limit._charges(np.array([0.0, 0.0077, 1 / 128, 0.0079]), step).tolist()
    assert charges[0] == 0 < charges[1] == charges[2] < charges[3]
    for size, charge in zip((0.0077, 0.0079), charges[1::2], strict=True):
        assert charge >= Fraction(size) ** 2 * 4 * PARTS


@pytest.mark.parametrize("budget", [GaussianDP(1), ZeroConcentrated(1), Renyi(8, epsilon=1), Pure(1)])
def test_a_step_that_sets_events_aside_is_refused(budget):
    with pytest.raises(NotSound, match="no measure"):
        IndividualFilter(budget, people=1).active([1.0], Approximate(0.1, delta=1e-9))


def test_nothing_tells_what_was_spent():
    one, two = (IndividualFilter(GaussianDP(1), people=n) for n in (2, 3))
    one.active([1.0, 0.5], Gaussian(2))
    assert repr(one) == repr(two) == "IndividualFilter(GaussianDP(mu=1))"
    assert not hasattr(one, "__dict__")
    for read in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(NotSound, match="private"):
            read(one)
    with pytest.raises(NotSound, match="private"):
        one.__getstate__()
    with pytest.raises(InvalidArgument) as refused:
        one.active([0.731], Gaussian(2))
    assert "731" not in str(refused.value)


def test_what_has_no_theorem_is_refused():
    with pytest.raises(NotSound, match="with and without"):
        IndividualFilter(GaussianDP(1, relation="replace"), people=1)
    with pytest.raises(NotSound, match="sets events aside"):
        IndividualFilter(ZeroConcentrated(1, delta=1e-6), people=1)
    with pytest.raises(RelationMismatch, match="relation"):
        IndividualFilter(GaussianDP(1), people=1).active([1.0], Gaussian(1, relation="zero_out"))
    sampled = Gaussian(1, relation="zero_out").poisson(0.1)
    for step in (sampled, lambda size: sampled):
        with pytest.raises(RelationMismatch, match="relation"):
            IndividualFilter(Renyi(8, epsilon=1), people=1).active([1.0], step)
    for bad in (
        [GaussianDP(1), Pure(1)],
        [],
        [Gaussian(1)],
        Pure(0),
        [Renyi(2, epsilon=1), Renyi(3, epsilon=1)],
    ):
        with pytest.raises(InvalidArgument, match="budgets"):
            IndividualFilter(bad, people=1)
    for bad in ({}, {"people": 1, "tiers": [0]}):
        with pytest.raises(InvalidArgument, match="budget must be said"):
            IndividualFilter(GaussianDP(1), **bad)
    with pytest.raises(InvalidArgument, match="tiers"):
        IndividualFilter(GaussianDP(1), tiers=[0, 1])
