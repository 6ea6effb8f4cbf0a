"""Losses of several terms: tasks, auxiliary heads, constants, teachers, pairs and triplets within a row."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..architectures.architecture import Inputs
from ..architectures.data import features, given, integers
from .loop import Loop, LossOf, training

WIDTH = 5


class Heads(nn.Module):
    """Two heads on one body, and the hidden layer for an auxiliary loss."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.labels, self.values = nn.Linear(WIDTH, 8), nn.Linear(8, 3), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        hidden = torch.tanh(self.body(x))
        return {"hidden": hidden, "labels": self.labels(hidden), "values": self.values(hidden)}


def tasks(model: nn.Module, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    outputs = model(x)
    first = functional.cross_entropy(outputs["labels"], y)
    second = functional.mse_loss(outputs["values"].squeeze(-1), z)
    return 0.7 * first + 0.3 * second


def listed_tasks(model: nn.Module, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    outputs = model(x)
    losses = [
        functional.cross_entropy(outputs["labels"], y),
        (outputs["values"][:, 0] - z).abs().mean(),
        1e-3 * outputs["hidden"].square().sum(1).mean(),
    ]
    return torch.stack(losses).sum()


def summed_tasks(model: nn.Module, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    outputs = model(x)
    return sum([functional.cross_entropy(outputs["labels"], y), outputs["values"].square().mean()], 0.0)


def auxiliary(model: nn.Module, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    outputs = model(x)
    entropy = -(outputs["labels"].softmax(1) * outputs["labels"].log_softmax(1)).sum(1)
    return (functional.cross_entropy(outputs["labels"], y, reduction="none") - 0.01 * entropy).mean()


def constants(model: nn.Module, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    loss = functional.cross_entropy(model(x)["labels"], y)
    return (loss * 0.25 + 3.0) / 2 - 1


def scaled_by_tensors(model: nn.Module, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    weight = torch.tensor([0.5, 2.0])
    outputs = model(x)
    first = functional.cross_entropy(outputs["labels"], y)
    return weight[0] * first + weight[1] * functional.l1_loss(outputs["values"][:, 0], z)


TEACHER = nn.Linear(WIDTH, 3)


def distillation(model: nn.Module, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    with torch.no_grad():
        soft = functional.softmax(TEACHER(x) / 2.0, dim=-1)
    logits = model(x)["labels"]
    distance = functional.kl_div(functional.log_softmax(logits / 2.0, -1), soft, reduction="batchmean")
    return 4.0 * 0.5 * distance + 0.5 * functional.cross_entropy(logits, y)


def tower() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.Tanh(), nn.Linear(8, 4))


def siamese(model: nn.Module, left: Tensor, right: Tensor, same: Tensor) -> Tensor:
    """The two of a pair are in one row, and the model is called for each."""
    distance = functional.pairwise_distance(model(left), model(right))
    return (same * distance.square() + (1 - same) * (1 - distance).clamp(min=0).square()).mean()


def siamese_cosine(model: nn.Module, left: Tensor, right: Tensor, same: Tensor) -> Tensor:
    return nn.CosineEmbeddingLoss(margin=0.2)(model(left), model(right), 2 * same - 1)


def triplet(model: nn.Module, rows: Tensor) -> Tensor:
    anchor, positive, negative = (model(rows[:, i]) for i in range(3))
    return nn.TripletMarginLoss(margin=1.0)(anchor, positive, negative)


def ranking(model: nn.Module, rows: Tensor) -> Tensor:
    """Bradley and Terry, as for reward models: the chosen one of a row and the rejected one."""
    return -functional.logsigmoid(model(rows[:, 0]).sum(1) - model(rows[:, 1]).sum(1)).mean()


def choices(model: nn.Module, rows: Tensor) -> Tensor:
    """Contrasted with the candidates of its own row."""
    query, keys = model(rows)[:, 0], model(rows)[:, 1:]
    scores = torch.einsum("nd,nkd->nk", query, keys)
    return functional.cross_entropy(scores, torch.zeros(rows.shape[0], dtype=torch.long))


def coins(n: int, generator: torch.Generator) -> Tensor:
    return torch.randint(2, (n,), generator=generator).float()


TASKS, PAIRS = given(features(WIDTH), integers(3), features()), given(features(WIDTH), features(WIDTH), coins)
TRIPLETS = given(features(3, WIDTH))


def combined(
    name: str, loss_of: LossOf, *, rows: Inputs = TASKS, build: Callable[[], nn.Module] = Heads
) -> Loop:
    return Loop(name, build, rows, training(loss_of))


LOOPS = (
    combined("two tasks", tasks),
    combined("tasks stacked", listed_tasks),
    combined("tasks added by sum()", summed_tasks),
    combined("auxiliary entropy", auxiliary),
    combined("public constants", constants),
    combined("public weights in a tensor", scaled_by_tensors),
    combined("distillation", distillation),
    combined("siamese pairs in a row", siamese, rows=PAIRS, build=tower),
    combined("siamese pairs, cosine", siamese_cosine, rows=PAIRS, build=tower),
    combined("triplets in a row", triplet, rows=TRIPLETS, build=tower),
    combined("preferences in a row", ranking, rows=TRIPLETS, build=tower),
    combined("candidates in a row", choices, rows=TRIPLETS, build=tower),
)
