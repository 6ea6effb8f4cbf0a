from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dalenius.losses.concentrated import Renyi
from dalenius.losses.group import Group
from dalenius.losses.laplace import Laplace
from dalenius.losses.pure import Approximate, Pure
from dalenius.losses.raw import DiscretePair


def test_one_unit_is_the_loss_itself():
    assert Approximate(1, delta=0.1).group(1) == Approximate(1, delta=0.1)


def test_a_composition_is_enlarged_term_by_term():
    assert (Pure(1) * 3 + Laplace(2)).group(2) == Pure(2) * 3 + Laplace(1)


def test_the_general_bound_is_the_textbook_one():
    # Dwork and Roth 2014, Theorem 2.2: (kε, δ(e^{kε} − 1)/(e^ε − 1)).
    pair = Approximate(0.5, delta=1e-6).group(3).directions()[0][0][0]
    upper = pair.hockey(np.array([1.5]))[1][0]
    assert upper == pytest.approx(1e-6 * math.expm1(1.5) / math.expm1(0.5), rel=1e-9)
    far = pair.hockey(np.array([2.0, 900.0]))[1]
    assert far[0] == pytest.approx(upper) and far[1] == pytest.approx(upper)


@pytest.mark.parametrize("size", [2, 3, 7])
def test_a_path_of_laplace_laws_stays_below_the_general_bound(size):
    # Laplace's own group loss is known exactly: the general bound must not undercut it.
    step = Laplace(2).directions()[0][0][0]
    bound = Group(Laplace(2), size).directions()[0][0][0]
    exact = Laplace(2).group(size).directions()[0][0][0]
    epsilons = np.linspace(-6, 6, 241)
    assert (exact.hockey(epsilons)[0] <= bound.hockey(epsilons)[1]).all()
    for order in (0.1, 1.0, 5.0):
        assert exact.log_moment(order)[0] <= bound.log_moment(order)[1]
    assert bound.support[1] >= size * step.support[1]


def test_chains_of_discrete_laws_stay_below_the_bound_both_ways():
    # Three laws, each next to the other by the same pair of ratios.
    laws = [(Fraction(4, 7), Fraction(2, 7), Fraction(1, 7)), (Fraction(1, 3),) * 3]
    first, second = laws
    third = tuple(reversed(first))
    step = DiscretePair(first, second)
    epsilons = np.linspace(-3, 3, 121)
    bounds = [worst[0][0].hockey(epsilons)[1] for worst in step.group(2).directions()]
    # (second, third) is a relabelling of (second, first), the reverse of the step.
    worst = np.maximum(*bounds) if len(bounds) == 2 else bounds[0]
    for p, q in ((first, third), (third, first)):
        truth = [
            sum(max(float(a) - math.exp(e) * float(b), 0) for a, b in zip(p, q, strict=True))
            for e in epsilons
        ]
        assert (np.array(truth) <= worst + 1e-12).all()


def test_moments_at_an_order_need_those_at_k_times_the_order():
    grouped = Renyi(9, epsilon=0.1).group(2)
    assert math.isinf(grouped.moment(4.0))
    assert grouped.moment(3.0) == pytest.approx(3 * 0.1 * (1 + 8 / 7), rel=1e-12)


def test_it_is_not_tight_and_keeps_its_relation():
    loss = Approximate(1, delta=0.1, relation="zero_out").group(2)
    assert not loss.tight and loss.relation == "zero_out"


def test_a_huge_group_is_bounded_without_a_huge_sum():
    assert Group(Pure(Fraction(1, 10**9)), 10**6).moment(1.0) < 1


def test_a_replacement_is_a_path_of_two():
    # A report of one of three values, or of none (uniform): removing the old value and adding the new one.
    none = np.full(3, 1 / 3)
    old, new = np.array([0.6, 0.2, 0.2]), np.array([0.2, 0.6, 0.2])
    rate, epsilons = 0.3, np.linspace(0, 3, 61)
    loss = DiscretePair([0.6, 0.2, 0.2], [Fraction(1, 3)] * 3).poisson(0.3).group(2)
    ((pair, _),) = loss.directions()[0]
    p, q = ((1 - rate) * none + rate * law for law in (old, new))
    truth = np.maximum(p[:, None] - np.exp(epsilons) * q[:, None], 0).sum(axis=0)
    assert (truth <= pair.hockey(epsilons)[1] + 1e-15).all()
