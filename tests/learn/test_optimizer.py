"""`PrivateOptimizer` gives any optimizer of torch private gradients, and says what it cannot vouch for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from dalenius.errors import InvalidArgument
from dalenius.learn.optimizer import PrivateOptimizer
from dalenius.losses.gaussian import Gaussian

from .reference import clipped_mean, per_example_gradients
from .runs import data, flat, network, stepper
from .test_clipping import averaged, entropies

ENTROPY = nn.CrossEntropyLoss()
QUIET = 1e-6


@pytest.mark.parametrize(
    "made",
    [
        lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9, weight_decay=0.01),
        lambda ps: torch.optim.Adam(ps, lr=0.1),
        lambda ps: torch.optim.AdamW(ps, lr=0.1),
        lambda ps: torch.optim.RMSprop(ps, lr=0.1),
        lambda ps: torch.optim.Adagrad(ps, lr=0.1),
    ],
    ids=["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"],
)
def test_any_optimizer_moves_all_parameters(made: Any) -> None:
    model, (x, y) = network(), data(4)
    private = PrivateOptimizer(model, made(model.parameters()), clip=1, noise_multiplier=1, batch_size=4)
    for _ in range(3):
        before = flat(model)
        private.zero_grad()
        ENTROPY(private.model(x), y).backward()
        private.step()
        # On a grid, noise is zero now and then.
        assert float((flat(model) != before).float().mean()) > 0.8
    assert private.steps == 3 and private.loss == Gaussian(1)


@pytest.mark.parametrize("clip", [0.5, 5])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_step_is_the_clipped_mean_of_the_loop(reduction: str, clip: float) -> None:
    model, (x, y) = network(), data(6)
    wanted = clipped_mean(per_example_gradients(network(), (x, y), entropies), clip=clip, batch_size=9)
    private = stepper(model, batch_size=9, clip=clip, noise_multiplier=QUIET, reduction=reduction)
    before = flat(model)
    nn.CrossEntropyLoss(reduction=reduction)(private.model(x), y).backward()
    private.step()
    expected = torch.cat([one.reshape(-1) for one in wanted.values()])
    torch.testing.assert_close(before - flat(model), expected, rtol=0.03, atol=1e-3)


@pytest.mark.parametrize("clip", [0.4, 5])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_views_of_an_example_are_one_example(reduction: str, clip: float) -> None:
    model, (x, _) = network(), data(6)
    y = torch.tensor([0, 1, 2]).repeat_interleave(2)
    wanted = clipped_mean(averaged(network(), (x, y), 2), clip=clip, batch_size=3)
    private = stepper(model, batch_size=3, clip=clip, noise_multiplier=QUIET, reduction=reduction, views=2)
    before = flat(model)
    nn.CrossEntropyLoss(reduction=reduction)(private.model(x), y).backward()
    private.step()
    expected = torch.cat([one.reshape(-1) for one in wanted.values()])
    torch.testing.assert_close(before - flat(model), expected, rtol=0.03, atol=1e-3)


def test_a_wrong_reduction_is_no_word() -> None:
    with pytest.raises(InvalidArgument, match="mean and sum"):
        stepper(network(), reduction="none")


def test_what_is_left_to_the_loop_is_said() -> None:
    said = " ".join(stepper(network()).caveats)
    for word in ("drawn", "empty batch", "another's gradient", "mean", "published"):
        assert word in said


def test_gradients_of_the_step_before_are_not_taken_for_new_ones() -> None:
    model, (x, y) = network(), data(4)
    private = stepper(model, noise_multiplier=1e-6)
    private.step()
    before = flat(model)
    for _ in range(2):
        ENTROPY(private.model(x), y).backward()
        private.accumulate()
        private._sum.clear()
    private.step()
    assert (flat(model) - before).norm() < 1e-4


def test_a_frozen_model_is_refused() -> None:
    model = network().requires_grad_(False)
    with pytest.raises(InvalidArgument, match="requires a gradient"):
        stepper(model)


def test_frozen_parameters_do_not_move() -> None:
    model, (x, y) = network(), data(4)
    model[0].requires_grad_(False)
    kept = model[0].weight.clone()
    private = stepper(model)
    ENTROPY(private.model(x), y).backward()
    private.step()
    assert torch.equal(model[0].weight, kept) and model[0].weight.grad is None


def test_evaluation_leaves_no_trace() -> None:
    model, (x, y) = network(), data(4)
    private = stepper(model, noise_multiplier=QUIET)
    before = flat(model)
    with torch.no_grad():
        private.model(data(9)[0])
    ENTROPY(private.model(x), y).backward()
    private.step()
    other = network()
    again = stepper(other, noise_multiplier=QUIET)
    ENTROPY(again.model(x), y).backward()
    again.step()
    torch.testing.assert_close(flat(model), flat(other), rtol=0, atol=1e-5)
    assert not torch.equal(flat(model), before)


def test_a_model_may_return_its_loss_in_half_precision() -> None:
    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x).square().mean()

    model = Loss()
    private = PrivateOptimizer(
        model, torch.optim.SGD(model.parameters(), lr=0.1), clip=1, noise_multiplier=1, batch_size=8
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = private.model(torch.ones(8, 4))
    loss.backward()
    private.step()
    assert all(one.grad is not None and one.grad.isfinite().all() for one in model.parameters())
