from __future__ import annotations

import pytest

from dalenius.losses.bounded_range import BoundedRange
from dalenius.losses.concentrated import Renyi
from dalenius.losses.loose import Loose
from dalenius.losses.pure import Approximate
from dalenius.profiles.discrete import Alone


def single(worst):
    ((pair, count),) = worst
    assert count == 1
    return Alone(pair)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.5, 0.9])
def test_one_release_of_bounded_range_is_exact_from_above(epsilon):
    profile = Loose.of(BoundedRange(1), single)
    low, high = profile.delta(epsilon)
    assert low <= high == Alone(BoundedRange(1).directions()[0][0][0]).delta(epsilon)[1]
    assert low == pytest.approx(high, rel=1e-9) if epsilon == 0 else low < high


def test_a_loss_without_a_witness_is_bounded_below_by_nothing():
    low, high = Loose.of(Renyi(8, epsilon=0.1), single).epsilon(1e-5)
    assert low == 0 < high < 2


def test_one_unit_bounds_a_group_from_below():
    low, high = Loose.of(Approximate(1, delta=1e-6).group(2), single).epsilon(1e-5)
    assert 0.99 < low < 2 <= high * (1 + 1e-4)
