"""Margins add up, and the law that stands for their noise reaches as far as theirs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dalenius.mechanisms.gaussian import Gaussian
from dalenius.mechanisms.laplace import Laplace
from dalenius.privacy.quantized import Grid
from dalenius.tables.planning.margins import law_of_sum

NOISES = [Gaussian, Laplace]


def tail(law: Any, times: int, reach: float) -> float:
    """The chance that the sum of so many draws is further from 0, by convolution."""
    steps = np.arange(-2000, 2001)
    masses = law.masses(steps)
    found = masses
    for _ in range(times - 1):
        found = np.convolve(found, masses)
    middle = len(found) // 2
    return float(found[np.abs(np.arange(len(found)) - middle) > reach].sum())


@pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(1, 20), Fraction(1, 1000)])
@pytest.mark.parametrize("times", [1, 2, 3, 12])
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(25, 2)])
@pytest.mark.parametrize("noise", NOISES)
def test_the_law_of_a_sum_reaches_as_far_as_the_sum(
    noise: Any, scale: Fraction, times: int, alpha: Fraction
) -> None:
    law = noise(scale=scale, sensitivity=1, grid=Grid(0), exact=True)
    for part in (1, 2, 7):
        assert tail(law, times, law_of_sum(law, times, alpha).reach(alpha / part)) <= alpha / part


def test_the_law_of_a_sum_of_gaussian_noise_is_hardly_wider_than_the_sum() -> None:
    law = Gaussian(scale=2**20, sensitivity=1, grid=Grid(0), exact=True)
    assert law_of_sum(law, 16, Fraction(1, 20)).scale <= Fraction(4001, 1000) * law.scale
