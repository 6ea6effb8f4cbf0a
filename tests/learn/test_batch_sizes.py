"""The size of a batch is private: it may divide a loss, as in a mean, and no other tensor may tell it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.ledger.account import Account

from .runs import data, network, run_of

Size = Callable[[Tensor, Tensor], Any]
MEANS: dict[str, Size] = {
    "len": lambda x, y: len(x),
    "shape": lambda x, y: x.shape[0],
    "size": lambda x, y: y.size(0),
    "numel": lambda x, y: y.numel(),
}
HIDDEN: dict[str, Size] = {
    "ones_like": lambda x, y: torch.ones_like(y).sum(),
    "ones": lambda x, y: torch.ones(x.shape[0]).sum(),
    "new_ones": lambda x, y: y.new_ones(y.shape).sum(),
    "comparison": lambda x, y: (y == y).sum(),
    "tensor": lambda x, y: torch.tensor(len(x)),
    "tensor of a shape": lambda x, y: torch.tensor(x.shape)[0],
    "arange": lambda x, y: torch.arange(x.shape[0]).max() + 1,
    "cumsum": lambda x, y: torch.ones(x.shape[0]).cumsum(0)[-1],
    "dot": lambda x, y: torch.ones(x.shape[0]) @ torch.ones(x.shape[0]),
    "trace": lambda x, y: torch.eye(x.shape[0]).trace(),
    "randperm": lambda x, y: torch.randperm(x.shape[0]).max() + 1,
    "expand": lambda x, y: torch.ones(1).expand(x.shape[0]).sum(),
    "repeat": lambda x, y: torch.ones(1).repeat(x.shape[0]).sum(),
    "count_nonzero": lambda x, y: torch.ones_like(y).count_nonzero(),
    "nonzero": lambda x, y: torch.ones_like(y).nonzero().shape[0],
    "bincount": lambda x, y: torch.bincount(torch.zeros_like(y))[0],
    "softmax": lambda x, y: 1 / torch.zeros(x.shape[0]).softmax(0).max(),
    "linspace": lambda x, y: 1 / torch.linspace(0, 1, x.shape[0])[1],
    "random numbers": lambda x, y: torch.rand(x.shape[0]).sum(),
}


@pytest.mark.parametrize("name", MEANS)
def test_a_sum_divided_by_the_size_of_the_batch_is_a_mean(name: str) -> None:
    private = run_of(network(), data(40))
    for x, y in private.loader:
        private.zero_grad()
        losses = functional.cross_entropy(private.model(x), y, reduction="none")
        (losses.sum() / MEANS[name](x, y)).backward()
        private.step()
    assert private.steps == 3 and private.reduction == "mean"


@pytest.mark.parametrize("name", HIDDEN)
def test_a_sum_divided_by_a_tensor_that_knows_the_size_is_refused(name: str, account: Account) -> None:
    """As a public constant it would weigh everybody by who else is in the batch."""
    private = run_of(network(), data(40), account=account, public_size=40, noise_multiplier=9)
    with pytest.raises(NotSound) as caught:
        for x, y in private.loader:
            private.zero_grad()
            losses = functional.cross_entropy(private.model(x), y, reduction="none")
            (losses.sum() / HIDDEN[name](x, y)).backward()
            private.step()
    assert caught.value.remedy
    assert private.steps == 0 and [entry.event for entry in account.entries()] == ["open"]
