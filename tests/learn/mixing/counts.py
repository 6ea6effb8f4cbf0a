"""Weights from how often something occurs in the batch."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.learn.mixing.loops import Loops, seeded
from tests.learn.mixing.rows import CLASSES, Embedder, Regressor

LOOPS = Loops("counts")


def entropies(outputs: Tensor, y: Tensor) -> Tensor:
    """Return one loss per row."""
    return functional.cross_entropy(outputs, y, reduction="none")


@LOOPS.criterion("bincount")
def class_weights_by_bincount(outputs: Tensor, y: Tensor) -> Tensor:
    counts = torch.bincount(y, minlength=CLASSES)
    return functional.cross_entropy(outputs, y, weight=1.0 / (counts + 1), reduction="sum")


@LOOPS.criterion("getitem|index|div")
def class_weights_by_one_hot(outputs: Tensor, y: Tensor) -> Tensor:
    frequency = functional.one_hot(y, CLASSES).float().mean(0)
    return (entropies(outputs, y) / frequency[y]).mean()


@LOOPS.criterion("unique")
def class_weights_by_unique(outputs: Tensor, y: Tensor) -> Tensor:
    _, inverse, counts = torch.unique(y, return_inverse=True, return_counts=True)
    return (entropies(outputs, y) / counts[inverse]).mean()


@LOOPS.criterion("tolist")
def class_weights_by_counter(outputs: Tensor, y: Tensor) -> Tensor:
    counts = Counter(y.tolist())
    weights = torch.tensor([1.0 / counts[label] for label in y.tolist()])
    return (entropies(outputs, y) * weights).mean()


@LOOPS.criterion("gather|index_select|getitem|scatter_add")
def class_weights_by_scatter(outputs: Tensor, y: Tensor) -> Tensor:
    counts = torch.zeros(CLASSES).scatter_add(0, y, torch.ones(y.shape[0]))
    return (entropies(outputs, y) / counts.gather(0, y)).sum()


@LOOPS.criterion("div", model=lambda: seeded(Regressor))
def positive_weight_of_the_batch(scores: Tensor, y: Tensor) -> Tensor:
    target = (y == 1).to(scores.dtype)
    weight = (1 - target).sum() / (target.sum() + 1)
    return functional.binary_cross_entropy_with_logits(scores, target, pos_weight=weight)


@LOOPS.criterion("clamp|div", model=lambda: seeded(Regressor))
def focal_loss_over_the_positives(scores: Tensor, y: Tensor) -> Tensor:
    target = (y == 1).to(scores.dtype)
    p = torch.sigmoid(scores)
    focal = (target - p).abs() ** 2 * functional.binary_cross_entropy_with_logits(
        scores, target, reduction="none"
    )
    return focal.sum() / target.sum().clamp(min=1)


@LOOPS.criterion("nonzero|shape", model=lambda: seeded(Regressor))
def balanced_by_nonzero(scores: Tensor, y: Tensor) -> Tensor:
    positive = (y == 1).nonzero().squeeze(1)
    negative = (y != 1).nonzero().squeeze(1)
    loss = functional.softplus(scores[negative]).sum() / (negative.shape[0] + 1)
    return loss + functional.softplus(-scores[positive]).sum() / (positive.shape[0] + 1)


@LOOPS.loop("histc|histogram")
def rare_inputs_weighted_by_histogram(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        counts = torch.histc(x[:, 0], bins=4, min=-2, max=2)
        bins = ((x[:, 0] + 2).clamp(0, 3.9)).long()
        (entropies(private.model(x), y) / (1 + counts[bins])).mean().backward()
        private.step()


@LOOPS.criterion("index_add|getitem|index|div", model=lambda: seeded(Embedder))
def prototypes_by_index_add(z: Tensor, y: Tensor) -> Tensor:
    sums = torch.zeros(CLASSES, 4).index_add(0, y, z)
    counts = torch.zeros(CLASSES).index_add(0, y, torch.ones(y.shape[0]))
    return (z - (sums / counts.clamp(min=1)[:, None])[y]).square().sum(1).mean()


@LOOPS.loop("count_nonzero|div")
def loss_per_active_input(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        loss = nn.functional.cross_entropy(private.model(x), y, reduction="sum")
        (loss / torch.count_nonzero(x > 0)).backward()
        private.step()
