"""Common form of the mixing loops: the training loop, and what its refusal has to name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.learn.mixing.rows import people
from tests.learn.runs import Criterion, network

Loop = Callable[[Any], None]
"""A training loop: a function of `private`, which has `.loader`, `.model`, `.zero_grad()` and `.step()`."""

CONSTRUCTOR, FIRST_STEP, LATER = "constructor", "first step", "later"
"""Where a loop is refused: by `Private` itself, before its first step is taken, or in its second batch."""


@dataclass(frozen=True)
class MixingLoop:
    """A training loop in which one row changes what another row adds to a step.

    Args:
        kind: One of the ten kinds of mixing.
        operation: Alternatives, separated by "|", for the name of the operation that the refusal blames.
        run: The training loop.
        model: Returns a new model, always with the same weights.
        data: Returns the data set: tensors side by side, or a list of rows.
        asked: Further arguments of `Private`.
        sizes: Number of other rows in each of the two companies.
        refused: Where the refusal is due.
        setting: Returns the context manager in which the loop runs.
    """

    kind: str
    operation: str
    run: Loop
    model: Callable[[], nn.Module] = network
    data: Callable[[], Any] = people
    asked: Mapping[str, Any] = field(default_factory=dict)
    sizes: tuple[int, int] = (5, 5)
    refused: str = FIRST_STEP
    setting: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def name(self) -> str:
        """Name of the loop's function."""
        return self.run.__name__

    @property
    def file(self) -> Path:
        """File that the loop is written in."""
        return Path(str(sys.modules[self.run.__module__].__file__))

    @property
    def blamed(self) -> str:
        """Regular expression for a message that names the operation, as a function or as a method."""
        return rf"(?<![A-Za-z_])_*[ri]?(?:{self.operation})_*(?![A-Za-z_])"


class Loops(list[MixingLoop]):
    """All loops of one kind."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def loop(self, operation: str, **options: Any) -> Callable[[Loop], Loop]:
        """Return a decorator that adds a whole training loop."""

        def add(run: Loop) -> Loop:
            self.append(MixingLoop(self.kind, operation, run, **options))
            return run

        return add

    def criterion(self, operation: str, **options: Any) -> Callable[[Criterion], Criterion]:
        """Return a decorator that adds the usual loop around a criterion of outputs and labels."""

        def add(criterion: Criterion) -> Criterion:
            def run(private: Any) -> None:
                train(private, criterion)

            run.__name__, run.__module__ = criterion.__name__, criterion.__module__
            self.loop(operation, **options)(run)
            return criterion

        return add

    def module(self, operation: str, **options: Any) -> Callable[[type[nn.Module]], type[nn.Module]]:
        """Return a decorator that adds the usual loop over a model of this class."""

        def add(module: type[nn.Module]) -> type[nn.Module]:
            def run(private: Any) -> None:
                train(private, nn.CrossEntropyLoss())

            run.__name__, run.__module__ = module.__name__, module.__module__
            self.loop(operation, model=lambda: seeded(module), **options)(run)
            return module

        return add


def train(private: Any, criterion: Criterion) -> None:
    """Run the usual loop."""
    for x, y in private.loader:
        private.zero_grad()
        criterion(private.model(x), y).backward()
        private.step()


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    """Return a model that has the same weights on every call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make()
