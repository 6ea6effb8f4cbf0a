"""Networks of images with branches: MNIST's CNN, a U-Net, Inception, squeeze and excitation, and others."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .architecture import Architecture
from .data import classification, features, given, integers, regression


def mnist() -> nn.Module:
    """Two convolutions with tanh and overlapping pools, as private MNIST is often trained."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 8, stride=2, padding=3),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(8, 8, 4, stride=2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(128, 16),
        nn.Tanh(),
        nn.Linear(16, 10),
    )


class UNet(nn.Module):
    """Two levels down and up; one upsampling is interpolation, the other a transposed convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.top = nn.Conv2d(2, 4, 3, padding=1)
        self.middle = nn.Conv2d(4, 8, 3, padding=1)
        self.bottom = nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.merge = nn.Conv2d(16, 4, 3, padding=1)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        top = functional.silu(self.top(x))
        middle = functional.silu(self.middle(functional.max_pool2d(top, 2)))
        bottom = functional.silu(self.bottom(functional.avg_pool2d(middle, 2)))
        merged = functional.silu(self.merge(torch.cat([self.up(bottom), middle], dim=1)))
        return self.out(
            torch.cat([functional.interpolate(merged, scale_factor=2, mode="nearest"), top], dim=1)
        )


class Inception(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Conv2d(3, 4, 1)
        self.three = nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU(), nn.Conv2d(3, 4, 3, padding=1))
        self.five = nn.Sequential(nn.Conv2d(3, 2, 1), nn.ReLU(), nn.Conv2d(2, 4, 5, padding=2))
        self.pool = nn.Sequential(nn.AvgPool2d(3, stride=1, padding=1), nn.Conv2d(3, 4, 1))
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        branches = [self.one(x), self.three(x), self.five(x), self.pool(x)]
        return self.head(torch.cat(branches, dim=1).relu().mean((2, 3)))


class SqueezeExcitation(nn.Module):
    """Channels are weighed by two linear layers on their means."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.squeeze = nn.Linear(8, 4)
        self.excite = nn.Linear(4, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.silu(self.conv(x))
        weights = torch.sigmoid(self.excite(functional.silu(self.squeeze(y.mean((2, 3))))))
        return self.head((y * weights[:, :, None, None]).square().mean((2, 3)))


class DenseNet(nn.Module):
    """Each layer reads all that came before it."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(3 + 3 * i, 3, 3, padding=1, bias=False) for i in range(3))
        self.norms = nn.ModuleList(nn.GroupNorm(1, 3 + 3 * i) for i in range(3))
        self.head = nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = torch.cat([x, layer(torch.relu(norm(x)))], dim=1)
        return self.head(x.square().mean((2, 3)))


def autoencoder() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, stride=2, padding=1),
        nn.ELU(),
        nn.Flatten(),
        nn.Linear(96, 8),
        nn.Tanh(),
        nn.Linear(8, 96),
        nn.Unflatten(1, (6, 4, 4)),
        nn.ELU(),
        nn.ConvTranspose2d(6, 2, 3, stride=2, padding=1, output_padding=1),
    )


def superresolution() -> nn.Module:
    """Channels become pixels at the end."""
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1), nn.Tanh(), nn.Conv2d(6, 8, 3, padding=1), nn.PixelShuffle(2)
    )


IMAGES = given(features(3, 8, 8), integers(3))
PICTURES = given(features(2, 8, 8), features(2, 8, 8))

ARCHITECTURES = (
    Architecture("MNIST CNN", mnist, given(features(1, 28, 28), integers(10)), classification),
    Architecture("U-Net", UNet, PICTURES, regression),
    Architecture("Inception", Inception, IMAGES, classification),
    Architecture("squeeze and excitation", SqueezeExcitation, IMAGES, classification),
    Architecture("DenseNet", DenseNet, IMAGES, classification),
    Architecture("convolutional autoencoder", autoencoder, PICTURES, regression),
    Architecture("superresolution", superresolution, given(features(2, 4, 4), features(2, 8, 8)), regression),
)
