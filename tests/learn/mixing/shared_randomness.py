"""Random augmentation that combines rows, or that is drawn from what the batch holds."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.learn.mixing.loops import Loops, seeded
from tests.learn.mixing.rows import CLASSES, FEATURES, Embedder, Regressor, images

ENTROPY = nn.CrossEntropyLoss()
LOOPS = Loops("randomness shared across rows")


@LOOPS.loop("getitem|index")
def mixup(private: Any) -> None:
    share = 0.7
    for x, y in private.loader:
        private.zero_grad()
        order = torch.randperm(x.size(0))
        outputs = private.model(share * x + (1 - share) * x[order])
        (share * ENTROPY(outputs, y) + (1 - share) * ENTROPY(outputs, y[order])).backward()
        private.step()


@LOOPS.module("getitem|index")
class ManifoldMixup(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, 8), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.first(x))
        return self.last(0.8 * h + 0.2 * h[torch.randperm(h.shape[0])])


@LOOPS.loop(
    "flip", data=images, model=lambda: seeded(lambda: nn.Sequential(nn.Flatten(), nn.Linear(16, CLASSES)))
)
def cutmix(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        x = x.clone()
        x[:, :, :2, :2] = x.flip(0)[:, :, :2, :2]
        outputs = private.model(x)
        (0.75 * ENTROPY(outputs, y) + 0.25 * ENTROPY(outputs, y.flip(0))).backward()
        private.step()


@LOOPS.loop("roll", model=lambda: seeded(Embedder))
def negatives_by_rolling(private: Any) -> None:
    for x, _ in private.loader:
        private.zero_grad()
        z = private.model(x)
        other = torch.roll(z, shifts=random.Random(0).randrange(1, 3), dims=0)
        functional.relu(1 - (z - other).square().sum(1)).mean().backward()
        private.step()


@LOOPS.loop("randint|getitem|index", model=lambda: seeded(Embedder))
def negatives_drawn_from_the_batch(private: Any) -> None:
    for x, _ in private.loader:
        private.zero_grad()
        z = private.model(x)
        other = z[torch.randint(x.shape[0], (x.shape[0],))]
        functional.relu(1 - (z - other).square().sum(1)).mean().backward()
        private.step()


@LOOPS.loop("index_select|shape")
def column_shuffled_by_numpy(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        order = torch.from_numpy(np.random.default_rng(0).permutation(x.shape[0]))
        x = torch.cat([x.index_select(0, order)[:, :1], x[:, 1:]], dim=1)
        ENTROPY(private.model(x), y).backward()
        private.step()


@LOOPS.loop("multinomial|getitem|index")
def rows_resampled_by_their_loss(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        losses = functional.cross_entropy(private.model(x), y, reduction="none")
        chosen = torch.multinomial(losses.detach(), x.shape[0], replacement=True)
        losses[chosen].mean().backward()
        private.step()


@LOOPS.loop("std")
def noise_as_wide_as_the_batch(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        x = x + 0.1 * x.std(0) * torch.randn_like(x)
        ENTROPY(private.model(x), y).backward()
        private.step()


@LOOPS.loop("int|item")
def noise_seeded_by_the_batch(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        bits = torch.Generator().manual_seed(abs(int(1000 * x.sum())))
        x = x + torch.randn(x.shape, generator=bits, dtype=x.dtype)
        ENTROPY(private.model(x), y).backward()
        private.step()


@LOOPS.loop("bernoulli|expand")
def loss_dropped_at_the_rate_of_a_class(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        losses = functional.cross_entropy(private.model(x), y, reduction="none")
        keep = torch.bernoulli((y == 0).to(x.dtype).mean().expand(y.shape[0]))
        (losses * keep).mean().backward()
        private.step()


@LOOPS.loop("flip", model=lambda: seeded(Regressor))
def gradient_penalty_between_examples(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        share = torch.rand(x.shape[0], 1)
        between = share * x + (1 - share) * x.flip(0)
        scores, raised = private.model(between), private.model(between + 0.1)
        slope = (raised - scores) / 0.1
        (functional.mse_loss(scores, y.to(scores.dtype)) + (slope.abs() - 1).square().mean()).backward()
        private.step()
