"""The noise of a step has the law that is charged and is fresh everywhere; sums are what they should be."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor, nn

from dalenius.errors import NotSound
from dalenius.learn.clipping import Absolute
from dalenius.learn.numerics import Numerics

from .runs import data, flat, network, run_of, stepper, train

FALSE_ALARM = 1e-6


def moves(model: nn.Module, steps: int, **more: object) -> Tensor:
    """What every one of some steps on nobody moves the parameters by, (steps, P), in double precision."""
    private, rows = stepper(model, **more), []
    for _ in range(steps):
        for one in model.parameters():
            one.data.zero_()
        private.zero_grad()
        private.step()
        rows.append(-flat(model).double())
    return torch.stack(rows)


def test_the_noise_of_a_step_has_the_stated_deviation() -> None:
    """σ = multiplier·clip/batch in every coordinate: a χ² of 30 × 75 squares, two-sided at 1e-6."""
    noise = moves(network(), 30, noise_multiplier=2, clip=3, batch_size=6)
    total = float((noise / 1.0).square().sum())
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], noise.numel())
    assert low <= total <= high


def test_the_noise_of_a_step_is_normal() -> None:
    """Kolmogorov and Smirnov, at 1e-6."""
    noise = moves(network(), 60, noise_multiplier=1, clip=1, batch_size=1)
    assert stats.kstest(noise.reshape(-1).numpy(), "norm").pvalue > FALSE_ALARM


def test_laplace_noise_of_a_step_has_its_law() -> None:
    noise = moves(network(), 60, noise_multiplier=2, clip=Absolute(1), batch_size=4)
    assert stats.kstest(noise.reshape(-1).numpy(), "laplace", (0, 0.5)).pvalue > FALSE_ALARM


def test_no_two_steps_and_no_two_tensors_have_one_noise() -> None:
    model = nn.Sequential(*(nn.Linear(8, 8, bias=False) for _ in range(4)))
    noise = moves(model, 5).view(5, 4, 64)
    blocks = noise.reshape(20, 64)
    for i in range(20):
        for j in range(i):
            assert not torch.equal(blocks[i], blocks[j])
    # Correlations of 64 pairs beyond 0.75 have a chance below 1e-12 each.
    assert float(torch.corrcoef(blocks).fill_diagonal_(0).abs().max()) < 0.75


def test_released_values_lie_on_the_grid() -> None:
    private = stepper(network().double(), clip=1, batch_size=1)
    private.step()
    bits = private._sum.plan.numerics.bits
    for one in private.model.parameters():
        steps = one.grad * 2.0**bits
        assert torch.equal(steps, steps.round())


def test_a_run_and_an_optimizer_of_ones_own_agree() -> None:
    """The same rows give the same sums; with the same key they would have the same noise as well."""
    model, other = network(), network()
    rows = data(6)
    private = run_of(model, rows, batch_size=6, steps=1, noise_multiplier=1e-6, public_size=6, lr=1.0)
    assert private.sampling.rate == 1
    train(private)
    mine = stepper(other, batch_size=6, noise_multiplier=1e-6)
    nn.CrossEntropyLoss()(mine.model(rows[0]), rows[1]).backward()
    mine.step()
    torch.testing.assert_close(flat(model), flat(other), rtol=0, atol=1e-5)


# The numerical model.


@given(st.integers(1, 10**9), st.integers(1, 10**5), st.integers(1, 2000), st.floats(0.1, 100))
def test_the_slack_covers_grid_and_rounding(
    parameters: int, batch: int, chunk: int, multiplier: float
) -> None:
    try:
        numerics = Numerics.of(
            parameters,
            noise_multiplier=Fraction(multiplier),
            batch=Fraction(batch),
            chunk=chunk,
            dtype=torch.float32,
        )
    except NotSound:
        return
    assert numerics.slack >= Fraction(math.sqrt(parameters)) / 2**numerics.bits
    assert numerics.within(1.0) + math.sqrt(parameters) / 2**numerics.bits <= 1
    # Eight deviations of noise, and sums that saturate, fit in 32 bits.
    assert multiplier * 2**numerics.bits <= 2**26 * (1 + 1e-9) or numerics.bits == 1


def test_sums_that_cannot_be_trusted_are_refused() -> None:
    with pytest.raises(NotSound, match="may be off") as caught:
        Numerics.of(
            100, noise_multiplier=Fraction(1), batch=Fraction(10**7), chunk=10**7, dtype=torch.float32
        )
    assert "smaller physical batches" in caught.value.remedy
    Numerics.of(100, noise_multiplier=Fraction(1), batch=Fraction(10**7), chunk=10**4, dtype=torch.float64)


def test_the_receipt_names_the_numerical_model() -> None:
    private = run_of(network(), data(40))
    assert "as modelled" in private.receipt.numerics


def test_alike_examples_add_up_to_their_number_times_the_bound_at_most() -> None:
    """The worst case of the model: all gradients point one way."""
    model = nn.Linear(3, 1, bias=False)
    private = stepper(model, batch_size=1000, noise_multiplier=1e-6)
    before = flat(model)
    (-1000 * private.model(torch.ones(1000, 3))).mean().backward()
    private.step()
    moved = float((flat(model) - before).double().norm())
    assert 0.95 <= moved <= 1


def test_a_sum_out_of_bounds_saturates_and_does_not_wrap() -> None:
    from dalenius.learn.noising import LIMIT

    assert LIMIT[torch.int32] + 8 * 2**26 < 2**31
    assert np.iinfo(np.int32).max == 2**31 - 1


def test_a_sum_whose_noise_fails_is_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU is asked for noise, and parameters have their gradients before it is known to be there."""
    from dalenius.learn import noising

    def failing(*_: object) -> object:
        def finish() -> None:
            assert all(one.grad is not None for one in model.parameters())
            raise RuntimeError("noise")

        return finish

    model = network()
    monkeypatch.setattr(noising.Noise, "reaches", lambda *_: True)
    monkeypatch.setattr(noising.Noise, "add_there", failing)
    private, (x, _) = stepper(model), data(8)
    private.model(x).square().mean().backward()
    before = flat(model)
    with pytest.raises(RuntimeError, match="noise"):
        private.step()
    assert all(one.grad is None for one in model.parameters())
    assert torch.equal(flat(model), before)


def test_noise_of_pieces_is_told_from_noise_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """On another device the same stream gives other noise: a seal must not be one for both."""
    from dalenius.learn import noising

    private = stepper(network())
    here = private._sum.drawn
    monkeypatch.setattr(noising, "_near", lambda _: False)
    assert "in order" in here and "in pieces" in private._sum.drawn
