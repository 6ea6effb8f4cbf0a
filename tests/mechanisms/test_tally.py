"""Sums are exact however large, and calibration refuses by the name of what was passed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dalenius.errors import InvalidArgument
from dalenius.mechanisms.bounded_mean import BoundedMean
from dalenius.mechanisms.bounded_sum import BoundedSum
from dalenius.mechanisms.covariance import Covariance
from dalenius.mechanisms.evaluation import Evaluation
from dalenius.mechanisms.variance import Variance
from dalenius.privacy.quantized import Grid

FINE = BoundedSum(lower=0, upper=1, scale=1e-6, noise="gaussian", grid=Grid(-60))
"""A record has up to 2^60 steps, so that eight of them are beyond 63 bits."""


@pytest.mark.parametrize("records", [3, 4, 5, 9, 1000])
def test_a_sum_of_more_steps_than_a_machine_word_is_exact(records: int) -> None:
    assert FINE.totals(FINE.vectors(np.ones(records))).tolist() == [records * 2**60]
    found = FINE.release(np.ones(records))
    # Ten deviations away: probability below 1e-22.
    assert found.value == pytest.approx(records, abs=1e-5)
    assert 0 < found.high - found.low < 1e-5


def test_neighbours_of_large_sums_are_as_far_apart_as_any() -> None:
    less, more = (FINE.totals(FINE.vectors(np.ones(n)))[0] for n in (1000, 1001))
    assert (more - less) * FINE.step == 1


def test_means_and_variances_of_large_sums() -> None:
    """Deviations of 1e-6 in a hundred records: each is within the stated figure but for 1e-22."""
    values = np.repeat([0.0, 1.0], [80, 20])
    mean = BoundedMean(lower=0, upper=1, scale=1e-6, noise="gaussian", grid=Grid(-60)).release(values)
    assert mean.value == pytest.approx(0.2, abs=1e-6)
    assert mean.low <= mean.value <= mean.high
    spread = Variance(lower=0, upper=1, scale=1e-6, noise="gaussian", grid=Grid(-30)).release(values)
    assert spread.value == pytest.approx(0.16, abs=1e-6)


def test_draws_and_laws_of_large_sums_are_moved_as_far() -> None:
    assert FINE.sample(np.ones(1000), 5) == pytest.approx(np.full(5, 1000.0), abs=1e-5)
    coarse = BoundedSum(lower=0, upper=2**61, scale=2**61, grid=Grid(60))
    near, far = (coarse.probabilities(np.full(n, 2.0**61)) for n in (0, 50))
    assert near is not None and far is not None
    apart = {b - a for a, b in zip(near.outcomes, far.outcomes, strict=True)}
    assert apart == {50 * 2**61}
    assert near.masses.tolist() == far.masses.tolist()


def of_sum(**arguments: object) -> object:
    return BoundedSum.calibrate(**{"lower": 0, "upper": 1, "epsilon": 1, **arguments})


def of_classes(**arguments: object) -> object:
    return Evaluation.calibrate(**{"classes": ["a", "b"], "epsilon": 1, **arguments})


@pytest.mark.parametrize("made", [of_sum, of_classes])
@pytest.mark.parametrize("bad", [0, -1, 1e-10, 1e7, float("nan"), "1"])
def test_a_bad_epsilon_is_named(made: Callable[..., object], bad: object) -> None:
    with pytest.raises(InvalidArgument, match=r"^epsilon must be") as caught:
        made(epsilon=bad)
    assert "epsilon" in caught.value.remedy


@pytest.mark.parametrize("made", [of_sum, of_classes])
def test_gaussian_noise_asks_for_a_delta_and_both_remedies_work(made: Callable[..., object]) -> None:
    with pytest.raises(InvalidArgument, match="delta") as caught:
        made(noise="gaussian")
    assert caught.value.remedy == "Pass delta such as 1e-6, or noise='laplace'."
    assert made(noise="gaussian", delta=1e-6)
    assert made(noise="laplace")


def test_noise_beyond_what_is_counted_names_the_least_epsilon() -> None:
    asked = {"per_unit": 10**6, "relation": "replace"}
    with pytest.raises(InvalidArgument, match="epsilon must be at least") as caught:
        of_classes(epsilon=1e-9, **asked)
    least = re.search(r"epsilon=([\d.e-]+)", caught.value.remedy)
    assert least is not None
    assert of_classes(epsilon=float(least[1]), **asked).loss.epsilon(0).upper <= float(least[1])


@pytest.mark.parametrize(("noise", "delta"), [("laplace", 0), ("gaussian", 1e-9)])
@pytest.mark.parametrize("epsilon", [1e-8, 1e-6, 1e-3, 1])
@pytest.mark.parametrize("per_unit", [1, 100])
def test_products_have_as_many_bits_as_noise_leaves(
    noise: str, delta: float, epsilon: float, per_unit: int
) -> None:
    made = Covariance.calibrate(
        epsilon=epsilon, delta=delta, lower=[0, 0], upper=[1, 9], noise=noise, per_unit=per_unit
    )
    assert made.loss.epsilon(delta).upper <= math.nextafter(epsilon, math.inf)
    assert made.bits == 14 or (made.bound.need("l1") / made.step) / epsilon > 10**11
    assert len(made.release([[0.5, 1]])) == 4


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1, 1000, 999_999, 10**6])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_with_a_delta_no_more_noise_is_taken_than_without(epsilon: float, relation: str) -> None:
    """A search tries no scale that would be refused, at either end."""
    plain, less = (of_classes(epsilon=epsilon, delta=delta, relation=relation) for delta in (0, 1e-6))
    assert less.scale <= plain.scale * (1 + Fraction(1, 10**9))
    assert less.loss.epsilon(1e-6).upper <= epsilon
