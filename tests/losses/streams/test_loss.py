"""What a stream costs: as one Gaussian release, and as sampled ones where noise is banded."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses import Gaussian
from dalenius.losses.dominated import Dominated
from dalenius.losses.loss import Loss
from dalenius.losses.streams import (
    Banded,
    BandedSquareRoot,
    BandedToeplitz,
    BinaryTree,
    BufferedToeplitz,
    CorrelatedGaussian,
    Participation,
    SquareRoot,
    cyclic,
    min_separation,
    once,
)

LOOSE = BandedToeplitz(20, [1, -0.5, 0.3])
noises = st.floats(0.5, 50).map(lambda x: round(x, 3))


@given(st.integers(1, 300), noises)
def test_a_stream_costs_one_gaussian_release_of_its_sensitivity(length, noise):
    stream = SquareRoot(length)
    loss = stream.loss(noise)
    assert isinstance(loss, Gaussian)
    exact = Fraction(str(noise)) / Fraction(stream.sensitivity().upper)
    assert exact * (1 - Fraction(1, 10**11)) <= loss.noise_multiplier <= exact


def test_one_step_is_a_plain_gaussian():
    for stream in (SquareRoot(1), BinaryTree(1), Banded([[1.0]]), BufferedToeplitz(1, [0.5], [0.5])):
        assert float(stream.loss(2).epsilon(1e-6)) == pytest.approx(
            float(Gaussian(2).epsilon(1e-6)), rel=1e-9
        )


def test_replacing_costs_twice_the_distance():
    stream, pattern = SquareRoot(50), min_separation(10)
    replaced = stream.loss(4, pattern, relation="replace")
    assert replaced == stream.loss(4, pattern).under("replace")
    assert replaced.epsilon(1e-6).upper > stream.loss(4, pattern, relation="zero_out").epsilon(1e-6).upper


def test_a_loose_sensitivity_is_said_to_be_loose():
    pattern = min_separation(2, most=5)
    loss, bound = LOOSE.loss(3, pattern), LOOSE.sensitivity(pattern)
    assert isinstance(loss, CorrelatedGaussian) and not loss.tight and not bound.tight
    epsilon = loss.epsilon(1e-6)
    assert not epsilon.tight
    for side, of in ((epsilon.upper, bound.upper), (epsilon.lower, bound.lower)):
        assert side == pytest.approx(float(Gaussian(3 / of).epsilon(1e-6)), rel=1e-9)


@settings(max_examples=20, deadline=None)
@given(noises, st.integers(1, 6), st.sampled_from(["add_remove", "replace", "zero_out"]))
def test_a_loose_loss_survives_the_disk_and_composes(noise, count, relation):
    loss = LOOSE.loss(noise, min_separation(2, most=5), relation=relation)
    assert Loss.from_json(loss.to_json()) == loss
    assert Loss.from_json(loss.to_json()).epsilon(1e-6) == loss.epsilon(1e-6)
    other = Gaussian(5, relation=relation)
    assert loss + other == other + loss
    assert (loss * count).epsilon(1e-6).upper <= (loss * (count + 1)).epsilon(1e-6).upper
    assert loss.group(2).epsilon(1e-6).upper >= loss.epsilon(1e-6).upper
    assert loss.group(2).zcdp().upper == pytest.approx(4 * loss.zcdp().upper)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 6), st.floats(0.05, 0.9), st.floats(0.05, 0.9))
def test_a_smaller_rate_never_costs_more(bands, one, two):
    stream, (low, high) = BandedSquareRoot(24, bands), sorted((round(one, 3), round(two, 3)))
    assert stream.amplified(2, low).epsilon(1e-5).upper <= stream.amplified(2, high).epsilon(1e-5).upper * (
        1 + 1e-9
    )


@pytest.mark.parametrize(
    "stream", [BandedSquareRoot(24, 4), BandedSquareRoot(23, 4), Banded([[1.0, 0.5]] * 9)]
)
def test_without_sampling_it_is_a_cyclic_participation(stream):
    bands = stream.bands
    whole, parts = stream.loss(3, cyclic(bands)).epsilon(1e-6), stream.amplified(3, 1).epsilon(1e-6)
    assert whole.upper <= parts.upper * (1 + 1e-9)
    assert parts.lower <= whole.upper * (1 + 1e-9)


def test_sampling_saves():
    stream = BandedSquareRoot(1024, 16)
    assert stream.amplified(4, 0.1).epsilon(1e-5).upper < 0.5 * stream.loss(4, cyclic(16)).epsilon(1e-5).upper


def privacy_loss(stream: BandedSquareRoot, noise: float, rate: float, outputs: np.ndarray) -> np.ndarray:
    """log dP/dQ of the whole stream, by summing over every way to sample a unit of the first group."""
    steps = np.arange(0, stream.length, stream.bands)
    ways = (np.arange(2 ** len(steps))[:, None] >> np.arange(len(steps))) & 1
    chance = np.prod(np.where(ways, rate, 1 - rate), axis=1)
    moved = ways @ stream.encoder()[:, steps].T
    exponents = outputs @ moved.T / noise**2 - np.sum(moved**2, axis=1) / (2 * noise**2)
    return np.log(np.exp(exponents) @ chance)


@pytest.mark.parametrize("length", [6, 7])
def test_simulated_amplification(length):
    """δ(ε) of the mechanism itself from 400,000 runs. Hoeffding: off by 0.0048 with a chance below 1e-7."""
    stream, noise, rate, runs = BandedSquareRoot(length, 3), 1.0, 0.4, 400_000
    rng = np.random.default_rng()
    steps = np.arange(0, length, 3)
    sampled = rng.random((runs, len(steps))) < rate
    outputs = sampled @ stream.encoder()[:, steps].T + noise * rng.normal(size=(runs, length))
    losses = privacy_loss(stream, noise, rate, outputs)
    claimed = stream.amplified(noise, rate)
    for epsilon in (0.0, 0.5, 1.5):
        seen = float(np.mean(np.maximum(0, -np.expm1(epsilon - losses))))
        bound = claimed.delta(epsilon)
        assert bound.lower - 0.0048 <= seen <= bound.upper + 0.0048


def test_several_units_are_bounded_along_a_path():
    """Units of different groups overlap, so a group is not enlarged step by step."""
    loss = BandedSquareRoot(24, 4).amplified(4, 0.2)
    assert isinstance(loss, Dominated)
    assert not loss.group(2).tight
    assert loss.group(2).epsilon(1e-6).upper >= 2 * loss.epsilon(1e-6).lower
    assert Loss.from_json(loss.to_json()) == loss


def test_what_is_not_known_is_refused():
    with pytest.raises(NotSound, match="bands only"):
        BinaryTree(16).amplified(1, 0.1)
    with pytest.raises(NotSound, match="replace"):
        BandedSquareRoot(16, 4).amplified(1, 0.1, relation="replace")


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: SquareRoot(0), "length"),
        (lambda: SquareRoot(10**9), "length"),
        (lambda: BandedSquareRoot(8, 0), "bands"),
        (lambda: BandedToeplitz(8, [0, 1]), "entries"),
        (lambda: BandedToeplitz(8, [1, math.nan]), "entries"),
        (lambda: BandedToeplitz(8, "12"), "entries"),
        (lambda: Banded([[1.0], []]), "columns"),
        (lambda: Banded.optimized(5000, 4), "BandedToeplitz"),
        (lambda: BufferedToeplitz(8, [1], [0.5]), "decays"),
        (lambda: BufferedToeplitz(8, [0.5], [0.5, 0.1]), "decays and scales"),
        (lambda: BufferedToeplitz(8, [0.5, 0.1], [0.9, 0.2]), "scales"),
        (lambda: BufferedToeplitz.optimized(8, 99), "buffers"),
        (lambda: BinaryTree(8, "best"), "estimator"),
        (lambda: BinaryTree(12, "full"), "power of two"),
        (lambda: min_separation(0), "separation"),
        (lambda: min_separation(2, most=0), "most"),
        (lambda: Participation(3, most=2, fixed=True), "cyclic"),
        (lambda: SquareRoot(8).loss(0), "noise_multiplier"),
        (lambda: SquareRoot(8).loss(1, 3), "participation"),
        (lambda: BandedSquareRoot(8, 2).amplified(1, 0), "sampling_rate"),
        (lambda: SquareRoot(10**5).encoder(), "written out"),
        (lambda: CorrelatedGaussian(1, sensitivity=1, attainable=2), "attainable"),
        (lambda: CorrelatedGaussian(1, sensitivity=10**7, attainable=0), "sensitivity"),
        (lambda: SquareRoot(8).loss(1, once(), relation="near"), "relation"),
    ],
)
def test_bad_parameters_are_refused_by_name(make, name):
    with pytest.raises(InvalidArgument, match=name):
        make()
