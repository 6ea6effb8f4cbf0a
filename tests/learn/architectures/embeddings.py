"""Embeddings and bags of them: padding, large vocabularies, offsets, weights, factors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .architecture import Architecture
from .data import classification, features, given, integers, regression


class Bag(nn.Module):
    """The mean of the embeddings of a text, then a head."""

    def __init__(self, vocabulary: int, width: int, **options: Any) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width, **options)
        self.head = nn.Linear(width, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.tokens(tokens).tanh().mean(1))


class EmbeddingBag(nn.Module):
    """nn.EmbeddingBag on (B, T)."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(20, 6, **options)
        self.head = nn.Linear(6, 3)

    def forward(self, tokens: Tensor, weights: Tensor | None = None) -> Tensor:
        return self.head(torch.tanh(self.bag(tokens, per_sample_weights=weights)))


class Offsets(nn.Module):
    """Texts of several lengths, the empty one too, laid end to end with the offsets where they start."""

    def __init__(self, *, mode: str) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(20, 6, mode=mode)
        self.head = nn.Linear(6, 3)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        kept = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        return self.head(torch.tanh(self.bag(tokens[kept], lengths.cumsum(0) - lengths)))


class LearnedWeights(nn.Module):
    """The weights of a bag come from another embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(20, 6, mode="sum")
        self.weight = nn.Embedding(20, 1)
        self.head = nn.Linear(6, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        weights = self.weight(tokens).squeeze(2).softmax(1)
        return self.head(torch.tanh(self.bag(tokens, per_sample_weights=weights)))


class Factorization(nn.Module):
    """Recommendations: a user's vector times an item's, plus their biases, of shape (B,)."""

    def __init__(self) -> None:
        super().__init__()
        self.users = nn.Embedding(15, 6)
        self.items = nn.Embedding(12, 6)
        self.user_bias = nn.Embedding(15, 1)
        self.item_bias = nn.Embedding(12, 1)

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        match = (self.users(user) * self.items(item)).sum(1, keepdim=True)
        return match + self.user_bias(user) + self.item_bias(item)


class Categorical(nn.Module):
    """A row of a table: one embedding per categorical column beside the numerical ones."""

    def __init__(self) -> None:
        super().__init__()
        self.columns = nn.ModuleList(nn.Embedding(size, 3) for size in (4, 7, 2))
        self.layers = nn.Sequential(nn.Linear(9 + 4, 10), nn.ReLU(), nn.Linear(10, 3))

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        embedded = [column(categories[:, i] % len(column.weight)) for i, column in enumerate(self.columns)]
        return self.layers(torch.cat([*embedded, numbers], dim=1))


TEXT = given(integers(20, 6), integers(3))
RAGGED = given(integers(20, 6), integers(7), integers(3))

ARCHITECTURES = (
    Architecture("embedding", lambda: Bag(20, 6), TEXT, classification),
    # Six tokens of four: words repeat within a text, and their gradients add up.
    Architecture(
        "embedding, repeated tokens", lambda: Bag(4, 24), given(integers(4, 6), integers(3)), classification
    ),
    Architecture("embedding, padded", lambda: Bag(20, 6, padding_idx=2), TEXT, classification),
    Architecture(
        "embedding, large", lambda: Bag(5000, 3), given(integers(5000, 8), integers(3)), classification
    ),
    Architecture("embedding, sparse", lambda: Bag(20, 6, sparse=True), TEXT, classification, awkward=True),
    Architecture("embedding bag, sum", lambda: EmbeddingBag(mode="sum"), TEXT, classification),
    Architecture("embedding bag, mean", lambda: EmbeddingBag(mode="mean"), TEXT, classification),
    Architecture(
        "embedding bag, padded", lambda: EmbeddingBag(mode="mean", padding_idx=1), TEXT, classification
    ),
    Architecture("embedding bag, max", lambda: EmbeddingBag(mode="max"), TEXT, classification, awkward=True),
    Architecture(
        "embedding bag, weighted",
        lambda: EmbeddingBag(mode="sum"),
        given(integers(20, 6), features(6), integers(3)),
        classification,
    ),
    Architecture("embedding bag, learned weights", LearnedWeights, TEXT, classification),
    Architecture("embedding bag, offsets, sum", lambda: Offsets(mode="sum"), RAGGED, classification),
    Architecture("embedding bag, offsets, mean", lambda: Offsets(mode="mean"), RAGGED, classification),
    Architecture(
        "matrix factorization",
        Factorization,
        given(integers(15), integers(12), features(1)),
        regression,
    ),
    Architecture(
        "categorical columns",
        Categorical,
        given(integers(28, 3), features(4), integers(3)),
        classification,
    ),
)
