"""Normalizations within an example, with and without scale and shift, and learned activations."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .architecture import Architecture
from .data import classification, features, given, integers


class Normed(nn.Module):
    """Conv or Linear → norm → tanh → head; the scale and shift start off one and zero."""

    def __init__(self, first: nn.Module, norm: nn.Module, width: int) -> None:
        super().__init__()
        self.first, self.norm = first, norm
        self.head = nn.Linear(width, 3)
        for parameter in norm.parameters():
            nn.init.normal_(parameter, mean=0.5, std=0.3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.norm(self.first(x))).flatten(1))


def sequence(norm: nn.Module) -> nn.Module:
    return Normed(nn.Linear(5, 8), norm, 32)


def image(norm: nn.Module) -> nn.Module:
    # No bias: a normalization of each channel on its own would take it off again.
    return Normed(nn.Conv2d(3, 6, 3, bias=False), norm, 6 * 9)


def signal(norm: nn.Module) -> nn.Module:
    return Normed(nn.Conv1d(3, 6, 3, bias=False), norm, 6 * 5)


SEQUENCES = given(features(4, 5), integers(3))
IMAGES = given(features(3, 5, 5), integers(3))
SIGNALS = given(features(3, 7), integers(3))

ARCHITECTURES = (
    Architecture("LayerNorm", lambda: sequence(nn.LayerNorm(8)), SEQUENCES, classification),
    Architecture(
        "LayerNorm over two dims", lambda: sequence(nn.LayerNorm((4, 8))), SEQUENCES, classification
    ),
    Architecture(
        "LayerNorm without bias", lambda: sequence(nn.LayerNorm(8, bias=False)), SEQUENCES, classification
    ),
    Architecture(
        "LayerNorm without affine",
        lambda: sequence(nn.LayerNorm(8, elementwise_affine=False)),
        SEQUENCES,
        classification,
    ),
    Architecture("RMSNorm", lambda: sequence(nn.RMSNorm(8)), SEQUENCES, classification),
    Architecture("GroupNorm", lambda: image(nn.GroupNorm(3, 6)), IMAGES, classification),
    Architecture(
        "GroupNorm of vectors",
        lambda: Normed(nn.Linear(12, 8), nn.GroupNorm(2, 8), 8),
        given(features(12), integers(3)),
        classification,
    ),
    Architecture("InstanceNorm2d", lambda: image(nn.InstanceNorm2d(6, affine=True)), IMAGES, classification),
    Architecture(
        "InstanceNorm1d", lambda: signal(nn.InstanceNorm1d(6, affine=True)), SIGNALS, classification
    ),
    Architecture("local response", lambda: image(nn.LocalResponseNorm(2)), IMAGES, classification),
    Architecture("PReLU", lambda: image(nn.PReLU()), IMAGES, classification),
    Architecture("PReLU of each channel", lambda: image(nn.PReLU(6)), IMAGES, classification),
)
