"""Loops that were written to get around the analysis of data flow: all of them are refused.

In each loop one person changes what others add to the clipped sum, or the loop decides something by the size
of a batch, by a way that looks public. Measured shifts of a clipped sum were between 1.1 and 5.2 clip norms.
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

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.private import Private
from tests.learn.runs import data, network, run_of

Inputs = Callable[[Tensor], Tensor]
Size = Callable[[Tensor, Tensor], Any]
Losses = Callable[[Tensor, Tensor], Tensor]


def run(model: nn.Module | None = None, **more: Any) -> Private:
    """Return a run over nine rows, all of which are in every batch."""
    return run_of(model or network(), data(9), **{"batch_size": 9, "public_size": 9, "steps": 1} | more)


def train(private: Private, change: Inputs = lambda x: x) -> None:
    """Run the ordinary loop on inputs that were changed."""
    for x, y in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(change(x)), y).backward()
        private.step()


def weigh(losses: Losses) -> None:
    """Run a loop over the losses of single examples, given with the inputs."""
    private = run()
    for x, y in private.loader:
        private.zero_grad()
        losses(functional.cross_entropy(private.model(x), y, reduction="none"), x).backward()
        private.step()


# Inputs that mix examples.


def scripted_mean(x: Tensor) -> Tensor:
    """Return the mean over the batch, by TorchScript."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        mean: Tensor = torch.jit.script(functional.tanh)(x).mean(0)
    return mean


def aliased(x: Tensor) -> Tensor:
    """Write the transposed batch into another one, by a view of it."""
    copy = x.clone()
    copy.view(-1).copy_(x.t().reshape(-1))
    return copy


def positions_overwritten(x: Tensor) -> Tensor:
    """Reverse the positions of examples, by a view of them."""
    positions = torch.arange(x.shape[0])
    positions.view(-1).copy_(torch.arange(x.shape[0]).flip(0))
    return x + x[positions]


def zeros_overwritten(x: Tensor) -> Tensor:
    """Make zeros differ from example to example, by a view of them."""
    weights = torch.zeros(x.shape[0], 1)
    weights.view(-1).copy_(torch.linspace(-1, 1, x.shape[0]))
    return x * weights


def zeros_replaced(x: Tensor) -> Tensor:
    """Make zeros differ from example to example, by other memory."""
    weights = torch.zeros(x.shape[0], 1)
    weights.data = torch.linspace(-1, 1, x.shape[0])[:, None]
    return x * weights


def mean_by_storage(x: Tensor) -> Tensor:
    """Copy the memory of a mean."""
    center = torch.zeros(5)
    center.untyped_storage().copy_(x.mean(0).untyped_storage())
    return x - center


def mean_by_elements(x: Tensor) -> Tensor:
    """Collect the entries of a batch, as a function of each of them sees them."""
    values: list[float] = []
    x.clone().apply_(lambda value: (values.append(value), value)[1])
    return x - sum(values) / 45


def seeded(x: Tensor) -> Tensor:
    """Draw numbers by a public seed, in an order in which the size of the batch moves them."""
    torch.manual_seed(0)
    return x + torch.randn(5, x.shape[0]).t()


