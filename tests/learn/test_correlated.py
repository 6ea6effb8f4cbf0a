"""Correlated noise has the law of its theorem, exactly, costs what the stream costs, and keeps nothing."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest
import torch
from flint import arb
from scipy.stats import chi2, norm
from torch import Tensor

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.adam import Adam
from dalenius.learn.adaptive import Quantile
from dalenius.learn.averaging import Average
from dalenius.learn.clipping import Absolute, Flat
from dalenius.learn.correlated import BITS, Correlated, correlated, reals
from dalenius.learn.private import Private
from dalenius.learn.sampling import Poisson, read
from dalenius.learn.sampling.cyclic import Cyclic
from dalenius.losses import Gaussian, Laplace
from dalenius.losses.streams import SquareRoot, cyclic
from dalenius.losses.streams.inverse import BandedInverse
from dalenius.noise.bits import Bits
from dalenius.noise.filtered import Filter, Part, Reals, real
from dalenius.noise.narrow import fill_rounded_gaussian
from dalenius.noise.stream import StreamKey

ALARM = 1e-6


def drawn(
    noise: Correlated, key: StreamKey, step: int, *, size: int, scale: int | Fraction
) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """R of a step, through a tensor of zeros on a grid of step 1."""
    total = torch.zeros(size, dtype=torch.float64)
    paths = [(s, 0) for s in range(step, max(step - noise.bands, -1), -1)]
    noise.add([total], Fraction(scale), 1.0, 1.0, key, paths)
    return total.numpy().astype(np.int32)


def within(statistic: float, degrees: int) -> bool:
    """Two-sided, at a false-alarm rate of ALARM."""
    return bool(chi2.ppf(ALARM / 2, degrees) < statistic < chi2.isf(ALARM / 2, degrees))


def test_the_covariance_is_that_of_the_matrix_written_out() -> None:
    noise, key, steps, size, scale = Correlated(bands=3), StreamKey.fresh(), 6, 20_000, 4096
    seen = np.stack([drawn(noise, key, step, size=size, scale=scale) for step in range(steps)])
    encoder = BandedInverse.square_root(steps, 3).encoder()
    white = encoder @ seen / scale
    # Rounding adds 1/12 of a step to 4096², which nobody sees.
    gram = white @ white.T / size - np.eye(steps)
    entries = gram[np.triu_indices(steps)] * np.sqrt(size)
    spread = np.where(np.eye(steps)[np.triu_indices(steps)] > 0, np.sqrt(2), 1)
    assert within(float(np.sum((entries / spread) ** 2)), entries.size)


def test_without_bands_it_is_the_rounded_gaussian() -> None:
    scale, size = Fraction(3, 2), 40_000
    seen = drawn(Correlated(bands=1), StreamKey.fresh(), 0, size=size, scale=scale)
    values = np.arange(-4, 5)
    chances = norm.cdf((values + 0.5) / float(scale)) - norm.cdf((values - 0.5) / float(scale))
    counts = np.array([(seen == value).sum() for value in values])
    counts, chances = np.append(counts, size - counts.sum()), np.append(chances, 1 - chances.sum())
    assert float(np.sum((counts - size * chances) ** 2 / (size * chances))) < chi2.isf(ALARM, len(values))


@pytest.mark.parametrize("shift", [0, 3, 9])
def test_draws_are_those_of_real_numbers_known_to_many_digits(shift: int) -> None:
    key, scale, weights, size = StreamKey.fresh(), Fraction(40), (8, -4, -1), 60
    vectors = [reals(key, (step, 0)) for step in range(3)]
    values = np.empty(size, np.int32)
    Filter(weights, scale, shift).fill(values, vectors)
    numbers = [known(key, (step, 0), size, scale) for step in range(3)]
    with flint.ctx.workprec(600):
        for i in range(size):
            total = sum((w * n[i] for w, n in zip(weights, numbers, strict=True)), arb(0))
            assert int((total / 2**shift + arb(0.5)).floor().unique_fmpz()) == values[i]


def known(key: StreamKey, path: tuple[int, ...], size: int, scale: Fraction) -> list[arb]:
    """The vector of a path to 300 digits: cells, 16 bits of place, 448 bits further."""
    vector = reals(key, path)
    cells = np.empty(size, np.int32)
    fill_rounded_gaussian(cells, scale, vector.cells)
    places = vector.places.words(size, np.uint16)
    with flint.ctx.workprec(600):
        found = []
        for i in range(size):
            bits, place = vector.further(i), int(places[i])
            for _ in range(7):
                place = place << 64 | bits.integer(64)
            found.append(real(int(cells[i]), (arb(place) + arb(0.5)) / arb(2) ** 464, scale))
        return found


def test_doubtful_draws_are_settled_by_further_bits() -> None:
    asked: list[int] = []

    def further(index: int) -> Bits:
        asked.append(index)
        return key.stream(6, 0, index)

    key = StreamKey.fresh()
    vector = Reals(key.stream(1, 0), key.stream(5, 0), further)
    # Sixteen bits of a place know a number to 2^-16, and so 2^15 times that number to ½.
    Filter((2**15,), Fraction(2), 0).fill(np.empty(200, np.int32), [vector])
    assert 0 < len(set(asked)) <= 200


def test_further_bits_of_a_place_leave_those_before_them() -> None:
    part = Part(0, np.array([3], np.int32), np.array([9], np.uint16), partial(StreamKey.fresh().stream, 6))
    with flint.ctx.workprec(400):
        places = [part.at(0, more)[1] for more in (0, 64, 128, 192)]
        assert all(one.contains(two) for one, two in pairwise(places))


def test_what_is_released_is_on_the_grid_and_moves_with_the_sum() -> None:
    noise, key, grid = Correlated(bands=4), StreamKey.fresh(), 2.0**-10
    paths = [(step, 0) for step in (5, 4, 3, 2)]
    sums = torch.arange(64, dtype=torch.float64) * 7 * grid
    zero = torch.zeros(64, dtype=torch.float64)
    for total in (sums_out := sums.clone(), zero):
        noise.add([total], Fraction(1000), grid, 1.0, key, paths)
    assert torch.equal(sums_out / grid, (sums_out / grid).round())
    assert torch.equal(sums_out - zero, sums)


def test_the_parity_of_a_sum_is_not_seen() -> None:
    """With integers for reals, 2(x_1 + z_1 − z_0/2) + (x_0 + z_0) has the parity of x_0, always."""
    size, key = 4000, StreamKey.fresh()
    z = np.empty((2, size), np.int32)
    for row in z:
        fill_rounded_gaussian(row, 100, key.stream(9, int(row is z[1])))
    assert not np.any((2 * z[1] - z[0] + z[0]) % 2)
    half = Filter((2, -1), Fraction(100), 1)
    first, second = np.empty(size, np.int32), np.empty(size, np.int32)
    half.fill(first, [reals(key, (0,))])
    half.fill(second, [reals(key, (1,)), reals(key, (0,))])
    odd = int(np.sum((2 * second + first) % 2))
    assert (2 * odd - size) ** 2 / size < chi2.isf(ALARM, 1)


def test_nothing_is_kept_from_step_to_step() -> None:
    key, again = StreamKey.fresh(), Correlated(bands=5)
    in_turn = [drawn(Correlated(bands=5), key, step, size=500, scale=50) for step in range(9)]
    for step in (8, 0, 4):
        assert np.array_equal(drawn(again, key, step, size=500, scale=50), in_turn[step])


def test_sums_of_noise_are_smaller_than_with_independent_noise_of_the_same_cost() -> None:
    order = Cyclic(1000, batch_size=20, steps=2000)
    stream, alone = order.stream, Cyclic(1000, batch_size=20, steps=2000, bands=1)
    charged = order.loss(Gaussian(10)).epsilon(delta=1e-6)
    matched = 10 / stream.sensitivity(order.participation).upper * 40**0.5
    other = alone.loss(Gaussian(Fraction(matched).limit_denominator(10**6))).epsilon(delta=1e-6)
    assert other.upper == pytest.approx(charged.upper, rel=1e-3)
    error = stream.errors(order.participation).root_mean_square
    assert error < 0.3 * (40 * 2001 / 2) ** 0.5


def test_the_loss_is_the_streams() -> None:
    order = Cyclic(600, batch_size=30, epochs=3, public_size=600, bands=3)
    assert (order.separation, order.steps, order.relation) == (20, 60, "add_remove")
    dense = np.linalg.inv(np.eye(60) - 0.5 * np.eye(60, k=-1) - 0.125 * np.eye(60, k=-2))
    worst = max(np.linalg.norm(dense[:, first::20].sum(axis=1)) for first in range(20))
    assert order.stream.sensitivity(cyclic(20)).upper == pytest.approx(worst, rel=1e-12)
    loss = order.loss(Gaussian(7))
    assert loss == BandedInverse(60, (1, -0.5, -0.125)).loss(7, cyclic(20))
    assert loss.epsilon(delta=1e-6).upper == pytest.approx(
        Gaussian(Fraction(7 / worst)).epsilon(delta=1e-6).upper, rel=1e-6
    )


def test_one_more_attempt_costs_its_row_of_the_matrix() -> None:
    order = Cyclic(600, batch_size=30, epochs=3, bands=3)
    dense, step_loss = order.stream.encoder(), Gaussian(7)
    for step in (0, 19, 40, 59):
        grown = np.vstack([dense, dense[step]])
        worst = max(np.linalg.norm(grown[:, first::20].sum(axis=1)) for first in range(20))
        both = order.loss(step_loss) + order.again(step_loss)
        exact = Gaussian(Fraction(7 / worst), relation="zero_out").epsilon(delta=1e-6)
        assert both.epsilon(delta=1e-6).upper >= exact.lower


def test_an_inverse_of_more_and_more_bands_becomes_the_square_root() -> None:
    full, root = BandedInverse.square_root(64, 64, bits=40), SquareRoot(64)
    assert np.allclose(full.encoder(), root.encoder(), atol=1e-10)
    assert np.allclose(full.decoder(), root.decoder(), atol=1e-10)
    assert np.allclose(full.decoder(), np.tri(64) @ np.linalg.inv(full.encoder()), atol=1e-10)


def test_coefficients_are_enclosed() -> None:
    stream, length = BandedInverse.square_root(400, 6), 400
    low, high = stream.coefficients()
    exact = [Fraction(1)]
    entries = [Fraction(entry) for entry in stream.entries[1:]]
    for t in range(1, length):
        exact.append(-sum(d * exact[t - j] for j, d in enumerate(entries, 1) if j <= t))
    assert all(a <= c <= b for a, b, c in zip(low, high, exact, strict=True))
    assert np.all(high - low < 1e-11)


@pytest.mark.parametrize("entries", [(2, -1), (1, 0.5), (1, -0.75, -0.5), (0, 1)])
def test_an_inverse_without_theorem_is_refused(entries: tuple[float, ...]) -> None:
    with pytest.raises(InvalidArgument):
        BandedInverse(10, entries)


def test_a_fixed_order_takes_each_unit_once_an_epoch_and_always_at_its_place() -> None:
    order, key = Cyclic(1000, batch_size=100, epochs=3, bands=1), StreamKey.fresh()
    batches = [order.batch(step, key.stream(0, order.period(step))) for step in range(order.steps)]
    assert sorted(np.concatenate(batches[:10])) == list(range(1000))
    assert all(np.array_equal(batches[step], batches[step % 10]) for step in range(30))
    assert order.loss(Gaussian(2)) == Gaussian(2, relation="zero_out") * 3
    assert order.again(Gaussian(2)) == Gaussian(2, relation="zero_out")
    assert read(order.plain(), rows=1000) == order
    assert "fixed order" in order.notes[0]


def test_what_has_no_theorem_is_refused() -> None:
    order = Cyclic(100, batch_size=10, steps=10)
    assert correlated(order, Flat(1)) == Correlated(8)
    for clipping in (Absolute(1), Quantile(1)):
        with pytest.raises(NotSound, match="L2"):
            correlated(order, clipping)
        assert correlated(Cyclic(100, batch_size=10, steps=10, bands=1), clipping) is None
    with pytest.raises(NotSound, match="Gaussian"):
        order.loss(Laplace(1))
    with pytest.raises(TypeError):
        Poisson(100, batch_size=10, steps=10, bands=8)  # type: ignore[call-arg]


def test_weights_fit_their_integers() -> None:
    widest = Correlated(bands=64).filter(Fraction(1))
    assert sum(map(abs, widest.weights)) <= 2**15 and widest.weights[0] == 2**BITS
    assert (widest.scale, widest.shift) == (1, BITS)
    assert Correlated(64).filter(Fraction(2**26)).scale == 2**26
    for weights, scale, shift in (((2**15, 1), 1, 14), ((2**14,), 2**28, 14), ((1,), 1, 32), ((), 1, 1)):
        with pytest.raises(InvalidArgument):
            Filter(weights, Fraction(scale), shift)


def test_cells_are_the_rounding_of_the_reals() -> None:
    with flint.ctx.workprec(200):
        for cell in (0, 1, -1, 7, -30):
            low, high = (real(cell, arb(at), Fraction(4)) for at in (0, 1))
            assert low.contains(arb(cell) - arb(0.5)) and high.contains(arb(cell) + arb(0.5))


def run(noise_multiplier: float, **more: Any) -> tuple[Private, list[Tensor]]:
    """Twelve steps in two epochs on ones; the private gradients."""
    rows = torch.ones(60, 3, dtype=torch.float64)
    model = torch.nn.Linear(3, 1).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    private = Private(
        model,
        optimizer,
        rows,
        batch_size=10,
        epochs=2,
        clip=1,
        noise_multiplier=noise_multiplier,
        sampling="cyclic",
        public_size=60,
        **more,
    )
    seen: list[Tensor] = []
    optimizer.register_step_pre_hook(lambda *_: seen.append(gradient(model)))
    train(private)
    return private, seen


def test_a_private_run_is_charged_and_noised_as_its_stream() -> None:
    private, seen = run(5, bands=3)
    order = private.sampling
    assert isinstance(order, Cyclic) and (order.bands, len(seen)) == (3, 12)
    assert private.cost == BandedInverse.square_root(12, 3).loss(5, cyclic(6))
    assert any("correlated over 3" in line for line in private.receipt.bounds)
    grid = 2.0**-private._sum.plan.numerics.bits
    steps = torch.stack(seen) * 10 / grid
    assert torch.allclose(steps, steps.round(), atol=1e-3)


def test_the_noise_of_a_run_has_the_covariance_of_its_stream() -> None:
    """The spread of its whitened gradients; false alarms 1e-6."""
    private, seen = run(1000, bands=3)
    white = private.sampling.stream.encoder() @ torch.stack(seen).numpy() * 10 / 1000  # type: ignore[attr-defined]
    assert within(float(np.sum(white**2)), white.size)


def test_an_average_and_adam_go_with_a_run() -> None:
    rows, model = torch.ones(60, 3), torch.nn.Linear(3, 1)
    optimizer = Adam(model.parameters(), 0.1)
    average = Average(model, decay=None)
    given: dict[str, Any] = {"batch_size": 10, "steps": 4, "clip": 2, "noise_multiplier": 3}
    private = Private(model, optimizer, rows, public_size=60, average=average, **given)
    for (x,) in private.batches():
        private.zero_grad()
        private.model(x).sum(1).mean().backward()
        private.step()
    assert average.steps == 4 and average.how in private.receipt.postprocessing
    assert optimizer.param_groups[0]["noise"] == pytest.approx(0.6)


def test_a_step_that_was_broken_off_is_made_again_on_its_batch_with_its_own_noise() -> None:
    rows, model = torch.ones(60, 3, dtype=torch.float64), torch.nn.Linear(3, 1).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    given: dict[str, Any] = {"batch_size": 10, "epochs": 2, "clip": 1, "noise_multiplier": 5, "bands": 3}
    private = Private(model, optimizer, rows, sampling="cyclic", **given)
    order, planned = private.sampling, private.cost
    broken = optimizer.register_step_pre_hook(_break)
    batches: list[list[int]] = []
    draw = order.batch
    object.__setattr__(order, "batch", lambda *a: batches.append(found := draw(*a)) or found)
    with pytest.raises(KeyboardInterrupt):
        train(private)
    first = gradient(model)
    broken.remove()
    seen: list[Tensor] = []
    optimizer.register_step_pre_hook(lambda *_: seen.append(gradient(model)))
    train(private)
    assert np.array_equal(batches[0], batches[1]) and not torch.equal(first, seen[0])
    assert private.cost == planned + order.again(Gaussian(5))
    assert private.steps == 12


def _break(*_: object) -> None:
    raise KeyboardInterrupt


def gradient(model: torch.nn.Module) -> Tensor:
    return torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None])


def train(private: Private) -> None:
    for (x,) in private.batches():
        private.zero_grad()
        private.model(x).sum(1).mean().backward()
        private.step()


def test_a_run_that_is_resumed_has_the_noise_it_would_have_had(tmp_path: Path) -> None:
    rows = torch.randn(60, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def begin(make: Callable[..., Private]) -> Private:
        model = torch.nn.Linear(3, 1).double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        given: dict[str, Any] = {"batch_size": 10, "epochs": 2, "clip": 1, "noise_multiplier": 5}
        return make(model, optimizer, rows, sampling="cyclic", bands=4, **given)

    private, place = begin(Private), tmp_path / "run.state"
    for (x,) in private.batches():
        private.zero_grad()
        private.model(x).sum(1).mean().backward()
        private.step()
        if private.steps == 7:
            private.save(place)
    private.close()
    again = begin(partial(Private.resume, place))
    train(again)
    assert again.steps == 12 and again.cost == private.cost
    for one, two in zip(private.model.names, again.model.names, strict=True):
        assert torch.equal(one, two)
