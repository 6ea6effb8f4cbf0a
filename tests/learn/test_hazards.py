"""Mistakes that private training loops have been found to make: naive code makes them, this code cannot."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.errors import NotSound

from .reference import clipped_mean, per_example_gradients
from .runs import data, flat, network, run_of, stepper

ENTROPY = nn.CrossEntropyLoss()
NEXT_TO_NOTHING = 1e-6
"""A noise multiplier with which what is released shows the sum."""


def entropies(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(outputs, targets, reduction="none")


def released(model: nn.Module, chunks: list[tuple[Tensor, Tensor]], **more: Any) -> Tensor:
    """What a step of a loop of one's own moves the parameters by, next to noiseless."""
    private, before = stepper(model, noise_multiplier=NEXT_TO_NOTHING, **more), flat(model)
    for x, y in chunks:
        ENTROPY(private.model(x), y).backward()
        private.accumulate()
    private.step()
    return before - flat(model)


# One example moves a clipped average by up to twice the bound.


def naive_microbatches(model: nn.Module, x: Tensor, y: Tensor, clip: float, size: int) -> Tensor:
    total = torch.zeros_like(flat(model))
    for rows, labels in zip(x.split(size), y.split(size), strict=True):
        gradients = torch.autograd.grad(ENTROPY(model(rows), labels), list(model.parameters()))
        one = torch.cat([g.reshape(-1) for g in gradients])
        total += one * min(1.0, clip / float(one.norm()))
    return total


def opposed() -> tuple[nn.Module, Tensor, Tensor]:
    """Two examples whose gradients point away from each other."""
    model = nn.Linear(1, 2, bias=False)
    nn.init.zeros_(model.weight)
    return model, torch.tensor([[10.0], [30.0]]), torch.tensor([0, 1])


def test_clipping_averages_lets_one_example_move_a_sum_by_twice_the_bound() -> None:
    model, x, y = opposed()
    both, without = naive_microbatches(model, x, y, 1.0, 2), naive_microbatches(model, x[:1], y[:1], 1.0, 2)
    assert (both - without).norm() > 1.9
    ours = released(model, [(x, y)], batch_size=1) - released(opposed()[0], [(x[:1], y[:1])], batch_size=1)
    assert ours.norm() <= 1


def test_backward_passes_that_pile_up_are_refused() -> None:
    """Two passes before one step would clip the sums of two examples, as averages were clipped."""
    private = stepper(network())
    x, y = data(8)
    ENTROPY(private.model(x[:4]), y[:4]).backward()
    with pytest.raises(NotSound, match="clipped together"):
        private.model(x[4:])


def test_after_that_refusal_a_new_pass_counts_alone() -> None:
    model = network()
    private = stepper(model, noise_multiplier=NEXT_TO_NOTHING)
    (x, y), before = data(4), flat(model)
    ENTROPY(private.model(x), y).backward()
    with pytest.raises(NotSound):
        private.model(x)
    ENTROPY(private.model(x), y).backward()
    private.step()
    torch.testing.assert_close(before - flat(model), released(network(), [(x, y)]), rtol=0, atol=1e-5)


# Sums of batches are divided by the size that is expected.


def test_batches_that_differ_in_one_example_differ_by_the_bound_over_the_expected_size() -> None:
    x, y = 100 * data(8)[0], data(8)[1]

    def naive(rows: int) -> Tensor:
        gradients = per_example_gradients(network(), (x[:rows], y[:rows]), entropies)
        return torch.cat([one.reshape(-1) for one in clipped_mean(gradients, clip=1.0).values()])

    small, large = released(network(), [(x[:3], y[:3])]), released(network(), [(x[:4], y[:4])])
    assert (large - small).norm() <= 1 / 4
    gradients = per_example_gradients(network(), (x[:3], y[:3]), entropies)
    wanted = clipped_mean(gradients, clip=1.0, batch_size=4)
    torch.testing.assert_close(
        small, torch.cat([one.reshape(-1) for one in wanted.values()]), rtol=2e-2, atol=1e-3
    )
    # The same rows over their own number: what all others have added is scaled by who takes part.
    assert (naive(3) - small).norm() > 0.02


@pytest.mark.parametrize("sizes", [(8,), (5, 3), (1, 7), (3, 3, 2), (1,) * 8])
def test_unequal_chunks_give_the_gradient_of_one_batch(sizes: tuple[int, ...]) -> None:
    x, y = data(8)
    chunks = list(zip(x.split(list(sizes)), y.split(list(sizes)), strict=True))
    whole = released(network(), [(x, y)], batch_size=8, clip=0.5)
    torch.testing.assert_close(released(network(), chunks, batch_size=8, clip=0.5), whole, rtol=0, atol=1e-5)


def test_naive_accumulation_of_means_is_another_gradient() -> None:
    """What the test above would find in a loop that adds up means over chunks."""
    model, (x, y) = network(), data(8)
    whole = torch.autograd.grad(ENTROPY(model(x), y), list(model.parameters()))
    parts = [
        torch.autograd.grad(ENTROPY(model(x[s]), y[s]), list(model.parameters()))
        for s in (slice(1), slice(1, 8))
    ]
    naive = [(one + two) / 2 for one, two in zip(*parts, strict=True)]
    assert max(float((one - two).abs().max()) for one, two in zip(naive, whole, strict=True)) > 1e-2


# Batches of nobody.


def test_an_empty_batch_is_a_step_with_noise() -> None:
    """A naive loop skips it, and so tells that nobody was drawn."""
    model = network()
    private = run_of(model, data(3), batch_size=1, steps=40, public_size=1000, lr=1.0)
    moved, before = 0, flat(model)
    for x, y in private.loader:
        steps = private.steps
        private.zero_grad()
        ENTROPY(private.model(x), y).backward()
        private.step()
        moved += int(private.steps > steps and not torch.equal(flat(model), before))
        before = flat(model)
    # 40 steps of rate 1/1000 over three rows: nearly all of them are empty.
    assert private.steps == moved == 40


def test_an_empty_batch_releases_noise_alone() -> None:
    model = network()
    private, before = run_of(model, data(3), batch_size=1, steps=1, public_size=10**9), flat(model)
    for x, y in private.loader:
        private.zero_grad()
        ENTROPY(private.model(x), y).backward()
        with private.model.unwatched():
            private._sum.add(private.model.shares(), real=private._real)
            assert all((one == 0).all() for one in private._sum.exact())
            private._sum.clear()
        private.step()
    assert not torch.equal(flat(model), before)


def test_a_step_without_a_backward_pass_is_a_step_on_nobody() -> None:
    model = network()
    private, before = stepper(model), flat(model)
    private.step()
    assert private.steps == 1 and not torch.equal(flat(model), before)
