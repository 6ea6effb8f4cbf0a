"""Layers and functions that run along the batch as if it were time, channels or features."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.learn.mixing.loops import Loops, seeded
from tests.learn.mixing.rows import CLASSES, FEATURES, WORDS, tagged

ENTROPY = nn.CrossEntropyLoss()
LOOPS = Loops("batch statistics")


@LOOPS.module("softmax")
class SoftmaxOverTheBatch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, 8), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.softmax(self.first(x), dim=0))


@LOOPS.module("normalize|norm|div")
class LengthOneOverTheBatch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, 8), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(functional.normalize(self.first(x), dim=0))


@LOOPS.module("layer_norm")
class LayerNormOverTheBatch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, 8), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).T
        return self.last(functional.layer_norm(h, (x.shape[0],)).T)


@LOOPS.module("scaled_dot_product_attention")
class AttentionAcrossTheBatch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, 8), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).unsqueeze(0)
        return self.last(functional.scaled_dot_product_attention(h, h, h).squeeze(0))


class ReadTheWrongWay(nn.Module):
    """Words to classes, by a layer that takes time as its first axis and gets the batch there."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.table, self.layer, self.head = nn.Embedding(WORDS, 6), layer, nn.Linear(6, CLASSES)

    def forward(self, words: Tensor) -> Tensor:
        h = self.table(words)
        mixed, _ = self.layer(h, h, h) if isinstance(self.layer, nn.MultiheadAttention) else self.layer(h)
        return self.head(mixed.mean(1))


class Attending(ReadTheWrongWay):
    def __init__(self) -> None:
        super().__init__(nn.MultiheadAttention(6, 2))


class Recurring(ReadTheWrongWay):
    def __init__(self) -> None:
        super().__init__(nn.GRU(6, 6))


@LOOPS.loop(
    "multi_head_attention_forward|b?mm|baddbmm|matmul|scaled_dot_product_attention",
    model=lambda: seeded(Attending),
    data=tagged,
)
def attention_without_batch_first(private: Any) -> None:
    for words, tags in private.loader:
        private.zero_grad()
        ENTROPY(private.model(words), tags[:, 0]).backward()
        private.step()


@LOOPS.loop("gru", model=lambda: seeded(Recurring), data=tagged)
def recurrence_without_batch_first(private: Any) -> None:
    for words, tags in private.loader:
        private.zero_grad()
        ENTROPY(private.model(words), tags[:, 0]).backward()
        private.step()


@LOOPS.loop("cumsum")
def cumulative_sum_down_the_batch(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        ENTROPY(private.model(0.1 * x.cumsum(0)), y).backward()
        private.step()


@LOOPS.loop("diff|sub")
def differences_of_neighbours(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        x = torch.diff(x, dim=0, prepend=torch.zeros(1, FEATURES))
        ENTROPY(private.model(x), y).backward()
        private.step()


@LOOPS.loop("vmap|sub")
def columns_centred_by_vmap(private: Any) -> None:
    centre = torch.vmap(lambda column: column - column.mean(), in_dims=1, out_dims=1)
    for x, y in private.loader:
        private.zero_grad()
        ENTROPY(private.model(centre(x)), y).backward()
        private.step()


@LOOPS.loop("view|reshape|flatten")
def rows_cut_at_the_wrong_place(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        x = x.t().reshape(x.shape[0], FEATURES)
        ENTROPY(private.model(x), y).backward()
        private.step()
