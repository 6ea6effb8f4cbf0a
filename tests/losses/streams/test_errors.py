"""Decoders undo their encoders, and the noise of a stream is as large as `errors` says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from dalenius.losses.streams import (
    Banded,
    BandedSquareRoot,
    BandedToeplitz,
    BinaryTree,
    BufferedToeplitz,
    SquareRoot,
    min_separation,
)

STREAMS = [
    SquareRoot(13),
    BandedSquareRoot(13, 4),
    BandedToeplitz(13, [1, -0.4, 0.2]),
    BufferedToeplitz(13, [0.9, 0.2], [0.3, 0.6]),
    BufferedToeplitz(13, [0.5, 0.5], [0.3, 0.6]),
    Banded.optimized(13, 4),
    BinaryTree(13, "plain"),
    BinaryTree(13, "online"),
    BinaryTree(16, "full"),
]


@pytest.mark.parametrize("stream", STREAMS, ids=repr)
def test_a_decoder_makes_prefix_sums(stream):
    assert stream.decoder() @ stream.encoder() == pytest.approx(np.tri(stream.length), abs=1e-12)


@pytest.mark.parametrize("stream", STREAMS, ids=repr)
def test_row_norms_are_those_of_the_decoder(stream):
    assert stream.row_norms() == pytest.approx(np.linalg.norm(stream.decoder(), axis=1), rel=1e-11)


def test_better_estimators_of_a_tree_err_less():
    plain, online, full = (BinaryTree(64, name).row_norms() for name in ("plain", "online", "full"))
    assert np.all(full <= online * (1 + 1e-12)) and np.all(online <= plain * (1 + 1e-12))


def streamed(decays: list[float], scales: list[float], noise: np.ndarray) -> np.ndarray:
    """Outputs of buffered noise, step by step, as a mechanism would make them."""
    buffers, total, outputs = np.zeros((len(decays), noise.shape[1])), np.zeros(noise.shape[1]), []
    for fresh in noise:
        mixed = fresh - np.array(scales) @ buffers
        buffers = np.array(decays)[:, None] * buffers + mixed
        total = total + mixed
        outputs.append(total)
    return np.array(outputs)


def grown(noise: np.random.Generator, length: int, runs: int) -> np.ndarray:
    """Outputs of a binary tree, block by block, with the recursive estimate of each block."""
    blocks: list[tuple[int, np.ndarray]] = []
    outputs = []
    for _ in range(length):
        height, estimate = 0, noise.normal(size=runs)
        while blocks and blocks[-1][0] == height:
            children = blocks.pop()[1] + estimate
            height += 1
            weight = 2.0**height / (2.0 ** (height + 1) - 1)
            estimate = weight * noise.normal(size=runs) + (1 - weight) * children
        blocks.append((height, estimate))
        outputs.append(sum(each for _, each in blocks))
    return np.array(outputs)


def within(outputs: np.ndarray, norms: np.ndarray) -> None:
    """Each output's mean square is a chi-squared variable: 1e-8 for each of 26, 3e-7 in all."""
    runs = outputs.shape[1]
    low, high = chi2.ppf(5e-9, runs) / runs, chi2.ppf(1 - 5e-9, runs) / runs
    ratio = np.mean(outputs**2, axis=1) / norms**2
    assert np.all(ratio > low) and np.all(ratio < high)


def test_simulated_buffers_err_as_much_as_said():
    stream = BufferedToeplitz(13, [0.9, 0.2], [0.3, 0.6])
    noise = np.random.default_rng().normal(size=(13, 20_000))
    outputs = streamed([0.9, 0.2], [0.3, 0.6], noise)
    assert outputs == pytest.approx(stream.decoder() @ noise, abs=1e-9)
    within(outputs, stream.row_norms())


def test_simulated_trees_err_as_much_as_said():
    within(grown(np.random.default_rng(), 13, 20_000), BinaryTree(13).row_norms())


def test_errors_grow_with_participation():
    stream, more = SquareRoot(100), min_separation(10, most=4)
    ratio = stream.sensitivity(more).upper / stream.sensitivity().upper
    assert stream.errors(more).largest == pytest.approx(ratio * stream.errors().largest)
    assert stream.errors().root_mean_square < stream.errors().largest
