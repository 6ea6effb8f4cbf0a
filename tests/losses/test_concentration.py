from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dalenius.losses import divergence
from dalenius.losses.bounded_range import BoundedRange
from dalenius.losses.concentration import enclose
from dalenius.losses.discrete_gaussian import DiscreteGaussian
from dalenius.losses.discrete_laplace import DiscreteLaplace
from dalenius.losses.pure import Approximate, Pure
from dalenius.losses.raw import DiscretePair


@pytest.mark.parametrize(
    "loss",
    [
        DiscretePair([0.25, 0.75], [0.5, 0.5]),
        DiscreteLaplace(2, sensitivity=3) * 4,
        Pure(0.5).poisson(0.1),
        DiscreteGaussian(3) + Pure(0.2),
    ],
)
def test_no_order_needs_more_and_some_order_nearly_as_much(loss):
    low, high = enclose(loss)
    seen = [divergence.lower(loss, Fraction(a)) / a for a in 1 + np.geomspace(1e-3, 300, 60)]
    assert max(seen) <= high
    assert low <= high <= max(*seen, low) * (1 + 1e-3)


def test_what_is_known_is_not_searched_for():
    assert enclose(DiscreteGaussian(2) * 3) == (0.375, 0.375)
    low, high = enclose(BoundedRange(1))
    assert low < high == 0.125
    assert enclose(DiscreteGaussian(2).poisson(0.1)) == (0.125, 0.125)


def test_a_loss_that_can_be_infinite_has_none():
    assert enclose(Approximate(1, delta=0.1)) == (float("inf"), float("inf"))
