from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from contract import ALARM, chi_square
from neighbours import most_told

from dalenius.errors import InvalidArgument
from dalenius.losses import DiscreteLaplace
from dalenius.mechanisms.noisy_max import ReportNoisyMax
from dalenius.privacy.quantized import Grid


def test_the_law_is_that_of_the_definition() -> None:
    """Summed over the noise of every candidate, ties shared equally."""
    mechanism = ReportNoisyMax(scale=1, sensitivity=1, grid=Grid(0))
    a = math.exp(-1)
    law = np.zeros(3)
    for values in itertools.product(range(-18, 19), repeat=3):
        noisy = np.add(values, [0, 1, -1])
        best = noisy == noisy.max()
        law += best / best.sum() * math.prod((1 - a) / (1 + a) * a ** abs(v) for v in values)
    assert mechanism.probabilities([0, 1, -1]).masses == pytest.approx(law, abs=1e-6)
    for draws in (
        mechanism.sample([0, 1, -1], 20_000),
        np.array([mechanism.release([0, 1, -1]).value for _ in range(3000)]),
    ):
        # A false alarm has probability at most 1e-7.
        assert chi_square(draws, mechanism.probabilities([0, 1, -1])) > ALARM


@pytest.mark.parametrize("monotone", [False, True])
def test_no_neighbours_beat_the_loss(monotone: bool) -> None:
    mechanism = ReportNoisyMax(scale=1, sensitivity=1, monotone=monotone, grid=Grid(0))
    shares = (0.0, 0.25, 0.5, 0.9, 1.0)
    claims = [mechanism.loss.delta(share * float(mechanism.limit)).upper for share in shares]
    assert all(f <= c + 1e-12 for f, c in zip(most_told(mechanism, shares), claims, strict=True))


def test_epsilon_is_approached_by_a_candidate_far_below() -> None:
    """Its chance is that of a difference of two noises, about (gap + 2)e^{−gap}/4: the ratio tends to e^ε."""
    mechanism = ReportNoisyMax(scale=1, sensitivity=1, grid=Grid(0))
    losses = []
    for gap in (4, 8, 16):
        p, q = (mechanism.probabilities([0, d]).masses[0] for d in (gap, gap - 2))
        losses.append(math.log(q / p))
    assert losses == sorted(losses)
    assert 1.85 < losses[-1] < 2


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_epsilon_is_attained_by_several_that_tie(epsilon: float) -> None:
    mechanism = ReportNoisyMax.calibrate(epsilon=epsilon, sensitivity=1, grid=Grid(0))
    p, q = (mechanism.probabilities(value).masses[-1] for value in mechanism.worst_case())
    assert 0.99 * epsilon <= math.log(p / q) <= epsilon


def test_scales_and_losses_of_the_theorem() -> None:
    """2Δ/ε, and Δ/ε where utilities move together."""
    assert ReportNoisyMax.calibrate(epsilon=0.5, sensitivity=3).scale == 12
    assert ReportNoisyMax.calibrate(epsilon=0.5, sensitivity=3, monotone=True).scale == 6
    assert ReportNoisyMax(scale=4, sensitivity=1, grid=Grid(0)).loss == DiscreteLaplace(4, sensitivity=2)
    spared = ReportNoisyMax.calibrate(epsilon=1, delta=0.01, sensitivity=1)
    assert spared.scale < 2
    assert spared.loss.epsilon(0.01).upper <= 1


def test_the_shortfall_holds() -> None:
    mechanism = ReportNoisyMax(scale=3, sensitivity=1, grid=Grid(0))
    for count, alpha in [(2, 0.05), (8, 0.05), (3, 0.3)]:
        far = mechanism.shortfall(count, alpha)
        wrong = [1 - mechanism.probabilities([0] + [-int(d)] * (count - 1)).masses[0] for d in (far, far / 2)]
        assert wrong[0] <= alpha < wrong[1]
    assert mechanism.shortfall(1) == 0.0


def test_too_long_a_law_is_not_written_out() -> None:
    mechanism = ReportNoisyMax(scale=1000, sensitivity=1, grid=Grid(-14))
    assert mechanism.probabilities(range(5)) is None
    assert mechanism.release(range(5)).value in range(5)


def test_odd_utilities_and_parameters() -> None:
    mechanism = ReportNoisyMax(scale=1, sensitivity=1)
    odd = np.array([math.nan, math.inf, -math.inf, 1e300])
    assert mechanism.release(odd).value in (1, 3)
    assert set(mechanism.sample(odd, 100).tolist()) == {1, 3}
    assert mechanism.release([5.0]).value == 0
    for name, bad in [("scale", 0), ("scale", math.nan), ("sensitivity", -1), ("sensitivity", math.inf)]:
        with pytest.raises(InvalidArgument, match=f"^{name} must be"):
            ReportNoisyMax(**({"scale": 1, "sensitivity": 1} | {name: bad}))
