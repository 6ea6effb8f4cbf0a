"""Two routes that share no numerics enclose the same ε: the contour, and the grid of chords with its FFT."""

from __future__ import annotations

import random

import pytest

from dalenius.losses import Gaussian
from dalenius.losses.routes import profiles
from dalenius.profiles.discrete import discrete_profile
from dalenius.profiles.mixture_profile import MixtureProfile


def disagreements(count: int, seed: int) -> list[tuple[object, ...]]:
    """Cases with few, rare and large losses, in which the enclosures of the two routes are disjoint."""
    source, found = random.Random(seed), []
    for _ in range(count):
        q, sigma = 10 ** source.uniform(-4, -0.5), 10 ** source.uniform(-0.3, 0.5)
        steps, delta = source.randint(2, 40), 10 ** source.uniform(-22, -3)
        for profile in profiles(Gaussian(sigma).poisson(q) * steps):
            assert isinstance(profile, MixtureProfile)
            one, other = profile.epsilon(delta), discrete_profile(profile.worst).epsilon(delta)
            if not (one[0] <= other[1] and other[0] <= one[1]):
                found.append((q, sigma, steps, delta, profile.sign, one, other))
    return found


def test_contour_and_grid_agree() -> None:
    assert disagreements(5, seed=0) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
def test_contour_and_grid_agree_at_length(seed: int) -> None:
    assert disagreements(25, seed) == []
