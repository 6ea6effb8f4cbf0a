from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from dalenius.errors import InvalidArgument
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.sampling.shuffled import _exceeds, shuffled_batches_lower
from dalenius.profiles.balls import ball


def by_cubes(sigma, steps, delta):
    """As in google-research/dpsgd_batch_sampler_accounting (dpsgd_bounds.py): caps from 0 by 0.01."""
    caps = np.arange(0, 100, 0.01)
    inside = [log_ndtr((caps - mean) / sigma) + (steps - 1) * log_ndtr(caps / sigma) for mean in (2.0, 1.0)]
    upper, lower = (-np.expm1(log) for log in inside)
    low, high = 0.0, 60.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        worse = np.max(upper - math.exp(middle) * lower) > delta
        low, high = (middle, high) if worse else (low, middle)
    return low


@pytest.mark.parametrize(("sigma", "steps"), [(0.4, 10_000), (0.5, 10_000), (0.7, 10_000), (0.35, 1_000)])
def test_the_lower_bound_of_chua_et_al(sigma, steps):
    found = shuffled_batches_lower(sigma, steps, 1e-6)
    reference = by_cubes(sigma, steps, 1e-6)
    # Its masses are differences of floats, of 1e-12 or so.
    assert found == pytest.approx(reference, abs=1e-3)


def test_the_gap_to_the_poisson_figure():
    # The formula of Chua et al. 2024 for one epoch of 10,000 steps, σ = 0.5 and δ = 1e-6.
    assert 10.994 <= shuffled_batches_lower(0.5, 10_000, 1e-6) < 10.995
    poisson = (Gaussian(0.5).poisson(1e-4) * 10_000).epsilon(1e-6)
    assert 1.95 < poisson.lower <= poisson.upper <= 1.96


def test_one_batch_is_the_gaussian_mechanism():
    for sigma in (0.5, 1, 4):
        exact = Gaussian(sigma).epsilon(1e-5)
        found = shuffled_batches_lower(sigma, 1, 1e-5)
        assert found <= exact.upper and found == pytest.approx(exact.lower, rel=1e-6)


def test_the_event_is_as_likely_as_in_a_simulated_pass():
    # False alarms by Hoeffding's inequality: 4 comparisons at 2.5e-7 each.
    runs, batch, steps, sigma = 200_000, 2, 3, 0.6
    slack = math.sqrt(math.log(2 / 2.5e-7) / (2 * runs))
    rng = np.random.default_rng()
    place = rng.permuted(np.tile(np.arange(batch * steps), (runs, 1)), axis=1)[:, 0] // batch
    for value, mean in ((1.0, 2), (0.0, 1)):
        sums = np.full((runs, steps), -float(batch))
        sums[np.arange(runs), place] += 1 + value
        largest = (sums + rng.normal(0, sigma, (runs, steps))).max(axis=1) + batch
        for c in (1.5, 2.5):
            with flint.ctx.workprec(128):
                expected = float(_exceeds(ball(c), ball(Fraction(3, 5)), mean, steps))
            assert abs(np.mean(largest > c) - expected) < slack


@settings(max_examples=25)
@given(
    sigma=st.fractions(Fraction(1, 10), Fraction(20)),
    steps=st.integers(1, 10**6),
    power=st.integers(1, 12),
)
def test_a_pass_never_costs_more_than_without_any_shuffling_and_less_noise_costs_more(sigma, steps, power):
    delta = Fraction(1, 10**power)
    found = shuffled_batches_lower(sigma, steps, delta)
    assert 0 <= found <= Gaussian(sigma).epsilon(delta).upper
    assert shuffled_batches_lower(sigma, steps, delta / 10) >= found


def test_no_delta_no_bound():
    assert shuffled_batches_lower(1, 10, 0) == math.inf
    with pytest.raises(InvalidArgument, match="noise_multiplier"):
        shuffled_batches_lower(0, 10, 1e-6)
    with pytest.raises(InvalidArgument, match="steps"):
        shuffled_batches_lower(1, 0, 1e-6)
