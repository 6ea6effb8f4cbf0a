"""Models of which only a part is trained: frozen backbones, LoRA, biases alone, frozen embeddings."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .architecture import Architecture
from .data import classification, features, given, integers, tagging
from .residual import resnet
from .transformers import GPT2, Bert


class LoRA(nn.Module):
    """A frozen Linear plus a trained product of two thin ones; the second does not start at zero,
    where the gradient of the first would vanish.
    """

    def __init__(self, base: nn.Linear, *, rank: int) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + 2.0 * self.up(self.down(x))


class RawLoRA(nn.Module):
    """The same with raw parameters, added to the weight before the product."""

    def __init__(self, base: nn.Linear, *, rank: int) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(0.3 * torch.randn(rank, base.in_features))
        self.up = nn.Parameter(0.3 * torch.randn(base.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.base.weight + self.up @ self.down, self.base.bias)


class Adapter(nn.Module):
    """A frozen layer followed by a trained bottleneck with a skip connection."""

    def __init__(self, base: nn.Module, width: int) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.bottleneck = nn.Sequential(nn.Linear(width, 6), nn.GELU(), nn.Linear(6, width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.base(x)
        return y + self.bottleneck(y)


def frozen_backbone() -> nn.Module:
    """The head of ResNet-GN alone; nothing below it needs a gradient."""
    model = resnet().requires_grad_(False)
    model.append(nn.ReLU()).append(nn.Linear(3, 20)).append(nn.Tanh()).append(nn.Linear(20, 3))
    return model


def frozen_middle() -> nn.Module:
    """Gradients pass through a frozen layer to reach the first."""
    middle = nn.Linear(16, 16).requires_grad_(False)
    return nn.Sequential(nn.Linear(12, 16), nn.Tanh(), middle, nn.Tanh(), nn.Linear(16, 3))


def half_frozen() -> nn.Module:
    """One layer trains its weight alone, the other its bias alone."""
    model = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))
    model[0].bias.requires_grad_(False)
    model[2].weight.requires_grad_(False)
    return model


def lora_attention(kind: type[LoRA] | type[RawLoRA]) -> nn.Module:
    """BERT with low-rank terms on queries and values; its head is trained in full."""
    model = Bert().requires_grad_(False)
    for layer in model.layers:
        layer.query, layer.value = kind(layer.query, rank=2), kind(layer.value, rank=2)
    model.head.requires_grad_(True)
    return model


def biases_alone() -> nn.Module:
    """BitFit: every bias, whether of a Linear or of a LayerNorm, and no weight."""
    model = Bert().requires_grad_(False)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.endswith("bias"))
    return model


def norms_alone() -> nn.Module:
    """The scales and shifts of ResNet-GN's norms, and its head."""
    model = resnet().requires_grad_(False)
    for module in model.modules():
        if isinstance(module, nn.GroupNorm | nn.Linear):
            module.requires_grad_(True)
    return model


def frozen_positions() -> nn.Module:
    """GPT-2 whose positions and first block are frozen, though the tied embedding below is not."""
    model = GPT2(module=True)
    model.positions.requires_grad_(False)
    model.blocks[0].requires_grad_(False)
    return model


def adapters() -> nn.Module:
    layers = (Adapter(nn.Linear(12, 12), 12), nn.Tanh(), Adapter(nn.Linear(12, 12), 12))
    return nn.Sequential(*layers, nn.Linear(12, 3))


VECTORS = given(features(12), integers(3))
IMAGES = given(features(3, 8, 8), integers(3))
TEXT = given(integers(20, 6), integers(2, 6), integers(3))

ARCHITECTURES = (
    Architecture("frozen backbone", frozen_backbone, IMAGES, classification),
    Architecture("frozen middle", frozen_middle, VECTORS, classification),
    Architecture("half-frozen layers", half_frozen, VECTORS, classification),
    Architecture("LoRA", lambda: lora_attention(LoRA), TEXT, classification),
    Architecture("LoRA of raw parameters", lambda: lora_attention(RawLoRA), TEXT, classification),
    Architecture("biases alone", biases_alone, TEXT, classification),
    Architecture("norms alone", norms_alone, IMAGES, classification),
    Architecture("frozen positions", frozen_positions, given(integers(20, 4), integers(20, 4)), tagging),
    Architecture("adapters", adapters, VECTORS, classification),
)
