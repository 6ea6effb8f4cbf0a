"""Gaussian noise of a smooth sensitivity: the exact divergence, and that the published one falls short."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dalenius.errors import InvalidArgument
from dalenius.losses import Loss
from dalenius.losses.pate import SmoothGaussian


def divergence(order, mean, spread, other_mean, other_spread):
    """By integration, on the law that the two make together."""
    y = np.linspace(-60 * spread, 60 * spread + mean, 24001)
    log = order * norm.logpdf(y, mean, spread) + (1 - order) * norm.logpdf(y, other_mean, other_spread)
    return math.log(np.trapezoid(np.exp(log), y)) / (order - 1)


@pytest.mark.parametrize(("order", "ratio", "scale"), [(2.0, 0.9, 1.0), (5.0, 0.95, 3.0), (1.5, 0.7, 2.0)])
def test_it_is_attained_and_nothing_in_range_exceeds_it(order, ratio, scale):
    limit = SmoothGaussian(scale, ratio=ratio).renyi(order).upper
    worst = divergence(order, 1.0, scale / ratio, 0.0, scale)
    assert worst == pytest.approx(limit, rel=1e-6)
    for factor in np.linspace(ratio, 1 / ratio, 9):
        apart = min(1.0, factor)
        for share in (0.0, 0.5, 1.0):
            assert divergence(order, apart * share, scale * factor, 0.0, scale) <= limit + 1e-9


def test_the_published_bound_is_not_one_near_its_limit():
    # Papernot et al. 2018, the release of the figure (Theorem 23 in their code): β = 0.49/λ, as they use it.
    order, scale = 10.0, 3.0
    beta = 0.49 / order
    published = order * math.exp(2 * beta) / scale**2
    published += (-0.5 * math.log(1 - 2 * order * beta) + beta * order) / (order - 1)
    exact = divergence(order, 1.0, scale * math.exp(beta), 0.0, scale)
    assert published == pytest.approx(1.50, abs=0.005) and exact == pytest.approx(7.7, abs=0.05)
    assert SmoothGaussian(scale, ratio=math.exp(-beta)).renyi(order).upper == pytest.approx(exact, rel=1e-6)


def test_where_the_variances_are_far_apart_it_hides_nothing():
    loss = SmoothGaussian(3, ratio=0.9)
    assert math.isinf(loss.renyi(6).upper) and math.isfinite(loss.epsilon(1e-6).upper)


@given(scale=st.fractions(1, 30, max_denominator=9), ratio=st.fractions("4/5", "99/100", max_denominator=200))
@settings(max_examples=15)
def test_it_obeys_the_algebra(scale, ratio):
    loss = SmoothGaussian(scale, ratio=ratio)
    assert Loss.from_json(loss.to_json()) == loss and not loss.tight
    assert loss.moment(0.5) <= SmoothGaussian(scale, ratio=ratio, reach=2).moment(0.5)
    assert loss.moment(0.5) <= SmoothGaussian(scale / 2, ratio=ratio).moment(0.5)
    assert (loss * 2).epsilon(1e-5).upper >= loss.epsilon(1e-5).upper


def test_bad_parameters_are_refused_by_name():
    for bad, name in (({"ratio": 1}, "ratio"), ({"ratio": 0.9, "reach": 0.5}, "reach")):
        with pytest.raises(InvalidArgument, match=name):
            SmoothGaussian(1, **bad)
