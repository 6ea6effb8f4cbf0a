"""Groups of a composed curve: `group` covers compositions, and no group is easier to see than it says."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dalenius.losses import Approximate, Gaussian, GaussianDP, Laplace, RandomizedResponse, ZeroConcentrated
from dalenius.losses.group import Group


def test_composed_gaussians_grow_as_published():
    # Dong, Roth and Su 2022: a group of k is kμ-GDP; Bun and Steinke 2016: k²ρ. Both after composition.
    many = Gaussian(8) * 16
    assert many.group(3).epsilon(1e-6).upper == pytest.approx(GaussianDP(1.5).epsilon(1e-6).upper, rel=1e-12)
    assert (ZeroConcentrated(0.01) * 5).group(4).zcdp().upper == pytest.approx(0.8, rel=1e-12)


def test_the_textbook_bound_holds_for_the_composed_curve_too():
    # Dwork and Roth 2014, Theorem 2.2, of the whole: (kε, δ(e^{kε} − 1)/(e^ε − 1)); term by term is no worse.
    many = Approximate(0.1, delta=1e-8) * 20
    for size in (2, 3):
        one = many.delta(1).upper
        assert many.group(size).delta(size).upper <= one * math.expm1(size) / math.expm1(1) * (1 + 1e-9)


@pytest.mark.parametrize("size", [2, 3])
def test_a_group_in_composed_reports_is_covered_exactly(size):
    # Each member reports in each of three rounds; all outcomes of the rounds are listed.
    truth, rounds = 0.7, 3
    ones = np.array([sum(bits) for bits in itertools.product((0, 1), repeat=size * rounds)])
    p, q = (x**ones * (1 - x) ** (size * rounds - ones) for x in (truth, 1 - truth))
    loss = (RandomizedResponse(0.6) * rounds).group(size)
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        exact = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        bound = loss.delta(epsilon)
        assert bound.lower - 1e-12 <= exact <= bound.upper + 1e-12


def test_the_path_on_the_whole_is_a_bound_as_well():
    # Both are upper bounds; neither is always the lesser, and the mechanism itself is below both.
    many = Laplace(5) * 4
    exact = (Laplace(2.5) * 4).delta(0.5).lower
    assert many.group(2) == Laplace(2.5) * 4
    assert exact <= Group(many, 2).delta(0.5).upper
