"""Random examples, and losses with one number per example."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .architecture import Inputs, Part


def features(*shape: int) -> Part:
    """Standard normal arguments or targets of one shape."""
    return lambda n, generator: torch.randn(n, *shape, generator=generator)


def integers(high: int, *shape: int) -> Part:
    """Tokens, classes or lengths from zero up to, but not including, `high`."""
    return lambda n, generator: torch.randint(high, (n, *shape), generator=generator)


def time_first(part: Part) -> Part:
    """The same examples with their batch in dimension 1."""
    return lambda n, generator: part(n, generator).transpose(0, 1).contiguous()


class TimeFirst(nn.Module):
    """A model of (length, n, …) that is given, and gives, (n, length, …)."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.inner(*(x.transpose(0, 1) for x in inputs)).transpose(0, 1)


class Quiet(nn.Module):
    """A model that torch warns about for its speed, which is no failure here."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.inner(x)


def given(*parts: Part) -> Inputs:
    """The arguments of a model and, last, its targets."""
    return lambda n, generator: tuple(part(n, generator) for part in parts)


def classification(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of (n, classes)."""
    return functional.cross_entropy(outputs, targets, reduction="none")


def tagging(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of (n, length, classes), its mean over the positions of each example."""
    return functional.cross_entropy(outputs.transpose(1, 2), targets, reduction="none").mean(1)


def tagging_time_first(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of (length, n, classes), its mean over the positions of each example."""
    return tagging(outputs.transpose(0, 1), targets)


def regression(outputs: Tensor, targets: Tensor) -> Tensor:
    """Half the mean square error of each example."""
    return (outputs - targets).square().flatten(1).mean(1) / 2


def logits_of(outputs: Any) -> Tensor:
    """The logits of an output with named fields."""
    logits = outputs.logits
    assert isinstance(logits, Tensor)
    return logits
