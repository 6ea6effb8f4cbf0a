"""Gradient checkpointing, and adapters of `peft`."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from ..architectures import huggingface
from ..architectures.data import given, integers
from .classification import LABELED, WIDTH
from .loop import Loop, training


class Checkpointed(nn.Module):
    """Blocks whose hidden layers are computed a second time on the way back."""

    def __init__(self, *, reentrant: bool) -> None:
        super().__init__()
        self.first, self.reentrant = nn.Linear(WIDTH, 6), reentrant
        blocks = [nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(2)]
        self.blocks, self.head = nn.ModuleList(blocks), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.first(x))
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=self.reentrant)
        return self.head(x)


class InSegments(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 6), nn.Tanh(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3)
        )

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint_sequential(self.layers, 2, x, use_reentrant=False)


def cross_entropy(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y)


def causal(model: nn.Module, words: Tensor, labels: Tensor) -> Tensor:
    return model(input_ids=words, labels=labels).loss


TEXTS = given(integers(32, 4), integers(32, 4))

LOOPS: tuple[Loop, ...] = (
    Loop("checkpointing", lambda: Checkpointed(reentrant=False), LABELED, training(cross_entropy)),
    Loop("checkpointing, reentrant", lambda: Checkpointed(reentrant=True), LABELED, training(cross_entropy)),
    Loop("checkpointing in segments", InSegments, LABELED, training(cross_entropy)),
)
if huggingface.ADAPTERS:
    LOOPS += (Loop("LoRA of peft", huggingface.adapted, TEXTS, training(causal), ignored=(1,)),)
