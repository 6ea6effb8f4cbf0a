"""Raw nn.Parameters: scales and shifts, products, lookups, weights derived from them, unused ones."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from .architecture import Architecture
from .data import classification, features, given, integers


def drawn(*shape: int) -> nn.Parameter:
    """Normal with the variance that keeps a product's size."""
    return nn.Parameter(torch.randn(*shape) / max(1, math.prod(shape[:1])) ** 0.5)


class ScaleShift(nn.Module):
    """x·g + b, and a temperature of no dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.shift, self.temperature = drawn(12), drawn(12), nn.Parameter(torch.tensor(0.7))
        self.head = nn.Sequential(nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(x * self.scale + self.shift)) / self.temperature


class Product(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = drawn(12, 8), drawn(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x @ self.first) @ self.second


class Einsum(nn.Module):
    """Heads with a matrix each: one parameter of three dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.heads, self.out = drawn(5, 2, 8), drawn(2, 8, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.einsum("btd,dhe->bthe", x, self.heads).tanh()
        return torch.einsum("bthe,hec->bc", hidden, self.out)


class Indexed(nn.Module):
    """Rows of a parameter chosen by a fixed index, some twice, and by the example's class."""

    index: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.table, self.groups = drawn(4, 12), drawn(5, 12)
        self.head = nn.Linear(12, 3)
        self.register_buffer("index", torch.tensor([0, 2, 2, 3]))

    def forward(self, x: Tensor, group: Tensor) -> Tensor:
        return self.head(torch.tanh(x * self.table[self.index].sum(0) + self.groups[group]))


class Positive(nn.Module):
    """Weights that cannot be negative: softplus of what is learned, then an ordinary linear map."""

    def __init__(self) -> None:
        super().__init__()
        self.raw, self.bias = drawn(8, 12), drawn(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(functional.linear(x, functional.softplus(self.raw), self.bias)))


class Hypernetwork(nn.Module):
    """A Linear of a raw code, without a batch, makes the weights that are applied to x."""

    def __init__(self) -> None:
        super().__init__()
        self.code = drawn(4)
        self.maker = nn.Linear(4, 36)

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.maker(self.code).reshape(3, 12))


class Fourier(nn.Module):
    """A global filter: a complex weight, kept as pairs of reals, multiplies the spectrum."""

    def __init__(self) -> None:
        super().__init__()
        self.filter = nn.Parameter(torch.randn(8, 7, 2))
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        spectrum = torch.fft.rfft(x, dim=2, norm="ortho") * torch.view_as_complex(self.filter)
        return self.head(torch.fft.irfft(spectrum, n=x.shape[2], dim=2, norm="ortho").square().mean(2))


class Collections(nn.Module):
    """Parameters kept in a list and in a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.scales = nn.ParameterList(drawn(12) for _ in range(3))
        self.maps = nn.ParameterDict({"in": drawn(12, 6), "out": drawn(6, 3)})

    def forward(self, x: Tensor) -> Tensor:
        for scale in self.scales:
            x = torch.tanh(x * scale) + x
        return x @ self.maps["in"] @ self.maps["out"]


class Unused(nn.Module):
    """A raw parameter and a layer that forward never reads, and a layer whose output is thrown away."""

    def __init__(self) -> None:
        super().__init__()
        self.raw = drawn(5)
        self.spare = nn.Linear(12, 4)
        self.discarded = nn.Linear(12, 4)
        self.head = nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        self.discarded(x)
        return self.head(x)


def weight_normed() -> nn.Module:
    layers = (nn.Linear(12, 8), nn.Linear(8, 3))
    first, second = (parametrizations.weight_norm(layer) for layer in layers)
    return nn.Sequential(first, nn.Tanh(), second)


class Prototypes(nn.Module):
    """Distances to learned points, as in clustering."""

    def __init__(self, p: float = 2.0) -> None:
        super().__init__()
        self.inner, self.points, self.p = nn.Linear(12, 6), drawn(3, 6), p

    def forward(self, x: Tensor) -> Tensor:
        return -torch.cdist(torch.tanh(self.inner(x)), self.points, p=self.p)


VECTORS = given(features(12), integers(3))
UNUSED = ("raw", "spare.weight", "spare.bias", "discarded.weight", "discarded.bias")

ARCHITECTURES = (
    Architecture("scale and shift", ScaleShift, VECTORS, classification),
    Architecture("raw product", Product, VECTORS, classification),
    Architecture("raw einsum", Einsum, given(features(4, 5), integers(3)), classification),
    Architecture("raw index", Indexed, given(features(12), integers(5), integers(3)), classification),
    Architecture("positive weights", Positive, VECTORS, classification),
    Architecture("hypernetwork", Hypernetwork, VECTORS, classification),
    Architecture("Fourier filter", Fourier, given(features(8, 12), integers(3)), classification),
    Architecture("parameter collections", Collections, VECTORS, classification),
    Architecture("unused parameters", Unused, VECTORS, classification, unused=UNUSED),
    Architecture("weight normalization", weight_normed, VECTORS, classification),
    Architecture("prototypes", Prototypes, VECTORS, classification),
    Architecture("prototypes, in the 1-norm", lambda: Prototypes(1.0), VECTORS, classification),
)
