"""Rows chosen or weighed by comparison with the other rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tests.learn.mixing.loops import Loops, seeded
from tests.learn.mixing.rows import Embedder, Regressor, groups

LOOPS = Loops("ranking and mining")


def entropies(outputs: Tensor, y: Tensor) -> Tensor:
    """Return one loss per row."""
    return functional.cross_entropy(outputs, y, reduction="none")


@LOOPS.criterion("cdist", model=lambda: seeded(Embedder))
def triplet_with_the_hardest_positive(z: Tensor, y: Tensor) -> Tensor:
    distances, same = torch.cdist(z, z), y[:, None] == y[None, :]
    hardest = (distances * same).max(dim=1).values
    nearest = distances.masked_fill(same, 1e3).min(dim=1).values
    return functional.relu(hardest - nearest + 0.2).mean()


@LOOPS.criterion("matmul|mm", model=lambda: seeded(Embedder))
def hard_negative_mining(z: Tensor, y: Tensor) -> Tensor:
    z = functional.normalize(z, dim=1)
    similarity = torch.matmul(z, z.t()).masked_fill(y.unsqueeze(0) == y.unsqueeze(1), -1e3)
    return functional.relu(similarity.max(1)[0] + 1.5).mean()


@LOOPS.loop("matmul|mm", model=lambda: seeded(Embedder))
def info_nce(private: Any) -> None:
    for x, _ in private.loader:
        private.zero_grad()
        z = functional.normalize(private.model(x), dim=1)
        other = functional.normalize(z + 0.1 * torch.randn_like(z), dim=1)
        logits = z @ other.T / 0.1
        functional.cross_entropy(logits, torch.arange(x.shape[0])).backward()
        private.step()


@LOOPS.criterion("einsum|eq", model=lambda: seeded(Embedder))
def supervised_contrastive(z: Tensor, y: Tensor) -> Tensor:
    logits = torch.einsum("id,jd->ij", z, z)
    same = (y[:, None] == y[None, :]).to(z.dtype)
    return -(same * functional.log_softmax(logits, dim=1)).sum(1).mean()


@LOOPS.criterion("topk")
def hardest_quarter(outputs: Tensor, y: Tensor) -> Tensor:
    losses = entropies(outputs, y)
    hardest, _ = losses.topk(y.shape[0] // 4)
    return hardest.mean()


@LOOPS.criterion("sort")
def trimmed_mean(outputs: Tensor, y: Tensor) -> Tensor:
    losses, _ = torch.sort(entropies(outputs, y))
    return losses[:-2].mean()


@LOOPS.criterion("argsort")
def weights_by_rank(outputs: Tensor, y: Tensor) -> Tensor:
    losses = entropies(outputs, y)
    ranks = losses.detach().argsort().argsort()
    return (losses * (ranks + 1.0)).mean()


@LOOPS.criterion("max")
def worst_row(outputs: Tensor, y: Tensor) -> Tensor:
    return entropies(outputs, y).max()


@LOOPS.criterion("median")
def median_row(outputs: Tensor, y: Tensor) -> Tensor:
    return entropies(outputs, y).median()


@LOOPS.criterion("quantile")
def easy_rows_first(outputs: Tensor, y: Tensor) -> Tensor:
    losses = entropies(outputs, y)
    easy = losses <= torch.quantile(losses.detach(), 0.7)
    return (losses * easy).mean()


@LOOPS.criterion("std|lt", sizes=(20, 20))
def losses_far_above_the_mean_dropped(outputs: Tensor, y: Tensor) -> Tensor:
    losses = entropies(outputs, y)
    limit = losses.mean() + 3 * losses.std()
    return (losses * (losses < limit)).mean()


@LOOPS.loop("getitem|index|max", data=groups)
def worst_group(private: Any) -> None:
    for x, y, group in private.loader:
        private.zero_grad()
        losses = entropies(private.model(x), y)
        by_group = torch.stack([losses[group == number].sum() for number in range(2)])
        by_group.max().backward()
        private.step()


@LOOPS.criterion("sub", model=lambda: seeded(Regressor))
def pairwise_ranking(scores: Tensor, y: Tensor) -> Tensor:
    differences = scores[:, None] - scores[None, :]
    return (functional.softplus(-differences) * (y[:, None] > y[None, :])).mean()


@LOOPS.criterion("argmax|getitem|index")
def only_the_hardest_row(outputs: Tensor, y: Tensor) -> Tensor:
    hardest = entropies(outputs, y).argmax()
    return functional.cross_entropy(outputs[hardest], y[hardest])
