from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from dalenius.errors import InvalidArgument
from dalenius.losses.discrete_laplace import DiscreteLaplace


def geometric(scale: arb, shift: int, outcomes):
    """The law and its shift on a window; outside, what is left of each has the extreme losses."""
    a = (-1 / scale).exp()
    inside = [(x, (1 - a) / (1 + a)) for x in range(1, shift)]
    rows = [(c * a**x, c * a ** (shift - x)) for x, c in inside]
    ends = (1 / (1 + a), a**shift / (1 + a))
    return outcomes([*rows, ends, ends[::-1]])


@pytest.mark.parametrize(
    ("scale", "shift"), [("1", 1), ("2", 3), ("0.1", 1), ("0.3", 4), ("50", 20), ("1000", 7)]
)
def test_the_pair_is_enclosed(scale, shift, ball, outcomes, encloses):
    pair = DiscreteLaplace(Fraction(scale), sensitivity=shift).directions()[0][0][0]
    truth = geometric(ball(Fraction(scale)), shift, outcomes)
    losses = tuple(float((shift - 2 * j) / Fraction(scale)) for j in range(shift + 1))
    encloses(pair, truth, epsilons=(*losses, -0.3, 0.0, 0.01, 0.2, 1.3, 50.0))
    assert pair.reversed() == pair


@pytest.mark.parametrize(("scale", "shift"), [("1", 1), ("2", 3), ("0.3", 4), ("50", 20)])
def test_its_lattice_has_the_same_profile(scale, shift):
    pair = DiscreteLaplace(Fraction(scale), sensitivity=shift).directions()[0][0][0]
    law = pair.lattice()
    losses = [float(law.loss(law.start + i)[0]) for i in range(len(law.masses))]
    for epsilon in (-0.2, 0.0, 0.3, 1.0):
        summed = sum(m * max(0.0, -np.expm1(epsilon - x)) for m, x in zip(law.masses, losses, strict=True))
        assert summed == pytest.approx(pair.hockey(np.array([epsilon]))[1][0], rel=1e-12)


def test_a_large_sensitivity_on_a_fine_grid_is_the_continuous_mechanism():
    fine = DiscreteLaplace(10**9, sensitivity=2 * 10**9).directions()[0][0][0]
    lo, hi = fine.hockey(np.array([0.5]))
    assert lo[0] <= -np.expm1(-0.75) <= hi[0] + 1e-9


def test_the_largest_loss_is_exact():
    pair = DiscreteLaplace(10, sensitivity=3).directions()[0][0][0]
    assert pair.largest == Fraction(3, 10)
    assert pair.hockey(np.array([np.nextafter(0.3, 1), 1.0]))[1].tolist() == [0.0, 0.0]


def test_a_group_has_a_multiple_of_the_sensitivity():
    assert DiscreteLaplace(2).group(3) == DiscreteLaplace(2, sensitivity=3)


def test_a_fractional_sensitivity_is_refused_by_name():
    with pytest.raises(InvalidArgument, match="sensitivity must be a whole number"):
        DiscreteLaplace(1, sensitivity=0.5)
