"""How long a single draw takes tells nothing about its value."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

from dalenius import noise
from dalenius.noise import reference


def correlation(draw: Callable[[], NDArray[np.int64]], size: int) -> float:
    """Spearman's, of the time of each draw and the absolute value it returned."""
    times, values = np.empty(size), np.empty(size)
    draw()
    gc.disable()
    try:
        for i in range(size):
            start = time.perf_counter_ns()
            value = draw()
            times[i] = time.perf_counter_ns() - start
            values[i] = abs(value[0])
    finally:
        gc.enable()
    return abs(float(spearmanr(times, values).statistic))


@pytest.mark.parametrize("name", ["discrete_laplace", "rounded_gaussian", "discrete_gaussian"])
@pytest.mark.parametrize("scale", [1, 100, 10**6])
def test_time_and_noise_are_uncorrelated(name: str, scale: int) -> None:
    """0.035 is seven standard errors: a false alarm has a probability of 3e-12."""
    sampler = getattr(noise, name)
    assert correlation(lambda: sampler(scale, 1), 40_000) < 0.035


def test_the_usual_way_to_draw_tells_its_value_by_time() -> None:
    """Trial by trial, as in the reference, a large value takes longer: the test above would see it."""
    assert correlation(lambda: reference.discrete_laplace(100, 1), 4_000) > 0.2
