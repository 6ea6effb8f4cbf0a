"""What `learn_gpu.py` trains: the models of the literature at their sizes, and made-up batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from learn_models import Block, PerSequence, Residual, images, resnet
from torch import Tensor, nn
from torch.nn import functional

SYMBOLS, WIDTH, DEPTH, HEADS, CONTEXT = 50257, 768, 12, 12, 1024
Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Workload:
    """A model, a batch, and what a private step may cost over one without privacy, in time and memory."""

    name: str
    size: int
    model: Callable[[], nn.Module]
    batch: Callable[[int], Batch]
    time: float
    memory: float
    half: bool
    criterion: Callable[[], nn.Module] = nn.CrossEntropyLoss
    untied: Callable[[], nn.Module] | None = None
    """For peers that take no tied weights."""


class GPT2(nn.Module):
    """124 million parameters; the head is the table of symbols, unless that is `untied`."""

    def __init__(self, *, tied: bool = True) -> None:
        super().__init__()
        self.symbols, self.places = nn.Embedding(SYMBOLS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block(WIDTH, HEADS) for _ in range(DEPTH)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, SYMBOLS, bias=False)
        for one in self.parameters():
            nn.init.normal_(one, std=0.02) if one.dim() > 1 else None
        if tied:
            self.head.weight = self.symbols.weight

    def forward(self, text: Tensor) -> Tensor:
        places = torch.arange(text.shape[1], device=text.device).repeat(text.shape[0], 1)
        return self.head(self.norm(self.blocks(self.symbols(text) + self.places(places))))


class Added(nn.Module):
    """A frozen product and a trained one of rank 8 (LoRA)."""

    def __init__(self, frozen: nn.Linear, rank: int = 8) -> None:
        super().__init__()
        self.frozen = frozen
        self.down, self.up = (
            nn.Linear(frozen.in_features, rank, bias=False),
            nn.Linear(rank, frozen.out_features, bias=False),
        )
        nn.init.normal_(self.up.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        return self.frozen(x) + self.up(self.down(x))


def adapted() -> nn.Module:
    """GPT-2 of which only products of rank 8 beside the projections of attention are trained."""
    model = GPT2().requires_grad_(False)
    for block in model.blocks:
        block.project, block.join = Added(block.project), Added(block.join)
    return model


class ViT(nn.Module):
    """ViT-B/16 for images of 224 × 224, with a class token."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 16, 16)
        self.token, self.places = (
            nn.Parameter(torch.zeros(1, 1, WIDTH)),
            nn.Parameter(0.02 * torch.randn(1, 197, WIDTH)),
        )
        self.blocks = nn.Sequential(*(Seeing(WIDTH, HEADS) for _ in range(DEPTH)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1000)

    def forward(self, x: Tensor) -> Tensor:
        seen = self.patches(x).flatten(2).transpose(1, 2)
        token = self.token.expand(x.shape[0], -1, -1)
        return self.head(self.norm(self.blocks(torch.cat([token, seen], 1) + self.places))[:, 0])


class Seeing(Block):
    """A block whose places see all others."""

    def forward(self, x: Tensor) -> Tensor:
        split = self.project(self.before(x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = split.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.join(seen.transpose(1, 2).flatten(2))
        return x + self.feed(self.after(x))


def wide() -> nn.Module:
    """WRN-16-4 for images of 32 × 32, with 16 groups in place of the batch."""
    widths = [(16, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1)]
    stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.GroupNorm(16, 16), nn.ReLU()]
    end = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)]
    return nn.Sequential(*stem, *(Residual(*width) for width in widths), *end)


def texts(length: int) -> Callable[[int], Batch]:
    def drawn(size: int) -> Batch:
        symbols = torch.randint(SYMBOLS, (size, length + 1))
        return symbols[:, :-1].contiguous(), symbols[:, 1:].contiguous()

    return drawn


def pictures(size: int) -> Batch:
    return torch.randn(size, 3, 224, 224), torch.randint(1000, (size,))


def untied() -> nn.Module:
    return GPT2(tied=False)


WORKLOADS = {
    "gpt2": Workload("GPT-2 124M, 512", 16, GPT2, texts(512), 1.2, 1.15, True, PerSequence, untied),
    "gpt2-long": Workload("GPT-2 124M, 1024", 8, GPT2, texts(1024), 1.25, 1.15, True, PerSequence, untied),
    "lora": Workload("GPT-2 124M, LoRA, 512", 16, adapted, texts(512), 1.1, 1.15, True, PerSequence),
    "vit": Workload("ViT-B/16", 64, ViT, pictures, 1.35, 1.25, True),
    "resnet": Workload("ResNet18-GN", 256, resnet, images(3, 32, 32), 2.0, 1.5, False),
    "wrn": Workload("WRN-16-4", 512, wide, images(3, 32, 32), 1.8, 1.5, False),
}
