"""Values of a batch, and its number of rows, that steer a loop or reach its gradient are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dalenius.errors import NotSound
from dalenius.ledger.account import Account
from tests.learn.mixing.logged_runs import begun, loop

Step = Callable[[Tensor, Tensor, Tensor], Any]
STEERED: dict[str, Step] = {
    "item in a branch": lambda loss, x, y: loss * 2 if loss.item() > 1 else loss,
    "item of a row": lambda loss, x, y: loss * 2 if x[0, 0].item() > 0 else loss,
    "float of a tensor": lambda loss, x, y: loss * float(loss.detach()),
    "int of a tensor": lambda loss, x, y: loss * int(y.sum()),
    "bool of a tensor": lambda loss, x, y: loss * 2 if loss > 1 else loss,
    "bool of a row": lambda loss, x, y: loss * 2 if y[0] else loss,
    "range of a tensor": lambda loss, x, y: loss * len(range(y.max())),
    "element of tolist": lambda loss, x, y: loss * 2 if y.tolist()[0] == 1 else loss,
    "list in a list": lambda loss, x, y: loss * 2 if x.tolist()[0][0] > 0 else loss,
    "sum of tolist": lambda loss, x, y: loss * sum(y.tolist()),
    "numpy in a branch": lambda loss, x, y: loss * 2 if loss.detach().numpy() > 1 else loss,
    "numpy as a factor": lambda loss, x, y: loss * torch.as_tensor(y.numpy().mean()),
    "asarray": lambda loss, x, y: loss * torch.as_tensor(np.asarray(y).mean()),
    "equal": lambda loss, x, y: loss * 2 if torch.equal(x, x.abs()) else loss,
    "allclose": lambda loss, x, y: loss * 2 if torch.allclose(x, x.abs()) else loss,
    "contains": lambda loss, x, y: loss * 2 if 2 in y else loss,
    "number of nonzeros": lambda loss, x, y: loss / y.nonzero().shape[0],
    "size of a selection": lambda loss, x, y: loss / y[y > 0].shape[0],
    "size of unique": lambda loss, x, y: loss / y.unique().shape[0],
}
"""Steering by a value."""
FACTORS: dict[str, Step] = {
    "times": lambda loss, x, y: loss * loss.item(),
    "times from the left": lambda loss, x, y: loss.item() * loss,
    "divided": lambda loss, x, y: loss / loss.item(),
    "divided by a sum": lambda loss, x, y: loss / (1 + 0.5 * loss.item()),
    "torch.mul": lambda loss, x, y: torch.mul(loss, loss.item()),
    "tensor": lambda loss, x, y: loss * torch.tensor(loss.item()),
    "tensor of a list": lambda loss, x, y: loss * torch.tensor([loss.item(), 1.0]).sum(),
    "as_tensor": lambda loss, x, y: loss * torch.as_tensor(loss.item()),
    "full": lambda loss, x, y: loss * torch.full((), loss.item()),
    "fill": lambda loss, x, y: loss * torch.zeros(()).fill_(loss.item()),
    "new_tensor": lambda loss, x, y: loss * loss.new_tensor(loss.item()),
    "clamp": lambda loss, x, y: loss.clamp(max=loss.item() + 1),
    "power": lambda loss, x, y: loss ** loss.item(),
    "alpha": lambda loss, x, y: torch.add(loss, loss, alpha=loss.item()),
}
"""A number in a torch operation."""
SIZES: dict[str, Step] = {
    "shape less than": lambda loss, x, y: loss * 2 if x.shape[0] < 4 else loss,
    "shape equal": lambda loss, x, y: loss * 2 if x.shape[0] == 32 else loss,
    "size": lambda loss, x, y: loss * 2 if x.size(0) > 32 else loss,
    "all sizes": lambda loss, x, y: loss * 2 if x.size()[0] > 32 else loss,
    "unpacked shape": lambda loss, x, y: loss * 2 if next(iter(x.shape)) > 32 else loss,
    "odd": lambda loss, x, y: loss * 2 if x.shape[0] % 2 else loss,
    "elements": lambda loss, x, y: loss * 2 if x.numel() > 160 else loss,
    "max": lambda loss, x, y: loss * max(1, x.shape[0] - 30),
    "len": lambda loss, x, y: loss * 2 if len(x) < 4 else loss,
    "len as a divisor": lambda loss, x, y: loss / len(y),
}
"""The number of rows."""


@pytest.mark.parametrize("use", (STEERED | FACTORS).values(), ids=STEERED | FACTORS)
def test_a_value_that_reaches_the_gradient_is_refused_before_the_charge(use: Step, account: Account) -> None:
    before = account.entries()
    with pytest.raises(NotSound) as caught:
        loop(begun(account), use)
    assert account.entries() == before
    assert caught.value.remedy


@pytest.mark.parametrize("use", SIZES.values(), ids=SIZES)
def test_the_number_of_rows_cannot_steer(use: Step, account: Account) -> None:
    before = account.entries()
    with pytest.raises(NotSound) as caught:
        loop(begun(account), use)
    assert account.entries() == before
    assert caught.value.remedy


def test_len_of_a_batch_is_its_private_size() -> None:
    """`len` of a batch divides a loss as its shape does; one that was stored before is refused."""
    loop(begun(), lambda loss, x, y: (loss * len(x)) / x.shape[0])
    loop(begun(), lambda loss, x, y: loss + 0 * (x[:, 0] + torch.zeros(len(x))).mean())
    with pytest.raises(NotSound) as caught:
        loop(begun(), lambda loss, x, y: loss / x.__len__())
    assert "shape[0]" in caught.value.remedy


SIZED: dict[str, Step] = {
    "divided by the rows": lambda loss, x, y: (loss * x.shape[0]) / x.shape[0],
    "tensor of that size": lambda loss, x, y: loss + 0 * (x[:, 0] + torch.zeros(x.shape[0])).mean(),
    "noise of that size": lambda loss, x, y: loss + 0 * (x[:, :2] + torch.randn(x.size(0), 2)).mean(),
    "other axes": lambda loss, x, y: loss * 2 if x.shape[1] == 5 and x.dim() == 2 else loss,
    "type and device": lambda loss, x, y: loss * 2 if x.dtype == torch.float32 and x.is_cuda else loss,
    "printed": lambda loss, x, y: print(f"{x.shape[0]} rows", x.shape),
    "public numbers": lambda loss, x, y: loss * torch.ones(3).sum().item() if torch.ones(()) > 0 else loss,
}


@pytest.mark.parametrize("use", SIZED.values(), ids=SIZED)
def test_the_number_of_rows_may_size_tensors_and_divide_a_loss(use: Step) -> None:
    private = begun()
    loop(private, use)
    assert private.steps == 2


def test_a_learning_rate_cannot_follow_the_loss(account: Account) -> None:
    before, private = account.entries(), begun(account)

    def use(loss: Tensor, x: Tensor, y: Tensor) -> None:
        private.optimizer.param_groups[0]["lr"] = 0.1 / (1 + loss.item())

    with pytest.raises(NotSound):
        loop(private, use)
    assert account.entries() == before


def test_numbers_of_another_model_are_floats() -> None:
    """A model that has not seen the batch is public, also while a loop is open."""
    public = nn.Linear(5, 3)
    numbers: list[Any] = []
    loop(begun(), lambda loss, x, y: numbers.append(public(torch.ones(2, 5)).sum().item()))
    assert all(type(number) is float for number in numbers)
