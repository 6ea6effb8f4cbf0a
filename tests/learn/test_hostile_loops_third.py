"""Loops that two independent readings of the analysis got through: all of them are refused.

Measured shifts of a clipped sum were between 1.1 and 8 clip norms, or a plain number was had that follows
from private examples.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from dalenius.errors import NotSound
from dalenius.learn.attempts import Attempts
from dalenius.learn.journal import Line
from dalenius.learn.private import Private
from dalenius.learn.several import Processes
from tests.learn.runs import data, network, run_of

LossOf = Callable[[Tensor, Tensor, Tensor], Any]


def run(model: nn.Module | None = None, rows: Any = None, **more: Any) -> Private:
    """Return a run over nine rows, all of which are in every batch."""
    usual = {"batch_size": 9, "public_size": 9, "steps": 2}
    return run_of(model or network(), data(9) if rows is None else rows, **usual | more)


def train(private: Private, loss_of: LossOf) -> None:
    for x, y in private.loader:
        private.zero_grad()
        loss = loss_of(private.model(x), x, y)
        loss.backward()
        private.step()


def run_by(optimizer: torch.optim.Optimizer, model: nn.Module, steps: int = 2) -> Private:
    sizes = {"batch_size": 9, "public_size": 9, "steps": steps}
    return Private(model, optimizer, data(9), **sizes, clip=1, noise_multiplier=1)


def usual(out: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(out, y)


# Operators.


def squared(value: Tensor) -> Tensor:
    return value.square().flatten(1).sum(1).mean()


def positions(x: Tensor) -> Tensor:
    return torch.arange(x.shape[0]).unsqueeze(1)


MIXING: dict[str, LossOf] = {
    "cdist to a mean": lambda out, x, y: torch.cdist(out.unsqueeze(1), out.mean(0, keepdim=True)).mean(),
    "cross with a mean": lambda out, x, y: squared(torch.linalg.cross(out, x[:, :3].mean(0, keepdim=True))),
    "solve for a sum": lambda out, x, y: squared(
        torch.linalg.solve(torch.diag_embed(out.exp()[:, :2]), x[:, :2].sum(0).view(2, 1))
    ),
    "positions that were all made zero": lambda out, x, y: squared(out * x[positions(x).argmax(1), :3]),
    "positions that were padded away": lambda out, x, y: squared(
        out * x[functional.pad(positions(x), (1, 0))[:, 0], :3]
    ),
    "positions that were doubled": lambda out, x, y: squared(
        out.repeat(1, 2).view(-1, 3) * x[:, :4].reshape(-1, 2)[positions(x).expand(-1, 2).reshape(-1), :1]
    ),
    "bilinear with positions": lambda out, x, y: squared(
        functional.bilinear(out, positions(x).float().sin(), torch.ones(2, 3, 1))
    ),
    "group norm over the batch": lambda out, x, y: squared(
        torch.native_group_norm(out, None, None, 1, out.shape[0] * 3, 1, 1, 1e-5)[0]
    ),
    "circular padding": lambda out, x, y: squared(
        out * functional.pad(x.unsqueeze(1), (1, 1), mode="circular")[0, 0, :3]
    ),
    "a generator that went on by the batch": lambda out, x, y: squared(out - advanced(x)),
}


def advanced(x: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    torch.randperm(x.shape[0], generator=generator)
    return torch.rand(3, generator=generator)


@pytest.mark.parametrize("loss_of", MIXING.values(), ids=MIXING.keys())
def test_operators_that_mix_are_refused(loss_of: LossOf) -> None:
    with pytest.raises(NotSound):
        train(run(), loss_of)


def test_circular_convolutions_are_followed() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(1, 3, 3, padding=1, padding_mode="circular")

        def forward(self, x: Tensor) -> Tensor:
            return self.conv(x.unsqueeze(1)).mean(2)

    private = run(Net())
    train(private, usual)
    assert private.steps == 2
    with pytest.raises(NotSound):
        train(run(Net()), lambda out, x, y: squared(out - out[0]))


def test_scores_of_ctc_that_are_not_in_their_order_are_refused() -> None:
    def loss_of(out: Tensor, x: Tensor, y: Tensor) -> Tensor:
        scores = functional.log_softmax(out.unsqueeze(1).expand(-1, 2, -1), -1)
        return functional.ctc_loss(scores, torch.tensor([[1], [2]]), (7, 7), (1, 1))

    with pytest.raises(NotSound):
        train(run(), loss_of)


# Numbers that are had by counting.

COUNTS: dict[str, LossOf] = {
    "a loop over chosen rows": lambda out, x, y: list(x[out.argmax(1) != y]),
    "pieces of chosen rows": lambda out, x, y: torch.split(x[out.argmax(1) != y], 1),
    "distinct labels": lambda out, x, y: y.unique().unbind(),
    "chunks": lambda out, x, y: x.chunk(4),
    "windows": lambda out, x, y: x.unfold(0, 2, 1).unbind(),
    "a loop over a list": lambda out, x, y: list(y.tolist()),
    "pairs of lists": lambda out, x, y: list(zip(out.argmax(1).tolist(), y.tolist(), strict=True)),
    "ones of numpy": lambda out, x, y: np.ones(x.shape[0]).sum(),
    "a range of numpy": lambda out, x, y: np.linspace(0, 1, x.shape[0]).size,
    "a data set": lambda out, x, y: len(TensorDataset(x, y)),
    "a data loader": lambda out, x, y: len(list(DataLoader(TensorDataset(x, y)))),
    "an offset": lambda out, x, y: x[-1].storage_offset(),
    "a cut batch": lambda out, x, y: x[:5].shape[0] == 5,
    "a shorter batch": lambda out, x, y: x[1:].shape[0] > 3,
}


@pytest.mark.parametrize("count", COUNTS.values(), ids=COUNTS.keys())
def test_a_count_of_examples_is_no_plain_number(count: LossOf) -> None:
    def loss_of(out: Tensor, x: Tensor, y: Tensor) -> Tensor:
        count(out, x, y)
        return usual(out, x, y)

    with pytest.raises(NotSound):
        train(run(), loss_of)


def test_a_scheduler_takes_no_private_count() -> None:
    private = run()
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(private.optimizer)

    def loss_of(out: Tensor, x: Tensor, y: Tensor) -> Tensor:
        schedule.step(x[out.argmax(1) != y].shape[0])
        return usual(out, x, y)

    with pytest.raises(NotSound):
        train(private, loss_of)


# Optimizers.


class Scaled(torch.optim.SGD):
    """Scales its step by what it is told."""

    scale: Any = 1.0

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.sub_(parameter.grad * self.scale * group["lr"])


def scaled_run() -> Private:
    model = network()
    optimizer = Scaled(model.parameters(), lr=0.1)
    return run_by(optimizer, model, 2)


def test_an_optimizer_of_the_users_is_watched() -> None:
    private = scaled_run()
    train(private, usual)
    assert private.steps == 2
    for scale in (lambda out, x, y: usual(out, x, y).detach(), lambda out, x, y: x.shape[0]):
        private = scaled_run()

        def loss_of(out: Tensor, x: Tensor, y: Tensor, private: Any = private, scale: Any = scale) -> Tensor:
            private.optimizer.scale = scale(out, x, y)
            return usual(out, x, y)

        with pytest.raises(NotSound):
            train(private, loss_of)


def test_a_step_that_was_wrapped_is_watched() -> None:
    private, kept = run(), []
    step = private.optimizer.step

    def wrapped(*args: Any) -> None:
        step(*args)
        private.optimizer.param_groups[0]["params"][0].data.mul_(1 - kept[-1])

    private.optimizer.step = wrapped  # type: ignore[method-assign]

    def loss_of(out: Tensor, x: Tensor, y: Tensor) -> Tensor:
        kept.append(usual(out, x, y).detach())
        return usual(out, x, y)

    with pytest.raises(NotSound):
        train(private, loss_of)


@pytest.mark.parametrize("setting", ["lr", "betas"])
def test_hooks_and_lists_set_nothing_private(setting: str) -> None:
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, foreach=False)
    private = run_by(optimizer, model, 2)
    kept: list[Tensor] = []

    def before(optimizer: Any, *_: Any) -> None:
        value = torch.sigmoid(kept[-1])
        optimizer.param_groups[0][setting] = value if setting == "lr" else (value, 0.999)

    optimizer.register_step_pre_hook(before)

    def loss_of(out: Tensor, x: Tensor, y: Tensor) -> Tensor:
        kept.append(usual(out, x, y).detach())
        return usual(out, x, y)

    with pytest.raises(NotSound, match="setting"):
        train(private, loss_of)


def test_momenta_are_not_written_to() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    private = run_by(optimizer, model, 3)

    def loss_of(out: Tensor, x: Tensor, y: Tensor) -> Tensor:
        for state in optimizer.state.values():
            state["momentum_buffer"].data.add_(x.sum())
        return usual(out, x, y)

    with pytest.raises(NotSound):
        train(private, loss_of)


def test_a_model_that_a_loop_wrote_to_begins_no_other_run() -> None:
    class Centred(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(5))
            self.inner = nn.Linear(5, 3)

        def forward(self, x: Tensor) -> Tensor:
            if self.training:
                self.mean.data.copy_(x.detach().mean(0))
            return self.inner(x)

    model = Centred()
    with pytest.raises(NotSound):
        train(run(model), usual)
    model.eval()
    with pytest.raises(NotSound, match="earlier loop"):
        train(run(model), usual)


# Losses of one example.


def test_a_generator_in_a_loss_of_one_example_is_refused() -> None:
    private, generator = run(), torch.Generator().manual_seed(1)
    learn = private.loss(
        lambda model, example: functional.cross_entropy(
            model(example[0] + torch.randn(5, generator=generator)), example[1]
        )
    )
    with pytest.raises(NotSound, match="generator"):
        for batch in private.loader:
            private.zero_grad()
            learn(batch)


@pytest.mark.parametrize("operator", ["set_", "a bare operator"])
def test_a_loss_of_one_example_writes_to_no_other_memory(operator: str) -> None:
    private, kept = run(), torch.zeros(5)

    def loss_of(model: Any, example: Any) -> Tensor:
        before = kept + 0
        if operator == "set_":
            kept.set_(example[0].clone())
        else:
            torch.ops.aten.add_.Tensor(kept, example[0])
        return functional.cross_entropy(model(example[0] + before), example[1])

    learn = private.loss(loss_of)
    with pytest.raises(NotSound):
        for batch in private.loader:
            private.zero_grad()
            learn(batch)


# Runs.


def test_the_number_of_chunks_follows_from_public_facts() -> None:
    def chunks(rows: int) -> list[int]:
        private = run_of(network(), data(rows), batch_size=40, public_size=100, steps=4, chunk=8)
        made, counts = 0, [0]
        for x, y in private.loader:
            private.zero_grad()
            functional.cross_entropy(private.model(x), y).backward()
            private.step()
            counts[-1] += 1
            if private.steps > made:
                made = private.steps
                counts.append(0)
        return counts

    assert chunks(100) == chunks(300)


def test_an_index_out_of_bounds_ends_no_run() -> None:
    def picked(out: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return (out * torch.eye(3)[y]).sum(1).mean()

    x, y = data(9)
    y[3] = 77
    train(run(rows=(x, y)), picked)


def test_an_attempt_that_is_interrupted_anywhere_uses_no_noise_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever part of it was done: the step has another attempt, or counts as lost."""
    for stop in range(1, 8):
        attempts = Attempts(Processes.of(None))
        assert attempts.use(0, lambda: b"")
        calls = 0

        def interrupted(*_: Any, stop: int = stop) -> None:
            nonlocal calls
            calls += 1
            if calls >= stop:
                raise KeyboardInterrupt

        monkeypatch.setattr(attempts, "_void", interrupted)
        with pytest.raises(KeyboardInterrupt):
            while True:
                attempts._note(Line("again", 0, attempts.now(0) + 1))
        assert attempts.now(0) > 0 or attempts.lost(0)


def test_memory_that_was_free_is_cleared() -> None:
    private = run()
    with warnings.catch_warnings():
        for x, y in private.loader:
            assert torch.empty(7).sum() == 0
            made = torch.empty_like(x)
            private.zero_grad()
            functional.cross_entropy(private.model(x + made), y).backward()
            private.step()
    assert private.steps == 2
