"""Noise onto floats where they lie is that of a vector of noise, with every doubtful entry put right."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dalenius.errors import InvalidArgument
from dalenius.noise import kernel, narrow, onto
from dalenius.noise.gaussian import RoundedGaussian
from dalenius.noise.kernel import Grid, Loops
from dalenius.noise.narrow import NarrowSampler
from dalenius.noise.stream import StreamKey
from dalenius.noise.table import lay_out

ONES = Grid(1.0, 2.0**29, 1.0)


def added(sizes: list[int], sampler: NarrowSampler, kind: type, key: StreamKey) -> list[np.ndarray]:
    vectors = [np.zeros(size, kind) for size in sizes]
    onto.add(vectors, sampler, key.stream(1), ONES)
    return vectors


@pytest.mark.parametrize("scale", [1, 1000, 2**20])
def test_the_law(scale: int, follows, truth) -> None:
    def draw(size: int) -> np.ndarray:
        return added([size], narrow.rounded_gaussian(scale), np.float64, StreamKey.fresh())[0].astype(
            np.int64
        )

    follows(draw, 1_000_000, truth("rounded_gaussian", scale))


def test_the_law_where_most_slots_are_doubtful(follows, truth, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over vectors of many lengths, in small chunks and groups."""
    monkeypatch.setattr(onto, "CHUNK", 100)
    monkeypatch.setattr(onto, "GROUP", 730)
    law = RoundedGaussian(Fraction(10))
    sampler = NarrowSampler(law, lay_out(law, bits=6, fineness=1))

    def draw(size: int) -> np.ndarray:
        sizes = [1, 0, 99, 301, 7, size - 408]
        return np.concatenate(added(sizes, sampler, np.float64, StreamKey.fresh())).astype(np.int64)

    follows(draw, 40_000, truth("rounded_gaussian", 10))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_total_is_cut_to_steps_and_multiplied(kind: type) -> None:
    """The noise is that of zeros: nothing is lost where it was put right."""
    key, sampler = StreamKey.fresh(), narrow.rounded_gaussian(2**12)
    (noise,) = added([300_000], sampler, np.float64, key)
    total = np.linspace(-5, 5, noise.size, dtype=kind)
    wanted = (np.trunc(total * kind(2.0**10)).astype(np.int64) + noise.astype(np.int64)).astype(kind)
    onto.add([total], sampler, key.stream(1), Grid(2.0**-10, 2.0**29, 2.0**-10 / 3))
    assert (total == wanted * kind(2.0**-10 / 3)).all()


def test_numpy_adds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    key, sampler = StreamKey.fresh(), narrow.rounded_gaussian(2**20)
    sizes = [5, 200_000, 64, 17]
    ours = added(sizes, sampler, np.float32, key)
    monkeypatch.setattr(kernel, "loops", Loops())
    theirs = added(sizes, sampler, np.float32, key)
    assert all((one == two).all() for one, two in zip(ours, theirs, strict=True))


def test_what_would_get_other_noise_is_refused() -> None:
    wide = narrow.rounded_gaussian(2**26)
    assert wide.more
    for vectors, sampler in (([np.zeros(8)], wide), ([np.zeros(8)[::2]], narrow.rounded_gaussian(10))):
        with pytest.raises(InvalidArgument):
            onto.add(vectors, sampler, StreamKey.fresh().stream(), ONES)
