"""Small training runs on made-up data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from dalenius.learn.optimizer import PrivateOptimizer
from dalenius.learn.private import Private

Criterion = Callable[[Any, Any], Tensor]


def data(rows: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Five features and one of three classes."""
    bits = torch.Generator().manual_seed(seed)
    return torch.randn(rows, 5, generator=bits), torch.randint(3, (rows,), generator=bits)


def network(*, seed: int = 0) -> nn.Sequential:
    """Five features to three classes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))


def run_of(model: nn.Module, dataset: Any, **more: Any) -> Private:
    """A run with plain SGD, of few steps where nothing else is said."""
    optimizer = torch.optim.SGD(model.parameters(), lr=more.pop("lr", 0.5))
    asked = {"batch_size": 8, "steps": 3, "clip": 1, "noise_multiplier": 1} | more
    return Private(model, optimizer, dataset, **asked)


def stepper(model: nn.Module, **more: Any) -> PrivateOptimizer:
    """The same for a loop of one's own; a step moves parameters by minus their private gradient."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    asked = {"batch_size": 4, "clip": 1, "noise_multiplier": 1} | more
    return PrivateOptimizer(model, optimizer, **asked)


def train(private: Private, criterion: Criterion | None = None) -> None:
    """All of it."""
    criterion = criterion or nn.CrossEntropyLoss()
    for x, y in private.loader:
        private.zero_grad()
        criterion(private.model(x), y).backward()
        private.step()


def flat(model: nn.Module) -> Tensor:
    """All parameters as one vector."""
    return torch.cat([one.detach().reshape(-1) for one in model.parameters()])
