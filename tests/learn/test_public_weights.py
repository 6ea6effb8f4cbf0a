"""A public tensor that is as long as the batch differs from row to row once some of its rows are written to.

With such weights the rows of a batch count by their position, which changes when a row before them is left
out: the sum of clipped gradients would move by two clip norms.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from dalenius.errors import NotSound
from tests.learn.runs import data, network, run_of

Weights = Callable[[int], Tensor]


def item(n: int) -> Tensor:
    weights = torch.zeros(n)
    weights[0] = 1
    return weights


def last_item(n: int) -> Tensor:
    weights = torch.zeros(n)
    weights[-1] = 1
    return weights


def random_item(n: int) -> Tensor:
    weights = torch.zeros(n)
    weights[0] = torch.rand(())
    return weights


def added_item(n: int) -> Tensor:
    weights = torch.ones(n)
    weights[0] += 1
    return weights


def filled_item(n: int) -> Tensor:
    weights = torch.ones(n)
    weights[0].fill_(-1)
    return weights


def narrowed(n: int) -> Tensor:
    weights = torch.ones(n)
    weights.narrow(0, 0, 1).fill_(-1)
    return weights


def viewed(n: int) -> Tensor:
    weights = torch.zeros(n)
    weights.view(-1)[0] = 1
    return weights


def row_of_columns(n: int) -> Tensor:
    weights = torch.zeros(n, 2)
    row = weights[0]
    row[1] = 1
    return weights[:, 1]


def item_of_a_column(n: int) -> Tensor:
    weights = torch.zeros(n, 2)
    column = weights[:, 1]
    column[0] = 1
    return weights[:, 1]


def half_by_a_view(n: int) -> Tensor:
    weights = torch.zeros(n, 2)
    weights.view(2, n)[0].fill_(1)
    return weights[:, 0]


def detached(n: int) -> Tensor:
    weights = torch.zeros(n)
    weights.detach()[0] = 1
    return weights


def stacked(n: int) -> Tensor:
    return torch.stack([torch.zeros(n), torch.rand(n)]).view(n, 2)[:, 0]


def number_of_a_row(n: int) -> Tensor:
    """A random number of the first row is used by all of them, and by that row once more."""
    weights = torch.zeros(n, 2)
    weights[:, 0] = torch.rand(n)
    return weights[0, 0] * weights[:, 0]


def first_rows(n: int) -> Tensor:
    weights = torch.ones(n)
    weights[:2].copy_(torch.tensor([-3.0, -3.0]))
    return weights


def initialized(n: int) -> Tensor:
    weights = torch.ones(n)
    torch.nn.init.constant_(weights[:1], -3)
    return weights


def positions_of_a_column(n: int) -> Tensor:
    weights = torch.zeros(n, 2)
    weights[:, 0] = torch.arange(n) - 5.5
    return weights[:, 0]


def signs_of_a_column(n: int) -> Tensor:
    weights = torch.zeros(n, 2)
    weights[..., 0] = torch.arange(n) % 2 * 2.0 - 1
    return weights[:, 0]


def line_of_columns(n: int) -> Tensor:
    weights = torch.ones(n, 4)
    weights[:, 1:3] = torch.linspace(-1, 1, n).unsqueeze(1)
    return weights[:, 1]


def repeated(n: int) -> Tensor:
    weights = torch.tensor([1.0, 1.0]).repeat(n, 1)
    weights[0] = -3
    return weights[:, 0]


def mask(n: int) -> Tensor:
    weights = torch.ones(n, 4)
    weights[0][3:] = 0
    weights[1][1:] = 0
    return weights[:, 3]


REFUSED: list[Weights] = [
    first_rows,
    initialized,
    positions_of_a_column,
    signs_of_a_column,
    line_of_columns,
    repeated,
    mask,
    item,
    last_item,
    random_item,
    added_item,
    filled_item,
    narrowed,
    viewed,
    row_of_columns,
    item_of_a_column,
    half_by_a_view,
    detached,
    stacked,
    number_of_a_row,
]


def column(n: int) -> Tensor:
    weights = torch.zeros(n, 2)
    weights[:, 0] = 0.5
    weights[:, 1] = torch.rand(n)
    return weights.sum(1)


def stacked_columns(n: int) -> Tensor:
    return torch.stack([torch.full((n,), 0.3), torch.rand(n)], dim=-1).sum(1)


def stacked_rows(n: int) -> Tensor:
    return torch.stack([torch.full((n,), 0.3), torch.rand(n)])[1]


ACCEPTED: list[Weights] = [column, stacked_columns, stacked_rows]


def train(weights: Weights) -> None:
    private = run_of(network(), data(20), batch_size=5, public_size=20, steps=2)
    for x, y in private.loader:
        private.zero_grad()
        losses = functional.cross_entropy(private.model(x), y, reduction="none")
        (losses * weights(len(x))).mean().backward()
        private.step()


@pytest.mark.parametrize("weights", REFUSED, ids=lambda weights: weights.__name__)
def test_weights_by_position_are_refused(weights: Weights) -> None:
    with pytest.raises(NotSound):
        train(weights)


@pytest.mark.parametrize("weights", ACCEPTED, ids=lambda weights: weights.__name__)
def test_weights_that_are_alike_for_all_rows_are_accepted(weights: Weights) -> None:
    train(weights)
