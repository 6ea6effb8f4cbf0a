from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dalenius.errors import InvalidArgument
from dalenius.losses.discrete_gaussian import DiscreteGaussian


def discrete_normal(scale, shift, ball, outcomes):
    half = 1 / (2 * ball(scale) ** 2)
    reach = int(45 * scale) + shift + 20
    weights = {x: (-half * x * x).exp() for x in range(-reach - shift, reach + shift + 1)}
    total = sum(weights.values(), ball(0))
    return outcomes((weights[x] / total, weights[x - shift] / total) for x in range(-reach, reach + 1))


@pytest.mark.parametrize(("scale", "shift"), [("1", 1), ("0.4", 1), ("2", 3), ("5", 1), ("12", 30)])
def test_the_pair_is_enclosed(scale, shift, ball, outcomes, encloses):
    pair = DiscreteGaussian(Fraction(scale), sensitivity=shift).directions()[0][0][0]
    truth = discrete_normal(Fraction(scale), shift, ball, outcomes)
    # Orders whose moments lie within the window: a moment of order t is made about t·shift from 0.
    encloses(
        pair, truth, epsilons=(-3.0, -0.1, 0.0, 0.125, 0.5, 1.0, 4.0, 15.0), orders=(1e-3, 0.5, 1.0, 2.5, 6.0)
    )
    assert pair.reversed() == pair


def test_the_mass_at_zero_is_the_published_one():
    # Canonne, Kamath and Steinke 2020: P(0) = 1/Σ exp(−x²/2) at scale 1; it is also δ(0).
    pair = DiscreteGaussian(1).directions()[0][0][0]
    law = pair.lattice()
    assert law.masses[-law.start] == pytest.approx(0.398942278267, abs=1e-12)
    assert pair.hockey(np.array([0.0]))[0][0] == pytest.approx(0.398942278267, abs=1e-12)


def test_it_is_not_the_continuous_gaussian():
    # Φ(1/2) − Φ(−1/2) is the continuous δ(0) at σ = 1.
    assert DiscreteGaussian(1).directions()[0][0][0].hockey(np.array([0.0]))[0][0] > 0.38292492 + 0.01


@pytest.mark.parametrize(("scale", "shift"), [("1", 1), ("0.4", 2), ("30", 7)])
def test_its_lattice_has_the_same_profile(scale, shift):
    pair = DiscreteGaussian(Fraction(scale), sensitivity=shift).directions()[0][0][0]
    law = pair.lattice()
    losses = law.estimates
    for epsilon in (0.0, 0.3, 2.0):
        gap = np.minimum(epsilon - losses, 0.0)
        assert -(law.masses @ np.expm1(gap)) == pytest.approx(
            pair.hockey(np.array([epsilon]))[1][0], rel=1e-10
        )


def test_a_group_has_a_multiple_of_the_sensitivity():
    assert DiscreteGaussian(2).group(3) == DiscreteGaussian(2, sensitivity=3)


def test_a_scale_beyond_the_list_is_refused_with_the_way_out():
    with pytest.raises(InvalidArgument, match=r"scale must be at most 10000.*Gaussian"):
        DiscreteGaussian(20_000)
