"""What breaks a whole run: parameters that come late, noise used twice, settings that tell batch sizes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.gradients import Watched
from dalenius.learn.random_state import run_seed

from .runs import data, flat, network, run_of, stepper, train

ENTROPY = nn.CrossEntropyLoss()


def test_a_parameter_that_is_unfrozen_later_gets_no_gradient_without_noise() -> None:
    model = network()
    model[0].requires_grad_(False)
    private = run_of(model, data(40))
    before = model[0].weight.clone()
    with pytest.raises(NotSound, match="does not train"):
        for number, (x, y) in enumerate(private.loader):
            model[0].requires_grad_(number > 0)
            private.zero_grad()
            ENTROPY(private.model(x), y).backward()
            private.step()
    assert torch.equal(before, model[0].weight)


def test_parameters_that_the_optimizer_gets_later_are_refused() -> None:
    private, other = stepper(network()), nn.Linear(1, 1)
    private.optimizer.add_param_group({"params": list(other.parameters())})
    with pytest.raises(InvalidArgument, match="not the model's"):
        private.step()


@pytest.mark.parametrize("width", range(1, 9))
def test_class_weights_are_refused_whatever_the_rows_look_like(width: int) -> None:
    model = nn.Linear(width, 3)
    rows = (torch.randn(40, width), torch.randint(3, (40,)))
    with pytest.raises(NotSound, match="class weights"):
        train(run_of(model, rows), nn.CrossEntropyLoss(weight=torch.tensor([1.0, 1.0, 9.0])))


@pytest.mark.parametrize("width", range(1, 9))
def test_class_weights_by_hand_are_refused_whatever_the_rows_look_like(width: int) -> None:
    def criterion(out: Tensor, labels: Tensor) -> Tensor:
        weights = torch.tensor([1.0, 9.0, 1.0])[labels]
        return (weights * functional.cross_entropy(out, labels, reduction="none")).sum() / weights.sum()

    rows = (torch.randn(40, width), torch.randint(3, (40,)))
    with pytest.raises(NotSound, match="div"):
        train(run_of(nn.Linear(width, 3), rows), criterion)


def test_means_are_over_each_row_first_and_plain_ones_stay_what_they_are() -> None:
    model, x, labels = nn.Linear(5, 21), torch.randn(4, 5), torch.randint(3, (4, 7))
    labels[0, :5] = -100
    labels[1] = -100
    watched = Watched(model)
    with watched.looped():
        watched.begin((x, labels), 4)
        logits = watched(x).view(-1, 7, 3)
        found = functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        whole = functional.cross_entropy(logits[:, 0], labels[:, 6].clamp(min=0))
        summed = functional.cross_entropy(logits[:, 0], labels[:, 6].clamp(min=0), reduction="sum")
        with watched.unwatched():
            alone = [functional.cross_entropy(row, own) for row, own in zip(logits, labels, strict=True)]
            torch.testing.assert_close(found, torch.stack(alone).nan_to_num(0).mean())
            plain = functional.cross_entropy(logits[:, 0], labels[:, 6].clamp(min=0))
            torch.testing.assert_close(whole, plain)
            torch.testing.assert_close(summed, 4 * whole)


def test_a_loss_without_gradients_makes_steps_of_noise_alone() -> None:
    def criterion(out: Tensor, labels: Tensor) -> Tensor:
        return functional.relu(out.sum(1) - 1e6).mean()

    model = network()
    private, before = run_of(model, data(40)), flat(model)
    train(private, criterion)
    assert private.steps == 3 and not torch.equal(flat(model), before)


@pytest.mark.filterwarnings("ignore:Detected call of")
def test_a_scheduler_that_goes_on_with_every_chunk_is_refused() -> None:
    private = run_of(network(), data(40), chunk=2)
    schedule = torch.optim.lr_scheduler.ExponentialLR(private.optimizer, 0.9)
    with pytest.raises(NotSound, match="settings"):
        for x, y in private.loader:
            private.zero_grad()
            ENTROPY(private.model(x), y).backward()
            private.step()
            schedule.step()


def test_a_scheduler_that_goes_on_with_every_step_is_fine() -> None:
    private = run_of(network(), data(40), chunk=2)
    schedule, made = torch.optim.lr_scheduler.ExponentialLR(private.optimizer, 0.9), 0
    for x, y in private.loader:
        private.zero_grad()
        ENTROPY(private.model(x), y).backward()
        private.step()
        if private.steps > made:
            made = private.steps
            schedule.step()
    assert private.optimizer.param_groups[0]["lr"] == pytest.approx(0.5 * 0.9**3)


def test_in_half_precision_all_gradients_do_not_change_with_their_number() -> None:
    """A gradient divided by n, rounded, and multiplied by n differs from batch to batch for all alike."""
    model = nn.Linear(4, 2, bias=False)
    nn.init.zeros_(model.weight)
    sums = []
    for n in (1021, 1022):
        private = stepper(model, batch_size=1024, clip=1)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = private.model(0.66 * torch.ones(n, 4))
        assert out.dtype == torch.float32
        ENTROPY(out, torch.zeros(n, dtype=torch.long)).backward()
        private.accumulate()
        sums.append(torch.cat([one.flatten() for one in private._sum.exact()]))
    assert float((sums[0] - sums[1]).norm()) <= 1


def test_noise_is_not_used_twice_where_an_optimizer_fails() -> None:
    model, (x, y) = network(), data(4)
    private, seen = stepper(model, noise_multiplier=100), []

    def fail(*_: Any) -> None:
        seen.append([one.grad.clone() for one in model.parameters()])
        if len(seen) == 1:
            raise RuntimeError

    private.optimizer.register_step_pre_hook(fail)
    for raises in (True, False):
        private.zero_grad()
        ENTROPY(private.model(x), y).backward()
        if raises:
            with pytest.raises(RuntimeError):
                private.step()
        else:
            private.step()
    assert all(not torch.allclose(one, two, atol=1) for one, two in zip(*seen, strict=True))


def test_an_optimizer_is_not_copied() -> None:
    with pytest.raises(NotSound, match="second time"):
        copy.deepcopy(stepper(network()))


def test_whoever_keeps_a_released_gradient_does_not_see_the_next_sum() -> None:
    model, (x, y) = network(), data(4)
    private = stepper(model)
    private.step()
    kept = model[0].weight.grad
    view = model[2].weight.grad.detach().view(-1)
    before = kept.clone(), view.clone()
    private.zero_grad()
    ENTROPY(private.model(x), y).backward()
    private.accumulate()
    assert torch.equal(kept, before[0])
    assert torch.equal(view, before[1])


def test_masks_of_dropout_do_not_follow_from_a_seed() -> None:
    seeds = []
    for _ in range(2):
        torch.manual_seed(0)
        private = run_of(network(), data(40))
        for x, y in private.loader:
            seeds.append(run_seed())
            private.zero_grad()
            ENTROPY(private.model(x), y).backward()
            private.step()
    assert len(set(seeds)) == 6


class Ragged(Dataset[tuple[Tensor, int]]):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, number: int) -> tuple[Tensor, int]:
        return torch.ones(5 if number < 20 else 6), number % 3


def test_rows_that_do_not_fit_are_not_told() -> None:
    private = run_of(network(), Ragged(), batch_size=20, pad_to={})
    train(private)
    assert private.steps == 3


def test_long_norms_are_not_too_short() -> None:
    model = nn.Linear(1 << 20, 1, bias=False)
    private = stepper(model, batch_size=1)
    private.model(torch.ones(1, 1 << 20)).sum().backward()
    private.accumulate()
    assert float(torch.cat(private._sum.exact()).double().norm()) <= 1


def test_products_in_less_than_single_precision_are_refused() -> None:
    private, (x, y) = stepper(network()), data(4)
    torch.set_float32_matmul_precision("high")
    try:
        ENTROPY(private.model(x), y).backward()
        with pytest.raises(NotSound, match="single precision"):
            private.step()
    finally:
        torch.set_float32_matmul_precision("highest")


def test_filters_in_another_order_of_memory_are_trained() -> None:
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.Flatten(), nn.Linear(4, 3)).to(
        memory_format=torch.channels_last
    )
    private = stepper(model)
    before = flat(model)
    ENTROPY(private.model(torch.randn(4, 2, 3, 3)), torch.zeros(4, dtype=torch.long)).backward()
    private.step()
    assert bool((flat(model) != before).any())
