"""Transformers of images: ViT with a class token, Swin's windows with relative biases, MLP-Mixer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .architecture import Architecture
from .data import classification, features, given, integers


class Block(nn.Module):
    """Pre-norm attention with queries, keys and values of one Linear, then an MLP."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        n, length, width = x.shape
        query, key, value = (
            self.qkv(self.norm1(x)).reshape(n, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        )
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        x = x + self.out(attended.transpose(1, 2).reshape(n, length, width))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, stride=4)
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.positions = nn.Parameter(torch.randn(1, 5, 8))
        self.blocks = nn.ModuleList(Block(8) for _ in range(2))
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), patches], dim=1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class Swin(nn.Module):
    """Attention inside 2×2 windows, then inside shifted ones, with a bias looked up by offset.

    The windows are folded into the batch: a block sees (B·windows, 4, width).
    """

    index: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 2, stride=2)
        self.table = nn.Parameter(torch.randn(9, 2))
        self.blocks = nn.ModuleList(Block(8) for _ in range(2))
        self.head = nn.Linear(8, 3)
        row, column = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])
        offsets = 3 * (row[:, None] - row + 1) + column[:, None] - column + 1
        self.register_buffer("index", offsets)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).permute(0, 2, 3, 1)
        bias = self.table[self.index].permute(2, 0, 1)
        for shift, block in enumerate(self.blocks):
            x = torch.roll(x, (-shift, -shift), dims=(1, 2))
            n, side = x.shape[0], x.shape[1] // 2
            windows = x.reshape(n, side, 2, side, 2, 8).transpose(2, 3).reshape(-1, 4, 8)
            y = block(windows, bias)
            x = y.reshape(n, side, side, 2, 2, 8).transpose(2, 3).reshape(n, 2 * side, 2 * side, 8)
        return self.head(x.mean((1, 2)))


class PositionNetwork(nn.Module):
    """Swin's second version: the bias is an MLP of a table of four offsets, which has no batch."""

    offsets: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.position = nn.Sequential(nn.Linear(1, 6), nn.ReLU(), nn.Linear(6, 8, bias=False))
        self.inner = nn.Linear(5, 8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 3)
        self.register_buffer("offsets", torch.tensor([[-1.5], [-0.5], [0.5], [1.5]]))

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.tanh(self.norm(self.position(self.offsets)))
        return self.head((self.inner(x) * weights).sum(1))


class MixerBlock(nn.Module):
    """One MLP across the positions, one across the channels."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(8)
        # A bias of a position would be the same in all channels, and the next norm would take it off.
        self.tokens = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 4, bias=False))
        self.norm2 = nn.LayerNorm(8)
        self.channels = nn.Sequential(nn.Linear(8, 12), nn.GELU(), nn.Linear(12, 8))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


def mixer() -> nn.Module:
    """The patches of the image are the positions."""
    patches = nn.Sequential(nn.Conv2d(3, 4, 4, stride=4), nn.Flatten(2), nn.Linear(4, 8))
    return nn.Sequential(patches, MixerBlock(), MixerBlock(), nn.LayerNorm(8), nn.Flatten(), nn.Linear(32, 3))


IMAGES = given(features(3, 8, 8), integers(3))

ARCHITECTURES = (
    Architecture("ViT", VisionTransformer, IMAGES, classification),
    Architecture("Swin", Swin, IMAGES, classification),
    Architecture("position network", PositionNetwork, given(features(4, 5), integers(3)), classification),
    Architecture("MLP-Mixer", mixer, IMAGES, classification),
)
