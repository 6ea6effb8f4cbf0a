"""The models of benchmarks/learn_cpu.py: what is trained, on what, by which optimizer and criterion.

Inputs are drawn once from a fixed seed, and their values do not change what a step costs but for the words of
the embedding classifier: they follow Zipf's law, as words do, so that a text has some of them more than once.
Only layers that every contender takes: no raw parameters, no tied weights, no normalization over a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

WORDS = 50_000
TEXT = 128
"""Words of a text."""
SYMBOLS = 8_000
CONTEXT = 128
"""Symbols that the language model sees."""

Batch = tuple[Tensor, Tensor]
Optimize = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


@dataclass(frozen=True)
class Workload:
    """A model, a batch of so many examples, how it is trained, and the ratio that is asked of Dalenius."""

    name: str
    size: int
    model: Callable[[], nn.Module]
    batch: Callable[[int], Batch]
    goal: float
    optimizer: Optimize
    criterion: Callable[[], nn.Module] = nn.CrossEntropyLoss


class PerSequence(nn.Module):
    """Cross entropy of each symbol, averaged over a sequence and then over sequences.

    A sequence is an example: `reduction="none"` gives the loss of each.
    """

    reduction = "mean"

    def forward(self, logits: Tensor, wanted: Tensor) -> Tensor:
        each = functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none")
        losses = each.view(wanted.shape).mean(1)
        return losses if self.reduction == "none" else losses.mean()


def sgd(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.05)


def adam(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=1e-3)


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )


def cnn() -> nn.Module:
    """The network of Papernot et al., "Tempered sigmoid activations", 2020, and of the example of Opacus."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, stride=2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


class Classifier(nn.Module):
    """The mean of the vectors of a text's words, and two layers above it.

    Adam, as plain SGD hardly moves the vector of a rare word; what Adam does for every word at every step is
    a part of the step without privacy, so that the ratios of all contenders are lower than with SGD.
    """

    def __init__(self, width: int = 64, hidden: int = 64, classes: int = 4) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.head = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, classes))

    def forward(self, text: Tensor) -> Tensor:
        return self.head(self.words(text).mean(1))


class Block(nn.Module):
    """Attention and a feed-forward part, each after its normalization."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        split = self.project(self.before(x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = split.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.join(seen.transpose(1, 2).flatten(2))
        return x + self.feed(self.after(x))


class GPT(nn.Module):
    """Four blocks; the head has weights of its own, as Opacus takes no tied ones."""

    def __init__(self, width: int = 256, depth: int = 4, heads: int = 8, symbols: int = SYMBOLS) -> None:
        super().__init__()
        self.symbols, self.places = nn.Embedding(symbols, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)

    def forward(self, text: Tensor) -> Tensor:
        # A place for each symbol of each example: per-example gradients need them, and Opacus a whole copy.
        places = torch.arange(text.shape[1]).repeat(text.shape[0], 1)
        return self.head(self.norm(self.blocks(self.symbols(text) + self.places(places))))


class Residual(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.convolved = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.GroupNorm(32, after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.GroupNorm(32, after),
        )
        around = [nn.Conv2d(before, after, 1, stride, bias=False), nn.GroupNorm(32, after)]
        self.around = nn.Sequential(*(around if stride > 1 or before != after else []))

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.convolved(x) + self.around(x))


def resnet() -> nn.Module:
    """ResNet-18 for images of 32 × 32, with 32 groups in place of the batch."""
    widths = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
    widths += [(128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    stem = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.GroupNorm(32, 64), nn.ReLU()]
    end = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)]
    return nn.Sequential(*stem, *(Residual(*width) for width in widths), *end)


def images(*shape: int) -> Callable[[int], Batch]:
    return lambda size: (torch.randn(size, *shape), torch.randint(10, (size,)))


def texts(size: int) -> Batch:
    return zipf((size, TEXT), WORDS), torch.randint(4, (size,))


def symbols(size: int) -> Batch:
    drawn = zipf((size, CONTEXT + 1), SYMBOLS)
    return drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous()


def zipf(shape: tuple[int, ...], kinds: int) -> Tensor:
    """The k-th kind is as likely as 1 / k."""
    until = torch.cumsum(1 / torch.arange(1, kinds + 1, dtype=torch.float64), 0)
    return torch.searchsorted(until / until[-1], torch.rand(shape, dtype=torch.float64)).clamp(max=kinds - 1)


WORKLOADS = {
    "mlp": Workload("MLP 784-1024-1024-10", 256, mlp, images(784), 1.3, sgd),
    "cnn": Workload("MNIST CNN", 512, cnn, images(1, 28, 28), 1.3, sgd),
    "embedding": Workload("50k-word embedding classifier", 64, Classifier, texts, 1.1, adam),
    "gpt": Workload("small GPT", 16, GPT, symbols, 1.2, sgd, PerSequence),
    "resnet": Workload("ResNet18-GN", 32, resnet, images(3, 32, 32), 1.6, sgd),
}
