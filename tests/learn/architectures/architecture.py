"""A small model with data for it: what the exactness of private training is tested on.

`inputs(n, generator)` gives the arguments of the model and, last, the targets; example i is entry i of
dimension `batch_dim` of every argument and of dimension 0 of the targets. `loss` gives one number per
example. No example influences another's loss, so the loss of an example in a batch is its loss alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from torch import Tensor, nn

Part = Callable[[int, torch.Generator], Tensor]
Inputs = Callable[[int, torch.Generator], tuple[Tensor, ...]]
Loss = Callable[[Any, Tensor], Tensor]


@dataclass(frozen=True)
class Architecture:
    """One entry; the flags say what a test may expect of it."""

    name: str
    build: Callable[[], nn.Module]
    inputs: Inputs
    loss: Loss
    _: KW_ONLY
    # Where the examples lie in the arguments of the model; in the targets always in front.
    batch_dim: int = 0
    # Draws at each forward pass, so that a batch and a loop over its examples differ by chance.
    random: bool = False
    # An engine may refuse it, naming the module; a wrong gradient is never right.
    awkward: bool = False
    # Trainable parameters that no loss depends on: their gradient is zero.
    unused: tuple[str, ...] = ()

    def sample(
        self, n: int, *, seed: int = 0, dtype: torch.dtype = torch.float32
    ) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """The model and n examples of a seed; the first examples of a larger n are other examples."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = self.build().to(dtype)
        inputs = self.inputs(n, torch.Generator().manual_seed(seed))
        return model, tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)
