"""Numbers from papers and from their authors' code."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dalenius.losses import calibrate
from dalenius.losses.streams import (
    Banded,
    BandedSquareRoot,
    BandedToeplitz,
    BinaryTree,
    BufferedToeplitz,
    SquareRoot,
    min_separation,
)


def test_square_root_of_counting():
    """Fichtenberger, Henzinger and Upadhyay 2023: their closed form of A^{1/2} at n = 1024."""
    errors = SquareRoot(1024).errors()
    assert f"{errors.largest:.6f}" == "3.272554"
    assert f"{errors.root_mean_square:.6f}" == "3.109790"


@pytest.mark.parametrize(("length", "landau"), [(1, 1), (2, 1.25), (3, 1.390625), (4, 1.48828125)])
def test_largest_error_of_the_square_root_is_landaus_constant(length, landau):
    """Landau 1913: G_0, G_1, G_2, G_3 = 1, 5/4, 89/64, 381/256."""
    assert SquareRoot(length).errors().largest == pytest.approx(landau, rel=1e-11)


@pytest.mark.parametrize("length", [1, 2, 10, 1000, 10**5])
def test_landaus_constants_are_within_their_bounds(length):
    """Brutman 1982: 1 + ln(n)/π ≤ G_{n−1} < 1.0663 + ln(n)/π."""
    excess = SquareRoot(length).errors().largest - math.log(length) / math.pi
    assert 1 <= excess < 1.0663


@pytest.mark.parametrize("length", [4, 64, 300])
def test_no_factorization_beats_the_nuclear_norm(length):
    """Henzinger, Upadhyay and Upadhyay 2023: a root-mean-square error is at least Σ singular values / n."""
    odd = 2 * np.arange(1, length + 1) - 1
    least = np.sum(1 / (2 * np.sin(odd * np.pi / (4 * length + 2)))) / length
    full = Banded.optimized(min(length, 64), min(length, 64)) if length <= 64 else SquareRoot(length)
    assert least <= full.errors().root_mean_square <= SquareRoot(length).errors().root_mean_square
    assert SquareRoot(length).errors().root_mean_square < 1.3 * least


@pytest.mark.parametrize(("noise", "published"), [(1.13, 19.74), (8.83, 2.04)])
def test_tree_of_dp_ftrl_on_stack_overflow(noise, published):
    """Kairouz et al. 2021 (the test of TensorFlow Privacy's tree accountant): 1,600 rounds, δ = 1e-6.

    The published ε is the classical conversion of ρ = levels/(2σ²); the exact one is less.
    """
    loss = BinaryTree(1600, "plain").loss(noise)
    rho = float(loss.zcdp())
    assert round(rho + 2 * math.sqrt(rho * math.log(1e6)), 2) == published
    assert loss.epsilon(1e-6).upper < published


@pytest.mark.parametrize(
    ("most", "between", "length", "square"),
    [(1, 7, 8, 4), (3, 3, 9, 11), (3, 2, 7, 9), (8, 2, 24, 88), (2, 0, 19, 18), (8, 0, 8, 120)],
)
def test_tree_with_several_participations(most, between, length, square):
    """TensorFlow Privacy, tree_aggregation_accountant_test, which counts the steps in between."""
    bound = BinaryTree(length).sensitivity(min_separation(between + 1, most=most))
    assert bound.tight
    assert bound.lower <= math.sqrt(square) <= bound.upper <= math.sqrt(square) * (1 + 1e-14)


@pytest.mark.parametrize("depth", [1, 2, 3, 10, 20])
def test_honaker_online(depth):
    """TensorFlow Privacy, EfficientTreeAggregator (Honaker 2015): √(2^{d−1}/(2^d − 1)) at depth d."""
    norms = BinaryTree(2 ** (depth - 1)).row_norms()
    assert norms[-1] == pytest.approx(math.sqrt(2 ** (depth - 1) / (2**depth - 1)), rel=1e-14)


def test_buffers_optimized_for_a_hundred_thousand_steps():
    """JAX Privacy, buffered_toeplitz_test, test_optimize_single_participation_golden."""
    found = BufferedToeplitz.optimized(100_000, 2)
    published = BufferedToeplitz(100_000, [0.9999528892, 0.9857068667], [0.0122853238, 0.1878393665])
    assert [float(x) for x in found.decays] == pytest.approx([0.9999528892, 0.9857068667], rel=1e-5)
    assert [float(x) for x in found.scales] == pytest.approx([0.0122853238, 0.1878393665], rel=1e-4)
    assert found.errors().largest == pytest.approx(published.errors().largest, rel=1e-8)


@pytest.mark.parametrize(
    ("length", "buffers", "ratio"), [(10, 1, 1.04), (1000, 2, 1.04), (1000, 3, 1.03), (100_000, 4, 1.03)]
)
def test_few_buffers_come_close_to_the_bound(length, buffers, ratio):
    """JAX Privacy, buffered_toeplitz_test: within that ratio of 1 + ln(n)/π."""
    found = BufferedToeplitz.optimized(length, buffers)
    assert found.errors().largest <= ratio * (1 + math.log(length) / math.pi)


def test_buffers_for_several_participations():
    """JAX Privacy 2.0.0 on n = 2000, min_sep = 400, max_participations = 5, three buffers (our run of it)."""
    pattern = min_separation(400, most=5)
    peer = BufferedToeplitz(
        2000,
        [0.9999999997641948, 0.9940233640341832, 0.8233024229625471],
        [0.007478460841507889, 0.11093671935415765, 0.3320245851937611],
    )
    ours = BufferedToeplitz.optimized(2000, 3, pattern)
    assert ours.errors(pattern).largest == pytest.approx(peer.errors(pattern).largest, rel=1e-5)
    assert [float(x) for x in ours.scales] == pytest.approx([float(x) for x in peer.scales], rel=1e-3)


@pytest.mark.parametrize(
    ("length", "bands", "columns", "toeplitz"),
    [
        (16, 4, 1.9028955497, 1.9375302750),
        (64, 8, 2.6205169694, 2.6639748341),
        (128, 16, 2.8187665313, 2.8725541219),
    ],
)
def test_banded_optimum(length, bands, columns, toeplitz):
    """JAX Privacy 2.0.0, banded.optimize and toeplitz.optimize_banded_toeplitz (our run of them)."""
    found = Banded.optimized(length, bands).errors().root_mean_square
    assert found == pytest.approx(columns, rel=1e-7)
    assert BandedToeplitz.optimized(length, bands).errors().root_mean_square == pytest.approx(
        toeplitz, rel=1e-8
    )
    assert found < toeplitz < BandedSquareRoot(length, bands).errors().root_mean_square


def test_amplified_banded_noise():
    """n = 1024, 16 bands, 50,000 records, batches of 500, ε = 1, δ = 1e-5: group rate 0.16, 64 rounds.

    JAX Privacy 2.0.0 asks for 7.563838 (Rényi accounting); at ours dp-accounting 0.6.0 (PLD) finds 1.0000008.
    """
    stream = BandedSquareRoot(1024, 16)
    noise = calibrate(lambda sigma: stream.amplified(sigma, 0.16), epsilon=1, delta=1e-5)
    assert float(noise) == pytest.approx(6.965059, rel=1e-6)
    assert stream.amplified(7.563838, 0.16).epsilon(1e-5).upper < 1
