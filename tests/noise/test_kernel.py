"""The compiled loops do what numpy's do, bit by bit, and are used only if built from their own source."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra import numpy as arrays

from dalenius.noise import kernel, narrow
from dalenius.noise.acceptance import Acceptance
from dalenius.noise.exponential import Laplace
from dalenius.noise.gaussian import DiscreteGaussian, RoundedGaussian
from dalenius.noise.kernel import Compiled, Grid, Loops
from dalenius.noise.law import Law
from dalenius.noise.sampler import Sampler
from dalenius.noise.stream import StreamKey
from dalenius.noise.table import lay_out
from dalenius.noise.tail import TailSampler

numpy_loops = Loops()


@pytest.fixture(scope="module", autouse=True)
def compiled() -> Loops:
    if not isinstance(kernel.loops, Compiled):
        assert shutil.which("cc") is None, "there is a compiler, but the loops were not built: reinstall"
        pytest.skip("the loops of noise were not built, as there is no C compiler")
    return kernel.loops


def both(monkeypatch: pytest.MonkeyPatch, draw) -> tuple[np.ndarray, np.ndarray]:
    found = []
    for loops in (kernel.loops, numpy_loops):
        monkeypatch.setattr(kernel, "loops", loops)
        found.append(draw())
    return found[0], found[1]


@pytest.mark.parametrize("law", [RoundedGaussian, Laplace])
@pytest.mark.parametrize("scale", [Fraction(1, 3), 1, 50, 2**13, 2**20, 2**23])
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 300_001])
def test_vectors_of_32_bits(monkeypatch: pytest.MonkeyPatch, law, scale, size: int) -> None:
    made, key = narrow.NarrowSampler(law(Fraction(scale))), StreamKey.fresh()

    def draw() -> np.ndarray:
        values = np.empty(size, np.int32)
        made.fill(values, key.stream(1))
        return values

    ours, theirs = both(monkeypatch, draw)
    assert (ours == theirs).all()


def test_vectors_whose_bins_need_further_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    made, key = narrow.NarrowSampler(RoundedGaussian(Fraction(2**26))), StreamKey.fresh()

    def draw() -> np.ndarray:
        values = np.empty(100_003, np.int32)
        made.fill(values, key.stream(1))
        return values

    ours, theirs = both(monkeypatch, draw)
    assert (ours == theirs).all()


@pytest.mark.parametrize(
    "law", [DiscreteGaussian(Fraction(10**6)), Laplace(Fraction(7)), Laplace(Fraction(2**45))]
)
def test_vectors_of_64_bits(monkeypatch: pytest.MonkeyPatch, law: Law) -> None:
    made, key = Sampler(law), StreamKey.fresh()

    def draw() -> np.ndarray:
        values = np.empty(100_000, np.int64)
        made.fill(values, key.stream(1))
        return values

    ours, theirs = both(monkeypatch, draw)
    assert (ours == theirs).all()


@pytest.mark.parametrize("law", [RoundedGaussian(Fraction(2**20)), RoundedGaussian(Fraction(1))])
def test_layers_next_to_lines(compiled: Loops, law: Law) -> None:
    """Every row, with V at, just below and just above where each line is."""
    table = lay_out(law, bits=12, fineness=16)
    lines, size = Acceptance(TailSampler(law, table)).lines, 1 << table.shift
    for place in {0, size // 3, size - 1}:
        for line in (1, 2):
            height = np.clip(lines[:, line] + lines[:, 3] * place - lines[:, 0], 0, 1)
            for step in (-1, 0, 1):
                bits = np.clip(np.floor(height * 2**32) + step, 0, 2**32 - 1).astype(np.uint32)
                slots = np.arange(table.sure, 1 << table.bits).astype(np.uint32)
                places = np.full(slots.size, place)
                ours = compiled.settle(slots, places, bits, table.sure, lines)
                theirs = numpy_loops.settle(slots, places, bits, table.sure, lines)
                assert all((a == b).all() for a, b in zip(ours, theirs, strict=True))


@given(data=some.data(), bits=some.sampled_from([32, 64]), power=some.integers(-30, 30))
def test_sums_in_steps(compiled: Loops, data, bits: int, power: int) -> None:
    """At whole steps, halfway between two, at the limit, and anywhere else."""
    kind = np.float32 if bits == 32 else np.float64
    finite = some.floats(allow_nan=False, allow_infinity=False, width=bits)
    near = some.integers(-(2**31), 2**31).map(lambda n: float(kind(n * 0.5)))
    total = data.draw(arrays.arrays(kind, some.integers(0, 200), elements=finite | near))
    noise = data.draw(arrays.arrays(np.int32, total.size, elements=some.integers(-(2**30) + 1, 2**30 - 1)))
    ours, theirs = total.copy(), total.copy()
    with np.errstate(over="ignore"):
        for loops, into in ((compiled, ours), (numpy_loops, theirs)):
            loops.add(into, noise, Grid(2.0**power * 1.1, 2.0**29, 2.0**power / 7))
    assert (ours == theirs).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 50_001])
def test_noise_that_is_not_held(compiled: Loops, kind, size: int) -> None:
    sampler, grid = narrow.rounded_gaussian(1000), Grid(2.0**-10, 2.0**29, 0.1)
    words, total = StreamKey.fresh().stream().words(size, np.uint32), np.linspace(-3, 3, size, dtype=kind)
    ours, theirs = total.copy(), total.copy()
    scratch = np.empty(size, np.int64)
    found = [
        loops.onto(words, into, sampler.bins, grid, scratch)
        for loops, into in ((compiled, ours), (numpy_loops, theirs))
    ]
    assert (ours == theirs).all()
    assert (found[0] == found[1]).all()
    assert (ours[found[0]] == total[found[0]]).all()


def test_a_library_of_another_source_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "kernel.c"
    other.write_bytes(kernel.SOURCE.read_bytes() + b"\n")
    assert isinstance(kernel.load(), Compiled)
    monkeypatch.setattr(kernel, "SOURCE", other)
    assert not isinstance(kernel.load(), Compiled)


def test_without_a_library_numpy_draws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernel, "LIBRARY", tmp_path / "none.so")
    assert type(kernel.load()) is Loops
    kernel_text = tmp_path / "text.so"
    kernel_text.write_text("no library")
    monkeypatch.setattr(kernel, "LIBRARY", kernel_text)
    assert type(kernel.load()) is Loops
