"""One parameter in several places: the gradient of an example is the sum over them, and so is its norm's."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .architecture import Architecture
from .data import classification, features, given, integers, regression, tagging


class Twice(nn.Module):
    """One Linear called twice in a forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(12, 12)
        self.head = nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.inner(torch.tanh(self.inner(x)))))


class Shapes(nn.Module):
    """One Linear on (B, T, D) and then on (B, D)."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(10, 10)
        self.head = nn.Linear(10, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.inner(torch.tanh(self.inner(x)).mean(1))))


class Albert(nn.Module):
    """Three layers that are one, as in ALBERT, on a factorized embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, 4)
        self.widen = nn.Linear(4, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 20)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.widen(self.tokens(tokens))
        for _ in range(3):
            x = self.layer(x)
        return self.head(x)


class RecurrentConvolution(nn.Module):
    """One convolution and one norm applied three times."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 1)
        self.conv = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(2, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for _ in range(3):
            x = torch.relu(self.norm(self.conv(x))) + x
        return self.head(x.mean((2, 3)))


class TiedAutoencoder(nn.Module):
    """The decoder is the encoder's weight transposed."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(12, 8)
        self.bias = nn.Parameter(torch.randn(12))

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(torch.tanh(self.encoder(x)), self.encoder.weight.t(), self.bias)


class TwoKinds(nn.Module):
    """One parameter is a convolution's weight, a linear map's, and is penalized besides."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 8, 3)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        convolved = torch.tanh(self.conv(x)).mean(2)
        linear = functional.linear(x[:, :, :3].flatten(1), self.conv.weight.flatten(1), self.conv.bias)
        return self.head(convolved + torch.sin(linear)) * (1 + self.conv.weight.square().mean())


class PaddedTie(nn.Module):
    """The embedding gives its padding row no gradient, the head tied to it does."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(12, 8, padding_idx=0)
        self.inner = nn.Linear(8, 8)
        self.head = nn.Linear(8, 12)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(torch.tanh(self.inner(self.tokens(tokens))))


class TwoOwners(nn.Module):
    """Two Linears share a weight but not their biases; two others share only their bias."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 8)
        self.two.weight = self.one.weight
        self.three, self.four = nn.Linear(8, 3), nn.Linear(8, 3)
        self.four.bias = self.three.bias

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.two(torch.tanh(self.one(x))))
        return self.three(x) + self.four(x.square())


class Siamese(nn.Module):
    """One encoder for both inputs; the answer is of the product of their codes."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 10), nn.ReLU(), nn.Linear(10, 6))
        self.head = nn.Linear(6, 3)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.head(self.encoder(left) * self.encoder(right))


class Paired(Siamese):
    """The encoder reads both inputs at once, laid end to end along the batch."""

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        one, two = self.encoder(torch.cat([left, right])).chunk(2)
        return self.head(one * two)


PAIRS = given(features(12), features(12), integers(3))

ARCHITECTURES = (
    Architecture("linear called twice", Twice, given(features(12), integers(3)), classification),
    Architecture("linear on two shapes", Shapes, given(features(4, 10), integers(3)), classification),
    Architecture("ALBERT", Albert, given(integers(20, 4), integers(20, 4)), tagging),
    Architecture(
        "recurrent convolution", RecurrentConvolution, given(features(3, 5, 5), integers(3)), classification
    ),
    Architecture("tied autoencoder", TiedAutoencoder, given(features(12), features(12)), regression),
    Architecture("one weight of two kinds", TwoKinds, given(features(4, 7), integers(3)), classification),
    Architecture("tied and padded", PaddedTie, given(integers(12, 6), integers(12, 6)), tagging),
    Architecture("two owners", TwoOwners, given(features(8), integers(3)), classification),
    Architecture("Siamese", Siamese, PAIRS, classification),
    Architecture("Siamese, in one batch", Paired, PAIRS, classification, awkward=True),
)