CHANGES: dict[str, Inputs] = {
    "scripted": lambda x: x - scripted_mean(x),
    "vmap of a public tensor": lambda x: x - torch.vmap(lambda c: x.mean(0) * c)(torch.ones(1)),
    "gradient by a public tensor": lambda x: (
        x - torch.func.grad(lambda c: (c * x).mean(0).sum())(torch.zeros(5))
    ),
    "aliased": aliased,
    "positions": positions_overwritten,
    "zeros": zeros_overwritten,
    "other memory": zeros_replaced,
    "storage": mean_by_storage,
    "storage as a list": lambda x: x - sum(x.storage().tolist()) / 45,
    "elements": mean_by_elements,
    "rolled by the size": lambda x: x.roll(x.shape[0], 1),
    "triangle by the size": lambda x: x.unsqueeze(1).expand(-1, 12, -1).tril(-x.shape[0])[:, 9],
    "seeded": seeded,
    "seeded by the size": lambda x: x + (torch.manual_seed(x.shape[0]), torch.randn(x.shape[0], 5))[1],
    "a generator of one's own": lambda x: x + torch.randn(5, x.shape[0], generator=torch.Generator()).t(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_inputs_that_mix_are_refused(change: Inputs) -> None:
    with pytest.raises(NotSound):
        train(run(), change)


# The size of a batch, which is private.

SIZES: dict[str, Size] = {
    "int": lambda x, y: int(x.shape[0]),
    "negative": lambda x, y: 17 + -x.shape[0],
    "positive": lambda x, y: +x.shape[0],
    "abs": lambda x, y: abs(x.shape[0]),
    "bits": lambda x, y: x.shape[0] | 0,
    "divmod": lambda x, y: divmod(x.shape[0], 1)[0],
    "round": lambda x, y: round(x.shape[0]),
    "numerator": lambda x, y: x.shape[0].numerator,
    "index": lambda x, y: x.shape[0].__index__(),
    "bytes": lambda x, y: x.nbytes,
    "stride": lambda x, y: x.t().contiguous().stride()[0],
    "unbind": lambda x, y: len(x.unbind(0)),
    "split": lambda x, y: len(x.split(1)),
    "sum of ones": lambda x, y: torch.ones_like(y).sum(),
    "item of a sum of ones": lambda x, y: torch.ones_like(y).sum().item(),
    "last position": lambda x, y: torch.arange(x.shape[0])[-1],
    "largest position": lambda x, y: torch.arange(x.shape[0]).max(),
    "step of a range": lambda x, y: torch.linspace(0, 1, x.shape[0])[1],
    "length of an order": lambda x, y: torch.randperm(x.shape[0]).shape[0],
    "tensor": lambda x, y: torch.tensor(x.shape[0]),
    "nested tensor": lambda x, y: torch.tensor([[x.shape[0]]])[0, 0],
    "filled": lambda x, y: torch.zeros(1).fill_(x.shape[0]),
    "looked up": lambda x, y: torch.arange(100)[x.shape[0]],
    "length of a slice": lambda x, y: torch.arange(100)[: x.shape[0]].shape[0],
    "counted": lambda x, y: torch.bincount(torch.zeros_like(y))[0],
    "trace": lambda x, y: torch.eye(x.shape[0]).sum(),
    "last sum": lambda x, y: torch.cumsum(torch.ones_like(y), 0)[-1],
    "list": lambda x, y: len(torch.ones_like(y).tolist()),
    "storage": lambda x, y: x.untyped_storage().nbytes(),
    "sum over pairs": lambda x, y: torch.ones(x.shape[0], x.shape[0]).sum(1)[0],
    "product": lambda x, y: (torch.ones(1, x.shape[0]) @ torch.ones(x.shape[0], 1))[0, 0],
}


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
def test_a_branch_on_the_size_of_a_batch_is_refused(size: Size) -> None:
    private = run()
    with pytest.raises(NotSound):
        for x, y in private.loader:
            private.zero_grad()
            loss = functional.cross_entropy(private.model(x), y)
            (loss if size(x, y) > 8.5 else -loss).backward()
            private.step()


def written(x: Tensor) -> Tensor:
    """Write the size of the batch into a public tensor."""
    table = torch.zeros(100)
    table[x.shape[0]] = 1.0
    return table[9]


LOSSES: dict[str, Losses] = {
    "repeated": lambda losses, x: (losses * x[:, :1].repeat(1, x.shape[0]).sum(1)).sum(),
    "expanded": lambda losses, x: (losses * x[:, :1].expand(x.shape[0], x.shape[0]).sum(1)).sum(),
    "padded": lambda losses, x: (losses * functional.pad(x, (0, 1), value=x.shape[0])[:, -1]).sum(),
    "multiplied": lambda losses, x: (
        losses * torch.addmm(torch.zeros(1, 1), x[:, :1], torch.ones(1, 1), alpha=x.shape[0])[:, 0]
    ).sum(),
    "filled": lambda losses, x: (losses * torch.zeros(x.shape[0]).fill_(x.shape[0])).sum(),
    "written": lambda losses, x: (losses * written(x)).sum(),
    "squared": lambda losses, x: ((losses * x.shape[0]) * (losses * x.shape[0])).sum() / x.shape[0],
    "divided by a sum of ones": lambda losses, x: losses.sum() / torch.ones_like(losses).sum(),
    "one row": lambda losses, x: functional.multilabel_margin_loss(losses, (x[:, 0] > 0).long()),
}


@pytest.mark.parametrize("losses", LOSSES.values(), ids=LOSSES.keys())
def test_losses_that_depend_on_the_size_of_a_batch_are_refused(losses: Losses) -> None:
    with pytest.raises(NotSound):
        weigh(losses)


def test_a_sum_over_copies_is_not_added_to_a_mean() -> None:
    private = run()
    with pytest.raises(NotSound, match="mean over examples to a sum"):
        for x, y in private.loader:
            private.zero_grad()
            made_up = private.model(torch.randn(x.shape[0], 5)).sum()
            (functional.cross_entropy(private.model(x), y) + made_up).backward()
            private.step()


# Backward passes.


class Dirty(torch.autograd.Function):
    """Return the argument itself, with a backward pass that mixes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Say that the argument was changed."""
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """Give every example the sum of all gradients."""
        return gradients[0].sum(0, keepdim=True).expand_as(gradients[0]).clone()


class Hooked(nn.Module):
    """A linear model whose backward pass is changed in one of several ways."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.linear, self.how, self.seen = nn.Linear(5, 3), how, torch.zeros(())
        if how == "parameter":
            self.linear.weight.register_hook(lambda gradient: gradient * self.seen)
        if how == "legacy":
            self.linear.register_backward_hook(lambda *_: None)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores."""
        self.seen, weight = x.abs().max().detach(), self.linear.weight * 1.0
        if self.how == "derived":
            weight.register_hook(lambda gradient: gradient * self.seen)
        scores = self.linear(x) if self.how == "legacy" else functional.linear(x, weight, self.linear.bias)
        if self.how == "graph":
            graph: Any = scores.grad_fn
            graph.register_prehook(lambda gradients: gradients)
        if self.how == "dirty":
            scores = scores * 1.0
            Dirty.apply(scores)
        return scores * 1.0


@pytest.mark.parametrize("how", ["parameter", "legacy", "derived", "graph", "dirty"])
def test_hooks_on_backward_passes_are_refused(how: str) -> None:
    with pytest.raises(NotSound):
        train(run(Hooked(how)))


def test_gradients_of_tensors_that_are_not_trained_are_refused() -> None:
    private = run()
    with pytest.raises(NotSound, match="does not train"):
        for x, _ in private.loader:
            center = torch.zeros(5, requires_grad=True)
            (x * center).mean(0).sum().backward()


# Ways through a loop.


def test_a_batch_cannot_be_stepped_on_after_its_loop_was_left() -> None:
    private = run()
    for _batch in private.loader:
        x, _ = _batch
        break
    private.zero_grad()
    with pytest.raises(NotSound, match="not known by example"):
        private.model(x - x.mean(0))
    with pytest.raises(InvalidArgument, match="no batch"):
        private.step()


def test_a_loss_that_is_kept_after_an_epoch_decides_nothing() -> None:
    private = run(epochs=2, steps=None)
    kept = []
    for x, y in private.loader:
        private.zero_grad()
        loss = functional.cross_entropy(private.model(x), y)
        loss.backward()
        private.step()
        kept.append(loss.detach())
    mean = torch.stack(kept).mean()
    assert f"{loss.item():.3f}" and f"{mean:.3f}" and str(loss)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(private.optimizer)
    steers: list[Callable[[], Any]] = [
        lambda: schedule.step(loss),
        lambda: schedule.step(mean.item()),
        lambda: bool(mean < 1),
        lambda: float(loss),
        lambda: loss.backward(),
        lambda: np.asarray(x),
        lambda: x.data_ptr(),
    ]
    for steer in steers:
        with pytest.raises(NotSound):
            steer()
    written = torch.zeros(2, 2)
    for write in (
        lambda: written.fill_(mean),
        lambda: written[0].copy_(mean),
        lambda: written[0].__setitem__(1, mean),
        lambda: len(x.unbind()),
        lambda: list(x),
        lambda: list(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y))),
    ):
        with pytest.raises(NotSound):
            write()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not torch.tensor(loss).numel()
    with pytest.raises((NotSound, TypeError)):
        torch.full((1,), loss)
    private.optimizer.param_groups[0]["lr"] = mean
    with pytest.raises(NotSound, match="learning rate"):
        for x, y in private.loader:
            private.zero_grad()
            functional.cross_entropy(private.model(x), y).backward()
            private.step()


