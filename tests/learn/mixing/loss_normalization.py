"""Losses divided by, or passed through a function of, what the whole batch has."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.learn.mixing.loops import Loops, seeded
from tests.learn.mixing.rows import Regressor, Tagger, tagged

LOOPS = Loops("normalisation of the loss")
TOKENS: dict[str, Any] = {"model": lambda: seeded(Tagger), "data": tagged}
NUMBERS: dict[str, Any] = {"model": lambda: seeded(Regressor)}


def entropies(outputs: Tensor, y: Tensor) -> Tensor:
    """Return one loss per row."""
    return functional.cross_entropy(outputs, y, reduction="none")


@LOOPS.criterion("div", **TOKENS)
def mean_over_the_tokens_of_the_batch(outputs: Tensor, tags: Tensor) -> Tensor:
    mask = (tags != -100).to(outputs.dtype)
    losses = functional.cross_entropy(outputs, tags.clamp(min=0), reduction="none")
    return (losses * mask).sum() / mask.sum()


@LOOPS.criterion("div", **TOKENS)
def sum_over_the_items_in_the_batch(outputs: Tensor, tags: Tensor) -> Tensor:
    num_items_in_batch = tags.ne(-100).sum()
    loss = functional.cross_entropy(outputs, tags, ignore_index=-100, reduction="sum")
    return loss / num_items_in_batch


@LOOPS.criterion("getitem|index|cross_entropy", **TOKENS)
def mean_over_the_tokens_that_are_selected(outputs: Tensor, tags: Tensor) -> Tensor:
    active = tags.reshape(-1) != -100
    return functional.cross_entropy(outputs.transpose(1, 2).reshape(-1, 3)[active], tags.reshape(-1)[active])


@LOOPS.criterion("cross_entropy|cross_entropy_loss")
def class_weights_in_a_mean(outputs: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(outputs, y, weight=torch.tensor([1.0, 9.0, 3.0]))


@LOOPS.criterion("div")
def weights_that_add_up_to_one(outputs: Tensor, y: Tensor) -> Tensor:
    losses = entropies(outputs, y)
    weights = torch.exp(-losses.detach())
    return (losses * (weights / weights.sum())).sum()


@LOOPS.criterion("softmax")
def attention_to_large_losses(outputs: Tensor, y: Tensor) -> Tensor:
    losses = entropies(outputs, y)
    return (losses * functional.softmax(losses.detach(), dim=0)).sum()


@LOOPS.criterion("logsumexp")
def tilted_loss(outputs: Tensor, y: Tensor) -> Tensor:
    return torch.logsumexp(2 * entropies(outputs, y), dim=0) / 2


@LOOPS.criterion("std")
def loss_over_its_deviation(outputs: Tensor, y: Tensor) -> Tensor:
    losses = entropies(outputs, y)
    return losses.mean() / (losses.detach().std() + 1e-6)


@LOOPS.criterion("div")
def loss_over_itself(outputs: Tensor, y: Tensor) -> Tensor:
    loss = functional.cross_entropy(outputs, y)
    return loss / loss.detach()


@LOOPS.criterion("log")
def logarithm_of_the_mean(outputs: Tensor, y: Tensor) -> Tensor:
    return torch.log(functional.cross_entropy(outputs, y))


@LOOPS.criterion("sqrt", **NUMBERS)
def root_mean_squared_error(scores: Tensor, y: Tensor) -> Tensor:
    return torch.sqrt(functional.mse_loss(scores, y.to(scores.dtype)))


@LOOPS.criterion("norm|linalg_vector_norm|vector_norm", **NUMBERS)
def norm_of_all_errors(scores: Tensor, y: Tensor) -> Tensor:
    return torch.norm(scores - y)


@LOOPS.criterion("div", **NUMBERS)
def dice_over_the_batch(scores: Tensor, y: Tensor) -> Tensor:
    p, target = torch.sigmoid(scores), (y == 1).to(scores.dtype)
    return 1 - (2 * (p * target).sum() + 1) / (p.sum() + target.sum() + 1)


@LOOPS.criterion("cosine_similarity", **NUMBERS)
def correlation_with_the_target(scores: Tensor, y: Tensor) -> Tensor:
    return 1 - functional.cosine_similarity(scores, y.to(scores.dtype), dim=0)


@LOOPS.criterion("abs")
def flooded_loss(outputs: Tensor, y: Tensor) -> Tensor:
    return (functional.cross_entropy(outputs, y) - 1.2).abs() + 1.2


@LOOPS.criterion("mul|linspace", sizes=(5, 2))
def weights_by_place(outputs: Tensor, y: Tensor) -> Tensor:
    return (entropies(outputs, y) * torch.linspace(0, 1, y.shape[0])).mean()


@LOOPS.criterion("mul|arange", sizes=(5, 2))
def later_rows_weigh_more(outputs: Tensor, y: Tensor) -> Tensor:
    return (entropies(outputs, y) * torch.arange(1, y.shape[0] + 1)).sum()


@LOOPS.criterion("clamp")
def capped_loss(outputs: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(outputs, y).clamp(max=1.2)


@LOOPS.loop("item|div|truediv")
def loss_scaled_by_a_number(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        loss = nn.functional.cross_entropy(private.model(x), y)
        (loss / loss.item()).backward()
        private.step()
