from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from contract import ALARM, chi_square, divergence
from scipy.integrate import quad

from dalenius.errors import InvalidArgument
from dalenius.losses import BoundedRange
from dalenius.mechanisms.exponential import Exponential
from dalenius.mechanisms.top_k import LOST, TopK
from dalenius.privacy.quantized import Grid


def test_one_of_many_is_the_exponential_mechanism() -> None:
    one, choose = TopK(count=1, scale=3, sensitivity=1), Exponential(scale=3, sensitivity=1)
    assert one.loss == choose.loss
    utilities = [0.0, 1.0, 5.0]
    assert one.probabilities(utilities).masses == pytest.approx(choose.probabilities(utilities).masses)


def test_peeling_is_one_shot_gumbel_noise() -> None:
    """Durfee and Rogers 2019: P(u₀ + G₀ greatest, u₁ + G₁ second of three), integrated numerically."""
    mechanism = TopK(count=2, scale=1, sensitivity=1, grid=Grid(-4))
    utilities = [0.5, 0.0, -0.25]
    law = dict(
        zip(*[getattr(mechanism.probabilities(utilities), k) for k in ("outcomes", "masses")], strict=True)
    )

    def second(x: float) -> float:
        """Density of u₁ + G₁ at x, u₂ + G₂ below it, u₀ + G₀ above it."""
        under = [math.exp(-math.exp(u - x)) for u in utilities]
        return math.exp(-x) * under[1] * under[2] * (1 - under[0])

    assert law[0, 1] == pytest.approx(quad(second, -8, 60)[0], abs=1e-9)


@pytest.mark.parametrize("monotone", [False, True])
def test_no_neighbours_beat_the_loss(monotone: bool) -> None:
    mechanism = TopK(count=2, scale=1, sensitivity=1, monotone=monotone, grid=Grid(0))
    claims = {x: mechanism.loss.delta(x).upper for x in (0.0, 0.5, 1.0, 1.9)}
    for others in itertools.product(range(-2, 3), repeat=2):
        first = mechanism.probabilities([*others, 0])
        for move in itertools.product((0, 1) if monotone else (-1, 1), repeat=3):
            second = mechanism.probabilities(np.add([*others, 0], move))
            for x, claim in claims.items():
                assert max(divergence(first, second, x), divergence(second, first, x)) <= claim + 1e-12


@pytest.mark.parametrize("count", [1, 2, 3])
def test_epsilon_is_approached_by_candidates_that_are_hardly_ever_chosen(count: int) -> None:
    mechanism = TopK(count=count, scale=2, sensitivity=1, grid=Grid(0))
    p, q = (mechanism.probabilities(value).masses for value in mechanism.worst_case())
    assert 1 - LOST <= np.abs(np.log(p / q)).max() / count <= 1
    p, q = (mechanism.probabilities(value).masses for value in mechanism._apart(*[0] * count, 40))
    assert np.abs(np.log(p / q)).max() == pytest.approx(count)


def test_pure_privacy_adds_up_and_a_delta_pays_off_for_many() -> None:
    pure = TopK.calibrate(epsilon=1, count=50, sensitivity=1)
    assert pure.scale == 100
    assert pure.loss == BoundedRange(Fraction(1, 50)) * 50
    spared = TopK.calibrate(epsilon=1, delta=1e-6, count=50, sensitivity=1)
    assert spared.scale < pure.scale / 3
    assert spared.loss.epsilon(1e-6).upper <= 1


def test_choices_are_distinct_and_named() -> None:
    mechanism = TopK(count=3, scale=1, sensitivity=1)
    found = mechanism.release([0, 900, 600, 300], candidates=list("abcd"))
    assert found.value.tolist() == ["b", "c", "d"]
    assert sorted(TopK(count=4, scale=1, sensitivity=1).release([0, 0, 0, 0]).value.tolist()) == [0, 1, 2, 3]


def test_all_of_very_many_can_be_chosen() -> None:
    found = TopK(count=1500, scale=1, sensitivity=1, grid=Grid(0)).release(np.zeros(1500))
    assert sorted(found.value.tolist()) == list(range(1500))


def test_release_has_the_law() -> None:
    mechanism = TopK(count=2, scale=2, sensitivity=1)
    utilities = [0.0, 1.0, 3.0]
    draws = np.array([mechanism.release(utilities).value for _ in range(3000)])
    # A false alarm has probability at most 1e-7.
    assert chi_square(draws, mechanism.probabilities(utilities)) > ALARM


def test_the_shortfall_holds_for_all_choices_at_once() -> None:
    mechanism = TopK(count=2, scale=2, sensitivity=1, grid=Grid(0))
    far = int(mechanism.shortfall(6, 0.1))
    utilities = np.array([0, 0, -far, -far, -far, -far])
    law = mechanism.probabilities(utilities)
    off = sum(m for o, m in zip(law.outcomes, law.masses, strict=True) if min(utilities[list(o)]) <= -far)
    assert off <= 0.1


def test_odd_utilities_and_parameters() -> None:
    mechanism = TopK(count=2, scale=1, sensitivity=1)
    found = mechanism.release(np.array([math.nan, math.inf, -math.inf, 1e300]))
    assert set(found.value.tolist()) == {1, 3}
    with pytest.raises(InvalidArgument, match="2 cannot be chosen of 1"):
        mechanism.release([1.0])
    for name, bad in [("scale", 0), ("sensitivity", -1), ("count", 0), ("count", 1.5), ("count", math.inf)]:
        with pytest.raises(InvalidArgument, match=f"^{name} must be"):
            TopK(**({"scale": 1, "sensitivity": 1, "count": 2} | {name: bad}))
    assert TopK(count=8, scale=1, sensitivity=1).probabilities(range(20)) is None