def test_arrays_of_numpy_are_not_written_to_by_private_values() -> None:
    private, public = run(), torch.zeros(5)
    seen = public.numpy()
    with pytest.raises(NotSound, match="shared with numpy"):
        for x, _ in private.loader:
            public.copy_(x.sum(0))
    assert seen.sum() == 0


@pytest.mark.parametrize("when", ["pre", "post"])
@pytest.mark.parametrize("what", ["weights", "gradients", "state"])
def test_hooks_of_the_optimizer_use_nothing_private(when: str, what: str) -> None:
    private, batches = run(), []
    group = private.optimizer.param_groups[0]["params"]

    def hook(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        parameter, total = group[0], batches[-1].sum()
        if what == "weights":
            parameter.data.add_(total)
        elif what == "gradients":
            parameter.grad.add_(total)
        else:
            optimizer.state[parameter]["more"] = total

    getattr(private.optimizer, f"register_step_{when}_hook")(hook)
    with pytest.raises(NotSound, match=r"hook of the optimizer|shared with numpy"):
        for x, y in private.loader:
            batches.append(x)
            private.zero_grad()
            functional.cross_entropy(private.model(x), y).backward()
            private.step()


def test_random_numbers_of_one_example_serve_no_other() -> None:
    private = run()
    with pytest.raises(NotSound, match="select"):
        for x, y in private.loader:
            noise = torch.randn(x.shape[0], 5)
            private.zero_grad()
            functional.cross_entropy(private.model(x + noise + noise[0]), y).backward()
            private.step()


def test_a_loop_that_goes_on_after_an_operation_failed_is_refused() -> None:
    private = run()
    with pytest.raises(NotSound, match="failed on private examples"):
        for x, y in private.loader:
            private.zero_grad()
            sign = 1.0
            try:
                torch.norm(torch.diag_embed(x * torch.nan), p="nuc", dim=(-2, -1))
            except torch.linalg.LinAlgError:
                sign = -1.0
            (sign * functional.cross_entropy(private.model(x), y)).backward()
            private.step()


def test_a_learning_rate_that_is_a_private_tensor_is_refused() -> None:
    private = run()
    with pytest.raises(NotSound, match="setting of the optimizer"):
        for x, y in private.loader:
            private.zero_grad()
            loss = functional.cross_entropy(private.model(x), y)
            loss.backward()
            private.optimizer.param_groups[0]["lr"] = loss.detach()
            private.step()


def test_a_recorded_function_is_not_given_mixed_examples() -> None:
    private = run()
    learn = private.recorded(lambda x, y: functional.cross_entropy(private.model(x), y), compile=True)
    with pytest.raises(NotSound, match="mixed before"):
        for x, y in private.loader:
            private.zero_grad()
            learn(x - x.mean(0), y)
            private.step()


def test_what_is_not_watched_is_an_assumption_on_the_receipt() -> None:
    """Other threads are not watched, nor is memory that other libraries share."""
    assumed = " ".join(run().receipt.bounds)
    assert "not by other threads" in assumed and "shared with other libraries" in assumed
