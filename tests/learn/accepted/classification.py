"""Classifiers: every common criterion, averaged by torch or by hand."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..architectures.architecture import Inputs
from ..architectures.data import features, given, integers
from .loop import Loop, LossOf, training

CLASSES, WIDTH = 3, 5
WEIGHTS = torch.tensor([0.2, 1.0, 3.0])


def network(outputs: int = CLASSES) -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.Tanh(), nn.Linear(8, outputs))


LABELED = given(features(WIDTH), integers(CLASSES))


def flags(n: int, generator: torch.Generator) -> Tensor:
    return torch.randint(2, (n, CLASSES), generator=generator).float()


MANY_LABELS = given(features(WIDTH), flags)


def classifier(
    name: str, loss_of: LossOf, *, rows: Inputs = LABELED, build: Callable[[], nn.Module] = network
) -> Loop:
    return Loop(name, build, rows, training(loss_of))


def cross_entropy(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y)


def cross_entropy_module(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    return criterion(model(x), y)


def summed(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y, reduction="sum")


def summed_over_shape(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    losses = functional.cross_entropy(model(x), y, reduction="none")
    return losses.sum() / x.shape[0]


def log_softmax(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.nll_loss(functional.log_softmax(model(x), dim=1), y)


def gathered(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    scores = model(x).log_softmax(-1)
    return -scores.gather(1, y.unsqueeze(1)).squeeze(1).mean()


def indexed(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    scores = model(x).log_softmax(-1)
    return -scores[torch.arange(x.shape[0]), y].mean()


def smoothed_by_hand(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    scores = model(x).log_softmax(1)
    soft = functional.one_hot(y, CLASSES).float() * 0.9 + 0.1 / CLASSES
    return -(soft * scores).sum(1).mean()


def class_weights(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y, weight=WEIGHTS, reduction="none").mean()


def class_weights_by_lookup(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return (functional.cross_entropy(model(x), y, reduction="none") * WEIGHTS[y]).mean()


def focal(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    losses = functional.cross_entropy(model(x), y, reduction="none")
    sure = torch.exp(-losses)
    return ((1 - sure) ** 2 * losses).mean()


def multi_label(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(model(x), y)


def multi_label_weighted(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    criterion = nn.BCEWithLogitsLoss(pos_weight=WEIGHTS, reduction="none")
    return criterion(model(x), y).mean(dim=1).mean()


def binary(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(model(x).squeeze(-1), (y == 1).float())


def hinge(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    signs = torch.where(y == 0, -1.0, 1.0)
    return torch.clamp(1 - signs * model(x).squeeze(1), min=0).mean()


def margins(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.multi_margin_loss(model(x), y)


def by_name(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return nn.CrossEntropyLoss()(model(input=x), y)


LOOPS = (
    classifier("cross entropy", cross_entropy),
    classifier("cross entropy with label smoothing", cross_entropy_module),
    classifier("cross entropy summed", summed),
    classifier("losses summed and divided by the batch size", summed_over_shape),
    classifier("negative log likelihood", log_softmax),
    classifier("log probabilities gathered", gathered),
    classifier("log probabilities indexed", indexed),
    classifier("label smoothing by hand", smoothed_by_hand),
    classifier("class weights without division", class_weights),
    classifier("class weights by lookup", class_weights_by_lookup),
    classifier("focal loss", focal),
    classifier("multi-label", multi_label, rows=MANY_LABELS),
    classifier("multi-label, weighted positives", multi_label_weighted, rows=MANY_LABELS),
    classifier("binary", binary, build=lambda: network(1)),
    classifier("hinge", hinge, build=lambda: network(1)),
    classifier("multi-class margins", margins),
    classifier("inputs by name", by_name),
)
