"""Data sets and models of the mixing loops."""

from __future__ import annotations

import torch
from torch import Tensor, nn

COUNT, FEATURES, CLASSES, WORDS, LONGEST = 64, 5, 3, 12, 7
"""Rows of every data set, features, classes, words of the vocabulary and words of the longest sentence."""


def _bits() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def people() -> tuple[Tensor, Tensor]:
    """Return features and classes. Every fifth row is ten times larger than the others."""
    bits = _bits()
    x, y = torch.randn(COUNT, FEATURES, generator=bits), torch.randint(CLASSES, (COUNT,), generator=bits)
    x[::5] *= 10
    return x, y


def damaged() -> tuple[Tensor, Tensor]:
    """Return people of whom every eighth has infinite features."""
    x, y = people()
    x[::8] = torch.inf
    return x, y


def groups() -> tuple[Tensor, Tensor, Tensor]:
    """Return features, classes, and one of two groups."""
    return *people(), torch.arange(COUNT) % 2


def images() -> tuple[Tensor, Tensor]:
    """Return images of one channel and their classes."""
    bits = _bits()
    return torch.randn(COUNT, 1, 4, 4, generator=bits), torch.randint(CLASSES, (COUNT,), generator=bits)


def sentences() -> tuple[Tensor, Tensor, Tensor]:
    """Return words padded by zeros to a public length, the number of words of every row, and classes."""
    bits = _bits()
    words = torch.randint(1, WORDS, (COUNT, LONGEST), generator=bits)
    lengths = torch.randint(1, LONGEST + 1, (COUNT,), generator=bits)
    words = words.masked_fill(torch.arange(LONGEST) >= lengths[:, None], 0)
    return words, lengths, torch.randint(CLASSES, (COUNT,), generator=bits)


def tagged() -> tuple[Tensor, Tensor]:
    """Return words and a class for every word, −100 for padding."""
    words, _, _ = sentences()
    return words, (words % CLASSES).masked_fill(words == 0, -100)


def texts() -> list[tuple[Tensor, int]]:
    """Return sentences of unequal lengths with their classes."""
    words, lengths, y = sentences()
    return [(words[i, : int(lengths[i])], int(y[i])) for i in range(COUNT)]


class Embedder(nn.Module):
    """Features to a vector of four."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(FEATURES, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.layer(x))


class Regressor(nn.Module):
    """Features to one number."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(FEATURES, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).squeeze(1)


class Tagger(nn.Module):
    """Words to scores of classes, for every word."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(WORDS, 6), nn.Linear(6, CLASSES)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.table(words)).transpose(1, 2)


class Reader(nn.Module):
    """Words to scores of classes, by the mean over time."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(WORDS, 6), nn.Linear(6, CLASSES)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(torch.tanh(self.table(words)).mean(1))


class Recurrent(nn.Module):
    """Words to scores of classes, by the last state of an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.recurrent = nn.Embedding(WORDS, 6), nn.LSTM(6, 8, batch_first=True)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, words: Tensor) -> Tensor:
        states, _ = self.recurrent(self.table(words))
        return self.head(states[:, -1])
