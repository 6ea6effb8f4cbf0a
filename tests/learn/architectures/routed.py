"""Models that send some rows of a batch through parts of their own, and write the results back."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .architecture import Architecture
from .data import classification, features, given, integers, tagging


class Experts(nn.Module):
    """A gate and three experts, none of which sees all rows."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 3)
        nn.init.normal_(self.gate.weight)
        nn.init.zeros_(self.gate.bias)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 6), nn.LayerNorm(6), nn.ReLU(inplace=True), nn.Linear(6, 3))
            for _ in range(3)
        )


class Masked(Experts):
    """Rows are selected and written by a mask."""

    def forward(self, x: Tensor) -> Tensor:
        weights, choice = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros(*x.shape[:-1], 3, dtype=x.dtype)
        for number, expert in enumerate(self.experts):
            chosen = choice == number
            out[chosen] = weights[chosen].unsqueeze(-1) * expert(x[chosen])
        return out


class Scattered(Experts):
    """Rows are written by `index_put`, and some of them twice."""

    def forward(self, x: Tensor) -> Tensor:
        choice = self.gate(x).argmax(-1)
        out = x[:, :3] * 0.1
        for number, expert in enumerate(self.experts):
            (rows,) = (choice >= number).nonzero(as_tuple=True)
            out = out.index_put((rows,), expert(x.index_select(0, rows)), accumulate=number > 0)
        return out


class TwoOfThree(Experts):
    """Each position goes to two experts, as in mixtures of language models."""

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, 1)
        weights, choice = self.gate(flat).softmax(-1).topk(2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(flat[:, :3])
        for number, expert in enumerate(self.experts):
            rows, place = torch.where(choice == number)
            out.index_add_(0, rows, expert(flat[rows]) * weights[rows, place, None])
        return out.view(*x.shape[:2], 3)


class Increased(TwoOfThree):
    """The same, with rows that are increased where they are."""

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, 1)
        weights, choice = self.gate(flat).topk(2, dim=-1)
        weights = functional.softmax(weights, dim=-1)
        out = torch.zeros(len(flat), 3, dtype=x.dtype)
        for number, expert in enumerate(self.experts):
            rows, place = torch.where(choice == number)
            out[rows] += weights[rows, place, None] * expert(flat[rows])
        return out.view(*x.shape[:2], 3)


class Rooted(nn.Module):
    """A function that is not defined, or has no derivative, where it is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer, self.head = nn.Linear(5, 6), nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inner(x)
        x = x.masked_fill(x < -0.5, 0.0)
        positive = x > 0
        out = torch.zeros_like(x)
        out[positive] = x[positive].sqrt().log()
        return self.head(self.outer(out.clamp(min=-3)).tanh())


class Tables(nn.Module):
    """Common words and rare ones are looked up in tables of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.common, self.rare = nn.Embedding(8, 6), nn.Embedding(12, 2)
        self.wider, self.head = nn.Linear(2, 6, bias=False), nn.Linear(6, 3)

    def forward(self, words: Tensor) -> Tensor:
        rare, common = words >= 8, words < 8
        out = torch.zeros(*words.shape, 6, dtype=self.head.weight.dtype)
        out[rare] = self.wider(self.rare(words[rare] - 8))
        out[common] = self.common(words[common])
        return self.head(out.mean(1))


VECTORS = given(features(12), integers(3))
POSITIONS = given(features(4, 12), integers(3, 4))

ARCHITECTURES = (
    Architecture("routed by a mask", Masked, VECTORS, classification),
    Architecture("positions routed by a mask", Masked, POSITIONS, tagging),
    Architecture(
        "routed by index_put", Scattered, VECTORS, classification, unused=("gate.weight", "gate.bias")
    ),
    Architecture("routed to two experts", TwoOfThree, POSITIONS, tagging),
    Architecture("routed to two experts, in place", Increased, POSITIONS, tagging),
    Architecture("roots of positive entries", Rooted, given(features(5), integers(3)), classification),
    Architecture("tables by frequency", Tables, given(integers(20, 5), integers(3)), classification),
)
