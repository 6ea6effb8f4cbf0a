from __future__ import annotations

from dalenius.losses.attained import attained
from dalenius.losses.bounded_range import BoundedRange
from dalenius.losses.concentrated import Renyi
from dalenius.losses.laplace import Laplace
from dalenius.losses.mixture import Mixture
from dalenius.losses.pure import Approximate, Pure


def test_a_tight_loss_is_its_own_witness():
    loss = Laplace(1) * 3 + Pure(1)
    assert attained(loss) is loss


def test_a_range_is_met_by_randomized_response_in_its_middle():
    assert attained(BoundedRange(1) * 5) == Pure(0.5) * 5
    assert attained(BoundedRange(1).poisson(0.1)) == Pure(0.5).poisson(0.1)


def test_parts_without_a_witness_are_left_out():
    assert attained(Renyi(2, epsilon=1)) is None
    assert attained(Renyi(2, epsilon=1) + Pure(1)) == Pure(1)


def test_one_unit_of_a_group_is_a_case_of_it():
    assert attained(Approximate(1, delta=0.1).group(3)) == Approximate(1, delta=0.1)


def test_a_mixture_is_met_by_the_mixture_of_witnesses():
    loss = Mixture([BoundedRange(1), Laplace(1)], [0.5, 0.5])
    assert attained(loss) == Mixture([Pure(0.5), Laplace(1)], [0.5, 0.5])
    assert attained(Mixture([Renyi(2, epsilon=1), Laplace(1)], [0.5, 0.5])) is None
