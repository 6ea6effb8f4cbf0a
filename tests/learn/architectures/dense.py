"""Linear layers on vectors, sequences and images, and on a batch that is folded or moved."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .architecture import Architecture
from .data import classification, features, given, integers, regression, tagging


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(12, 16), nn.ReLU(inplace=True), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3)
    )


def with_dropout(p: float) -> nn.Module:
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Dropout(p), nn.Linear(16, 3))


class Bilinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pair = nn.Bilinear(5, 6, 7)
        self.head = nn.Linear(7, 3)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.head(torch.tanh(self.pair(left, right)))


class Pooled(nn.Module):
    """Linear on (B, …, D), then the mean over all positions."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(5, 12)
        self.head = nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.relu(self.inner(x)).flatten(1, -2).mean(1))


class Folded(nn.Module):
    """The batch is folded with the positions, (B, T, D) → (B·T, D), and unfolded again."""

    def __init__(self, *, time_major: bool = False) -> None:
        super().__init__()
        self.time_major = time_major
        self.inner = nn.Linear(5, 12)
        self.head = nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        if self.time_major:
            x = x.transpose(0, 1)
        shape = x.shape[:2]
        y = self.head(torch.relu(self.inner(x.reshape(-1, 5)))).reshape(*shape, 3)
        return y.transpose(0, 1) if self.time_major else y


class Transposed(nn.Module):
    """Linear sees (T, B, D); with T = 4 positions, as many as a small batch has examples."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(5, 12)
        self.head = nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.relu(self.inner(x.transpose(0, 1)))).transpose(0, 1)


class Squeezed(nn.Module):
    """Dimensions of one come and go; (B, 1, 1, D) on the way, and (B,) at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(12, 10)
        self.head = nn.Linear(10, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.inner(x[:, None, None, :]))
        return self.head(hidden).squeeze(-1).squeeze(2).squeeze(1)


class Highway(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.transforms = nn.ModuleList(nn.Linear(12, 12) for _ in range(2))
        self.gates = nn.ModuleList(nn.Linear(12, 12) for _ in range(2))
        self.head = nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        for transform, gate in zip(self.transforms, self.gates, strict=True):
            x = torch.lerp(x, torch.tanh(transform(x)), torch.sigmoid(gate(x)))
        return self.head(x)


VECTORS = given(features(12), integers(3))
SEQUENCES = given(features(4, 5), integers(3, 4))

ARCHITECTURES = (
    Architecture("mlp", mlp, VECTORS, classification),
    Architecture(
        "logistic regression", lambda: nn.Linear(40, 3), given(features(40), integers(3)), classification
    ),
    Architecture(
        "linear without bias",
        lambda: nn.Linear(40, 3, bias=False),
        given(features(40), features(3)),
        regression,
    ),
    Architecture("dropout of nothing", lambda: with_dropout(0.0), VECTORS, classification),
    Architecture("dropout", lambda: with_dropout(0.5), VECTORS, classification, random=True),
    Architecture("bilinear", Bilinear, given(features(5), features(6), integers(3)), classification),
    Architecture("linear on sequences", Pooled, given(features(6, 5), integers(3)), classification),
    Architecture("linear on images", Pooled, given(features(3, 4, 5), integers(3)), classification),
    Architecture("folded batch", Folded, SEQUENCES, tagging),
    Architecture(
        "folded batch, time-major", lambda: Folded(time_major=True), SEQUENCES, tagging, awkward=True
    ),
    Architecture("transposed batch", Transposed, SEQUENCES, tagging),
    Architecture("squeezed", Squeezed, given(features(12), features()), lambda y, t: (y - t).square()),
    Architecture("highway", Highway, VECTORS, classification),
)
