"""A token or a label out of range does not end a run, and changes no other example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.learn.index_range import with_valid_indices

from .runs import run_of

ROWS = 8


class Bag(nn.Module):
    """Average the vectors of a row's tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.bag, self.out = nn.EmbeddingBag(10, 4), nn.Linear(4, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.out(self.bag(tokens))


def table(trained: bool = True) -> nn.Module:
    model = nn.Sequential(nn.Embedding(10, 3), nn.Flatten(), nn.Linear(6, 2))
    model[0].weight.requires_grad_(trained)
    return model


def by_backward(private: Any, tokens: Tensor, labels: Tensor) -> None:
    functional.cross_entropy(private.model(tokens), labels).backward()


def by_sum(private: Any, tokens: Tensor, labels: Tensor) -> None:
    functional.nll_loss(private.model(tokens).log_softmax(1), labels, reduction="sum").backward()


def by_example(private: Any, tokens: Tensor, labels: Tensor) -> None:
    private.loss(
        lambda model, example: functional.cross_entropy(model(example[0].unsqueeze(0)).squeeze(0), example[1])
    )((tokens, labels))


@pytest.mark.parametrize("body", [by_backward, by_sum, by_example])
@pytest.mark.parametrize("model", [table, lambda: table(trained=False), Bag], ids=["table", "frozen", "bag"])
@pytest.mark.parametrize(("token", "label"), [(4141, 1), (-7, 1), (3, 41), (3, -5), (4141, 41)])
def test_a_run_goes_on(
    model: Callable[[], nn.Module], body: Callable[..., None], token: int, label: int
) -> None:
    tokens, labels = torch.zeros(ROWS, 2).long(), torch.zeros(ROWS).long()
    tokens[3, 1], labels[5] = token, label
    private = run_of(model(), (tokens, labels), batch_size=ROWS, public_size=ROWS, steps=2)
    for batch in private.loader:
        private.zero_grad()
        body(private, *batch)
        private.step()
    assert private.steps == 2


def test_indices_in_range_are_not_changed() -> None:
    tokens, labels = torch.arange(10), torch.arange(5) % 3
    (placed, _), _ = with_valid_indices(functional.embedding, (tokens, torch.ones(10, 2)), {})
    (named,), _ = with_valid_indices(functional.embedding, (tokens,), {"weight": torch.ones(10, 2)})
    assert torch.equal(placed, tokens)
    assert torch.equal(named, tokens)
    (_, kept), _ = with_valid_indices(functional.cross_entropy, (torch.ones(5, 3), labels), {})
    assert torch.equal(kept, labels)


def test_a_label_that_is_not_a_class_is_ignored() -> None:
    labels = torch.tensor([0, 3, -1, 2])
    for ignored, wanted in ((None, [0, -100, -100, 2]), (1, [0, 1, 1, 2])):
        more = {} if ignored is None else {"ignore_index": ignored}
        (_, kept), _ = with_valid_indices(functional.cross_entropy, (torch.ones(4, 3), labels), more)
        assert kept.tolist() == wanted
    _, named = with_valid_indices(
        functional.nll_loss, (), {"input": torch.ones(4, 3), "target": labels.byte()}
    )
    assert named["target"].tolist() == [0, -100, -100, 2]


def test_probabilities_of_classes_are_left_alone() -> None:
    shares = torch.full((4, 3), 1 / 3)
    (_, kept), _ = with_valid_indices(functional.cross_entropy, (torch.ones(4, 3), shares), {})
    assert kept is shares
