from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from contract import divergence
from neighbours import most_told
from scipy.stats import binom

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses import BoundedRange
from dalenius.mechanisms.choice import OneChoice, log_odds
from dalenius.mechanisms.exponential import Exponential
from dalenius.mechanisms.noisy_max import ReportNoisyMax
from dalenius.mechanisms.permute_and_flip import PermuteAndFlip
from dalenius.privacy.quantized import Grid
from dalenius.privacy.sensitivity import Sensitivity


@pytest.mark.parametrize("monotone", [False, True])
def test_no_neighbours_beat_the_loss_and_some_attain_it(monotone: bool) -> None:
    """Two candidates half a span apart that trade places attain the advantage."""
    mechanism = Exponential(scale=2, sensitivity=2, monotone=monotone, grid=Grid(0))
    shares = (0.0, 0.5, 0.75, 0.9)
    claims = [mechanism.loss.delta(share * float(mechanism.limit)).upper for share in shares]
    found = most_told(mechanism, shares)
    assert all(f <= c + 1e-12 for f, c in zip(found, claims, strict=True))
    assert found[0] == pytest.approx(claims[0])


@pytest.mark.parametrize("epsilon", [0.01, 1, 40])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_every_point_of_the_profile_has_a_pair_that_attains_it(epsilon: float, share: float) -> None:
    """At share·ε two candidates whose chances grow by e^{(1 + share)ε/2} as their odds do by e^ε."""
    mechanism = Exponential.calibrate(epsilon=epsilon, sensitivity=1)
    far = round(log_odds(epsilon, (1 - share) / 2) / float(mechanism.rate))
    first, second = (mechanism.probabilities(value) for value in mechanism._apart(0, far))
    at = share * epsilon
    assert divergence(second, first, at) == pytest.approx(mechanism.loss.delta(at).upper, rel=1e-6)


def test_scales_of_the_theorem() -> None:
    """McSherry and Talwar 2007: e^{εu/2Δ}; half of it where utilities move together."""
    assert Exponential.calibrate(epsilon=0.5, sensitivity=3).scale == 12
    assert Exponential.calibrate(epsilon=0.5, sensitivity=3, monotone=True).scale == 6
    assert Exponential(scale=4, sensitivity=1).loss == BoundedRange(0.5)


def test_a_delta_is_worth_a_smaller_scale() -> None:
    pure = Exponential.calibrate(epsilon=1, sensitivity=1)
    spared = Exponential.calibrate(epsilon=1, delta=0.001, sensitivity=1)
    assert spared.scale < pure.scale
    assert spared.loss.epsilon(0.001).upper <= 1


def test_rounding_of_utilities_is_charged() -> None:
    assert Exponential(scale=1, sensitivity=Fraction(1, 3), grid=Grid(-2)).loss == BoundedRange(1)


def test_names_are_released() -> None:
    mechanism = Exponential(scale=1, sensitivity=1)
    found = mechanism.release([0, 500], candidates=["tea", "coffee"], name="drink")
    assert found.value == "coffee"
    assert found.confidence is None
    assert json.loads(found.receipt.mechanism)["kind"] == "exponential"
    assert mechanism.release([0, 500]).value == 1
    assert mechanism.release(np.array([0.0, 500.0]), candidates=np.array([3, 7])).value == 7


def test_the_shortfall_holds_and_is_attained_within_a_step() -> None:
    """One best and 19 others just as far below: chosen with at most alpha, and more a step before."""
    mechanism = Exponential(scale=3, sensitivity=1, grid=Grid(-4))
    far = mechanism.shortfall(20, 0.05)
    wrong = [1 - mechanism.probabilities([0.0] + [-d] * 19).masses[0] for d in (far, far - 1 / 16)]
    assert wrong[0] <= 0.05 < wrong[1]
    assert mechanism.shortfall(1) == 0.0
    assert mechanism.shortfall(2, 0.9) == 1 / 16
    draws = mechanism.sample([0.0] + [-far] * 19, 20_000)
    # A false alarm has probability at most 1e-7.
    assert binom.sf(np.count_nonzero(draws) - 1, 20_000, 0.05) > 1e-7


@pytest.mark.parametrize(
    "utilities",
    [
        [math.nan, math.inf, -math.inf, 1e300, 0.0],
        np.array([math.nan, math.inf, -math.inf, 1e300, 0.0]),
        [10**400, -(10**400), 0, 1, 2],
        np.array([2**63 - 1, -(2**63), 0, 1, 2]),
        [Fraction(1, 3), np.float32(2.5), np.int64(2**62), 5, 5.0],
        [True, "1", [1.0, 2.0], None, Decimal("sNaN")],
        [7] * 5,
    ],
)
def test_values_never_raise(utilities: Any) -> None:
    found = Exponential(scale=1, sensitivity=1).release(utilities, candidates=list("abcde"))
    assert found.value in "abcde"
    assert len(found) == 1


@pytest.mark.parametrize("utilities", [[], np.array([]), 3.0, "abc", np.ones((2, 2)), np.array(["a"])])
def test_what_is_no_vector_of_numbers_is_refused(utilities: Any) -> None:
    with pytest.raises(InvalidArgument):
        Exponential(scale=1, sensitivity=1).release(utilities)


@pytest.mark.parametrize("bad", [0, -1, math.inf, math.nan, "1"])
@pytest.mark.parametrize("name", ["scale", "sensitivity"])
def test_bad_parameters_are_refused_by_name(name: str, bad: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"^{name} must be"):
        Exponential(**({"scale": 1, "sensitivity": 1} | {name: bad}))


def test_other_refusals() -> None:
    with pytest.raises(InvalidArgument, match=r"^monotone"):
        Exponential(scale=1, sensitivity=1, monotone=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"^grid"):
        Exponential(scale=1, sensitivity=1, grid=0.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="2 candidates and 3 utilities"):
        Exponential(scale=1, sensitivity=1).release([1, 2, 3], candidates=["a", "b"])
    swapped = Sensitivity(linf=1, relation="replace")
    with pytest.raises(NotSound) as refusal:
        Exponential(scale=1, sensitivity=swapped, monotone=True)
    assert refusal.value.remedy == "Pass monotone=False."
    assert Exponential(scale=1, sensitivity=swapped, monotone=False).loss.relation == "replace"


@pytest.mark.parametrize(
    ("sensitivity", "grid"), [(10**9, None), (1e-9, None), (1, Grid(30)), (1e9, Grid(0))]
)
@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip, ReportNoisyMax])
def test_utilities_may_be_counted_in_anything(
    kind: type[OneChoice], sensitivity: float, grid: Grid | None
) -> None:
    found = kind.calibrate(epsilon=1, sensitivity=sensitivity, grid=grid)
    assert found.loss.epsilon(0).upper == pytest.approx(1)
    assert type(found) is kind
