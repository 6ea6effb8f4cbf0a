"""Residual networks of images, with group normalization where the originals have batch normalization."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .architecture import Architecture
from .data import classification, features, given, integers


class BasicBlock(nn.Module):
    """ResNet: conv → norm → relu → conv → norm, added to x or to its 1×1 projection."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.GroupNorm(2, out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.norm2 = nn.GroupNorm(2, out)
        self.down: nn.Module = nn.Identity()
        if stride != 1 or channels != out:
            self.down = nn.Sequential(
                nn.Conv2d(channels, out, 1, stride=stride, bias=False), nn.GroupNorm(2, out)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.down(x))


class PreactivationBlock(nn.Module):
    """WideResNet: norm → relu → conv twice; the projection reads the activated x."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(2, channels)
        self.conv1 = nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.GroupNorm(4, out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.shortcut = nn.Conv2d(channels, out, 1, stride=stride, bias=False) if channels != out else None

    def forward(self, x: Tensor) -> Tensor:
        active = torch.relu(self.norm1(x))
        skip = x if self.shortcut is None else self.shortcut(active)
        return skip + self.conv2(torch.relu(self.norm2(self.conv1(active))))


class ConvNeXtBlock(nn.Module):
    """Depthwise 7×7, then channels last: LayerNorm, Linear, GELU, Linear and a raw scale γ."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.expand = nn.Linear(channels, 4 * channels)
        self.contract = nn.Linear(4 * channels, channels)
        self.gamma = nn.Parameter(0.3 * torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.gamma * self.contract(nn.functional.gelu(self.expand(y)))
        return x + y.permute(0, 3, 1, 2)


class ChannelsFirstNorm(nn.Module):
    """LayerNorm over the channels of (B, C, H, W), written out, as ConvNeXt has between its stages."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        centered = x - x.mean(1, keepdim=True)
        unit = centered * torch.rsqrt(centered.square().mean(1, keepdim=True) + 1e-6)
        return self.weight[:, None, None] * unit + self.bias[:, None, None]


class InvertedResidual(nn.Module):
    """MobileNet: 1×1 up, depthwise, 1×1 down without an activation."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        wide = 3 * channels
        self.layers = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False),
            nn.GroupNorm(2, wide),
            nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False),
            nn.GroupNorm(2, wide),
            nn.Hardswish(),
            nn.Conv2d(wide, channels, 1, bias=False),
            nn.GroupNorm(1, channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


def pooled(*layers: nn.Module, width: int) -> nn.Module:
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 3))


def resnet() -> nn.Module:
    stem = (nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2))
    return pooled(*stem, BasicBlock(4, 4, 1), BasicBlock(4, 8, 2), width=8)


def wide_resnet() -> nn.Module:
    stem = nn.Conv2d(3, 4, 3, padding=1, bias=False)
    blocks = (PreactivationBlock(4, 12, 1), PreactivationBlock(12, 12, 1), PreactivationBlock(12, 16, 2))
    return pooled(stem, *blocks, nn.GroupNorm(4, 16), nn.ReLU(), width=16)


def convnext() -> nn.Module:
    stem = (nn.Conv2d(3, 6, 2, stride=2), ChannelsFirstNorm(6), ConvNeXtBlock(6))
    stage = (ChannelsFirstNorm(6), nn.Conv2d(6, 8, 2, stride=2), ConvNeXtBlock(8))
    return pooled(*stem, *stage, width=8)


def mobilenet() -> nn.Module:
    return pooled(nn.Conv2d(3, 4, 3, stride=2, bias=False), InvertedResidual(4), InvertedResidual(4), width=4)


IMAGES = given(features(3, 8, 8), integers(3))

ARCHITECTURES = (
    Architecture("ResNet-GN", resnet, IMAGES, classification),
    Architecture("WideResNet-GN", wide_resnet, IMAGES, classification),
    Architecture("ConvNeXt", convnext, IMAGES, classification),
    Architecture("MobileNet", mobilenet, IMAGES, classification),
)
