"""The tree's estimates: exact without noise, unbiased, and better than sums of its nodes."""

from __future__ import annotations

import numpy as np

from dalenius.tables.planning.trees import _below, coefficients


def nodes(leaves: np.ndarray) -> np.ndarray:
    """Counts of all levels, from those of the leaves."""
    levels = [leaves]
    while levels[-1].shape[1] > 2:
        levels.append(levels[-1][:, 0::2] + levels[-1][:, 1::2])
    return np.concatenate(levels[::-1], axis=1)


def test_without_noise_the_numbers_below_are_exact() -> None:
    leaves = np.random.default_rng(1).integers(0, 50, (7, 64)).astype(float)
    found = _below(nodes(leaves), 6)
    assert np.allclose(found[:, 1:], np.cumsum(leaves, axis=1)) and np.all(found[:, 0] == 0)


def test_coefficients_are_those_of_the_estimates() -> None:
    noisy = np.random.default_rng(2).normal(size=(3, 2**6 - 2))
    assert np.allclose(noisy @ coefficients(5), _below(noisy, 5))


def test_estimates_have_the_least_variance_there_is() -> None:
    # Least squares by the normal equations, for every number below a boundary.
    design = nodes(np.eye(16)).T
    best = np.linalg.inv(design.T @ design)
    sums = np.tril(np.ones((16, 16)))
    least = np.diag(sums @ best @ sums.T)
    assert np.allclose(np.square(coefficients(4)).sum(axis=0)[1:], least)
