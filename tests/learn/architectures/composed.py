"""Several inputs, several outputs, gates, mixtures, sets, graphs, and computations torch repeats."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .architecture import Architecture
from .data import classification, features, given, integers, tagging


class TwoTowers(nn.Module):
    """An image and a text, joined."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(36, 6))
        self.text = nn.Embedding(20, 6)
        self.head = nn.Linear(12, 3)

    def forward(self, image: Tensor, tokens: Tensor) -> Tensor:
        return self.head(torch.cat([self.image(image), self.text(tokens).mean(1)], dim=1).tanh())


class Named(nn.Module):
    """Two heads, given by name."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Linear(12, 10)
        self.label, self.size = nn.Linear(10, 3), nn.Linear(10, 1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        hidden = torch.tanh(self.trunk(x))
        return {"label": self.label(hidden), "size": self.size(hidden)}


def named_loss(outputs: dict[str, Tensor], targets: Tensor) -> Tensor:
    return classification(outputs["label"], targets) + outputs["size"].square().squeeze(1)


class Variational(nn.Module):
    """A pair: the means and logarithms of variances of a code, and the class it decodes to."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(12, 8), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        return self.decoder(mean), (mean, log_variance)


def variational_loss(outputs: tuple[Tensor, tuple[Tensor, Tensor]], targets: Tensor) -> Tensor:
    logits, (mean, log_variance) = outputs
    divergence = (mean.square() + log_variance.exp() - log_variance - 1).sum(1) / 2
    return classification(logits, targets) + divergence


class Mixture(nn.Module):
    """All experts are evaluated and weighed by a softmax gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(12, 2)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(12, 6), nn.ReLU(), nn.Linear(6, 3)) for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        answers = torch.stack([expert(x) for expert in self.experts], dim=1)
        return (self.gate(x).softmax(1)[:, :, None] * answers).sum(1)


class Routed(Mixture):
    """Each expert sees only the positions, of all examples, whose gate is highest for it: perhaps none."""

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, 1)
        weights, choice = self.gate(flat).softmax(1).max(1)
        answers = x.new_zeros(len(flat), 3)
        for number, expert in enumerate(self.experts):
            chosen = (choice == number).nonzero().squeeze(1)
            answers = answers.index_add(0, chosen, expert(flat[chosen]) * weights[chosen, None])
        return answers.reshape(*x.shape[:2], 3)


class DeepSets(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 8))
        self.outer = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(x).sum(1))


class Graph(nn.Module):
    """Two rounds of messages along the edges of a ring of five nodes, the same for all examples."""

    adjacency: Tensor

    def __init__(self) -> None:
        super().__init__()
        ring = torch.eye(5).roll(1, dims=1)
        self.register_buffer("adjacency", (torch.eye(5) + ring + ring.t()) / 3)
        self.first, self.second = nn.Linear(4, 8, bias=False), nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.adjacency @ self.first(x))
        return self.head(torch.relu(self.adjacency @ self.second(x)).amax(1))


class FiLM(nn.Module):
    """A condition scales and shifts the channels of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 6, 3)
        self.condition = nn.Linear(4, 12)
        self.head = nn.Linear(6, 3)

    def forward(self, image: Tensor, condition: Tensor) -> Tensor:
        scale, shift = self.condition(condition)[:, :, None, None].chunk(2, dim=1)
        return self.head(torch.tanh(self.conv(image) * scale + shift).mean((2, 3)))


class Stopped(nn.Module):
    """A gate whose input is detached: gradients reach the trunk by the other way alone."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.gate, self.head = nn.Linear(12, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.trunk(x))
        return self.head(hidden * torch.sigmoid(self.gate(hidden.detach())))


class Checkpointed(nn.Module):
    """The middle is not kept but computed again on the way back."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(12, 8), nn.Linear(8, 3)
        self.middle = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(checkpoint(self.middle, self.first(x), use_reentrant=False)))


VECTORS = given(features(12), integers(3))

ARCHITECTURES = (
    Architecture(
        "two towers", TwoTowers, given(features(1, 5, 5), integers(20, 4), integers(3)), classification
    ),
    Architecture("named outputs", Named, VECTORS, named_loss),
    Architecture("nested outputs", Variational, VECTORS, variational_loss),
    Architecture("mixture", Mixture, VECTORS, classification),
    Architecture("routed mixture", Routed, given(features(4, 12), integers(3, 4)), tagging),
    Architecture("DeepSets", DeepSets, given(features(6, 5), integers(3)), classification),
    Architecture("graph", Graph, given(features(5, 4), integers(3)), classification),
    Architecture("FiLM", FiLM, given(features(2, 5, 5), features(4), integers(3)), classification),
    Architecture("stopped gradient", Stopped, VECTORS, classification),
    Architecture("checkpointed", Checkpointed, VECTORS, classification, awkward=True),
)
