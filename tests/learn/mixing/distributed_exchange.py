"""Collective operations between processes, in a group of one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional

from tests.learn.mixing.loops import Loops, seeded
from tests.learn.mixing.rows import CLASSES, FEATURES, Embedder, Reader, sentences

ENTROPY = nn.CrossEntropyLoss()
LOOPS = Loops("distributed exchange")


@contextmanager
def one_process() -> Iterator[None]:
    """Open a group of this process alone."""
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        distributed.destroy_process_group()


HERE: dict[str, Any] = {"setting": one_process}


@LOOPS.loop("all_reduce|div", **HERE)
def positives_counted_over_all_processes(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        losses = functional.cross_entropy(private.model(x), y, reduction="none")
        positives = (y == 1).sum()
        distributed.all_reduce(positives)
        (losses.sum() / (1 + positives)).backward()
        private.step()


@LOOPS.loop("all_reduce|sub", **HERE)
def mean_of_all_processes_subtracted(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        mean = x.mean(0)
        distributed.all_reduce(mean)
        ENTROPY(private.model(x - mean / distributed.get_world_size()), y).backward()
        private.step()


@LOOPS.loop("all_gather|matmul|mm", model=lambda: seeded(Embedder), **HERE)
def embeddings_gathered(private: Any) -> None:
    for x, _ in private.loader:
        private.zero_grad()
        z = functional.normalize(private.model(x), dim=1)
        gathered = [torch.zeros_like(z) for _ in range(distributed.get_world_size())]
        distributed.all_gather(gathered, z.detach())
        logits = z @ torch.cat(gathered).T / 0.1
        functional.cross_entropy(logits, torch.arange(x.shape[0])).backward()
        private.step()


class Gathered(torch.autograd.Function):
    """All rows of all processes, with gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        gathered = [torch.zeros_like(x)]
        distributed.all_gather(gathered, x.contiguous())
        return torch.cat(gathered)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        gradient = gradients[0].contiguous().clone()
        distributed.all_reduce(gradient)
        return gradient


@LOOPS.loop("Gathered|apply|all_gather", model=lambda: seeded(Embedder), **HERE)
def embeddings_gathered_with_gradients(private: Any) -> None:
    for x, _ in private.loader:
        private.zero_grad()
        z = functional.normalize(private.model(x), dim=1)
        logits = z @ Gathered.apply(z).T / 0.1
        functional.cross_entropy(logits, torch.arange(x.shape[0])).backward()
        private.step()


@LOOPS.loop("max|all_reduce", model=lambda: seeded(Reader), data=sentences, **HERE)
def words_cut_to_the_longest_of_all_processes(private: Any) -> None:
    for words, lengths, y in private.loader:
        private.zero_grad()
        longest = lengths.max()
        distributed.all_reduce(longest, op=distributed.ReduceOp.MAX)
        ENTROPY(private.model(words[:, : int(longest)]), y).backward()
        private.step()


@LOOPS.loop("broadcast|sub", **HERE)
def statistics_of_the_first_process(private: Any) -> None:
    centre = torch.zeros(FEATURES)
    for x, y in private.loader:
        private.zero_grad()
        centre.copy_(x.mean(0))
        distributed.broadcast(centre, src=0)
        ENTROPY(private.model(x - centre), y).backward()
        private.step()


@LOOPS.loop("item|pickle|all_gather_object", **HERE)
def losses_exchanged_as_objects(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        loss = ENTROPY(private.model(x), y)
        everyone: list[Any] = [None]
        distributed.all_gather_object(everyone, loss.item())
        (loss / sum(everyone)).backward()
        private.step()


@LOOPS.loop("reduce|div", **HERE)
def total_loss_by_reduce(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        losses = functional.cross_entropy(private.model(x), y, reduction="none")
        total = losses.detach().sum()
        distributed.reduce(total, dst=0)
        (losses.sum() / total).backward()
        private.step()


@LOOPS.module("all_reduce|sub|square|pow", **HERE)
class NormalizedOverAllProcesses(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(FEATURES, 8), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        moments = torch.stack([h.mean(0), h.square().mean(0)]).detach()
        distributed.all_reduce(moments)
        mean, squares = moments / distributed.get_world_size()
        return self.last((h - mean) / torch.sqrt(squares - mean.square() + 1e-5))
