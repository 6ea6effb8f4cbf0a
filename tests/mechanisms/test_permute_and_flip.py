from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from contract import ALARM, chi_square, divergence
from neighbours import most_told

from dalenius.errors import InvalidArgument
from dalenius.losses import Laplace
from dalenius.mechanisms.exponential import Exponential
from dalenius.mechanisms.permute_and_flip import PermuteAndFlip
from dalenius.privacy.quantized import Grid


def test_the_law_is_that_of_the_definition() -> None:
    """Over all orders: the first whose coin succeeds."""
    mechanism = PermuteAndFlip(scale=3, sensitivity=1, grid=Grid(0))
    utilities = [0, -2, -2, -5, 0, -40]
    coins = [math.exp(u / 3) for u in utilities]
    law = np.zeros(6)
    for order in itertools.permutations(range(6)):
        left = 1.0
        for i in order:
            law[i] += left * coins[i] / 720
            left *= 1 - coins[i]
    assert mechanism.probabilities(utilities).masses == pytest.approx(law, rel=1e-12)
    for draws in (
        mechanism.sample(utilities, 20_000),
        np.array([mechanism.release(utilities).value for _ in range(3000)]),
    ):
        # A false alarm has probability at most 1e-7.
        assert chi_square(draws, mechanism.probabilities(utilities)) > ALARM


def test_it_is_noisy_max_with_exponential_noise() -> None:
    """Ding et al. 2021: P(u₀ + E₀ > u₁ + E₁), integrated numerically."""
    mechanism = PermuteAndFlip(scale=1, sensitivity=1, grid=Grid(-6))
    x = np.linspace(0, 60, 600_001)
    gap = 0.75
    wins = np.trapezoid(np.exp(-x) * -np.expm1(-(x + gap)), x)
    assert mechanism.probabilities([gap, 0.0]).masses[0] == pytest.approx(wins, abs=1e-8)


@pytest.mark.parametrize("monotone", [False, True])
def test_no_neighbours_beat_the_loss(monotone: bool) -> None:
    mechanism = PermuteAndFlip(scale=2, sensitivity=2, monotone=monotone, grid=Grid(0))
    shares = (0.0, 0.25, 0.5, 0.9, 0.999)
    claims = [mechanism.loss.delta(share * float(mechanism.limit)).upper for share in shares]
    found = most_told(mechanism, shares)
    assert all(f <= c + 1e-12 for f, c in zip(found, claims, strict=True))
    assert found[0] == pytest.approx(claims[0])


def test_two_candidates_attain_every_point_of_the_profile() -> None:
    """At x with the gaps (ε − x)/2 and (ε + x)/2, on either side of one another."""
    mechanism = PermuteAndFlip(scale=8, sensitivity=4, grid=Grid(0))
    assert mechanism.loss == Laplace(1)
    for gap in range(5):
        pair = [mechanism.probabilities([a, 0]) for a in (gap, gap - 8)]
        x = (8 - 2 * gap) / 8
        found = max(divergence(*pair, x), divergence(*pair[::-1], x))
        assert found == pytest.approx(mechanism.loss.delta(x).upper, abs=1e-12)


def test_the_range_is_not_bounded_by_epsilon() -> None:
    mechanism = PermuteAndFlip(scale=2, sensitivity=1, grid=Grid(0))
    p, q = (mechanism.probabilities(u).masses for u in mechanism.worst_case())
    losses = np.log(p / q)
    assert losses.max() - losses.min() == pytest.approx(1 + math.log(2 - math.exp(-1)))


def test_never_further_from_the_best_than_the_exponential_mechanism() -> None:
    """McKenna and Sheldon 2020: in expectation at most as far, and half as far on some utilities."""
    flip, choose = (kind(scale=1, sensitivity=1, grid=Grid(-4)) for kind in (PermuteAndFlip, Exponential))
    ratios = []
    for utilities in ([0.0, -0.5], [0.0, -12.0], [0.0, -3.0, -3.0, -1.0], [0.0] + [-2.0] * 30):
        off = [-float(np.dot(m.probabilities(utilities).masses, utilities)) for m in (flip, choose)]
        ratios.append(off[0] / off[1])
    assert max(ratios) <= 1
    assert min(ratios) == pytest.approx(0.5, abs=1e-4)
    far = flip.shortfall(10, 0.05)
    assert 1 - flip.probabilities([0.0] + [-far] * 9).masses[0] <= 0.05


def test_odd_utilities_and_parameters() -> None:
    mechanism = PermuteAndFlip(scale=1, sensitivity=1)
    odd = np.array([math.nan, math.inf, -math.inf, 1e300])
    assert mechanism.release(odd).value in (1, 3)
    assert set(mechanism.sample(odd, 100).tolist()) == {1, 3}
    assert mechanism.release([5.0]).value == 0
    for name, bad in [("scale", 0), ("scale", math.nan), ("sensitivity", -1), ("sensitivity", math.inf)]:
        with pytest.raises(InvalidArgument, match=f"^{name} must be"):
            PermuteAndFlip(**({"scale": 1, "sensitivity": 1} | {name: bad}))
    with pytest.raises(InvalidArgument, match=r"^epsilon must be"):
        PermuteAndFlip.calibrate(epsilon=0, sensitivity=1)
