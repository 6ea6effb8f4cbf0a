"""Loops that two further independent readings got through: all of them are refused.

Measured shifts of a clipped sum were between 1.4 and 9 clip norms, or a plain number was had that follows
from private examples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.dataflow.private_numbers import PrivateNumber
from dalenius.learn.dataflow.states import VIRTUAL
from dalenius.learn.private import Private
from tests.learn.runs import data, network, run_of

Decision = Callable[[Tensor, Tensor], Any]
Weights = Callable[[Tensor, Tensor], Tensor]


def run(rows: int = 9) -> Private:
    return run_of(network(), data(rows), batch_size=rows, public_size=rows, steps=1)


def train(private: Private, loss_of: Callable[[Any, Tensor, Tensor], Any]) -> None:
    for x, y in private.loader:
        private.zero_grad()
        loss_of(private, x, y).backward()
        private.step()


def flag(x: Tensor) -> Any:
    return (x[:, 0] > 2.9).any().long().item()


def pieces(x: Tensor) -> bool:
    try:
        _, _ = x.split(len(x) // 2)
    except ValueError:
        return True
    return False


TOLD: dict[str, Decision] = {
    "unpacked pieces": lambda x, y: pieces(x),
    "pieces of a half": lambda x, y: len(x.split(len(x) // 2)) == 3,
    "pieces by a size": lambda x, y: len(x.tensor_split(len(x) - 5)) == 4,
    "pieces of a constant": lambda x, y: len(torch.ones(64).tensor_split((x > 1.5).sum().item())) > 3,
    "chunks of a constant": lambda x, y: len(torch.ones(64).chunk((x > 1.5).sum().item())) > 3,
    "chunks of rows": lambda x, y: len(x.chunk(len(x), 1)) == 5,
    "pieces of a table": lambda x, y: len(torch.ones(360).split(x.shape[0])) == 40,
    "columns": lambda x, y: len(torch.ones(2, 9).hsplit(x.shape[0])) == 9,
    "dimensions left": lambda x, y: torch.ones(1, 2, 2).flatten(flag(x)).dim() == 2,
    "a dimension less": lambda x, y: torch.ones(1, 2).squeeze(flag(x)).dim() == 2,
    "dimensions by a size": lambda x, y: torch.ones(1, 2, 2).flatten(len(x) - 8).dim() == 2,
    "contracted dimensions": lambda x, y: torch.tensordot(torch.ones(2, 2), torch.ones(2, 2), flag(x)).dim(),
    "kept dimensions": lambda x, y: torch.ones(2, 2).sum(0, keepdim=(x > 2.9).any().item()).dim() == 2,
    "a flag": lambda x, y: torch.zeros(2, requires_grad=(x > 2.9).any().item()).requires_grad,
    "layers by a size": lambda x, y: nn.ModuleList([nn.ReLU(), nn.Tanh()])[len(x) % 2] is None,
    "layers of an encoder": lambda x, y: len(
        nn.TransformerEncoder(nn.TransformerEncoderLayer(2, 1), len(x), enable_nested_tensor=False).layers
    ),
    "a sparse parameter": lambda x, y: bool(nn.Parameter(x.to_sparse(), False).to_dense().max() > 20),
    "an expanded parameter": lambda x, y: nn.Parameter(torch.ones(1).expand(len(x)), False).shape[0] == 9,
    "a parameter": lambda x, y: nn.Parameter(torch.ones(len(x))).shape[0] == 9,
    "a layer": lambda x, y: nn.Linear(x.shape[0], 3).weight.shape[1] == 9,
    "a constructor": lambda x, y: torch.Tensor(torch.zeros(len(x))).shape[0] == 9,
    "a sum of a parameter": lambda x, y: nn.Parameter(torch.ones(len(x))).sum() == 9,
    "strides": lambda x, y: x.t().contiguous().t().stride()[1] == 9,
}
SPREAD: dict[str, Weights] = {
    "a mask of two draws": lambda x, y: functional.dropout(torch.ones(2), 0.5).repeat(len(x))[: len(x)],
    "two draws": lambda x, y: torch.randn(2).repeat(len(x))[: len(x)],
    "three draws": lambda x, y: torch.randn(3).tile(len(x))[: len(x)],
    "draws that are expanded": lambda x, y: torch.randn(2).expand(len(x), 2).flatten()[: len(x)],
    "another example's draw": lambda x, y: torch.randn(len(x))[torch.zeros(len(x), dtype=torch.long)],
    "a table of draws": lambda x, y: functional.embedding(y * 0, torch.randn(len(x))[:, None])[:, 0],
    "draws in another order": lambda x, y: torch.rand(len(x), 2).flatten()[: len(x)],
    "membership": lambda x, y: torch.isin(y * 0 + 4, torch.randint(0, 10, (len(x),))).float(),
    "positions of a byte": lambda x, y: x[torch.arange(len(x), dtype=torch.uint8).long(), 0],
    "memory that grew": lambda x, y: torch.zeros(0).resize_(9),
    "memory of the same kind": lambda x, y: torch.zeros(1).new(9),
    "a sorter": lambda x, y: torch.searchsorted(
        torch.tensor([1e9, -1e9] * 32),
        x[:, 0].contiguous(),
        sorter=(y == y).long()[:, None].expand(-1, 64).sum(0),
    ).float(),
    "a number that stands for the batch": lambda x, y: x[:, 0] * VIRTUAL,
    "solutions": lambda x, y: torch.linalg.solve(
        torch.eye(5) + 0 * x[:, :, None], torch.arange(45.0).view(9, 5)[: len(x)]
    )[:, 0],
}


@pytest.mark.parametrize("decision", TOLD.values(), ids=TOLD)
def test_a_plain_value_is_refused(decision: Decision) -> None:
    with pytest.raises(NotSound):
        train(
            run(),
            lambda private, x, y: functional.cross_entropy(
                private.model(x * (3.0 if decision(x, y) else 0.3)), y
            ),
        )


@pytest.mark.parametrize("weights", SPREAD.values(), ids=SPREAD)
def test_weights_that_follow_the_place_of_an_example_are_refused(weights: Weights) -> None:
    with pytest.raises(NotSound):
        train(
            run(),
            lambda private, x, y: (
                weights(x, y) * functional.cross_entropy(private.model(x), y, reduction="none")
            ).mean(),
        )


ERRORS: dict[str, Callable[[Any], Any]] = {
    "a rounded number": lambda value: round(value * 1e306 * 1e306),
    "rounded, not a number": lambda value: round(value * math.nan),
    "a root": lambda value: f"{(-abs(value) - 1) ** 0.5:05.1f}",
    "a whole number": lambda value: f"{round(value * math.nan):d}",
    "a logarithm": lambda value: math.log(value * 0),
    "a large exponential": lambda value: math.exp(value * 0 + 1e9),
}


@pytest.mark.parametrize("computed", ERRORS.values(), ids=ERRORS)
def test_private_numbers_raise_no_error_by_their_value(computed: Callable[[Any], Any]) -> None:
    for x, _ in run().loader:
        computed(x.sum().item())
        break


def test_a_perplexity_is_computed_and_stays_private() -> None:
    ordinary = math.exp
    for x, y in (private := run()).loader:
        private.zero_grad()
        loss = functional.cross_entropy(private.model(x), y)
        loss.backward()
        private.step()
        perplexity = math.exp(loss.item())
        assert isinstance(perplexity, PrivateNumber) and float(f"{perplexity:.6f}") > 1
        with pytest.raises(NotSound):
            assert perplexity < 3
    assert math.exp is ordinary and math.exp(0) == 1


def test_two_views_are_split_by_the_size_of_the_batch() -> None:
    def loss_of(private: Any, x: Tensor, y: Tensor) -> Tensor:
        first, second = private.model(torch.cat([x, -x])).split(x.shape[0])
        return functional.cross_entropy(first, y) + functional.cross_entropy(second, y)

    train(private := run(), loss_of)
    assert private.steps == 1


def test_independent_numbers_for_every_example_are_accepted() -> None:
    def loss_of(private: Any, x: Tensor, y: Tensor) -> Tensor:
        noise = torch.randn(len(x), 1).expand(-1, 5) + torch.zeros(5).repeat(len(x), 1)
        kept = (torch.rand(x.shape[0]) > 0.1).float()
        losses = functional.cross_entropy(private.model(x + noise), y, reduction="none")
        return (losses * kept).mean()

    train(private := run(), loss_of)
    assert private.steps == 1


def test_entries_of_an_example_are_sorted() -> None:
    train(
        private := run(),
        lambda private, x, y: functional.cross_entropy(private.model(torch.sort(x, 1).values), y),
    )
    assert private.steps == 1
