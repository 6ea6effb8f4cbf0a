from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from contract import ALARM, divergence
from scipy.stats import binom

from dalenius.errors import InvalidArgument, NotSound
from dalenius.mechanisms.bounded_mean import BoundedMean
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.shares import share, tail
from dalenius.privacy.quantized import Grid


def test_a_law_with_too_many_outcomes_is_not_written_out() -> None:
    assert BoundedMean(lower=0, upper=1, scale=1).probabilities([0.5]) is None


def test_no_neighbours_are_further_apart_than_claimed() -> None:
    """A record anywhere between the ends moves two sums at once: the joint law of every such pair."""
    mechanism = BoundedMean(lower=0, upper=2, scale=1, grid=Grid(-1))
    empty = mechanism.probabilities(np.array([]))
    assert empty is not None
    for value in (0.0, 0.5, 1.0, 1.7, 9.0, math.nan):
        law = mechanism.probabilities(np.array([value]))
        assert law is not None
        for epsilon in (0.0, 0.3, 0.9):
            found = max(divergence(empty, law, epsilon), divergence(law, empty, epsilon))
            assert found <= mechanism.loss.delta(epsilon).upper + 1e-9


def test_half_the_variance_of_a_centred_sum_over_a_count() -> None:
    """Kulesza, Suresh and Wang 2024: at the middle 2/ε² for the split budget, 1/ε² here, in records."""
    mechanism = BoundedMean.calibrate(epsilon=1, lower=0, upper=1)
    sums = mechanism.sample(np.full(1000, 0.5), 40_000)
    found = sums[:, 0] / sums.sum(axis=1)
    # The variance of a Laplace variable's square is about 5 times its own squared: 1 ± 0.1 is 9 deviations.
    assert 0.85 < found.var() * 1000**2 < 1.15


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("share_of_ones", [0.0, 0.04, 0.5, 1.0])
def test_error_bars_cover_as_often_as_they_say(noise: str, share_of_ones: float) -> None:
    """False alarms: 1e-7 each; the other side says that bars are no wider than they need be."""
    delta = 1e-3 if noise == "gaussian" else 0
    mechanism = BoundedMean.calibrate(epsilon=2, delta=delta, lower=0, upper=1, noise=noise)
    sums = (mechanism.sample(np.repeat([0.0, 1.0], [100, 0]), 600) / float(mechanism.step)).astype(int)
    width = mechanism.ends[1]
    moved = sums + np.array([int(100 * share_of_ones), -int(100 * share_of_ones)]) * width
    bars = [share(a, b, mechanism.additive, Fraction(1, 5)) for a, b in moved.tolist()]
    hit = sum(low <= share_of_ones <= high for _, low, high in bars)
    assert binom.cdf(hit, 600, 0.8) > ALARM
    if 0 < share_of_ones < 1:
        assert binom.sf(hit - 1, 600, 0.82) > ALARM
    assert all(0 <= low <= value <= high <= 1 for value, low, high in bars)


def test_the_tail_of_a_weighted_difference() -> None:
    """Against convolution: P(|uY − vZ| > x) by numerical integration over Z."""
    z = np.linspace(-60, 60, 1_200_001)
    density = 0.5 * np.exp(-np.abs(z))
    for u, x in ((0.5, 1.0), (0.7, 2.0), (0.95, 0.3), (1.0, 3.0)):
        v = 1 - u

        def above(t: np.ndarray, u: float = u) -> np.ndarray:
            return np.where(t > 0, 0.5 * np.exp(-np.abs(t) / u), 1 - 0.5 * np.exp(-np.abs(t) / u))

        beyond = above(x + v * z) + above(x - v * z)
        assert tail(u, x) == pytest.approx(float(np.trapezoid(beyond * density, z)), abs=1e-6)


def test_the_tail_grows_with_the_distance_from_one_half() -> None:
    for x in (0.1, 1.0, 4.0):
        found = [tail(u, x) for u in np.linspace(0.5, 1, 50)]
        assert all(a <= b + 2e-9 for a, b in pairwise(found))
        assert found[-1] == pytest.approx(math.exp(-x))


def test_released_means() -> None:
    values = np.clip(np.arange(10_000) % 150, 0, 100).astype(float)
    mechanism = BoundedMean.calibrate(epsilon=1, lower=0, upper=100)
    found = mechanism.release(values, name="age")
    # A bar of 1 − 1e-7: |noise| beyond 16.2 scales has that probability.
    assert found.value == pytest.approx(values.mean(), abs=16.2 * 100 / 10_000 * 1.1)
    assert found.measures == ("age",)
    assert found.receipt.postprocessing == ("the mean of the noisy sums",)
    assert 0 <= found.low <= found.value <= found.high <= 100
    assert mechanism.error() is None


def test_the_public_number_of_records_divides_under_replace() -> None:
    mechanism = BoundedMean.calibrate(epsilon=1, lower=0, upper=1, relation="replace", grid=Grid(-10))
    found = mechanism.release(np.full(100, 0.5))
    reach = mechanism.additive.error()
    assert found.high - found.low == pytest.approx(2 * reach / 100)
    assert mechanism.release([]).low == 0


def test_odd_data_give_a_mean_within_the_bounds() -> None:
    for relation in ("add_remove", "replace"):
        mechanism = BoundedMean.calibrate(epsilon=1, lower=-3, upper=5, relation=relation)
        for values in ([], [math.nan], [math.inf], [1e308, -1e308], [10**400], ["x", None]):
            found = mechanism.release(values)
            assert -3 <= found.low <= found.value <= found.high <= 5


def test_missing_values_are_left_out() -> None:
    mechanism = BoundedMean(lower=0, upper=10, scale=1, grid=Grid(0))
    assert mechanism.totals(mechanism.vectors([4.0, math.nan, 6.0])).tolist() == [10, 10]


def test_several_records_under_replace_are_refused_with_a_remedy_that_works() -> None:
    with pytest.raises(NotSound, match="add_remove"):
        BoundedMean(lower=0, upper=1, scale=1, per_unit=2, relation="replace")
    assert BoundedMean(lower=0, upper=1, scale=1, per_unit=2).bound.l1 == 2


@pytest.mark.parametrize(
    "bad", [{"scale": 0}, {"lower": 1}, {"upper": math.nan}, {"per_unit": -1}, {"grid": Grid(1)}]
)
def test_bad_parameters_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        BoundedMean(**{"lower": 0, "upper": 1, "scale": 1, **bad})


def test_shares_of_nothing_are_anything() -> None:
    noise = Laplace(scale=1, sensitivity=1, grid=Grid(0), exact=True)
    assert share(0, 0, noise, Fraction(1, 20)) == (0.5, 0.0, 1.0)
    assert share(-5, -1, noise, Fraction(1, 20)) == (0.5, 0.0, 1.0)
    value, low, high = share(100, -50, noise, Fraction(1, 20))
    assert (value, low, high) == (1.0, 1.0, 1.0)
