"""Rows that are shifted or scaled by statistics of their batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.learn.mixing.loops import CONSTRUCTOR, Loops, seeded
from tests.learn.mixing.rows import CLASSES, FEATURES, Embedder, groups

ENTROPY = nn.CrossEntropyLoss()
LOOPS = Loops("batch statistics")


@LOOPS.loop("add")
def a_little_of_the_sum(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        x = x + 1e-4 * x.sum(0)
        ENTROPY(private.model(x), y).backward()
        private.step()


@LOOPS.loop("sub")
def inputs_centred_by_the_batch(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        x = x - x.detach().mean(dim=0, keepdim=True)
        ENTROPY(private.model(x), y).backward()
        private.step()


@LOOPS.loop("std|std_mean")
def inputs_standardized_by_the_batch(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        deviation, mean = torch.std_mean(x, 0)
        ENTROPY(private.model((x - mean) / deviation), y).backward()
        private.step()


@LOOPS.loop("amin|amax|min|max")
def inputs_rescaled_to_the_range_of_the_batch(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        low, high = x.amin(0), x.amax(0)
        ENTROPY(private.model((x - low) / (high - low + 1e-6)), y).backward()
        private.step()


@LOOPS.module("sub|var")
class NormalizedByHand(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, 8), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        h = (h - h.mean(0)) / torch.sqrt(h.var(0, unbiased=False) + 1e-5)
        return self.last(torch.relu(h))


@LOOPS.module("batch_norm")
class NormalizedByTheFunction(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, 8), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(functional.batch_norm(self.first(x), None, None, training=True))


@LOOPS.module("BatchNorm1d", refused=CONSTRUCTOR)
class NormalizedByTheLayer(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(FEATURES, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, CLASSES))


@LOOPS.loop("sub|std", model=lambda: seeded(Embedder))
def barlow_twins(private: Any) -> None:
    for x, _ in private.loader:
        private.zero_grad()
        z = private.model(x)
        z = (z - z.mean(0)) / (z.std(0) + 1e-6)
        correlation = z.T @ z / x.shape[0]
        (correlation - torch.eye(4)).pow(2).sum().backward()
        private.step()


@LOOPS.criterion("var", model=lambda: seeded(Embedder))
def vicreg_variance(z: Tensor, y: Tensor) -> Tensor:
    return functional.relu(1 - torch.sqrt(z.var(dim=0) + 1e-4)).mean()


@LOOPS.criterion("matmul|pow", model=lambda: seeded(Embedder))
def decorrelated_features(z: Tensor, y: Tensor) -> Tensor:
    gram = z.t() @ z / z.size(0)
    return (gram - torch.diag(torch.diagonal(gram))).pow(2).sum()


@LOOPS.loop("cov|getitem|index", model=lambda: seeded(Embedder), data=groups)
def coral(private: Any) -> None:
    for x, y, group in private.loader:
        private.zero_grad()
        z = private.model(x)
        source, target = torch.cov((z * group[:, None]).T), torch.cov((z * (1 - group)[:, None]).T)
        (ENTROPY(z, y) + (source - target).square().sum()).backward()
        private.step()


@LOOPS.loop("cdist", model=lambda: seeded(Embedder), data=groups)
def maximum_mean_discrepancy(private: Any) -> None:
    for x, y, group in private.loader:
        private.zero_grad()
        z = private.model(x)
        kernel = torch.exp(-torch.cdist(z, z).square())
        sign = 2.0 * group - 1
        (ENTROPY(z, y) + (sign @ kernel @ sign) / x.shape[0] ** 2).backward()
        private.step()
